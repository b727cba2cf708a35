"""The consoles of an AtariEnv: checks of who may use them and when, actions in, results out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import error
from gymnasium.vector import AutoresetMode

from cule import _core, arguments
from cule.console import action_numbers
from cule.engine import Engine
from cule.env import settings
from cule.env.inputs import Inputs
from cule.env.lineup import choose_action_space, in_words, make_groups
from cule.env.outputs import Array, Outputs, Step
from cule.env.patches import Patches, patches_of
from cule.env.rendering import RENDERERS
from cule.errors import Failed
from cule.rom import Game


class Consoles:
    """A batch of consoles, the inputs and outputs of its steps, and its renderer.

    These methods do not lock: the env's methods do, with `guard` (see guard.py).

    Args:
        games: the game of each console.
        checked: the env's keywords, as settings.check returns them.
        guard: admits one thread at a time to the env.

    Attributes:
        engine: the batch and its memory. `close` deletes it.
        guard: as given.
        action_numbers: the number (see cule.ACTIONS) of each action that the env offers.
        inputs: checks actions, and copies them to the engine's tensors.
        outputs: makes the results of `reset` and `step`.
        patches: the changes of RAM before each frame.
        renderer: renders as `render_mode` asks.
        singly: with a smaller `batch_size`, that and the number of envs in words; else "".

    Raises:
        As AtariEnv's constructor.
    """

    # close() deletes these attributes, as they hold the engine's memory.
    _HOLDERS = ("engine", "renderer", "inputs", "outputs", "patches")

    def __init__(self, games: Sequence[Game], checked: SimpleNamespace, guard: _core.Guard):
        groups, group_of_env = make_groups(games, checked.mode, checked.difficulty)
        space = choose_action_space(groups, checked.full_action_space or checked.continuous)
        for group in groups:  # before a pool is emulated
            patches_of(checked.patches, group.game)
        self.engine = Engine(
            groups, group_of_env, settings.step_options(checked, space), checked.device,
            settings.threads(checked), checked.translate, checked.multiprocessors, checked.progress,
            settings.cpus(checked),
        )  # fmt: skip
        self.patches = Patches(self.engine)
        self.patches.set(checked.patches, torch.arange(len(games), device=checked.device))
        self.guard, self.action_numbers = guard, action_numbers(groups[0].game, space)
        self._checked, self._process = checked, os.getpid()
        size, count = checked.batch_size, len(games)
        self.singly = f"batch_size={size} and {count} envs" if 0 < size < count else ""
        title = f"cule: {in_words(games)}"
        self.renderer = RENDERERS[checked.render_mode](self.engine, title)
        self._connect()

    def _connect(self) -> None:
        """Makes the inputs, the outputs and the renderer from the engine's tensors."""
        checked = self._checked
        self.inputs = Inputs(
            self.engine, len(self.action_numbers),
            checked.continuous_action_threshold if checked.continuous else None,
        )  # fmt: skip
        same_step = checked.autoreset_mode == AutoresetMode.SAME_STEP
        self.outputs = Outputs(self.engine, checked.obs_type, checked.output, same_step)

    def replace(self, tensors: dict[str, torch.Tensor]) -> None:
        """Replaces tensors of the engine by others, such as some in pinned memory.

        Args:
            tensors: by the engine's names, with the same shapes, dtypes and values.
        """
        for name, tensor in tensors.items():
            self.engine.memory.place(name, tensor)
        self._connect()

    @property
    def closed(self) -> bool:
        """Whether the memory has been freed."""
        return not hasattr(self, "engine")

    @property
    def started(self) -> bool:
        """Whether the consoles have been reset, so that they can be stepped and looked at."""
        return not self.closed and self.engine.batch.started

    # Who may use them -----------------------------------------------------------------------------

    def check_open(self, what: str) -> None:
        """Checks that the env is open, and in the process that made it.

        Args:
            what: the method's name, for the message.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env is closed.
            RuntimeError: another process made the env.
        """
        if self.closed:
            raise error.ClosedEnvironmentError(f"expected an open env, got {what}() after close()")
        if os.getpid() != self._process:
            raise Failed(
                f"expected {what}() in the process that made the env (pid {self._process}), got "
                f"process {os.getpid()}: threads and GPUs do not outlive a fork; make the env "
                "after it"
            )

    def check_idle(self, what: str) -> None:
        """Checks that the env is open, and that no step is in flight.

        Raises:
            gymnasium.error.AlreadyPendingCallError: a step is in flight.
            gymnasium.error.ClosedEnvironmentError, RuntimeError: as check_open.
        """
        self.check_open(what)
        if self.engine.in_flight:
            if self.singly:
                raise error.AlreadyPendingCallError(
                    f"expected an env that steps all envs for {what}(), got one with {self.singly},"
                    " of which some are in flight",
                    what,
                )
            raise error.AlreadyPendingCallError(
                f"expected step_wait() after step_async(), got {what}() while a step is in flight",
                what,
            )

    def check_started(self, what: str) -> None:
        """Checks that the envs have been reset.

        Raises:
            gymnasium.error.ResetNeeded: they have not been reset.
        """
        if not self.started:
            raise error.ResetNeeded(f"expected reset() before the first {what}")

    def check_shown(self, what: str) -> None:
        """Checks as check_idle and check_started: before the first reset memory is zeros."""
        self.check_idle(what)
        self.check_started(what)

    def close(self) -> None:
        """Frees the memory. It may be called again."""
        if hasattr(self, "renderer"):
            self.renderer.close()
        if not self.closed:
            self.engine.close()
        for name in self._HOLDERS:
            self.__dict__.pop(name, None)

    # Playing --------------------------------------------------------------------------------------

    def first_seed(self) -> int:
        """The constructor's seed, or one at random."""
        if self._checked.seed is not None:
            return self._checked.seed
        return self.drawn_seed()

    @staticmethod
    def drawn_seed() -> int:
        """A seed at random."""
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1)

    def start(self) -> None:
        """Notes that the consoles have been reset, see `started`."""
        self.engine.batch.started = True

    def reset(self, mask: torch.Tensor | None, seed: Any) -> tuple[Array, dict[str, Any]]:
        """Starts new episodes.

        Args:
            mask: (num_envs,) bool: the envs that are reset; None: all.
            seed: as in AtariEnv.reset.

        Returns:
            Observations and the info, as AtariEnv.reset.

        Raises:
            gymnasium.error.ResetNeeded: the first reset leaves envs out.
            TypeError, ValueError: `seed` is not as described.
        """
        engine = self.engine
        if mask is not None and not self.started and not bool(mask.all()):
            raise error.ResetNeeded("expected the first reset to reset every env, got a reset_mask")
        if seed is None and not self.started:
            seed = self.first_seed()
        seeds = None
        if seed is not None:
            seeds = arguments.seeds(seed, mask, engine.num_envs).to(engine.device)
        chosen = None if mask is None else mask.to(engine.device).view(torch.uint8).contiguous()
        engine.reset(chosen, seeds)
        self.start()
        self.renderer.reset(mask)
        return self.outputs.after_reset()

    def take_actions(self, actions: Any, player_b_actions: Any, what: str = "step") -> None:
        """Checks the actions of the next step, and copies them to the engine unless one is wrong.

        Args:
            actions: as in AtariEnv.step.
            player_b_actions: as in AtariEnv.step.
            what: the name of the method that takes them, for the message.

        Raises:
            As AtariEnv.step.
        """
        self.check_idle(what)
        self.check_started("step")
        self.inputs.set(actions, player_b_actions)

    def results(self) -> Step:
        """The results of the step that the engine has played, as AtariEnv.step returns them.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
        """
        self.check_open("step")  # once more, as a signal's handler may have closed it
        self.renderer.step()
        return self.outputs.after_step()

    def receive(self, what: str) -> Step:
        """Waits for the step in flight; returns its results, as AtariEnv.step does.

        Args:
            what: the name of the method that receives it, for the message.

        Raises:
            As AtariEnv.step_wait.
        """
        self.check_open(what)
        if not self.engine.in_flight:
            raise error.NoAsyncCallError(f"expected step_async() before {what}()", "step")
        self.engine.wait()
        results = self.results()
        self.engine.receive()
        return results


class HasConsoles(Protocol):
    """The attributes of an AtariEnv that its methods in other files of this package use."""

    consoles: Consoles
