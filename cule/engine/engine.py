"""A batch of envs that is ready to run: its memory, its backend, and the game's own kernel."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from cule import _core
from cule.console.cartridge import config_bytes
from cule.console.console import Snapshot
from cule.console.options import Group, Options
from cule.devices.device import avoid_lost_threads, keep_through_forks
from cule.engine.allocation import allocate
from cule.engine.changeover import Changeover, wants_translation
from cule.engine.contents import Contents
from cule.engine.layout import Layout
from cule.engine.start_states import boots_of
from cule.errors import InvalidValue

# The most envs that a reserved multiprocessor emulates (`multiprocessors`).
MAX_ENVS_APART = _core.MAX_ENVS_APART
# How many resets are emulated before Python checks for signals. Each takes about a hundred frames.
EMULATED_RESETS_AT_ONCE = 64


def fewest_multiprocessors(num_envs: int) -> int:
    """The fewest multiprocessors that can be reserved for so many envs."""
    return -(-num_envs // MAX_ENVS_APART)


def _finish(backend: _core.Backend, process: int) -> None:
    """Waits until no thread plays. A forked child has no threads to wait for."""
    if os.getpid() == process:
        backend.finish()


class Engine:
    """A batch of envs on one device.

    Args:
        groups: the groups of envs, each with its game, mode and difficulty.
        group_of_env: (num_envs,) the index of each env's group.
        options: the options of a step, such as frameskip and the shape of observations.
        device: the device of the envs.
        num_threads: CPU only: how many envs run at once.
        translate: CUDA only: True compiles the game for the GPU and waits for it. None compiles it
            if that is faster, and interprets steps until it is ready. False interprets.
        multiprocessors: CUDA only: how many multiprocessors are reserved for emulation; None: all
            are used, and none is reserved.
        progress: whether to show a bar on a terminal if preparing the games takes seconds.
        cpus: CPU only: the CPU that each thread is pinned to; empty: none is pinned.
        states_elsewhere: whether the envs' states are in a caller's memory, see Layout. Then only a
            port (csrc/bindings/port.h) steps and resets them.

    Attributes:
        boots: each group's console after power-on.
        heights: each group's visible scanlines.
        layout: the shapes of the memory.
        memory, batch, tensors: the memory, and its two parts.
        contents: reads the envs' records and pictures from it.
        backend: the backend that runs steps.
        keeps_pooled: whether pooled frames are stored, see `Layout.keeps_pooled`.

    Raises:
        ValueError: `translate` or `multiprocessors` is impossible here.
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
        cpus: tuple[int, ...] = (),
        states_elsewhere: bool = False,
    ):
        avoid_lost_threads()
        self.groups, self.options, self.device = list(groups), options, device
        self.num_envs = len(group_of_env)
        self._check_multiprocessors(multiprocessors)
        self.multiprocessors = multiprocessors
        self._progress, self._process = progress, os.getpid()
        self._streams: set[torch.cuda.Stream] = set()
        self.boots = boots_of(self.groups, progress)
        self.layout = Layout(
            self.groups, self.boots, options, self.num_envs, self.runs_on_gpu, states_elsewhere
        )
        self.heights, self.keeps_pooled = self.layout.heights, self.layout.keeps_pooled
        self.memory = allocate(self.layout, group_of_env, device, progress)
        self.batch, self.tensors = self.memory.batch, self.memory.tensors
        self.contents = Contents(self.layout, self.tensors)
        self.backend = keep_through_forks(
            self._make_backend(num_threads, multiprocessors or 0, cpus)
        )
        # An env may be dropped, or the program may end, while threads play in its memory.
        weakref.finalize(self, _finish, self.backend, self._process)
        self._changeover: Changeover | None = None
        if wants_translation(translate, self.groups, self.num_envs, device):
            self._begin_translation(at_first=not translate)
        if translate:
            self._translate_now()

    def _make_backend(
        self, num_threads: int, multiprocessors: int, cpus: tuple[int, ...]
    ) -> _core.Backend:
        if self.runs_on_gpu:
            return _core.cuda_backend(self.device.index or 0, multiprocessors)
        return _core.cpu_backend(num_threads, cpus)

    @property
    def runs_on_gpu(self) -> bool:
        """Whether the memory has a GPU's layout, in which each thread plays an env."""
        return self.device.type == "cuda"

    @property
    def bytes_per_env(self) -> int:
        """The device memory that each env takes, without what all envs share."""
        return self.layout.bytes_per_env

    def _check_multiprocessors(self, asked: int | None) -> None:
        if asked is None:
            return
        if self.device.type != "cuda":
            raise InvalidValue(
                f"expected multiprocessors with device='cuda', got it with device {self.device}"
            )
        least = fewest_multiprocessors(self.num_envs)
        most = torch.cuda.get_device_properties(self.device).multi_processor_count
        if not least <= asked <= most:
            raise InvalidValue(
                f"expected multiprocessors to be from {least} (each emulates at most "
                f"{MAX_ENVS_APART} of the {self.num_envs} envs) to {most} (as many as "
                f"{self.device} has), got {asked}"
            )

    def reserve(self, multiprocessors: int, ordered: bool | None) -> bool:
        """Reserves another number of multiprocessors from the next step on.

        Args:
            multiprocessors: how many are reserved.
            ordered: whether a compiled game plays envs together that are alike; None: the backend
                takes the faster way.

        Returns:
            Whether they are reserved; False: the game would need another kernel.

        Raises:
            ValueError: there are not so many, or too few for all envs, or the envs are on a CPU.
        """
        self._check_multiprocessors(multiprocessors)
        done = self.backend.reserve(self.num_envs, multiprocessors, ordered)
        if done:
            self.multiprocessors = multiprocessors
        return done

    # The game's own kernel ------------------------------------------------------------------------

    def _begin_translation(self, at_first: bool) -> None:
        game = self.groups[0].game
        self._changeover = Changeover(
            game, self.memory, self.backend, self.num_envs, at_first, self.options.sound
        )

    def _translate_now(self) -> None:
        assert self._changeover is not None
        try:
            self._changeover.change_over(self._progress)
        except (OSError, RuntimeError) as problem:
            raise InvalidValue(f"translate=True was asked for, but {problem}") from problem

    @property
    def translated(self) -> bool:
        """Whether steps now run the compiled game."""
        return self._changeover is not None and self._changeover.translated

    def wait_until_translated(self, timeout: float | None = None) -> bool:
        """If the game is being compiled, waits until steps run the compiled game.

        Args:
            timeout: seconds of waiting at most; None: no limit.

        Returns:
            Whether steps run the compiled game.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        return self._changeover is not None and self._changeover.wait(self._progress, timeout)

    def translate_again(self, states: Callable[[], list[tuple[Group, Snapshot]]] | None) -> bool:
        """Loads a kernel if one is compiled; else looks whether another is needed.

        Args:
            states: a function that returns the states of some envs; None: only loads.

        Returns:
            Whether steps now run another kernel than after the last call, or since the last
            `wait_until_translated`.
        """
        if self._changeover is None:
            return False
        self._changeover.change_over_if_ready()
        if states is not None:
            self._changeover.again(states)
        return self._changeover.changed()

    def configure(self, group: Group) -> None:
        """Changes the mode and the difficulty of an env that is alone in its batch.

        The difficulty counts from the next frame on, the mode from the next reset on.

        Args:
            group: the same game in another mode or difficulty.
        """
        assert self.num_envs == 1 and group.game == self.groups[0].game
        config = np.frombuffer(config_bytes(group, self.boots[0].pal, 0), np.uint8)
        self.tensors["configs"].copy_(torch.from_numpy(config.copy()))
        self.groups[0] = group

    # Running --------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of every env with the actions in `tensors["actions"]`."""
        if self._changeover is not None:
            self._changeover.change_over_if_ready()
        self._run("step")

    def send(self) -> None:
        """Starts a step of every env: on a CPU, threads of the backend play it.

        Until `wait` has returned, these threads use the memory of all envs.
        """
        if self._changeover is not None:
            self._changeover.change_over_if_ready()
        self._run("send")

    def wait(self) -> None:
        """Waits until the step that was sent is played; on a GPU its stream does.

        Raises:
            MemoryError, RuntimeError: the error of a thread that played; the step is received.
        """
        self.backend.wait()

    def receive(self) -> None:
        """Ends the step that was sent: `in_flight` is False, and the next call may come."""
        self.backend.receive()

    @property
    def in_flight(self) -> bool:
        """Whether a step was sent and not received, or some envs are in flight (env/flights.py)."""
        return self.backend.in_flight

    def reset(self, mask: torch.Tensor | None, seeds: torch.Tensor | None) -> None:
        """Resets some envs.

        Args:
            mask: (num_envs,) uint8, not 0 for the envs to reset; None: all.
            seeds: (num_envs,) int64, -1 for an env that is not seeded; None: none is seeded.
        """
        for part in self._interruptible(mask):
            addresses = (0 if tensor is None else tensor.data_ptr() for tensor in (part, seeds))
            self._run("reset", *addresses)

    def close(self) -> None:
        """Waits until no thread plays; has to be called before the memory is freed.

        torch does not reuse the memory before all streams on which envs stepped are done.
        """
        _finish(self.backend, self._process)
        for tensor in self.tensors.values():
            for stream in self._streams:
                tensor.record_stream(stream)

    def _stream(self) -> int:
        """The current stream. It is also noted for close()."""
        if self.device.type != "cuda":
            return 0
        stream = torch.cuda.current_stream(self.device)
        self._streams.add(stream)
        return stream.cuda_stream

    def _run(self, what: str, *arguments: int) -> None:
        """Calls a method of the backend. Only one call may run at a time: guard.py sees to that."""
        getattr(self.backend, what)(self.batch, *arguments, self._stream())

    def _interruptible(self, mask: torch.Tensor | None) -> Iterator[torch.Tensor | None]:
        """The mask in parts, between which Python checks for signals.

        There is more than one part only if resets are slow: if a CPU emulates them.
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
