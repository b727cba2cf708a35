"""From interpreting a batch's game to the kernel that is compiled for it meanwhile."""

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
    """A game's kernel, from when a thread compiles it until steps run it.

    Args:
        game: what all envs play.
        memory: of the batch.
        backend: what steps run on.
        num_envs: in the batch.

    Attributes:
        complete: whether steps run the kernel by now.
    """

    def __init__(self, game: Game, memory: Memory, backend: _core.Backend, num_envs: int):
        self.complete = False
        self._memory, self._backend = memory, backend
        # Here, as between two steps it would wait for the device. The interpreter does not look
        # at it.
        operations = np.zeros((len(rom_of(game)[0]) + 1, 2), np.uint32)
        memory.place_array("marked_ops", operations)
        self._marked_ops = torch.from_numpy(operations.view(np.uint8))
        if memory.device.type == "cuda":
            self._marked_ops = self._marked_ops.pin_memory()
        in_step = backend.plays_in_step(num_envs)
        # None once steps run the kernel, and once it is known that they never will.
        self._translating: Translating | None = translating(
            game, architecture_of(memory.device), in_step
        )

    def change_over(self, progress: bool = False) -> None:
        """Has steps run the kernel from now on, on whatever stream.

        It waits for the compiler, and may wait while the driver loads the kernel. Interrupted, it
        is done again at the next step.

        Args:
            progress: whether a line says so where it is waited for.

        Raises:
            OSError, RuntimeError: there is no compiler, or none that knows this GPU and driver.
                Steps stay interpreted.
        """
        assert self._translating is not None
        try:
            cubin, operations = self._translating.result(progress)
            # First what the kernel reads, on the stream that will run it.
            self._marked_ops.copy_(torch.from_numpy(operations.view(np.uint8)))
            self._memory.tensors["marked_ops"].copy_(self._marked_ops, non_blocking=True)
            self._backend.load_translation(cubin)
        except Exception:
            self._translating = None
            raise
        self.complete, self._translating = True, None

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
        """Has steps run the kernel, and waits for it.

        Args:
            progress: whether a line says so.

        Returns:
            Whether steps run it.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        if self._translating is not None:
            if is_captured(self._memory.device):
                raise RuntimeError(
                    "expected wait_until_translated() before a CUDA graph is captured, got it "
                    "while one is"
                )
            self._change_over_or_warn(progress)
        return self.complete
