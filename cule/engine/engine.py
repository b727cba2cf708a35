"""A batch of envs that is ready to run: its memory, its backend, and the game's own kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from cule import _core
from cule.console.options import Group, Options
from cule.device import avoid_lost_threads, keep_through_forks
from cule.engine.allocation import allocate
from cule.engine.changeover import Changeover, wants_translation
from cule.engine.contents import Contents
from cule.engine.layout import Layout
from cule.engine.start_states import boots_of
from cule.errors import InvalidValue

# Envs that a multiprocessor which does nothing else emulates at most.
MAX_ENVS_APART = _core.MAX_ENVS_APART
# Resets that are emulated, of some hundred frames each, without a look for signals.
EMULATED_RESETS_AT_ONCE = 64


class Engine(Contents):
    """A batch of envs on one device.

    Args:
        groups: what is played.
        group_of_env: (num_envs,) the index of each env's group.
        options: what a step does.
        device: where the envs live.
        num_threads: CPU only: how many envs run at once.
        translate: CUDA only: whether to compile the game for the GPU, and to wait for it; None:
            where that is faster, steps being interpreted until it is there.
        multiprocessors: CUDA only: how many emulate, with nothing else on them; None: any, shared.
        progress: whether to say so where preparing the games takes seconds and somebody looks.

    Attributes:
        boots: each group's console after power-on.
        heights: each group's visible scanlines.
        layout: what the memory is laid out by.
        memory, batch, tensors: the memory, and the two parts of it.
        backend: what steps run on.
        keeps_pooled: whether frames that an observation is made of are kept where the pictures no
            longer show them: an episode goes on after its end, or its game has frames_cut_off.

    Raises:
        ValueError: `translate` or `multiprocessors` cannot be had here.
        torch.OutOfMemoryError: the device has too little memory; the message says how much an env
            takes and how many would fit.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        group_of_env: np.ndarray,
        options: Options,
        device: torch.device,
        num_threads: int,
        translate: bool | None = None,
        multiprocessors: int | None = None,
        progress: bool = True,
    ):
        avoid_lost_threads()
        self.groups, self.options, self.device = list(groups), options, device
        self.num_envs = len(group_of_env)
        self._check_multiprocessors(multiprocessors)
        self._progress = progress
        self._streams: set[torch.cuda.Stream] = set()
        self.boots = boots_of(self.groups, progress)
        self.layout = Layout(self.groups, self.boots, options, self.num_envs, self.runs_on_gpu)
        self.heights, self.keeps_pooled = self.layout.heights, self.layout.keeps_pooled
        self.memory = allocate(self.layout, group_of_env, device, progress)
        self.batch, self.tensors = self.memory.batch, self.memory.tensors
        self.backend = keep_through_forks(self._make_backend(num_threads, multiprocessors or 0))
        self._changeover: Changeover | None = None
        if wants_translation(translate, self.groups, self.num_envs, device):
            self._begin_translation(at_first=not translate)
        if translate:
            self._translate_now()

    def _make_backend(self, num_threads: int, multiprocessors: int) -> _core.Backend:
        if self.runs_on_gpu:
            return _core.cuda_backend(self.device.index or 0, multiprocessors)
        return _core.cpu_backend(num_threads)

    @property
    def runs_on_gpu(self) -> bool:
        """Whether memory is laid out for a GPU, where each thread plays an env."""
        return self.device.type == "cuda"

    @property
    def bytes_per_env(self) -> int:
        """The device memory that each env takes; what all envs read is not counted."""
        return self.layout.bytes_per_env

    def _check_multiprocessors(self, asked: int | None) -> None:
        if asked is None:
            return
        if self.device.type != "cuda":
            raise InvalidValue(
                f"expected multiprocessors with device='cuda', got it on device {self.device}"
            )
        least = -(-self.num_envs // MAX_ENVS_APART)
        most = torch.cuda.get_device_properties(self.device).multi_processor_count
        if not least <= asked <= most:
            raise InvalidValue(
                f"expected multiprocessors to be from {least}, as each emulates "
                f"{MAX_ENVS_APART} of the {self.num_envs} envs at most, to {most}, as many as "
                f"{self.device} has, got {asked}"
            )

    # The game's own kernel ------------------------------------------------------------------------

    def _begin_translation(self, at_first: bool) -> None:
        game = self.groups[0].game
        self._changeover = Changeover(game, self.memory, self.backend, self.num_envs, at_first)

    def _translate_now(self) -> None:
        assert self._changeover is not None
        try:
            self._changeover.change_over(self._progress)
        except (OSError, RuntimeError) as problem:
            raise InvalidValue(f"translate=True was asked for, but {problem}") from problem

    @property
    def translated(self) -> bool:
        """Whether steps run the compiled game by now."""
        return self._changeover is not None and self._changeover.translated

    def wait_until_translated(self) -> bool:
        """Waits until steps run the compiled game, where it is being compiled.

        Returns:
            Whether they do.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        return self._changeover is not None and self._changeover.wait(self._progress)

    # Running --------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of every env with the actions in `tensors["actions"]`."""
        if self._changeover is not None:
            self._changeover.change_over_if_ready()
        self._run("step")

    def reset(self, mask: torch.Tensor | None, seeds: torch.Tensor | None) -> None:
        """Resets some envs.

        Args:
            mask: (num_envs,) uint8, not 0 for those; None: all.
            seeds: (num_envs,) int64, -1 for an env that is not seeded; None: no env is.
        """
        for part in self._interruptible(mask):
            addresses = (0 if tensor is None else tensor.data_ptr() for tensor in (part, seeds))
            self._run("reset", *addresses)

    def close(self) -> None:
        """Before the memory is given back.

        Nobody gets it until all streams on which envs stepped have come so far.
        """
        for tensor in self.tensors.values():
            for stream in self._streams:
                tensor.record_stream(stream)

    def _stream(self) -> int:
        """The current stream, which close() will have to know of."""
        if self.device.type != "cuda":
            return 0
        stream = torch.cuda.current_stream(self.device)
        self._streams.add(stream)
        return stream.cuda_stream

    def _run(self, what: str, *arguments: int) -> None:
        """Has the backend do it, whose threads and memory are for one call at a time (guard.py)."""
        getattr(self.backend, what)(self.batch, *arguments, self._stream())

    def _interruptible(self, mask: torch.Tensor | None) -> Iterator[torch.Tensor | None]:
        """The mask in parts, between which Python looks for signals.

        There are some where a reset takes long: where it is emulated on a CPU.
        """
        if self.device.type == "cuda" or self.options.reset_pool_size:
            yield mask
            return
        every = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        chosen = torch.nonzero(every if mask is None else mask).flatten()
        for some in chosen.split(EMULATED_RESETS_AT_ONCE):
            part = torch.zeros(self.num_envs, dtype=torch.uint8, device=self.device)
            part[some] = 1
            yield part
