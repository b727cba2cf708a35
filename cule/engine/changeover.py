"""Changes a batch from the interpreter to its game's own kernels, when they are compiled."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch

from cule import _core
from cule.console.cartridge import rom_of
from cule.console.console import Snapshot
from cule.console.options import Group
from cule.devices.architecture import architecture_of
from cule.engine.memory import Memory
from cule.errors import Failed, InvalidValue
from cule.facts.names import level_of_the_user
from cule.rom import Game
from cule.translation import Translation, translate_again
from cule.translation.background import Translating, translating
from cule.translation.kernel_files import shared_folders

# The fewest envs for which a game is compiled by default: with fewer, faster steps take too long to
# make up for the time of compiling.
LEAST_WORTH_TRANSLATING = 64


def wants_translation(
    asked: bool | None, groups: Sequence[Group], num_envs: int, device: torch.device
) -> bool:
    """Whether the batch's game is to be compiled.

    Args:
        asked: the user's `translate`.
        groups: the groups of the batch.
        num_envs: the envs of the batch.
        device: the device of the batch.

    Raises:
        ValueError: `asked` is True, and the game cannot be compiled here.
    """
    games = {group.game.name for group in groups}
    possible = device.type == "cuda" and len(games) == 1
    if asked and not possible:
        raise InvalidValue(
            "expected translate=True with device='cuda' and one game for all envs, got it with "
            f"device {device} and {len(games)} game{'s' * (len(games) > 1)}"
        )
    if asked is not None:
        return asked
    return possible and num_envs >= LEAST_WORTH_TRANSLATING


def is_captured(device: torch.device) -> bool:
    """Whether a CUDA graph is being captured on the current stream."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


class Changeover:
    """A game's kernels, from the start of compiling until steps run them.

    The first kernel has the game's most frequent basic blocks. The second has all of them, and
    takes longer to compile. There is only the second if it is in the cache or hardly larger. Later
    ones, after `again`, also have blocks that envs execute and random play does not reach.

    Args:
        game: the game of all envs.
        memory: the batch's memory.
        backend: the backend that runs steps.
        num_envs: the number of envs in the batch.
        at_first: whether to compile the first kernel, too.
        sound: whether the envs have sound.

    Warns:
        UserWarning: a folder of CULE_KERNELS cannot be used.

    Attributes:
        translated: whether steps now run a kernel of the game.
        kernels: how many were loaded.
    """

    def __init__(
        self,
        game: Game,
        memory: Memory,
        backend: _core.Backend,
        num_envs: int,
        at_first: bool,
        sound: bool,
    ):
        for problem in shared_folders()[1]:
            warnings.warn(problem, stacklevel=level_of_the_user())
        self.translated, self.kernels, self._known = False, 0, 0
        self._memory, self._backend = memory, backend
        # Each kernel has marked operations of its own, as a CUDA graph may still run the first
        # kernel after the second is loaded. Those of the first two are allocated here: between two
        # steps that would wait for the device.
        self._marked_ops = [self._room_for_operations(game, i) for i in range(1 + at_first)]
        # What steps run; None if nothing is to be compiled again.
        self._loaded: Translation | None = None
        self._kernel = game, architecture_of(memory.device), backend.plays_in_step(num_envs)
        self._sound = sound
        # None while steps run a kernel of all blocks, or when it is known that they never will.
        self._translating: Translating | None = translating(*self._kernel, at_first, sound)

    def _room_for_operations(self, game: Game, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Memory for marked operations: on the host (pinned, for a GPU) and on the device."""
        operations = np.zeros((len(rom_of(game)[0]) + 1, 2), np.uint32)
        on_device = self._memory.keep_array(f"marked_ops {number}", operations)
        on_host = torch.from_numpy(operations.view(np.uint8))
        return on_host.pin_memory() if on_device.is_cuda else on_host, on_device

    def change_over(self, progress: bool = False) -> None:
        """Makes all steps from now on run the kernel, on any stream.

        It waits for the compiler, and may wait while the driver loads the kernel. If it is
        interrupted, the next step does it again.

        Args:
            progress: whether a line on stderr says that it waits.

        Raises:
            OSError, RuntimeError: there is no compiler, or none that knows this GPU and driver.
                Steps go on as before.
        """
        assert self._translating is not None
        try:
            translation = self._translating.result(progress)
            if translation is None:  # there was no need for another one
                self._translating = None
                return
            # The kernel reads the marked operations, so they are copied first, on the stream that
            # will run it.
            if not self._marked_ops:
                room = self._room_for_operations(self._kernel[0], self.kernels + 1)
                self._marked_ops.append(room)
            on_host, on_device = self._marked_ops[-1]
            on_host.copy_(torch.from_numpy(translation.marked_ops.view(np.uint8)))
            on_device.copy_(on_host, non_blocking=True)
            self._backend.load_translation(translation.cubin, on_device.data_ptr())
        except Exception:
            self._translating = self._loaded = None
            raise
        self.translated, self._translating, self._loaded = True, None, translation
        self.kernels += 1
        self._marked_ops.pop()
        if not translation.whole:
            self._translating = translating(*self._kernel, False, self._sound)

    def again(self, states: Callable[[], list[tuple[Group, Snapshot]]]) -> None:
        """Looks in a thread whether the envs execute much that is interpreted; compiles that, too.

        Does nothing while a kernel is being compiled, or if there is none.

        Args:
            states: a function that returns the states of some envs.
        """
        if self._translating is not None or self._loaded is None:
            return
        make = functools.partial(
            translate_again, *self._kernel, self._loaded.played, states(), self._sound
        )
        self._translating = Translating(self._kernel[0], make)

    def _change_over_or_warn(self, progress: bool = False) -> None:
        try:
            self.change_over(progress)
        except (OSError, RuntimeError) as problem:
            said = f"envs run several times slower than they could: {problem}"
            warnings.warn(said, stacklevel=level_of_the_user())

    def change_over_if_ready(self) -> None:
        """Makes steps run the kernel if it is compiled.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        # Not while a CUDA graph is captured: the driver's work would be part of it, or fail.
        if (
            self._translating is not None
            and self._translating.done
            and not is_captured(self._memory.device)
        ):
            self._change_over_or_warn()

    def wait(self, progress: bool, timeout: float | None = None) -> bool:
        """Waits for the kernel of all blocks, and makes steps run it.

        Args:
            progress: whether a line on stderr says that it waits.
            timeout: seconds of waiting at most; then steps run what is compiled. None: no limit.

        Returns:
            Whether steps run a kernel of the game.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self._translating is not None:
            if timeout is not None and not self._translating.wait(until - time.monotonic()):
                break
            if is_captured(self._memory.device):
                raise Failed(
                    "expected wait_until_translated() before a CUDA graph is captured, got it "
                    "during a capture"
                )
            self._change_over_or_warn(progress)
        self._known = self.kernels
        return self.translated

    def changed(self) -> bool:
        """Whether steps run another kernel than when this or `wait` was last called."""
        known, self._known = self._known, self.kernels
        return self.kernels > known
