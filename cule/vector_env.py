"""cule.AtariEnv: thousands of Atari 2600 consoles as one gymnasium vector env of torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cule import _core, arguments
from cule.engine import Engine
from cule.env import game_code, ram, sending, settings, spaces, states, views
from cule.env.array_wrappers import refuse_wrappers
from cule.env.batches import Batches
from cule.env.compiled import StepOp
from cule.env.consoles import Consoles
from cule.env.guard import changes, outside_inference_mode
from cule.env.inputs import ArrayLike
from cule.env.keywords import names_what_was_meant
from cule.env.lineup import games_of_envs, in_words
from cule.env.outputs import Array, Step
from cule.env.rendering import FRAMES_PER_SECOND
from cule.env.spec import spec_of
from cule.errors import InvalidType
from cule.facts.actions import ACTIONS
from cule.facts.names import warn_of_other_meanings
from cule.facts.patches import Patch


class AtariEnv(VectorEnv):
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
        num_players: how many play on each console, each with actions and rewards of its own: 1, 2
            or 4. With several, docs/games.md lists the games and their modes.
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
        maxpool: observations are the maximum of a step's last two frames, or of so many.
        noop_max: an episode starts after 0 to noop_max - 1 no-ops.
        episode_start: what is played before an episode's first step. "ale": as in ale-py, a frame
            of FIRE, then no-ops; after a lost life nothing. "baselines": as stable-baselines3's
            AtariWrapper and OpenAI baselines do: at least one no-op, then a step of FIRE and one of
            the third action; with `life_loss_info` also after each lost life, where a step of
            no-ops comes first. The stack then shows the new life alone. "envpool": as EnvPool does:
            no-ops, then a frame of FIRE, or one more no-op in games without FIRE; with
            `life_loss_info` also after each lost life, where the stack goes on. That of a new game
            shows its first frame in all places, where the others are black. "fire": as "ale", and
            with `life_loss_info` after each lost life a frame of FIRE, and a stack that shows the
            new life alone.
        episodic_life: a lost life ends the game, and the reset starts a new one with all lives, as
            in ale-py. EnvPool's keyword of this name goes on with the game: see `life_loss_info`.
        life_loss_info: a lost life reports a termination, but nothing is reset: the game, the stack
            and the next action go on, unless `episode_start` says otherwise.
        reward_clipping: rewards are -1, 0 or 1.
        use_fire_reset: every player presses FIRE at the start of an episode, in games that have it.
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
        batch_size: CPU only: how many envs a call of `reset`, `step` or `recv` returns, those that
            are done first; `info["env_id"]` says which. Actions are for the envs that were returned
            last. 0: all. Meanwhile other envs play, so `get_ram` and the like are refused.
        thread_affinity_offset: on a CPU with Linux, pins thread `i` to CPU `thread_affinity_offset
            + i` of those that the process may use (docs/api.md says more); -1: pins none.
        mode: the game's mode, one for all or one for each env; None: its default.
        difficulty: the difficulty switches, likewise; None: 0.
        obs_type: "image"; "ram", the console's 128 bytes; "objects" (`get_objects`); or several of
            them, such as ("image", "ram"): then observations are a dict. Without "image" no images
            are made, which is faster, and what is said of them (`img_height`, `img_width`,
            `grayscale`, `stack_num`, `maxpool`) has to keep its default.
        sound_obs: observations are, as those of ale-py's single env, a dict of "image" (or RAM) and
            "sound": (num_envs, 512) uint8, the last frame's samples, 30,720 a second; 128 is
            silence. `get_sound` gives those of all frames of a step.
        seed: the seed of the first `reset` that is called without one: env `i` gets `seed + i`.
        patches: changes of RAM before each frame of a step, for all envs: a cule.Patch, the name of
            one of cule.modifications(game), or a list of both. `set_patches` gives each env its
            own, and says when they are applied.
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
    single_observation_space: Any  # Box, or with `sound_obs` a Dict of two.
    single_action_space: Any  # Discrete; with `continuous` a Box; of several players MultiDiscrete

    @names_what_was_meant
    @outside_inference_mode
    def __init__(
        self,
        game: str | Sequence[str],
        num_envs: int = 1,
        device: str | torch.device | None = None,
        *,
        num_players: int = 1,
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
        maxpool: bool | int = True,
        noop_max: int = 30,
        episode_start: Literal["ale", "baselines", "envpool", "fire"] = "ale",
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
        obs_type: str | Sequence[str] = "image",
        sound_obs: bool = False,
        seed: int | None = None,
        patches: Patch | str | Sequence[Patch | str] | None = None,
        reset_pool_size: int = 30,
        output: Literal["torch", "torch_shared", "numpy"] = "torch",
        render_mode: Literal["mosaic", "rgb_array", "rgb_array_list", "human"] | None = "mosaic",
        progress: bool = True,
    ) -> None:
        keywords = dict(locals())
        self._guard, checked = _core.Guard(), settings.check(keywords)
        self.num_envs, self.num_players = checked.num_envs, checked.num_players
        self.device, self.output = checked.device, checked.output
        self.obs_type, self.continuous = checked.obs_type, checked.continuous
        self.render_mode, self.autoreset_mode = checked.render_mode, checked.autoreset_mode
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.continuous_action_threshold = checked.continuous_action_threshold
        self.games = games_of_envs(game, self.num_envs, self.num_players)
        warn_of_other_meanings([game] if isinstance(game, str) else game, **vars(checked))
        self.consoles = Consoles(self.games, checked, self._guard)
        self.single_observation_space = spaces.observation_space(self.engine, self.obs_type)
        self.single_action_space = self._action_space()
        if self.output == "torch":
            self.reward_space = spaces.reward_space(self.num_envs, self.num_players)
        self.spec = spec_of(self.games, keywords, AtariEnv.__init__)
        self.batch_size, self.closed = checked.batch_size or self.num_envs, False
        self.batches = Batches(self) if self.batch_size < self.num_envs else None
        self._op = StepOp(self.consoles, self.output)

    def _action_space(self) -> Any:
        actions = len(self.consoles.action_numbers)
        return spaces.action_space(actions, self.continuous, self.num_players)

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """`single_observation_space` for each env, made when it is first asked for.

        A `Box` holds four arrays of its own shape: for 65,536 envs that is 7 GB of the host's
        memory, and takes half a minute.
        """
        return batch_space(self.single_observation_space, self.batch_size)

    @cached_property
    def action_space(self) -> gymnasium.Space:  # type: ignore[override]
        """`single_action_space` for each env, made when it is first asked for."""
        return batch_space(self.single_action_space, self.batch_size)

    @property
    def action_meanings(self) -> list[str]:
        """The names of the actions, in the order of the action space."""
        return [ACTIONS[number] for number in self.consoles.action_numbers]

    def get_action_meanings(self) -> list[str]:
        """`action_meanings`, under the name that ale-py's env has for it."""
        return self.action_meanings

    # Playing --------------------------------------------------------------------------------------

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
        if self.output != "numpy":
            refuse_wrappers(self, self.output)
        if self.batches is not None:
            return self.batches.reset(seed, options)
        return self._reset(seed, options)

    @changes
    def _reset(self, seed: Any, options: Any) -> tuple[Array, dict[str, Any]]:
        self.consoles.check_idle("reset")
        return self.consoles.reset(arguments.reset_mask(options, self.num_envs), seed)

    def step(
        self, actions: ArrayLike, player_b_actions: ArrayLike | None = None
    ) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Plays one step of `frameskip` frames in every env.

        If it is interrupted, as by Ctrl-C, it has played either the whole step or nothing of it.

        Args:
            actions: (num_envs,) integers below `single_action_space.n`; with several players
                (num_envs, num_players); or, if `continuous`, (num_envs, 3) float32: radius from 0
                to 1, angle in radians, fire. A tensor on the env's device, or an array. The values
                are checked on the CPU only: a GPU plays a wrong number as a no-op, and clamps the
                radius.
            player_b_actions: (num_envs,) integers from 0 to 17 (see cule.ACTIONS): what the second
                player does, in the envs whose game has one (docs/games.md lists them).

        Returns:
            observations (num_envs, stack_num, img_height, img_width) uint8, rewards (num_envs,)
            int32, terminated and truncated (num_envs,) bool, and a dict of (num_envs,) arrays:
            `env_id`, `lives`, `frame_number`, `episode_frame_number`, `raw_reward` (not clipped),
            `fault` (see cule.FAULTS), and in SAME_STEP `final_obs`. Two of them, bool, say what
            happened to the game: `game_over`, that it ended in this step, so that a reset follows
            (a lost life that `life_loss_info` reports does not end it); and `new_game`, that this
            step began one, as SAME_STEP does after a game's end, and NEXT_STEP a step later. With
            sticky actions also int32, of the first player: `repeated_frames`, in how many of its
            frames the step held an earlier action before it played the given one; and
            `played_action`, the number (see cule.ACTIONS) of the action that its last frame played.
            They are 0 if it played none. With several players rewards, `raw_reward` and `lives` are
            (num_envs, num_players), and a player with -1 lives is out.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            gymnasium.error.ResetNeeded: it has not been reset.
            gymnasium.error.AlreadyPendingCallError: a step is in flight.
            TypeError, ValueError: the actions' dtype, shape, device or range is not as described,
                or no game has a second player.
        """
        if torch.compiler.is_dynamo_compiling():
            return self._op.step(actions, player_b_actions)
        if self.batches is not None:
            self.batches.send(actions, player_b_actions)
            return self.batches.receive("step")
        return self._step(actions, player_b_actions)

    @changes
    def _step(self, actions: ArrayLike, player_b_actions: ArrayLike | None) -> Step:
        self.consoles.take_actions(actions, player_b_actions)
        self.consoles.engine.step()
        return self.consoles.results()

    step_async = sending.step_async
    step_wait = sending.step_wait
    send = sending.send
    recv = sending.recv

    # Looking inside -------------------------------------------------------------------------------

    get_ram = views.get_ram
    get_screen = views.get_screen
    get_sound = views.get_sound
    get_objects = views.get_objects
    get_screen_rgb = views.get_screen_rgb
    get_screen_grayscale = views.get_screen_grayscale
    rgb_screens = views.rgb_screens
    render = views.render
    clone_state = states.clone_state
    restore_state = states.restore_state
    copy_state = states.copy_state
    set_ram = ram.set_ram
    set_patches = ram.set_patches

    # On a GPU -------------------------------------------------------------------------------------

    reserve = game_code.reserve
    wait_until_translated = game_code.wait_until_translated
    translate_again = game_code.translate_again

    @property
    def multiprocessors(self) -> int | None:
        """How many multiprocessors are reserved for emulation; None: none is."""
        return None if self.consoles.closed else self.engine.multiprocessors

    @property
    def translated(self) -> bool:
        """Whether steps now run the game compiled for the GPU (see `translate`)."""
        return not self.consoles.closed and self.engine.translated

    @property
    def engine(self) -> Engine:
        """The batch and its memory; there is none after `close`."""
        return self.consoles.engine

    def close_extras(self, **_: Any) -> None:
        """Frees the envs' memory.

        close() calls it. It may be called again, and after a constructor that raised an error.
        """
        if "consoles" in self.__dict__:
            # Admitted like a method that only reads: a signal handler may close an env and then end
            # the process.
            self._guard.call("close", False, self.consoles.close)

    # What Python shows ----------------------------------------------------------------------------

    def __enter__(self) -> AtariEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise InvalidType(
            "an AtariEnv cannot be pickled or copied, as it owns threads and memory of a device; "
            "pickle what clone_state() returns, and make an env in the other process"
        )

    def __repr__(self) -> str:
        if "closed" not in self.__dict__:  # the constructor raised
            return f"{type(self).__name__}()"
        what = f"{in_words(self.games)!r}, num_envs={self.num_envs}, device='{self.device}'"
        return f"{type(self).__name__}({what}{', closed' if self.closed else ''})"
