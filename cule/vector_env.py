"""cule.AtariEnv: thousands of Atari 2600 consoles as one gymnasium vector environment of torch tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import error
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cule import _core
from cule.actions import ACTIONS, action_number
from cule.engine import AUTORESET_MODES, Engine, Group, Options, action_numbers
from cule.palette import grey_palette, rgb_palette
from cule.rom import Game, find_game
from cule.state import State

Array = torch.Tensor | np.ndarray

# Counts live in 32 bits.
MOST = 2**31 - 1
# Each thread, and on a GPU each env, keeps room for the TIA writes of a whole step: 10 KiB a frame.
MOST_FRAMESKIP = 10_000
MOST_THREADS = 1024
MOST_SEED = 2**63 - 1
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def default_device() -> str:
    """The device for None: "cuda" where this build and this machine have it, else "cpu"."""
    return "cuda" if _core.has_cuda() and torch.cuda.is_available() else "cpu"


def find_device(device: str | torch.device | None) -> torch.device:
    """The torch device that `device` means.

    Raises:
        ValueError: if it is neither the CPU nor a CUDA device, or this build or machine does not have it.
    """
    try:
        found = torch.device(device if device is not None else default_device())
    except (RuntimeError, TypeError) as problem:
        raise ValueError(f"expected a device such as 'cpu', 'cuda' or 'cuda:1', got {device!r}") from problem
    if found.type == "cpu":
        return torch.device("cpu")
    if found.type != "cuda":
        raise ValueError(f"expected device 'cpu' or 'cuda', got {device!r}")
    if not _core.has_cuda():
        raise ValueError(
            f"device={device!r} was asked for, but this cule was built without CUDA; "
            "reinstall it where nvcc is found (CULE_CUDA=ON makes a build without it fail), or use device='cpu'"
        )
    if not torch.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch finds no usable CUDA GPU here; use device='cpu'")
    index = found.index if found.index is not None else torch.cuda.current_device()
    if index >= torch.cuda.device_count():
        raise ValueError(f"expected a CUDA device below cuda:{torch.cuda.device_count()}, got {device!r}")
    return torch.device("cuda", index)


def _positive(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"expected {name} to be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"expected {name} to be at least {least}, got {value}")
    if value > most:
        raise ValueError(f"expected {name} to be at most {most}, got {value}")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"expected {name} to be True or False, got {value!r}")
    return bool(value)


def _probability(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)):
        raise TypeError(f"expected {name} to be a number, got {value!r}")
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"expected {name} to be from 0 to 1, got {value}")
    return float(value)


def _array(name: str, values: Any) -> np.ndarray:
    """An array of numbers."""
    try:
        array = np.asarray(values)
    except ValueError as problem:
        raise TypeError(f"expected {name} to be an array of numbers, got {values!r}") from problem
    if array.dtype.kind not in "biuf":
        raise TypeError(f"expected {name} to be an array of numbers, got {values!r}")
    return array


def _per_env(name: str, value: int | Sequence[int] | None, num_envs: int) -> list[int | None]:
    one = value is None or (isinstance(value, (int, np.integer)) and not isinstance(value, bool))
    if not one and (isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray))):
        raise TypeError(f"expected {name} to be an integer or one for each env, got {value!r}")
    values = [value] * num_envs if one else list(value)
    if len(values) != num_envs:
        raise ValueError(f"expected {name} to be one integer or {num_envs} of them, got {len(values)}")
    return [None if one is None else _positive(name, one, 0) for one in values]


def _make_groups(
    games: Sequence[Game], modes: Sequence[int | None], difficulties: Sequence[int | None]
) -> tuple[list[Group], np.ndarray]:
    """The distinct (game, mode, difficulty) and, for each env, the index of its own."""
    groups: dict[Group, int] = {}
    indices = []
    for game, mode, difficulty in zip(games, modes, difficulties, strict=True):
        mode = game.facts["default_mode"] if mode is None else mode
        difficulty = 0 if difficulty is None else difficulty
        if mode not in game.modes:
            raise ValueError(f"expected a mode of {game.name!r} ({', '.join(map(str, game.modes))}), got {mode}")
        # ale-py starts every game at difficulty 0, listed or not.
        if difficulty != 0 and difficulty not in game.difficulties:
            listed = ", ".join(map(str, game.difficulties))
            raise ValueError(f"expected a difficulty of {game.name!r} ({listed}), got {difficulty}")
        indices.append(groups.setdefault(Group(game, mode, difficulty), len(groups)))
    return list(groups), np.array(indices)


class AtariEnv(VectorEnv):
    """Atari 2600 games, many at once, on a GPU or a CPU.

    Keywords that `ale_py.AtariVectorEnv` has mean the same here and have the same defaults.

    Observations, rewards and everything else that `reset` and `step` return with `output="torch"` are tensors on the
    env's device that the next call overwrites: `clone()` what must last. With `output="numpy"` they are fresh arrays.

    Args:
        game: a ROM id ("ms_pacman"), an ALE id ("ALE/MsPacman-v5"), or a sequence of them: env i plays
            `game[i * len(game) // num_envs]`.
        num_envs: how many consoles.
        device: "cpu", "cuda", "cuda:1"; None: cuda where this build and this machine have it, else cpu.
        max_num_frames_per_episode: frames after which an episode is truncated.
        repeat_action_probability: probability, each frame, that the last frame's action goes on.
        full_action_space: offer every action that the game allows, not only those that matter in it.
        continuous: actions are (radius, angle, fire), float32, instead of numbers.
        continuous_action_threshold: how far a stick must be pushed.
        autoreset_mode: when an env whose episode ended is reset: NEXT_STEP, SAME_STEP or DISABLED.
        img_height: rows of an observation.
        img_width: columns of an observation.
        grayscale: grey values; else RGB, as a last axis of 3.
        stack_num: frames in an observation, the newest last.
        frameskip: frames in a step.
        maxpool: observations are the maximum of a step's last two frames.
        noop_max: an episode starts after 0 to noop_max - 1 no-ops.
        episodic_life: a lost life ends the episode.
        life_loss_info: a lost life reports a termination, but the episode goes on.
        reward_clipping: rewards are -1, 0 or 1.
        use_fire_reset: press FIRE at the start of an episode in games that have it.
        num_threads: CPU only: how many envs run at once; 0: one for each core.
        batch_size: ale-py's keyword for stepping some of the envs; 0 or num_envs, as cule steps all of them.
        thread_affinity_offset: ale-py's keyword for pinning threads; -1, as cule leaves that to the system.
        mode: the game's mode, one for all or one for each env; None: its default.
        difficulty: the difficulty switches, likewise; None: 0.
        obs_type: "image", or "ram" for the console's 128 bytes.
        seed: what the first `reset` without a seed uses.
        reset_pool_size: how many states episodes start from; 0: every reset is emulated as ale-py does it.
        output: "torch" or "numpy".

    Raises:
        TypeError, ValueError: an argument is not what it should be; the message says what was expected and what came.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int = 1,
        device: str | torch.device | None = None,
        *,
        max_num_frames_per_episode: int = 108_000,
        repeat_action_probability: float = 0.0,
        full_action_space: bool = False,
        continuous: bool = False,
        continuous_action_threshold: float = 0.5,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        img_height: int = 84,
        img_width: int = 84,
        grayscale: bool = True,
        stack_num: int = 4,
        frameskip: int = 4,
        maxpool: bool = True,
        noop_max: int = 30,
        episodic_life: bool = False,
        life_loss_info: bool = False,
        reward_clipping: bool = True,
        use_fire_reset: bool = True,
        num_threads: int = 0,
        batch_size: int = 0,
        thread_affinity_offset: int = -1,
        mode: int | Sequence[int] | None = None,
        difficulty: int | Sequence[int] | None = None,
        obs_type: Literal["image", "ram"] = "image",
        seed: int | None = None,
        reset_pool_size: int = 30,
        output: Literal["torch", "numpy"] = "torch",
    ) -> None:
        self.num_envs = _positive("num_envs", num_envs)
        if obs_type not in ("image", "ram"):
            raise ValueError(f"expected obs_type to be 'image' or 'ram', got {obs_type!r}")
        if output not in ("torch", "numpy"):
            raise ValueError(f"expected output to be 'torch' or 'numpy', got {output!r}")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError as problem:
            raise ValueError(
                f"expected autoreset_mode to be one of {AUTORESET_MODES}, got {autoreset_mode!r}"
            ) from problem
        self.obs_type, self.output = obs_type, output
        if obs_type == "ram" and self.autoreset_mode == AutoresetMode.SAME_STEP:
            raise ValueError(
                "expected obs_type='image' with autoreset_mode SAME_STEP, as RAM keeps no final observation"
            )
        self.continuous = _flag("continuous", continuous)
        self.continuous_action_threshold = _probability("continuous_action_threshold", continuous_action_threshold)
        self.device = find_device(device)
        self._seed = None if seed is None else _positive("seed", seed, 0, MOST_SEED)
        self.games = self._games_of_envs(game)
        groups, group_of_env = _make_groups(
            self.games, _per_env("mode", mode, self.num_envs), _per_env("difficulty", difficulty, self.num_envs)
        )
        space = self._choose_action_space(groups, _flag("full_action_space", full_action_space) or self.continuous)
        options = Options(
            frameskip=_positive("frameskip", frameskip, most=MOST_FRAMESKIP),
            max_frames=_positive("max_num_frames_per_episode", max_num_frames_per_episode),
            noop_max=_positive("noop_max", noop_max, 0),
            maxpool=_flag("maxpool", maxpool),
            episodic_life=_flag("episodic_life", episodic_life),
            life_loss_info=_flag("life_loss_info", life_loss_info),
            reward_clipping=_flag("reward_clipping", reward_clipping),
            fire_reset=_flag("use_fire_reset", use_fire_reset),
            autoreset=AUTORESET_MODES.index(self.autoreset_mode.value),
            repeat_action_probability=_probability("repeat_action_probability", repeat_action_probability),
            action_space=space,
            observation_height=_positive("img_height", img_height),
            observation_width=_positive("img_width", img_width),
            channels=1 if _flag("grayscale", grayscale) else 3,
            stack=_positive("stack_num", stack_num),
            reset_pool_size=_positive("reset_pool_size", reset_pool_size, 0),
        )
        if batch_size not in (0, self.num_envs):
            raise ValueError(
                f"expected batch_size to be 0 or num_envs ({self.num_envs}), as cule steps all envs at once, "
                f"got {batch_size!r}"
            )
        if thread_affinity_offset != -1:
            raise ValueError(
                f"expected thread_affinity_offset to be -1, as cule pins no threads, got {thread_affinity_offset!r}"
            )
        threads = _positive("num_threads", num_threads, 0, MOST_THREADS) or os.cpu_count() or 1
        self.engine = Engine(groups, group_of_env, options, self.device, min(threads, self.num_envs))
        self._action_numbers = action_numbers(groups[0].game, space)
        self.spec = None
        self.closed = False
        self._started = self._sent = False
        self._make_spaces(options)
        self._make_views()

    def _games_of_envs(self, game: str | Sequence[str]) -> list[Game]:
        if isinstance(game, str):
            return [find_game(game)] * self.num_envs
        if isinstance(game, bytes) or not isinstance(game, Sequence) or not game:
            raise TypeError(f"expected the name of a game or a sequence of names, got {game!r}")
        if len(game) > self.num_envs:
            raise ValueError(f"expected num_envs to be at least the number of games ({len(game)}), got {self.num_envs}")
        chosen = [find_game(name) for name in game]
        return [chosen[i * len(chosen) // self.num_envs] for i in range(self.num_envs)]

    @staticmethod
    def _choose_action_space(groups: Sequence[Group], full: bool) -> str:
        """Games that offer different actions share all 18."""
        space = "full" if full else "minimal"
        offered = {action_numbers(group.game, space) for group in groups}
        return space if len(offered) == 1 else "all"

    def _make_spaces(self, options: Options) -> None:
        if self.obs_type == "ram":
            shape: tuple[int, ...] = (_core.RAM_BYTES,)
        else:
            shape = tuple(self.engine.tensors["observations"].shape[1:])
        self.single_observation_space = Box(low=0, high=255, shape=shape, dtype=np.uint8)
        if self.continuous:
            low, high = np.array([0, -np.pi, 0], np.float32), np.array([1, np.pi, 1], np.float32)
            self.single_action_space: gymnasium.Space = Box(low=low, high=high, dtype=np.float32)
        else:
            self.single_action_space = Discrete(len(self._action_numbers))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}

    def _make_views(self) -> None:
        """The tensors that calls return, made once."""
        tensors = self.engine.tensors
        self._observations = tensors["ram"] if self.obs_type == "ram" else tensors["observations"]
        self._terminated = tensors["terminated"].view(torch.bool)
        self._truncated = tensors["truncated"].view(torch.bool)
        self._done = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._info = {
            "env_id": torch.arange(self.num_envs, dtype=torch.int32, device=self.device),
            "lives": tensors["lives"],
            "frame_number": tensors["frame_numbers"],
            "episode_frame_number": tensors["episode_frame_numbers"],
            "fault": tensors["faults"],
        }
        if self.continuous:
            table = torch.zeros((3, 3, 2), dtype=torch.int32)
            for h in (-1, 0, 1):
                for v in (-1, 0, 1):
                    for fire in (0, 1):
                        # As in ale-py, even where a game without a button has fewer actions than numbers.
                        table[h + 1, v + 1, fire] = action_number(h, v, bool(fire))
            self._action_table = table.to(self.device)
            strengths = torch.ones(self.num_envs, dtype=torch.float32, device=self.device)
            self.engine.tensors["strengths"] = strengths
            self.engine.batch.strengths = strengths.data_ptr()

    # Playing -------------------------------------------------------------------------------------------------------

    @property
    def action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return [ACTIONS[number] for number in self._action_numbers]

    def reset(
        self, *, seed: int | Sequence[int] | np.ndarray | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Starts new episodes.

        Args:
            seed: env i gets `seed + i`, counting only the envs that are reset; or one seed for each of those.
            options: `reset_mask`, (num_envs,) bool: which envs to reset; the others go on.

        Returns:
            Observations, (num_envs, stack_num, img_height, img_width) uint8, and a dict of (num_envs,) arrays.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            TypeError, ValueError: `seed` or `reset_mask` is not as described.
        """
        self._check_open("reset")
        mask = self._reset_mask(options)
        if mask is not None and not self._started:
            raise error.ResetNeeded("expected the first reset to reset every env, got a reset_mask")
        self.engine.reset(mask, self._seeds(seed, mask))
        self._started, self._sent = True, False
        return self._out(self._observations), self._infos()

    def _reset_mask(self, options: dict[str, Any] | None) -> torch.Tensor | None:
        if options is not None and not isinstance(options, dict):
            raise TypeError(f"expected options to be a dict, such as {{'reset_mask': mask}}, got {options!r}")
        if not options or options.get("reset_mask") is None:
            return None
        mask = options["reset_mask"]
        if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
            mask = torch.from_numpy(np.array(mask, order="C"))
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            kind = getattr(mask, "dtype", type(mask).__name__)
            raise TypeError(f"expected reset_mask to be a boolean array, got {kind}")
        if tuple(mask.shape) != (self.num_envs,):
            raise ValueError(f"expected reset_mask to have shape {(self.num_envs,)}, got {tuple(mask.shape)}")
        return mask.to(self.device).view(torch.uint8).contiguous()

    def _seeds(self, seed: Any, mask: torch.Tensor | None) -> torch.Tensor | None:
        if seed is None:
            if self._started:
                return None
            seed = self._seed if self._seed is not None else int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        count = self.num_envs if mask is None else int(mask.sum())
        if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            lowest, highest = int(seed), int(seed) + max(count - 1, 0)
        elif isinstance(seed, (Sequence, np.ndarray)) and not isinstance(seed, str):
            values = _array("seed", seed)
            if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
                raise ValueError(
                    f"expected seed to have one integer for each of the {count} envs that are reset, "
                    f"got {values.dtype} of shape {values.shape}"
                )
            lowest, highest = (int(values.min()), int(values.max())) if count else (0, 0)
        else:
            raise TypeError(f"expected seed to be an integer or one for each env, got {seed!r}")
        if lowest < 0 or highest > MOST_SEED:
            raise ValueError(f"expected seeds from 0 to {MOST_SEED}, got {lowest if lowest < 0 else highest}")
        if isinstance(seed, (int, np.integer)):
            values = np.arange(count, dtype=np.int64) + int(seed)
        seeds = torch.full((self.num_envs,), -1, dtype=torch.int64)
        chosen = slice(None) if mask is None else mask.cpu().bool()
        seeds[chosen] = torch.from_numpy(values.astype(np.int64))
        return seeds.to(self.device)

    def step(
        self, actions: Array, player_b_actions: Array | None = None
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Plays one step of `frameskip` frames in every env.

        Args:
            actions: (num_envs,) integers below `single_action_space.n`; or, where `continuous`, (num_envs, 3) float32:
                radius from 0 to 1, angle in radians, fire. A tensor on the env's device, or an array. The CPU looks at
                the values; a GPU plays a wrong number as a no-op, and a radius out of range as the nearest in it.
            player_b_actions: (num_envs,) integers from 0 to 17 (see cule.ACTIONS): what the second player does.

        Returns:
            observations (num_envs, stack_num, img_height, img_width) uint8, rewards (num_envs,) int32, terminated and
            truncated (num_envs,) bool, and a dict of (num_envs,) arrays: `env_id`, `lives`, `frame_number`,
            `episode_frame_number`, `reward` (not clipped), `fault` (see cule.FAULTS), and in SAME_STEP `final_obs`.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: it has not been reset.
            TypeError, ValueError: the actions' dtype, shape, device or range is not as described.
        """
        self.send(actions, player_b_actions)
        return self.recv()

    def send(self, actions: Array, player_b_actions: Array | None = None) -> None:
        """The first half of `step`: hands the actions over. On a GPU it returns before the consoles are done.

        Raises:
            gymnasium.error.AlreadyPendingCallError: what came of the last actions has not been received.
            And what `step` raises.
        """
        self._check_open("step")
        self._check_started("step")
        if self._sent:
            raise error.AlreadyPendingCallError("expected recv() after send(), got a second send()", "step")
        if self.continuous:
            self._set_continuous_actions(actions)
        else:
            self.engine.tensors["actions"].copy_(
                self._check_actions("actions", actions, self.single_action_space.n)
            )
        self._set_player_b(player_b_actions)
        self.engine.step()
        self._sent = True

    def recv(self) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """The second half of `step`: what it returns, of all envs.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.NoAsyncCallError: nothing has been sent.
        """
        self._check_open("recv")
        if not self._sent:
            raise error.NoAsyncCallError("expected send() before recv()", "step")
        self._sent = False
        tensors = self.engine.tensors
        return (
            self._out(self._observations),
            self._out(tensors["rewards"]),
            self._out(self._terminated),
            self._out(self._truncated),
            self._infos(stepped=True),
        )

    def _on_device(self, name: str, values: Any) -> torch.Tensor:
        if isinstance(values, torch.Tensor):
            if values.device != self.device:
                raise ValueError(f"expected {name} on {self.device}, got a tensor on {values.device}")
            return values.detach()
        return torch.from_numpy(np.array(_array(name, values), order="C")).to(self.device)

    def _check_actions(self, name: str, values: Any, bound: int) -> torch.Tensor:
        tensor = self._on_device(name, values)
        if tensor.dtype not in _INTEGERS:
            raise TypeError(f"expected {name} to be integers, got {tensor.dtype}")
        if tuple(tensor.shape) != (self.num_envs,):
            raise ValueError(f"expected {name} to have shape {(self.num_envs,)}, got {tuple(tensor.shape)}")
        # On a GPU looking at the values would wait for the device; a wrong one is played as a no-op there.
        if self.device.type == "cpu" and (int(tensor.min()) < 0 or int(tensor.max()) >= bound):
            raise ValueError(
                f"expected {name} from 0 to {bound - 1}, got values from {int(tensor.min())} to {int(tensor.max())}"
            )
        return tensor

    def _set_continuous_actions(self, actions: Array) -> None:
        values = self._on_device("actions", actions)
        if values.dtype != torch.float32:
            raise TypeError(f"expected actions to be float32, got {values.dtype}")
        if tuple(values.shape) != (self.num_envs, 3):
            raise ValueError(f"expected actions to have shape {(self.num_envs, 3)}, got {tuple(values.shape)}")
        radius, threshold = values[:, 0], self.continuous_action_threshold
        if self.device.type == "cpu":
            if not bool(torch.isfinite(values).all()):
                raise ValueError("expected actions to be finite, got NaN or infinity")
            if float(radius.min()) < 0 or float(radius.max()) > 1:
                raise ValueError(
                    f"expected actions with a radius from 0 to 1, got {float(radius.min())} to {float(radius.max())}"
                )
        else:
            radius = torch.nan_to_num(radius, nan=0.0).clamp_(0.0, 1.0)
        x, y = radius * torch.cos(values[:, 1]), radius * torch.sin(values[:, 1])
        horizontal = (x > threshold).long() - (x < -threshold).long() + 1
        vertical = (y > threshold).long() - (y < -threshold).long() + 1
        fire = (values[:, 2] > threshold).long()
        self.engine.tensors["actions"].copy_(self._action_table[horizontal, vertical, fire])
        self.engine.tensors["strengths"].copy_(radius)

    def _set_player_b(self, actions: Array | None) -> None:
        tensors, batch = self.engine.tensors, self.engine.batch
        if actions is None:
            batch.actions_b = 0
            return
        values = self._check_actions("player_b_actions", actions, len(ACTIONS))
        if "actions_b" not in tensors:
            tensors["actions_b"] = torch.zeros(self.num_envs, dtype=torch.int32, device=self.device)
        tensors["actions_b"].copy_(values)
        batch.actions_b = tensors["actions_b"].data_ptr()

    def _out(self, tensor: torch.Tensor) -> Array:
        return tensor if self.output == "torch" else tensor.cpu().numpy().copy()

    def _infos(self, stepped: bool = False) -> dict[str, Any]:
        infos = {key: self._out(value) for key, value in self._info.items()}
        if stepped:
            infos["reward"] = self._out(self.engine.tensors["raw_rewards"])
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                torch.logical_or(self._terminated, self._truncated, out=self._done)
                # Whether any env is done is known at once on the CPU only.
                if self.device.type == "cuda" or bool(self._done.any()):
                    infos["final_obs"] = self._out(self.engine.tensors["final_observations"])
                    infos["_final_obs"] = self._out(self._done)
        return infos

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise error.ClosedEnvironmentError(f"expected an open env, got {what}() after close()")

    def _check_started(self, what: str) -> None:
        if not self._started:
            raise error.ResetNeeded(f"expected reset() before the first {what}")

    def close_extras(self, **_: Any) -> None:
        """Frees the envs' memory. Called by close(), which may be called again, and after a constructor that raised."""
        for name in ("engine", "_observations", "_terminated", "_truncated", "_info"):
            self.__dict__.pop(name, None)

    # Looking inside ------------------------------------------------------------------------------------------------

    def get_ram(self) -> Array:
        """(num_envs, 128) uint8: the consoles' RAM, $80 to $FF."""
        self._check_open("get_ram")
        return self._out(self.engine.tensors["ram"].clone())

    def get_screen(self) -> Array:
        """(num_envs, height, 160) uint8: palette indices of the last emulated frame.

        In a batch of games of different heights, lower pictures end in rows of zeros.
        """
        self._check_open("get_screen")
        return self._out(self.engine.screens())

    def _colored(self, palette: Any) -> torch.Tensor:
        pal = torch.tensor([int(booted.pal) for booted in self.engine.boots], device=self.device)
        group = self.engine.tensors["group"].view(torch.int32).long()
        colors = torch.from_numpy(np.stack([palette(pal=False), palette(pal=True)])).to(self.device)
        return colors[pal[group][:, None, None], self.engine.screens().long()]

    def get_screen_rgb(self) -> Array:
        """(num_envs, height, 160, 3) uint8: the last emulated frame in color."""
        self._check_open("get_screen_rgb")
        return self._out(self._colored(rgb_palette))

    def get_screen_grayscale(self) -> Array:
        """(num_envs, height, 160) uint8: the last emulated frame in grey."""
        self._check_open("get_screen_grayscale")
        return self._out(self._colored(grey_palette)[..., 0])

    def render(self) -> np.ndarray:
        """(rows * height, columns * 320, 3) uint8: all screens side by side in color, pixels twice as wide as high."""
        self._check_open("render")
        screens = self._colored(rgb_palette).cpu().numpy().repeat(2, axis=2)
        columns = int(np.ceil(np.sqrt(self.num_envs)))
        rows = -(-self.num_envs // columns)
        height, width = screens.shape[1:3]
        mosaic = np.zeros((rows * columns, height, width, 3), np.uint8)
        mosaic[: self.num_envs] = screens
        return mosaic.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)

    # States --------------------------------------------------------------------------------------------------------

    def _env_ids(self, env_ids: Any) -> torch.Tensor:
        if env_ids is None:
            return torch.arange(self.num_envs, device=self.device)
        ids = env_ids if isinstance(env_ids, torch.Tensor) else torch.tensor(_array("env_ids", env_ids))
        if ids.dtype not in _INTEGERS or ids.dim() != 1:
            raise TypeError(f"expected env_ids to be a list of integers, got {ids.dtype} of shape {tuple(ids.shape)}")
        if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= self.num_envs):
            raise ValueError(f"expected env_ids from 0 to {self.num_envs - 1}, got {ids.tolist()}")
        return ids.to(self.device).long()

    def _target_ids(self, env_ids: Any) -> torch.Tensor:
        ids = self._env_ids(env_ids)
        if ids.unique().numel() != ids.numel():
            raise ValueError(f"expected each env to get one state, got env_ids {ids.tolist()}")
        return ids

    def clone_state(self, env_ids: Any = None) -> State:
        """The states of the given envs (None: all): picklable, and savable with torch.save.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: `env_ids` is not a list of envs.
        """
        self._check_open("clone_state")
        self._check_started("clone_state")
        return State.take(self.engine, self._env_ids(env_ids))

    def restore_state(self, state: State, env_ids: Any = None) -> None:
        """Puts states that clone_state took back, into the given envs (None: all), one each.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, envs are left out.
            TypeError, ValueError: the state is of another version, game or kind of env, or its number does not fit.
        """
        self._check_open("restore_state")
        if not isinstance(state, State):
            raise TypeError(f"expected a cule.State, got {type(state).__name__}")
        ids = self._target_ids(env_ids)
        if len(ids) < self.num_envs:
            self._check_started("restore_state to some of the envs")
        state.put(self.engine, ids)
        self._started = True

    def copy_state(self, src_ids: Any, dst_ids: Any) -> None:
        """Makes each env of `dst_ids` what the env at the same place of `src_ids` is, without leaving the device.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: the lists differ in length, an env would get two states or that of another game.
        """
        self._check_open("copy_state")
        self._check_started("copy_state")
        State.take(self.engine, self._env_ids(src_ids)).put(self.engine, self._target_ids(dst_ids))
