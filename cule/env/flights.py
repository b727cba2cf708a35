"""Some of an AtariEnv's envs in flight on its threads, while the others wait for their actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import error

from cule import arguments
from cule.env.consoles import HasConsoles
from cule.env.guard import changes, reads
from cule.env.outputs import Step, for_each
from cule.env.states import env_ids_of
from cule.errors import InvalidType, InvalidValue, shown

# The engine's tensors that the results of a step are views of.
RESULTS = (
    "observations", "rewards", "raw_rewards", "terminated", "truncated", "over", "began",
    "lives", "frame_numbers", "episode_frame_numbers", "faults",
)  # fmt: skip
# Numbers of envs: an array or a list of them, or a range.
Envs = np.ndarray | torch.Tensor | Sequence[int] | slice


class Flights:
    """Steps and resets of some envs of an AtariEnv on a CPU, several of them at a time.

    An env is in flight from `step` or `reset` on, until `wait` or `take`. Meanwhile it cannot be
    stepped, reset or read. All flights are on the env's threads, which turn to the oldest one that
    still has envs to play. While envs are in flight, the AtariEnv itself refuses all calls except
    `close`.

    An env's results depend on its own seed and actions only, and not on the envs in flight beside
    it.

    Args:
        env: the AtariEnv.

    Raises:
        gymnasium.error.ClosedEnvironmentError: the env has been closed.
        ValueError: it is on a GPU.
    """

    def __init__(self, env: HasConsoles):
        self.env, self._consoles, self._guard = env, env.consoles, env.consoles.guard
        self._consoles.check_open("Flights")
        engine = self._consoles.engine
        if engine.device.type != "cpu":
            raise InvalidValue(
                "expected an env with device='cpu' to step some of its envs, as a GPU steps all of "
                f"them at once, got device {engine.device}"
            )
        self._all = np.arange(engine.num_envs, dtype=np.int32)
        self._flying = np.zeros(engine.num_envs, bool)
        # The envs of each flight that is waited for as a whole.
        self._flights: dict[int, np.ndarray] = {}

    @changes
    def pin_results(self) -> None:
        """Puts what steps return into pinned memory, from which a GPU copies by itself.

        Tensors that the env returned before are no longer its own.

        Raises:
            gymnasium.error.AlreadyPendingCallError: envs are in flight.
        """
        self._consoles.check_idle("pin_results")
        tensors = self._consoles.engine.tensors
        optional = ("sounds", "objects", "objects_left_out")
        names = [*RESULTS, *(name for name in optional if name in tensors)]
        self._consoles.replace({name: tensors[name].pin_memory() for name in names})

    @property
    def flying(self) -> int:
        """How many envs are in flight."""
        return int(self._flying.sum())

    @staticmethod
    def _range(envs: slice) -> slice:
        for end in (envs.start, envs.stop, envs.step):
            if end is not None:
                arguments.integer("the ends and the step of a slice", end, -arguments.MOST)
        if envs.step == 0:
            raise InvalidValue("expected the step of a slice not to be 0, got 0")
        return envs

    def _numbers(self, envs: Envs) -> np.ndarray:
        """(n,) int32; checks that none of them is in flight."""
        if isinstance(envs, slice):
            numbers = np.ascontiguousarray(self._all[self._range(envs)])
        else:
            ids = env_ids_of(self._consoles, envs)
            numbers = ids.numpy().astype(np.int32)
            if len(np.unique(numbers)) != len(numbers):
                raise InvalidValue(f"expected each env once, got {shown(numbers.tolist())}")
        if not len(numbers):
            raise InvalidValue("expected the number of at least one env, got none")
        self.check_landed(numbers)
        return numbers

    def check_landed(self, numbers: np.ndarray) -> None:
        """Checks that none of these envs is in flight.

        Raises:
            gymnasium.error.AlreadyPendingCallError: one of them is.
        """
        if self._flying[numbers].any():
            late = numbers[self._flying[numbers]].tolist()
            raise error.AlreadyPendingCallError(
                f"expected envs that are not in flight, got {late}, whose results are to be "
                "received before",
                "step",
            )

    def _start(
        self, numbers: np.ndarray, resets: bool, seeds: np.ndarray | None, singly: bool
    ) -> int:
        engine = self._consoles.engine
        flight = engine.backend.start(engine.batch, numbers, resets, seeds, singly)
        self._flying[numbers] = True
        if not singly:
            self._flights[flight] = numbers
        return flight

    @changes
    def step(self, envs: Envs, actions: Any, *, singly: bool = False) -> int:
        """Starts a step of some envs; does not wait for it.

        Args:
            envs: which, each once.
            actions: one for each of them, as in AtariEnv.step.
            singly: they are received by `take`, in the order in which they are done; else by
                `wait`.

        Returns:
            The flight, for `wait`.

        Raises:
            gymnasium.error.AlreadyPendingCallError: one of the envs is in flight.
            gymnasium.error.ClosedEnvironmentError, gymnasium.error.ResetNeeded: as AtariEnv.step.
            TypeError, ValueError: there are no such envs, one is named twice, or the actions are
                not as described.
        """
        self._consoles.check_open("step")
        self._consoles.check_started("step")
        numbers = self._numbers(envs)
        rows = envs if isinstance(envs, slice) else torch.from_numpy(numbers.astype(np.int64))
        self._consoles.inputs.set_rows(rows, len(numbers), actions)
        return self._start(numbers, False, None, singly)

    @changes
    def reset(self, envs: Envs, seed: Any = None, *, singly: bool = False) -> int:
        """Starts new episodes in some envs; does not wait for them.

        Args:
            envs: which, each once.
            seed: one for each of them, in their order; or one for all, where the i-th of them in
                ascending order gets `seed + i`.
            singly: as in `step`.

        Returns:
            The flight, for `wait`.

        Raises:
            gymnasium.error.AlreadyPendingCallError: one of the envs is in flight.
            gymnasium.error.ClosedEnvironmentError, gymnasium.error.ResetNeeded, TypeError,
                ValueError: as AtariEnv.reset.
        """
        consoles = self._consoles
        consoles.check_open("reset")
        numbers = self._numbers(envs)
        num_envs = consoles.engine.num_envs
        if len(numbers) < num_envs:
            consoles.check_started("reset of some envs")
        if seed is None and not consoles.started:
            seed = consoles.first_seed()
        seeds = None
        if seed is not None:
            given = arguments.seeds(seed, None, len(numbers)).numpy()
            if np.ndim(seed) == 0:  # counts in ascending order of the envs
                given = given[np.argsort(np.argsort(numbers))]
            seeds = np.full(num_envs, -1, np.int64)
            seeds[numbers] = given
        flight = self._start(numbers, True, seeds, singly)
        consoles.start()
        return flight

    @reads
    def is_done(self, flight: int) -> bool:
        """Whether all envs of a flight are done, so that `wait` would not wait.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            TypeError, ValueError: there is no such flight.
        """
        self._consoles.check_open("is_done")
        flight = arguments.integer("flight", flight, 0, arguments.MAX_SEED)
        return bool(self._consoles.engine.backend.is_done(flight))

    @changes
    def wait(self, flight: int) -> None:
        """Waits until all envs of a flight are done.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            MemoryError, RuntimeError: the error of a thread that played.
            TypeError, ValueError: there is no such flight.
        """
        self._consoles.check_open("wait")
        flight = arguments.integer("flight", flight, 0, arguments.MAX_SEED)
        try:
            self._consoles.engine.backend.wait_for(flight)
        finally:
            self._flying[self._flights.pop(flight, np.zeros(0, np.int32))] = False

    @changes
    def take(self, count: int) -> np.ndarray:
        """Waits until `count` envs that were started with `singly` are done.

        Returns:
            (count,) int32: the numbers of these envs, in the order in which they were done.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            MemoryError, RuntimeError: the error of a thread that played.
            ValueError: fewer are in flight.
        """
        self._consoles.check_open("take")
        count = arguments.integer("count", count, 0)
        taken = np.array(self._consoles.engine.backend.take(count), np.int32)
        self._flying[taken] = False
        return taken

    @changes
    def settle(self) -> None:
        """Waits until no env is in flight any more; each can be stepped and reset then.

        Call it after an interrupt of any of these calls, as by Ctrl-C: each env has then played the
        whole step or nothing of it, and `results` has its newest results. It can be called at any
        time, and again.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
        """
        self._consoles.check_open("settle")
        self._consoles.engine.backend.finish()
        self._flights.clear()
        self._flying[:] = False

    def together(self, envs: slice, actions: torch.Tensor) -> Together:
        """Some envs whose steps all have their actions in the same memory; see Together."""
        return Together(self, envs, actions)

    @reads
    def results(self, rows: torch.Tensor | slice) -> Step:
        """The newest results of envs that are not in flight, as AtariEnv.step returns them.

        Args:
            rows: the envs' numbers, (n,) int64, or a range of them.

        Returns:
            New tensors, with n rows.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            RuntimeError: another process made the env, or another thread is in it.
            TypeError, ValueError: there are no such envs.
        """
        self._consoles.check_open("results")
        if isinstance(rows, slice):
            return self._some(lambda tensor: tensor[self._range(rows)].clone())
        chosen = env_ids_of(self._consoles, rows)
        return self._some(lambda tensor: tensor[chosen])

    @reads
    def shared_results(self, rows: slice) -> Step:
        """As `results`, but views of the env's tensors, which the envs' next step overwrites."""
        self._consoles.check_open("results")
        return self._some(lambda tensor: tensor[rows])

    def _some(self, of: Callable[[torch.Tensor], torch.Tensor]) -> Step:
        outputs, tensors = self._consoles.outputs, self._consoles.engine.tensors
        infos = {key: of(value) for key, value in outputs.step_info.items()}
        return (
            for_each(of, outputs.observations), of(tensors["rewards"]), of(outputs.terminated),
            of(outputs.truncated), infos,
        )  # fmt: skip


class Together:
    """Some envs that take their steps together, with actions in the same memory each time.

    What is the same in each step is found once, which saves the host 40 us a step.

    Args:
        flights: those of their AtariEnv.
        envs: which envs.
        actions: an action for each of them, int64, as in AtariEnv.step; written before a step.

    Raises:
        gymnasium.error.AlreadyPendingCallError, TypeError, ValueError: as Flights.step.
    """

    def __init__(self, flights: Flights, envs: slice, actions: torch.Tensor):
        self._flights, self._consoles, self._guard = flights, flights._consoles, flights._guard
        self._numbers = flights._numbers(envs)
        if actions.dtype != torch.int64:
            raise InvalidType(f"expected actions of int64, got {actions.dtype}")
        self._set_actions = self._consoles.inputs.setter(envs, len(self._numbers), actions)

    @changes
    def step(self) -> int:
        """Starts a step, and returns its flight, as Flights.step."""
        self._consoles.check_open("step")
        self._consoles.check_started("step")
        self._flights.check_landed(self._numbers)
        self._set_actions()
        return self._flights._start(self._numbers, False, None, False)
