"""From interpreting a batch's game to the kernels that are compiled for it meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch

from cule import _core
from cule.architecture import architecture_of
from cule.console.cartridge import rom_of
from cule.console.options import Group
from cule.engine.memory import Memory
from cule.errors import InvalidValue
from cule.names import level_of_the_user
from cule.rom import Game
from cule.translating import Translating, translating

# For so many envs a game is compiled: for fewer, compiling is not soon made up for.
LEAST_WORTH_TRANSLATING = 64


def wants_translation(
    asked: bool | None, groups: Sequence[Group], num_envs: int, device: torch.device
) -> bool:
    """Whether the batch's game is to be compiled; `asked` is what the user says, if anything.

    Raises:
        ValueError: it is asked for and cannot be had.
    """
    games = {group.game.name for group in groups}
    possible = device.type == "cuda" and len(games) == 1
    if asked and not possible:
        raise InvalidValue(
            "expected translate=True with device='cuda' and one game for all envs, got it on "
            f"device {device} with {len(games)} game{'s' * (len(games) > 1)}"
        )
    if asked is not None:
        return asked
    return possible and num_envs >= LEAST_WORTH_TRANSLATING


def is_captured(device: torch.device) -> bool:
    """Whether what is launched now goes into a CUDA graph."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


class Changeover:
    """A game's kernels, from when a thread compiles them until steps run them.

    The first has the game's most frequent blocks, and the next all of them, which takes longer to
    compile. Where the latter is kept from before, or hardly larger, there is only that.

    Args:
        game: what all envs play.
        memory: of the batch.
        backend: what steps run on.
        num_envs: in the batch.
        at_first: whether there is to be a first kernel.

    Attributes:
        translated: whether steps run a kernel of the game by now.
    """

    def __init__(
        self, game: Game, memory: Memory, backend: _core.Backend, num_envs: int, at_first: bool
    ):
        self.translated = False
        self._memory, self._backend = memory, backend
        # What each kernel reads, as a graph may go on with one that came before. Here, as between
        # two steps it would wait for the device.
        self._marked_ops = [self._room_for_operations(game, i) for i in range(1 + at_first)]
        self._kernel = game, architecture_of(memory.device), backend.plays_in_step(num_envs)
        # None once steps run the kernel of all blocks, and once it is known that they never will.
        self._translating: Translating | None = translating(*self._kernel, at_first)

    def _room_for_operations(self, game: Game, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """On the host, pinned where that is of use, and on the device."""
        operations = np.zeros((len(rom_of(game)[0]) + 1, 2), np.uint32)
        on_device = self._memory.keep_array(f"marked_ops {number}", operations)
        on_host = torch.from_numpy(operations.view(np.uint8))
        return on_host.pin_memory() if on_device.is_cuda else on_host, on_device

    def change_over(self, progress: bool = False) -> None:
        """Has steps run the kernel from now on, on whatever stream.

        It waits for the compiler, and may wait while the driver loads the kernel. Interrupted, it
        is done again at the next step.

        Args:
            progress: whether a line says so where it is waited for.

        Raises:
            OSError, RuntimeError: there is no compiler, or none that knows this GPU and driver.
                Steps go on as before.
        """
        assert self._translating is not None
        try:
            made = self._translating.result(progress)
            # First what the kernel reads, on the stream that will run it.
            on_host, on_device = self._marked_ops[-1]
            on_host.copy_(torch.from_numpy(made.marked_ops.view(np.uint8)))
            on_device.copy_(on_host, non_blocking=True)
            self._backend.load_translation(made.cubin, on_device.data_ptr())
        except Exception:
            self._translating = None
            raise
        self.translated, self._translating = True, None
        if not made.whole:
            self._marked_ops.pop()
            self._translating = translating(*self._kernel, False)

    def _change_over_or_warn(self, progress: bool = False) -> None:
        try:
            self.change_over(progress)
        except (OSError, RuntimeError) as problem:
            said = f"envs run several times slower than they could: {problem}"
            warnings.warn(said, stacklevel=level_of_the_user())

    def change_over_if_ready(self) -> None:
        """Has steps run the kernel if it is compiled.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        # Not where a graph is captured, which would have the driver's work in it, or fail.
        if (
            self._translating is not None
            and self._translating.done
            and not is_captured(self._memory.device)
        ):
            self._change_over_or_warn()

    def wait(self, progress: bool) -> bool:
        """Has steps run the kernel of all blocks, and waits for it.

        Args:
            progress: whether a line says so.

        Returns:
            Whether steps run a kernel of the game.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        while self._translating is not None:
            if is_captured(self._memory.device):
                raise RuntimeError(
                    "expected wait_until_translated() before a CUDA graph is captured, got it "
                    "while one is"
                )
            self._change_over_or_warn(progress)
        return self.translated
