"""cule.AtariEnv: thousands of Atari 2600 consoles as one gymnasium vector environment of torch tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import error
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cule import _core, arguments, compiled, settings
from cule.actions import ACTIONS, ContinuousActions, check_numbers
from cule.array_wrappers import refuse_array_wrappers
from cule.console import action_numbers
from cule.engine import Engine
from cule.errors import InvalidType, InvalidValue
from cule.guard import changes, reads
from cule.lineup import choose_action_space, games_of_envs, make_groups
from cule.names import warn_of_other_meanings
from cule.palette import grey_palette, rgb_palette
from cule.rendering import FRAMES_PER_SECOND, RENDERERS
from cule.screens import colored
from cule.spec import spec_of
from cule.state import State
from cule.unknown_keywords import names_what_was_meant

# What a call takes.
ArrayLike = torch.Tensor | np.ndarray | Sequence[Any]
# What a call gives: a tensor, or an array with output="numpy". A union would have every caller say which of them it is.
Array = Any


class AtariEnv(VectorEnv):
    """Atari 2600 games, many at once, on a GPU or a CPU.

    Keywords that `ale_py.AtariVectorEnv` has mean the same here and have the same defaults.

    Observations, rewards and everything else that `reset` and `step` return with `output="torch"` are tensors on the
    env's device that the next call overwrites: `clone()` what must last. With `output="numpy"` they are fresh arrays.

    Args:
        game: a game's name in any spelling ("ms_pacman", "Ms. Pac-Man", "ALE/MsPacman-v5"), or a sequence of
            them: env i plays `game[i * len(game) // num_envs]`. What else an id means, as NoFrameskip does,
            does not count, and a UserWarning says so where the keywords differ.
        num_envs: how many consoles.
        device: "cpu", "cuda", "cuda:1"; None: cuda where this build and this machine have it, else cpu.
        max_num_frames_per_episode: frames after which an episode is truncated.
        repeat_action_probability: probability, each frame, that the last frame's action goes on.
        full_action_space: offer every action that the game allows, not only those that matter in it.
        continuous: actions are (radius, angle, fire), float32, instead of numbers.
        continuous_action_threshold: how far a stick must be pushed.
        autoreset_mode: when an env whose episode ended is reset: gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP
            or DISABLED, or "next_step", "same_step" or "disabled".
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
        translate: CUDA only: whether the game is compiled for the GPU, which takes ten to twenty seconds at first and
            makes steps several times faster, with the same results. True waits for it; None does it where 64 or more
            envs play one game, unless that is known to be faster interpreted, and plays on interpreted meanwhile:
            `translated` says when it is done, `wait_until_translated` waits.
            What has been compiled is kept in CULE_CACHE_DIR, by default in ~/.cache/cule.
        multiprocessors: CUDA only: how many of the GPU's multiprocessors emulate, with nothing else on them; the others
            stay free for what other streams do meanwhile, such as learning; None: as is fastest where there is nothing.
        batch_size: ale-py's keyword for stepping some of the envs; 0 or num_envs, as cule steps all of them.
        thread_affinity_offset: ale-py's keyword for pinning threads; -1, as cule leaves that to the system.
        mode: the game's mode, one for all or one for each env; None: its default.
        difficulty: the difficulty switches, likewise; None: 0.
        obs_type: "image", or "ram" for the console's 128 bytes.
        seed: what the first `reset` without a seed uses: env `i` gets `seed + i`.
        reset_pool_size: how many states episodes start from; 0: every reset is emulated as ale-py does it.
        output: "torch" or "numpy".
        render_mode: what `render` gives: "mosaic", one picture of all screens; "rgb_array", a tuple of one for each
            env, as gymnasium's wrappers expect; "rgb_array_list", a tuple of one list for each env, with its pictures
            since the last `render` or `reset`; None, nothing. "human" shows the mosaic in a window at each reset and
            step, at the console's speed, and needs `pip install pygame`.
        progress: say so on stderr, where it is a terminal, while start states of many games are made or a game is
            compiled, which takes seconds.

    Attributes:
        games: what each env plays.
        spec: what gymnasium.make_vec makes the same env from; None for a batch of several games.

    Raises:
        TypeError, ValueError: an argument is not what it should be; the message says what was expected and what came.
            Both are a gymnasium.error.Error as well.
        gymnasium.error.DependencyNotInstalled: render_mode="human" without pygame.
        torch.OutOfMemoryError: the device has no room for so many envs; the message says how much one takes and how
            many would fit.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(settings.RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }
    single_observation_space: Box
    single_action_space: Any  # Discrete, or with `continuous` a Box.

    @names_what_was_meant
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
        translate: bool | None = None,
        multiprocessors: int | None = None,
        batch_size: int = 0,
        thread_affinity_offset: int = -1,
        mode: int | Sequence[int] | None = None,
        difficulty: int | Sequence[int] | None = None,
        obs_type: Literal["image", "ram"] = "image",
        seed: int | None = None,
        reset_pool_size: int = 30,
        output: Literal["torch", "numpy"] = "torch",
        render_mode: Literal["mosaic", "rgb_array", "rgb_array_list", "human"] | None = "mosaic",
        progress: bool = True,
    ) -> None:
        keywords = dict(locals())
        self._guard = _core.Guard()
        checked = settings.check(keywords)
        self.num_envs, self.device, self._seed = checked.num_envs, checked.device, checked.seed
        self.obs_type, self.output = checked.obs_type, checked.output
        self.render_mode, self.autoreset_mode = checked.render_mode, checked.autoreset_mode
        self.continuous = checked.continuous
        self.continuous_action_threshold = checked.continuous_action_threshold
        self.games = games_of_envs(game, self.num_envs)
        warn_of_other_meanings([game] if isinstance(game, str) else game, **vars(checked))
        groups, group_of_env = make_groups(self.games, checked.mode, checked.difficulty)
        space = choose_action_space(groups, checked.full_action_space or self.continuous)
        options, threads = settings.step_options(checked, space), settings.threads(checked)
        self.engine = Engine(
            groups, group_of_env, options, self.device, threads, checked.translate, checked.multiprocessors, progress
        )
        self._action_numbers = action_numbers(groups[0].game, space)
        self.spec = spec_of(self.games, keywords, AtariEnv.__init__)
        self.closed = False
        self._process = os.getpid()
        self._started = self._sent = False
        self._make_spaces()
        self._make_views()
        self._op_name, self._ticket, self._views = compiled.register(self)
        self._renderer = RENDERERS[self.render_mode](self.engine, f"cule: {self._games_in_words()}")

    def _make_spaces(self) -> None:
        if self.obs_type == "ram":
            shape: tuple[int, ...] = (_core.RAM_BYTES,)
        else:
            shape = tuple(self.engine.tensors["observations"].shape[1:])
        self.single_observation_space = Box(low=0, high=255, shape=shape, dtype=np.uint8)
        if self.continuous:
            low, high = np.array([0, -np.pi, 0], np.float32), np.array([1, np.pi, 1], np.float32)
            self.single_action_space = Box(low=low, high=high, dtype=np.float32)
        else:
            self.single_action_space = Discrete(len(self._action_numbers))
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
        self._everywhere = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        if self.continuous:
            self._continuous_actions = ContinuousActions(self.continuous_action_threshold, self.device)
            strengths = torch.ones(self.num_envs, dtype=torch.float32, device=self.device)
            self.engine.place("strengths", strengths)

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]  # a property of the same use
        """(num_envs, *single_observation_space.shape) uint8, made when it is first asked for.

        A `Box` holds four arrays of its own shape: for 65,536 envs 7 GB of the host's memory, and half a minute.
        """
        return batch_space(self.single_observation_space, self.num_envs)

    @cached_property
    def action_space(self) -> gymnasium.Space:  # type: ignore[override]
        """`single_action_space` for each env, made when it is first asked for."""
        return batch_space(self.single_action_space, self.num_envs)

    # Playing -------------------------------------------------------------------------------------------------------

    @property
    def action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return [ACTIONS[number] for number in self._action_numbers]

    def get_action_meanings(self) -> list[str]:
        """`action_meanings`, by the name that ale-py's env has for it."""
        return self.action_meanings

    @changes
    def reset(
        self, *, seed: int | Sequence[int] | np.ndarray | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Starts new episodes.

        Interrupted, as by Ctrl-C, it leaves each env either reset or as it was.

        Args:
            seed: env i gets `seed + i`, counting only the envs that are reset; or one seed for each of those.
            options: `reset_mask`, (num_envs,) bool, an array or a list: which envs to reset; the others go on.

        Returns:
            Observations, (num_envs, stack_num, img_height, img_width) uint8, and a dict of (num_envs,) arrays.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            RuntimeError: another thread is in the env; so raise all that read or change it.
            TypeError, ValueError: `seed` or `reset_mask` is not as described.
        """
        self._check_open("reset")
        if self.output == "torch":
            refuse_array_wrappers(self)
        mask = arguments.reset_mask(options, self.num_envs)
        if mask is not None and not self._started and not bool(mask.all()):
            raise error.ResetNeeded("expected the first reset to reset every env, got a reset_mask")
        if seed is None and not self._started:
            seed = self._seed if self._seed is not None else int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        seeds = None if seed is None else arguments.seeds(seed, mask, self.num_envs).to(self.device)
        chosen = None if mask is None else mask.to(self.device).view(torch.uint8).contiguous()
        self._sent = False
        self.engine.reset(chosen, seeds)
        self._started = True
        self._renderer.reset(mask)
        return self._out(self._observations), self._infos()

    def step(
        self, actions: ArrayLike, player_b_actions: ArrayLike | None = None
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Plays one step of `frameskip` frames in every env.

        Interrupted, as by Ctrl-C, it has either played the whole step or nothing of it.

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
        if torch.compiler.is_dynamo_compiling():
            return compiled.step(self, actions, player_b_actions)
        return self._step(actions, player_b_actions)

    @changes
    def _step(
        self, actions: ArrayLike, player_b_actions: ArrayLike | None
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        self._play(actions, player_b_actions)
        return self._results()

    @changes
    def send(self, actions: ArrayLike, player_b_actions: ArrayLike | None = None) -> None:
        """The first half of `step`: hands the actions over. On a GPU it returns before the consoles are done.

        Raises:
            gymnasium.error.AlreadyPendingCallError: what came of the last actions has not been received.
            And what `step` raises.
        """
        self._play(actions, player_b_actions)
        self._sent = True

    @changes
    def recv(self) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """The second half of `step`: what it returns, of all envs.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.NoAsyncCallError: nothing has been sent.
        """
        self._check_open("recv")
        if not self._sent:
            raise error.NoAsyncCallError("expected send() before recv()", "step")
        results = self._results()
        self._sent = False
        return results

    def _play(self, actions: ArrayLike, player_b_actions: ArrayLike | None) -> None:
        """Checks the actions and plays them. Nothing before the engine's step changes an env."""
        self._check_open("step")
        self._check_started("step")
        if self._sent:
            raise error.AlreadyPendingCallError("expected recv() after send(), got a second send()", "step")
        tensors = self.engine.tensors
        if self.continuous:
            numbers, strengths = self._continuous_actions.translate(actions, self.num_envs)
            tensors["strengths"].copy_(strengths)
        else:
            count = int(self.single_action_space.n)
            numbers = check_numbers("actions", actions, self.num_envs, count, self.device)
        tensors["actions"].copy_(numbers)
        self._set_player_b(player_b_actions)
        self.engine.step()

    def _results(self) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """What came of the last step."""
        self._check_open("step")  # once more, as a signal's handler may have closed it
        self._renderer.step()
        tensors = self.engine.tensors
        return (
            self._out(self._observations),
            self._out(tensors["rewards"]),
            self._out(self._terminated),
            self._out(self._truncated),
            self._infos(stepped=True),
        )

    def _set_player_b(self, actions: ArrayLike | None) -> None:
        if actions is None:
            self.engine.batch.actions_b = 0
            return
        values = check_numbers("player_b_actions", actions, self.num_envs, len(ACTIONS), self.device)
        kept = self.engine.tensors.get("actions_b")
        if kept is None:
            kept = torch.zeros(self.num_envs, dtype=torch.int32, device=self.device)
        kept.copy_(values)
        self.engine.place("actions_b", kept)

    def _out(self, tensor: torch.Tensor) -> Array:
        return tensor if self.output == "torch" else tensor.cpu().numpy().copy()

    def _infos(self, stepped: bool = False) -> dict[str, Any]:
        infos = {key: self._out(value) for key, value in self._info.items()}
        if stepped:
            infos["reward"] = self._out(self.engine.tensors["raw_rewards"])
        # gymnasium's masks of which envs an entry is about: here always all of them.
        infos |= {f"_{key}": self._out(self._everywhere) for key in infos}
        if stepped and self.autoreset_mode == AutoresetMode.SAME_STEP:
            torch.logical_or(self._terminated, self._truncated, out=self._done)
            # Whether any env is done is known at once on the CPU only.
            if self.device.type == "cuda" or bool(self._done.any()):
                infos["final_obs"] = self._out(self.engine.tensors["final_observations"])
                infos["_final_obs"] = self._out(self._done)
        return infos

    def _check_open(self, what: str) -> None:
        if self.closed or "engine" not in self.__dict__:  # which an interrupted close() has freed
            raise error.ClosedEnvironmentError(f"expected an open env, got {what}() after close()")
        if os.getpid() != self._process:
            raise RuntimeError(
                f"expected {what}() in the process that made the env (pid {self._process}), got process {os.getpid()}: "
                "threads and GPUs do not outlive a fork; make the env after it"
            )

    def _check_started(self, what: str) -> None:
        if not self._started:
            raise error.ResetNeeded(f"expected reset() before the first {what}")

    def __reduce__(self) -> Any:
        raise TypeError(
            "an AtariEnv cannot be pickled or copied, as it owns threads and memory of a device; "
            "clone_state() gives what can be, and a process of its own can make an env of its own"
        )

    def __enter__(self) -> AtariEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _games_in_words(self) -> str:
        """The game's name, or the names of the first three of several."""
        names = list(dict.fromkeys(game.name for game in self.games))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more

    def __repr__(self) -> str:
        if "closed" not in self.__dict__:  # the constructor raised
            return f"{type(self).__name__}()"
        what = f"{self._games_in_words()!r}, num_envs={self.num_envs}, device='{self.device}'"
        return f"{type(self).__name__}({what}{', closed' if self.closed else ''})"

    def close_extras(self, **_: Any) -> None:
        """Frees the envs' memory. Called by close(), which may be called again, and after a constructor that raised."""
        if "_guard" in self.__dict__:
            # As what only reads: a signal's handler may close an env and end the process.
            self._guard.call("close", False, self._free)

    def _free(self) -> None:
        if "_renderer" in self.__dict__:
            self._renderer.close()
        if "engine" in self.__dict__:
            self.engine.close()
        for name in (
            "engine", "_renderer", "_observations", "_terminated", "_truncated", "_info", "_views",
        ):  # fmt: skip
            self.__dict__.pop(name, None)

    # Looking inside ------------------------------------------------------------------------------------------------

    @reads
    def get_ram(self) -> Array:
        """(num_envs, 128) uint8: the consoles' RAM, $80 to $FF."""
        self._check_open("get_ram")
        return self._out(self.engine.tensors["ram"].clone())

    @reads
    def get_screen(self) -> Array:
        """(num_envs, height, 160) uint8: palette indices of the last emulated frame.

        In a batch of games of different heights, lower pictures end in rows of zeros.
        """
        self._check_open("get_screen")
        return self._out(self.engine.screens())

    @reads
    def get_screen_rgb(self) -> Array:
        """(num_envs, height, 160, 3) uint8: the last emulated frame in color."""
        return self._out(self.rgb_screens())

    @reads
    def rgb_screens(self, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """(n, height, 160, 3) uint8, on the device: some envs' (None: all) last frames in color."""
        self._check_open("get_screen_rgb")
        return colored(self.engine, rgb_palette, env_ids)

    @reads
    def get_screen_grayscale(self) -> Array:
        """(num_envs, height, 160) uint8: the last emulated frame in grey."""
        self._check_open("get_screen_grayscale")
        return self._out(colored(self.engine, grey_palette)[..., 0])

    @reads
    def render(self) -> Any:
        """The screens as `render_mode` says: for "mosaic" (rows * height, columns * 320, 3) uint8."""
        self._check_open("render")
        return self._renderer.render()

    @property
    def translated(self) -> bool:
        """Whether steps run the game compiled for the GPU by now (see `translate`)."""
        return "engine" in self.__dict__ and self.engine.translated

    @changes
    def wait_until_translated(self) -> bool:
        """Waits until steps run the game compiled for the GPU, where it is being compiled (see `translate`).

        Results are the same before and after. Call it before steps are measured, or captured in a CUDA graph: a
        graph goes on with what it has captured.

        Returns:
            Whether they do: False where they are interpreted for good.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled, as there is no run-time compiler, or not be loaded.
        """
        self._check_open("wait_until_translated")
        return self.engine.wait_until_translated()

    # States --------------------------------------------------------------------------------------------------------

    def _target_ids(self, env_ids: Any) -> torch.Tensor:
        ids = arguments.env_ids(env_ids, self.num_envs, self.device)
        if ids.unique().numel() != ids.numel():
            raise InvalidValue(f"expected each env to get one state, got env_ids {ids.tolist()}")
        return ids

    @reads
    def clone_state(self, env_ids: Any = None) -> State:
        """The states of the given envs (None: all): picklable, and savable with torch.save.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: `env_ids` is not a list of envs.
        """
        self._check_open("clone_state")
        self._check_started("clone_state")
        return State.take(self.engine, arguments.env_ids(env_ids, self.num_envs, self.device))

    @changes
    def restore_state(self, state: State, env_ids: Any = None) -> None:
        """Puts states that clone_state took back, into the given envs (None: all), one each.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, envs are left out.
            TypeError, ValueError: the state is of another version, game or kind of env, or its number does not fit.
        """
        self._check_open("restore_state")
        if not isinstance(state, State):
            raise InvalidType(f"expected a cule.State, got {type(state).__name__}")
        ids = self._target_ids(env_ids)
        if len(ids) < self.num_envs:
            self._check_started("restore_state to some of the envs")
        state.put(self.engine, ids)
        self._started = True

    @changes
    def copy_state(self, src_ids: Any, dst_ids: Any) -> None:
        """Makes each env of `dst_ids` what the env at the same place of `src_ids` is, without leaving the device.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: the lists differ in length, an env would get two states or that of another game.
        """
        self._check_open("copy_state")
        self._check_started("copy_state")
        sources = arguments.env_ids(src_ids, self.num_envs, self.device)
        State.take(self.engine, sources).put(self.engine, self._target_ids(dst_ids), trusted=True)
