"""cule.AtariEnv: thousands of Atari 2600 consoles as one gymnasium vector env of torch tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import error
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cule import _core, arguments
from cule.actions import ACTIONS
from cule.console import Group, action_numbers
from cule.console.console import Snapshot
from cule.engine import Engine
from cule.env import compiled, settings, spaces
from cule.env.array_wrappers import refuse_wrappers
from cule.env.consoles import Array
from cule.env.guard import changes, outside_inference_mode
from cule.env.inputs import Inputs
from cule.env.keywords import names_what_was_meant
from cule.env.lineup import choose_action_space, games_of_envs, in_words, make_groups
from cule.env.outputs import Outputs
from cule.env.playing import Playing
from cule.env.rendering import FRAMES_PER_SECOND, RENDERERS
from cule.env.spec import spec_of
from cule.names import warn_of_other_meanings
from cule.state import State

# How many envs are looked at to find out what all of them execute.
LOOKED_AT = 64


# Libraries such as skrl know an env by the bases that its class names.
class AtariEnv(Playing, VectorEnv):
    """Atari 2600 games, many at once, on a GPU or a CPU.

    Keywords that `ale_py.AtariVectorEnv` has mean the same here and have the same defaults.

    Everything that `reset` and `step` return is a new tensor on the env's device; with
    `output="numpy"`, a new array. With `output="torch_shared"` nothing is copied: the tensors are
    the env's own, which the next call overwrites, so `clone()` what you keep.

    Args:
        game: a game's name in any spelling ("ms_pacman", "Ms. Pac-Man", "ALE/MsPacman-v5"), or a
            sequence of names: env i plays `game[i * len(game) // num_envs]`. Only the game in an id
            counts. Where an id such as "PongNoFrameskip-v4" also means other keywords, a
            UserWarning says so.
        num_envs: how many consoles.
        device: "cpu", "cuda", "cuda:1"; None: cuda if this build and this machine have it, else
            cpu.
        max_num_frames_per_episode: frames after which an episode is truncated.
        repeat_action_probability: how likely each frame repeats the last frame's action instead of
            the new one.
        full_action_space: offer every action that the game allows, not only those that matter in
            it.
        continuous: actions are (radius, angle, fire), float32, instead of numbers.
        continuous_action_threshold: how far a stick must be pushed.
        autoreset_mode: when an env whose episode ended is reset:
            gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED, or "next_step",
            "same_step" or "disabled".
        img_height: rows of an observation.
        img_width: columns of an observation.
        grayscale: observations are grey; if False, they are RGB, with a last axis of 3.
        stack_num: frames in an observation, the newest last.
        frameskip: frames in a step.
        maxpool: observations are the maximum of a step's last two frames.
        noop_max: an episode starts after 0 to noop_max - 1 no-ops.
        episode_start: what is played before an episode's first step. "ale": as in ale-py, a frame
            of FIRE, then no-ops; after a lost life nothing. "baselines": as stable-baselines3's
            AtariWrapper and OpenAI baselines do: at least one no-op, then a step of FIRE and one of
            the third action; with `life_loss_info` also after each lost life, where a step of
            no-ops comes first. The stack then shows the new life alone. "envpool": as EnvPool does:
            no-ops, then a frame of FIRE, or one more no-op in games without FIRE; with
            `life_loss_info` also after each lost life, where the stack goes on. That of a new game
            shows its first frame in all places, where the others are black.
        episodic_life: a lost life ends the game, and the reset starts a new one with all lives, as
            in ale-py. EnvPool's keyword of this name goes on with the game: see `life_loss_info`.
        life_loss_info: a lost life reports a termination, but nothing is reset: the game, the stack
            and the next action go on, unless `episode_start` says otherwise.
        reward_clipping: rewards are -1, 0 or 1.
        use_fire_reset: press FIRE at the start of an episode in games that have it.
        num_threads: CPU only: how many envs run at once; 0: one for each core.
        translate: CUDA only: whether to compile the game for the GPU. The results are the same, and
            steps are several times faster. The first time, the game's most frequent code takes
            about ten seconds to compile, and all of it up to a minute; compiled code is kept in
            CULE_CACHE_DIR (by default ~/.cache/cule). True: wait for all of it. None: if 64 or
            more envs play one game, compile it while steps are interpreted. `translated` says
            whether steps run compiled code yet, and `wait_until_translated` waits for all of it.
        multiprocessors: CUDA only: how many of the GPU's multiprocessors are reserved for
            emulation. The others stay free for work on other streams, such as learning. None: none
            is reserved, which is fastest if there is no such work.
        batch_size: ale-py's keyword for stepping some of the envs; 0 or num_envs, as cule steps all
            of them.
        thread_affinity_offset: on a CPU with Linux, pins thread `i` to CPU `thread_affinity_offset
            + i` of those that the process may use (docs/api.md says more); -1: pins none.
        mode: the game's mode, one for all or one for each env; None: its default.
        difficulty: the difficulty switches, likewise; None: 0.
        obs_type: "image", or "ram" for the console's 128 bytes.
        seed: the seed of the first `reset` that is called without one: env `i` gets `seed + i`.
        reset_pool_size: how many start states to prepare; each reset copies one of them. 0: each
            reset is emulated, as in ale-py.
        output: "torch", "torch_shared" or "numpy": new tensors, the env's own tensors, or arrays.
        render_mode: what `render` gives. "mosaic": one picture of all screens. "rgb_array": a tuple
            of one picture for each env, as gymnasium's wrappers expect. "rgb_array_list": a tuple
            of one list for each env, with its pictures since the last `render` or `reset`. None:
            nothing. "human": each reset and step shows the mosaic in a window, at the console's
            speed; it needs `pip install pygame`.
        progress: show a progress bar on stderr, if it is a terminal, while start states of many
            games are made or a game is compiled, which takes seconds.

    Attributes:
        games: what each env plays.
        spec: gymnasium.make_vec makes the same env from it; None for a batch of several games.

    Raises:
        TypeError, ValueError: an argument is wrong; the message says what was expected and what
            came. Both are a gymnasium.error.Error as well.
        gymnasium.error.DependencyNotInstalled: render_mode="human" without pygame.
        torch.OutOfMemoryError: the device has no room for so many envs; the message says how much
            memory one takes and how many would fit.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(settings.RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
    }
    single_observation_space: Box
    single_action_space: Any  # Discrete, or with `continuous` a Box.

    @names_what_was_meant
    @outside_inference_mode
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
        episode_start: Literal["ale", "baselines", "envpool"] = "ale",
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
        output: Literal["torch", "torch_shared", "numpy"] = "torch",
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
        self.engine, self._action_numbers = self._make_engine(checked)
        self.spec = spec_of(self.games, keywords, AtariEnv.__init__)
        self.closed = False
        self._process = os.getpid()
        self._started = False
        self._connect()

    def _make_engine(self, checked: SimpleNamespace) -> tuple[Engine, tuple[int, ...]]:
        """The consoles, and the actions that they offer."""
        groups, group_of_env = make_groups(self.games, checked.mode, checked.difficulty)
        space = choose_action_space(groups, checked.full_action_space or self.continuous)
        engine = Engine(
            groups, group_of_env, settings.step_options(checked, space), self.device,
            settings.threads(checked), checked.translate, checked.multiprocessors, checked.progress,
            settings.cpus(checked),
        )  # fmt: skip
        return engine, action_numbers(groups[0].game, space)

    def _connect(self) -> None:
        """Connects the engine with what calls take and return."""
        engine, num_actions = self.engine, len(self._action_numbers)
        self.single_observation_space = spaces.observation_space(engine, self.obs_type)
        self.single_action_space = spaces.action_space(num_actions, self.continuous)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        threshold = self.continuous_action_threshold if self.continuous else None
        self._inputs = Inputs(engine, num_actions, threshold)
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._outputs = Outputs(engine, self.obs_type, self.output, same_step)
        self._op_name, self._ticket, self._views = compiled.register(self)
        self._renderer = RENDERERS[self.render_mode](engine, f"cule: {in_words(self.games)}")

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """(num_envs, *single_observation_space.shape) uint8, made when it is first asked for.

        A `Box` holds four arrays of its own shape: for 65,536 envs that is 7 GB of the host's
        memory, and takes half a minute.
        """
        return batch_space(self.single_observation_space, self.num_envs)

    @cached_property
    def action_space(self) -> gymnasium.Space:  # type: ignore[override]
        """`single_action_space` for each env, made when it is first asked for."""
        return batch_space(self.single_action_space, self.num_envs)

    @property
    def action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return [ACTIONS[number] for number in self._action_numbers]

    def get_action_meanings(self) -> list[str]:
        """`action_meanings`, under the name that ale-py's env has for it."""
        return self.action_meanings

    # Playing --------------------------------------------------------------------------------------

    @changes
    def reset(
        self,
        *,
        seed: int | Sequence[int] | np.ndarray | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """Starts new episodes.

        If it is interrupted, as by Ctrl-C, each env is either reset or as it was before.

        Args:
            seed: env i gets `seed + i`, counting only the envs that are reset; or one seed for each
                of those.
            options: `reset_mask`, (num_envs,) bool, an array or a list: which envs to reset; the
                others go on.

        Returns:
            Observations, (num_envs, stack_num, img_height, img_width) uint8, and a dict of
            (num_envs,) arrays.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            gymnasium.error.AlreadyPendingCallError: a step is in flight. All methods that read or
                change the env raise this, except step_wait() and close().
            RuntimeError: another thread is in the env. All methods that read or change the env
                raise this.
            TypeError, ValueError: `seed` or `reset_mask` is not as described.
        """
        self._check_idle("reset")
        if self.output != "numpy":
            refuse_wrappers(self, self.output)
        mask = arguments.reset_mask(options, self.num_envs)
        if mask is not None and not self._started and not bool(mask.all()):
            raise error.ResetNeeded("expected the first reset to reset every env, got a reset_mask")
        if seed is None and not self._started:
            seed = self._first_seed()
        seeds = None
        if seed is not None:
            seeds = arguments.seeds(seed, mask, self.num_envs).to(self.device)
        chosen = None if mask is None else mask.to(self.device).view(torch.uint8).contiguous()
        self.engine.reset(chosen, seeds)
        self._started = True
        self._renderer.reset(mask)
        return self._outputs.after_reset()

    def _first_seed(self) -> int:
        """The constructor's seed, or one at random."""
        if self._seed is not None:
            return self._seed
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1)

    @changes
    def reserve(self, multiprocessors: int, *, ordered: bool | None = None) -> bool:
        """Reserves another number of multiprocessors for emulation (see `multiprocessors`).

        Results are the same before and after. A CUDA graph keeps what it captured.

        Args:
            multiprocessors: how many, from the next step on.
            ordered: whether a compiled game plays envs together that are alike: that executed as
                many instructions in their last frame. It is faster where envs do different things.
                None: some steps try both and are timed; a CUDA graph captures what was the faster
                one until then, at first True.

        Returns:
            Whether it did. With few envs on many multiprocessors a game needs another kernel.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            TypeError, ValueError: there are not so many, or too few for all envs, or the envs are
                on a CPU.
        """
        self._check_open("reserve")
        number = arguments.integer("multiprocessors", multiprocessors, 1)
        return self.engine.reserve(
            number, None if ordered is None else arguments.flag("ordered", ordered)
        )

    @property
    def multiprocessors(self) -> int | None:
        """How many multiprocessors are reserved for emulation; None: none is."""
        return self.engine.multiprocessors if "engine" in self.__dict__ else None

    @property
    def translated(self) -> bool:
        """Whether steps now run the game compiled for the GPU (see `translate`)."""
        return "engine" in self.__dict__ and self.engine.translated

    @changes
    def wait_until_translated(self) -> bool:
        """Waits for the game to be compiled for the GPU, if it is being compiled (see `translate`).

        Results are the same before and after. Call it before you measure steps or capture them in a
        CUDA graph: a graph keeps the kernels that it captured.

        Returns:
            Whether steps run the compiled game; False: they stay interpreted.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled, as there is no run-time compiler, or cannot be
                loaded.
        """
        self._check_open("wait_until_translated")
        return self.engine.wait_until_translated()

    @changes
    def translate_again(self, look: bool = True) -> bool:
        """Compiles the game for the GPU again if its envs execute much that is not compiled yet.

        A game is compiled with the code that random play executes. Who plays well gets further, to
        other waves and mazes, whose code is interpreted and takes several times as long. So call
        this now and then: cule.train does, at first after 500 steps. It copies the states of some
        envs; a thread plays on from them, and compiles the game if that pays. The first step after
        that, or the next call, loads the new code. Results are the same before and after.

        Args:
            look: whether to look; False: only load what has been compiled since.

        Returns:
            Whether steps run other code than before the call. A CUDA graph keeps the kernels that
            it captured, so capture it again.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.

        Warns:
            UserWarning: the new code cannot be compiled or loaded.
        """
        self._check_open("translate_again")
        self._check_idle("translate_again")
        return self.engine.translate_again(self._some_states if look and self._started else None)

    def _some_states(self) -> list[tuple[Group, Snapshot]]:
        """The states of LOOKED_AT envs, which are spread over all."""
        chosen = np.linspace(0, self.num_envs - 1, min(self.num_envs, LOOKED_AT)).astype(np.int64)
        return State.take(self.engine, torch.from_numpy(chosen).to(self.device)).consoles()

    # What Python shows ----------------------------------------------------------------------------

    def __enter__(self) -> AtariEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if "closed" not in self.__dict__:  # the constructor raised
            return f"{type(self).__name__}()"
        what = f"{in_words(self.games)!r}, num_envs={self.num_envs}, device='{self.device}'"
        return f"{type(self).__name__}({what}{', closed' if self.closed else ''})"
