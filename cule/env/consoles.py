"""The part of AtariEnv that knows nothing of learning: RAM, screens, states, closing."""

from __future__ import annotations

import os
from typing import Any

import torch
from gymnasium import error

from cule import _core, arguments
from cule.engine import Engine
from cule.env.guard import changes, reads
from cule.env.outputs import Outputs
from cule.env.rendering import Renderer
from cule.errors import Failed, InvalidType, InvalidValue
from cule.palette import grey_palette, rgb_palette
from cule.rom import Game
from cule.screens import colored
from cule.state import State

# What a call returns: a tensor, or an array with output="numpy". It is Any and not a union, as then
# every caller would have to check which of the two it got.
Array = Any


class Consoles:
    """A batch of consoles: their RAM, screens and states, and how they are closed.

    AtariEnv's constructor sets the attributes.

    Attributes:
        engine: the consoles' memory; close() deletes it.
        games: what each console plays.
        device: where the memory is.
        num_envs, closed: as gymnasium's VectorEnv has them.
    """

    num_envs: int
    closed: bool
    engine: Engine
    games: list[Game]
    device: torch.device
    render_mode: str | None
    _guard: _core.Guard
    _process: int
    _started: bool
    _outputs: Outputs
    _renderer: Renderer
    # close() deletes these attributes, as they hold the engine's memory.
    _HOLDERS = ("engine", "_renderer", "_inputs", "_outputs", "_views")

    # Who may use it -------------------------------------------------------------------------------

    def _check_open(self, what: str) -> None:
        # An interrupted close() leaves an env that is not closed and has no engine.
        if self.closed or "engine" not in self.__dict__:
            raise error.ClosedEnvironmentError(f"expected an open env, got {what}() after close()")
        if os.getpid() != self._process:
            raise Failed(
                f"expected {what}() in the process that made the env (pid {self._process}), got "
                f"process {os.getpid()}: threads and GPUs do not outlive a fork; make the env "
                "after it"
            )

    def _check_idle(self, what: str) -> None:
        """Checks that the env is open, and that no step is in flight."""
        self._check_open(what)
        if self.engine.in_flight:
            raise error.AlreadyPendingCallError(
                f"expected step_wait() after step_async(), got {what}() while a step is in flight",
                what,
            )

    def _check_started(self, what: str) -> None:
        if not self._started:
            raise error.ResetNeeded(f"expected reset() before the first {what}")

    def __reduce__(self) -> Any:
        raise InvalidType(
            "an AtariEnv cannot be pickled or copied, as it owns threads and memory of a device; "
            "pickle what clone_state() returns, and make an env in the other process"
        )

    def close_extras(self, **_: Any) -> None:
        """Frees the envs' memory.

        close() calls it. It may be called again, and after a constructor that raised an error.
        """
        if "_guard" in self.__dict__:
            # Admitted like a method that only reads: a signal handler may close an env and then end
            # the process.
            self._guard.call("close", False, self._free)

    def _free(self) -> None:
        if "_renderer" in self.__dict__:
            self._renderer.close()
        if "engine" in self.__dict__:
            self.engine.close()
        for name in self._HOLDERS:
            self.__dict__.pop(name, None)

    # Looking inside -------------------------------------------------------------------------------

    def _check_shown(self, what: str) -> None:
        """Checks that there is something to look at: memory is zeros before the first reset."""
        self._check_idle(what)
        self._check_started(what)

    @reads
    def get_ram(self) -> Array:
        """(num_envs, 128) uint8: the consoles' RAM, $80 to $FF."""
        self._check_shown("get_ram")
        return self._outputs.give(self.engine.tensors["ram"].clone())

    @reads
    def get_screen(self) -> Array:
        """(num_envs, height, 160) uint8: palette indices of the last emulated frame.

        If the games' screens differ in height, the smaller ones are filled with rows of zeros.
        """
        self._check_shown("get_screen")
        return self._outputs.give(self.engine.screens())

    @reads
    def get_screen_rgb(self) -> Array:
        """(num_envs, height, 160, 3) uint8: the last emulated frame in color."""
        self._check_shown("get_screen_rgb")
        return self._outputs.give(self.rgb_screens())

    @reads
    def rgb_screens(self, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """(n, height, 160, 3) uint8, on the device: some envs' (None: all) last frames in color."""
        self._check_shown("get_screen_rgb")
        chosen = None if env_ids is None else self._env_ids(env_ids)
        return colored(self.engine, rgb_palette, chosen)

    @reads
    def get_screen_grayscale(self) -> Array:
        """(num_envs, height, 160) uint8: the last emulated frame in grey."""
        self._check_shown("get_screen_grayscale")
        return self._outputs.give(colored(self.engine, grey_palette)[..., 0].contiguous())

    @reads
    def render(self) -> Any:
        """The screens as `render_mode` says; "mosaic": (rows * height, columns * 320, 3) uint8."""
        self._check_idle("render")
        if self.render_mode is not None:
            self._check_started("render")
        return self._renderer.render()

    # States ---------------------------------------------------------------------------------------

    def _env_ids(self, env_ids: Any) -> torch.Tensor:
        return arguments.env_ids(env_ids, self.num_envs, self.device)

    def _target_ids(self, env_ids: Any) -> torch.Tensor:
        ids = self._env_ids(env_ids)
        if ids.unique().numel() != ids.numel():
            raise InvalidValue(f"expected each env to get one state, got env_ids {ids.tolist()}")
        return ids

    @reads
    def clone_state(self, env_ids: Any = None, *, include_rng: bool = True) -> State:
        """The states of the given envs (None: all). They can be pickled and saved with torch.save.

        Args:
            env_ids: which envs.
            include_rng: whether the states hold the random numbers of sticky actions and of resets.
                If so, the same env plays the same again after each restore. If not, it goes on with
                the random numbers that it has then: each restore has another future.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: `env_ids` is not a list of envs, or `include_rng` is no bool.
        """
        included = arguments.flag("include_rng", include_rng)
        self._check_idle("clone_state")
        self._check_started("clone_state")
        return State.take(self.engine, self._env_ids(env_ids), included)

    @changes
    def restore_state(self, state: State, env_ids: Any = None) -> None:
        """Puts states from clone_state back, one into each of the given envs (None: all).

        Raises:
            gymnasium.error.ResetNeeded: before the first reset, envs are left out, or the states
                hold no random numbers.
            TypeError, ValueError: the state is of another version, game or kind of env, or the
                number of states is not that of the envs.
        """
        self._check_idle("restore_state")
        if not isinstance(state, State):
            raise InvalidType(f"expected a cule.State, got {type(state).__name__}")
        ids = self._target_ids(env_ids)
        if len(ids) < self.num_envs:
            self._check_started("restore_state to some of the envs")
        if not state.include_rng:
            self._check_started("restore_state without random numbers")
        state.put(self.engine, ids)
        self._started = True

    @changes
    def copy_state(self, src_ids: Any, dst_ids: Any, *, include_rng: bool = True) -> None:
        """Copies the state of each env in `src_ids` to the env at the same place in `dst_ids`.

        The states stay on the device.

        Args:
            src_ids: the envs to copy from.
            dst_ids: the envs to copy to.
            include_rng: as clone_state's.

        Raises:
            gymnasium.error.ResetNeeded: there is no state before the first reset.
            TypeError, ValueError: the lists differ in length, or an env would get two states or the
                state of another game, or `include_rng` is no bool.
        """
        included = arguments.flag("include_rng", include_rng)
        self._check_idle("copy_state")
        self._check_started("copy_state")
        sources = self._env_ids(src_ids)
        targets = self._target_ids(dst_ids)
        if len(sources) != len(targets):
            raise InvalidValue(
                "expected src_ids and dst_ids of the same length, as each target has its source, "
                f"got {len(sources)} and {len(targets)}: copy_state([0, 0], [1, 2]) copies env 0 "
                "to two others"
            )
        State.take(self.engine, sources, included).put(self.engine, targets, trusted=True)
