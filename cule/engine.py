"""The memory of a batch of envs, and the one caller of the compiled kernels.

Python owns every buffer as a torch tensor and hands addresses to `_core.Batch`; tensors keep the names that the C++
fields have (csrc/kernels/batch.h describes them).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tqdm import tqdm

from cule import _core, palette, resample
from cule.architecture import architecture_of
from cule.console.cartridge import config_bytes, micro_ops, padded, rom_of
from cule.console.console import Snapshot
from cule.console.instruction_buffers import buffer_entries, own_buffer_entries, spare_buffers
from cule.console.options import AUTORESET_MODES, Group, Options, action_ids
from cule.console.power_on import POWER_ON_NUMBERS, power_on_numbers
from cule.console.start_states import boot, reset_pool
from cule.device import avoid_lost_threads, keep_through_forks, usable_memory
from cule.errors import InvalidValue
from cule.names import level_of_the_user
from cule.translating import Translating, translating

# For so many envs a game is compiled: for fewer, compiling is not soon made up for.
LEAST_WORTH_TRANSLATING = 64
# Envs that a multiprocessor which does nothing else emulates at most.
MOST_ENVS_APART = _core.MOST_ENVS_APART
# Resets that are emulated, of some hundred frames each, without a look for signals.
EMULATED_RESETS_AT_ONCE = 64


def free_bytes(device: torch.device) -> int:
    """The memory that is free on a GPU. Of a CPU's, all that there is: what is in use may be given up."""
    if device.type != "cuda":
        return usable_memory()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


class Engine:
    """A batch of envs on one device.

    Args:
        groups: what is played.
        group_of_env: (num_envs,) the index of each env's group.
        options: what a step does.
        device: where the envs live.
        num_threads: CPU only: how many envs run at once.
        translate: CUDA only: whether to compile the game for the GPU, and to wait for it; None: where that is faster,
            steps being interpreted until it is there.
        multiprocessors: CUDA only: how many emulate, with nothing else on them; None: any, shared.
        progress: whether to say so where preparing the games takes seconds and somebody looks.

    Attributes:
        translated: whether steps run the compiled game by now.
        keeps_pooled: whether frames that an observation is made of are kept where the pictures no
            longer show them: an episode goes on after its end, or its game has frames_cut_off.

    Raises:
        ValueError: `translate` or `multiprocessors` cannot be had here.
        torch.OutOfMemoryError: the device has too little memory; the message says how much an env takes and how many
            would fit.
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
        self.boots = [boot(group.game) for group in self._bar("power-on")]
        self.heights = [booted.height for booted in self.boots]
        self.picture_bytes = max(self.heights) * _core.LINE_PIXELS
        self.batch = _core.Batch()
        self.tensors: dict[str, torch.Tensor] = {}
        self._streams: set[torch.cuda.Stream] = set()
        self._layout: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
        self._plan_state()
        self._plan_outputs()
        # A CPU's memory is promised freely and missed only when it is touched.
        if device.type == "cpu" and self.bytes_per_env * self.num_envs > free_bytes(device):
            raise torch.OutOfMemoryError(self._too_many_envs(free_bytes(device)))
        try:
            self._place_constants(group_of_env)
            self._place_envs()
            self._place_start_states()
        except RuntimeError as problem:  # which is what torch raises on the CPU
            self.tensors.clear()
            room = free_bytes(device)
            if not isinstance(problem, torch.OutOfMemoryError) and self.bytes_per_env * self.num_envs <= room:
                raise
            raise torch.OutOfMemoryError(self._too_many_envs(room)) from problem
        self._set_values()
        self.backend = keep_through_forks(self._make_backend(num_threads, multiprocessors or 0))
        self.translated = False
        self._translating: Translating | None = None
        if self._wants_translation(translate):
            self._begin_translation()
        if translate:
            try:
                self._change_over(progress)
            except (OSError, RuntimeError) as problem:
                raise InvalidValue(f"translate=True was asked for, but {problem}") from problem

    def _make_backend(self, num_threads: int, multiprocessors: int) -> _core.Backend:
        if self.runs_on_gpu:
            return _core.cuda_backend(self.device.index or 0, multiprocessors)
        return _core.cpu_backend(num_threads)

    @property
    def runs_on_gpu(self) -> bool:
        """Whether memory is laid out for a GPU, where each thread plays an env (kernels/batch.h)."""
        return self.device.type == "cuda"

    def _bar(self, what: str) -> tqdm:
        """The groups, with a bar where they take seconds and stderr is a terminal."""
        # None: where it is none, there is no bar.
        hidden = None if self._progress else True
        return tqdm(self.groups, desc=what, unit="game", delay=2, leave=False, disable=hidden)

    def _check_multiprocessors(self, asked: int | None) -> None:
        if asked is None:
            return
        if self.device.type != "cuda":
            raise InvalidValue(f"expected multiprocessors with device='cuda', got it on device {self.device}")
        least = -(-self.num_envs // MOST_ENVS_APART)
        most = torch.cuda.get_device_properties(self.device).multi_processor_count
        if not least <= asked <= most:
            raise InvalidValue(
                f"expected multiprocessors to be from {least}, as each emulates {MOST_ENVS_APART} of the "
                f"{self.num_envs} envs at most, to {most}, as many as {self.device} has, got {asked}"
            )

    def _wants_translation(self, asked: bool | None) -> bool:
        games = {group.game.name for group in self.groups}
        if asked and (self.device.type != "cuda" or len(games) > 1):
            where = f"on device {self.device} with {len(games)} game{'s' * (len(games) > 1)}"
            raise InvalidValue(f"expected translate=True with device='cuda' and one game for all envs, got it {where}")
        if asked is not None:
            return asked
        if self.device.type != "cuda" or len(games) > 1:
            return False
        return self.num_envs >= LEAST_WORTH_TRANSLATING

    # Translation -------------------------------------------------------------------------------------------------

    def _begin_translation(self) -> None:
        game = self.groups[0].game
        # Here, as between two steps it would wait for the device. The interpreter does not look at it.
        operations = np.zeros((len(rom_of(game)[0]) + 1, 2), np.uint32)
        self._place_array("marked_ops", operations)
        self._marked_ops = torch.from_numpy(operations.view(np.uint8))
        if self.device.type == "cuda":
            self._marked_ops = self._marked_ops.pin_memory()
        in_step = self.backend.plays_in_step(self.num_envs)
        self._translating = translating(game, architecture_of(self.device), in_step)

    def _is_captured(self) -> bool:
        """Whether what is launched now goes into a CUDA graph."""
        if self.device.type != "cuda":
            return False
        with torch.cuda.device(self.device):
            return torch.cuda.is_current_stream_capturing()

    def _change_over(self, progress: bool = False) -> None:
        """Has steps run the compiled game from now on, on whatever stream; it may wait while the driver loads it.

        Interrupted, it is done again at the next step.

        Args:
            progress: whether a line says so where it is waited for.

        Raises:
            OSError, RuntimeError: there is no compiler, or none that knows this GPU and driver. Steps stay interpreted.
        """
        assert self._translating is not None
        try:
            cubin, operations = self._translating.result(progress)
            # First what the kernel reads, on the stream that will run it.
            self._marked_ops.copy_(torch.from_numpy(operations.view(np.uint8)))
            self.tensors["marked_ops"].copy_(self._marked_ops, non_blocking=True)
            self.backend.load_translation(cubin)
        except Exception:
            self._translating = None
            raise
        self.translated, self._translating = True, None

    def _change_over_or_warn(self, progress: bool = False) -> None:
        try:
            self._change_over(progress)
        except (OSError, RuntimeError) as problem:
            said = f"envs run several times slower than they could: {problem}"
            warnings.warn(said, stacklevel=level_of_the_user())

    def wait_until_translated(self) -> bool:
        """Waits until steps run the compiled game, where it is being compiled.

        Returns:
            Whether they do.

        Raises:
            RuntimeError: a CUDA graph is being captured.

        Warns:
            UserWarning: the game cannot be compiled or loaded.
        """
        if self._translating is not None:
            if self._is_captured():
                raise RuntimeError(
                    "expected wait_until_translated() before a CUDA graph is captured, got it while one is"
                )
            self._change_over_or_warn(self._progress)
        return self.translated

    # Memory ------------------------------------------------------------------------------------------------------

    def place(self, name: str, tensor: torch.Tensor) -> None:
        """Keeps a tensor, whose memory becomes the batch's field of this name."""
        self.tensors[name] = tensor
        setattr(self.batch, name, (tensor.data_ptr(), tensor.nbytes))

    def _keep_array(self, name: str, array: np.ndarray) -> torch.Tensor:
        """Keeps an array's bytes on the device."""
        self.tensors[name] = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).copy()).to(self.device)
        return self.tensors[name]

    def _place_array(self, name: str, array: np.ndarray) -> None:
        self.place(name, self._keep_array(name, array))

    def _plan(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Has _place_envs make a tensor of zeros. All are planned before any is made, so that their size is known."""
        self._layout[name] = (shape, dtype)

    def _place_envs(self) -> None:
        for name, (shape, dtype) in self._layout.items():
            self.place(name, torch.zeros(shape, dtype=dtype, device=self.device))

    @property
    def bytes_per_env(self) -> int:
        """The device memory that each env takes, with observations and its part of spare buffers.

        What all envs read is not counted.
        """
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in self._layout.values()) // self.num_envs

    def _too_many_envs(self, room: int) -> str:
        """What is wrong with `num_envs`, where `room` bytes are free for them."""
        # Free memory may lie in pieces, so that less of it can be used.
        fitting = min(room // self.bytes_per_env, self.num_envs - 1)
        needed = self.num_envs * self.bytes_per_env
        return (
            f"expected num_envs to fit in the memory of {self.device}, got {self.num_envs}: an env takes "
            f"{self.bytes_per_env} bytes, all of them {needed / 2**30:.1f} GiB, and there are {room / 2**30:.1f} GiB, "
            f"enough for {fitting} at most"
        )

    def _place_constants(self, group_of_env: np.ndarray) -> None:
        images = [padded(rom_of(group.game)[0]) for group in self.groups]
        offsets = np.cumsum([0] + [len(image) for image in images])
        configs = b"".join(
            config_bytes(group, booted.pal, int(offset))
            for group, booted, offset in zip(self.groups, self.boots, offsets, strict=False)
        )
        self._place_array("group", group_of_env.astype(np.uint32))
        self._place_array("configs", np.frombuffer(configs, np.uint8))
        self._place_array("roms", np.concatenate(images))
        space = self.options.action_space
        self._place_array("action_ids", np.concatenate([action_ids(group, space) for group in self.groups]))
        self._place_array("micro_ops", np.concatenate([micro_ops(group.game) for group in self.groups]))
        self._place_array("operations", np.frombuffer(_core.operations(), np.uint8))
        self._place_array("power_on_numbers", power_on_numbers())
        color = palette.grey_palette if self.options.channels == 1 else palette.rgb_palette
        self._place_array("palettes", np.concatenate([color(pal=False), color(pal=True)]))
        self._place_resamples()

    def _place_resamples(self) -> None:
        options = self.options
        rows = []
        for i, height in enumerate(self.heights):
            tables = resample.make_tables(
                height, _core.LINE_PIXELS, options.observation_height, options.observation_width
            )
            rows_at, columns_at, weights_at = (
                self._keep_array(f"resample_{part}_{i}", getattr(tables, part)).data_ptr()
                for part in ("rows", "columns", "weights")
            )
            rows.append(_core.make_resample(tables.kind, rows_at, columns_at, weights_at, tables.scale))
        self._place_array("resamples", np.frombuffer(b"".join(rows), np.uint8))

    def _plan_state(self) -> None:
        n = self.num_envs
        byte, word = torch.uint8, torch.int32
        self._plan("records", (n * _core.RECORD_WORDS,), word)
        self._plan("ram", (n, _core.RAM_BYTES), byte)
        self._plan("cartridge_bytes", (n, _core.CARTRIDGE_BYTES), byte)
        self._plan("pictures", (n, 2, self.picture_bytes), byte)
        self._plan("row_of", (n, 2, _core.PICTURE_ROWS), byte)
        self._plan_pooled()
        self._plan("traces", (n, _core.TRACE_BYTES), byte)
        whole_step = buffer_entries(self.options.frameskip)
        self.batch.buffer_capacity = whole_step
        if self.runs_on_gpu:
            self.batch.buffer_capacity = own_buffer_entries(
                self.options.frameskip, (group.game for group in self.groups)
            )
            self.batch.spare_capacity, self.batch.spare_count = whole_step, spare_buffers(n)
            self._plan("buffers", (n, self.batch.buffer_capacity), word)
            self._plan("spare_buffers", (self.batch.spare_count, whole_step), word)
            self._plan("spares_taken", (1,), word)
            starts = self.options.frameskip * _core.SEGMENTS + 1
            self._plan("segments", (starts * _core.SEGMENT_WORDS, n), word)
        if self.options.reset_pool_size == 0:
            self._plan("noop_random", (_core.RANDOM_WORDS, n), word)
            if any(group.game.facts["draws_for_mode"] for group in self.groups):
                self._plan("env_random", (_core.RANDOM_WORDS, n), word)

    def _plan_pooled(self) -> None:
        options = self.options
        pools = options.maxpool and options.frameskip >= 2
        cut_off = any(group.game.facts["frames_cut_off"] for group in self.groups)
        goes_on = AUTORESET_MODES[options.autoreset] == "Disabled"
        self.keeps_pooled = self.batch.keeps_pooled = pools and (goes_on or cut_off)
        shared = self.runs_on_gpu and not self.keeps_pooled
        self.batch.envs_per_pooled = _core.ENVS_PER_POOLED if shared else 1
        frames = -(-self.num_envs // self.batch.envs_per_pooled)
        self._plan("pooled", (frames, self.picture_bytes * options.channels), torch.uint8)

    def _plan_outputs(self) -> None:
        n, options = self.num_envs, self.options
        colors = () if options.channels == 1 else (options.channels,)
        shape = (n, options.stack, options.observation_height, options.observation_width, *colors)
        self._plan("observations", shape, torch.uint8)
        if AUTORESET_MODES[options.autoreset] == "SameStep":
            self._plan("final_observations", shape, torch.uint8)
        for name in ("actions", "rewards", "raw_rewards", "lives", "frame_numbers", "episode_frame_numbers", "faults"):
            self._plan(name, (n,), torch.int32)
        for name in ("terminated", "truncated"):
            self._plan(name, (n,), torch.uint8)

    def _place_start_states(self) -> None:
        options = self.options
        self._place_snapshots("boot", [[booted.snapshot] for booted in self.boots])
        if options.reset_pool_size:
            pools = [
                reset_pool(group, options.reset_pool_size, options.noop_max, options.fire_reset, options.action_space)
                for group in self._bar("start states")
            ]
            self._place_snapshots("pool", pools)

    def _place_snapshots(self, prefix: str, groups: Sequence[Sequence[Snapshot]]) -> None:
        snapshots = [snapshot for states in groups for snapshot in states]
        setattr(self.batch, f"{prefix}_size", len(groups[0]))
        self._place_array(f"{prefix}_records", np.stack([s.record for s in snapshots]))
        self._place_array(f"{prefix}_ram", np.stack([s.ram for s in snapshots]))
        self._place_array(f"{prefix}_cartridge_bytes", np.stack([s.cartridge_bytes for s in snapshots]))
        pictures = np.zeros((len(snapshots), 2, self.picture_bytes), np.uint8)
        for picture, snapshot in zip(pictures, snapshots, strict=True):
            both = snapshot.pictures.reshape(2, -1)
            width = min(both.shape[1], self.picture_bytes)
            picture[:, :width] = both[:, :width]
        self._place_array(f"{prefix}_pictures", pictures)

    def _set_values(self) -> None:
        batch, options = self.batch, self.options
        batch.num_envs, batch.num_groups, batch.picture_bytes = self.num_envs, len(self.groups), self.picture_bytes
        batch.power_on_count = POWER_ON_NUMBERS
        if self.runs_on_gpu:
            batch.record_word_stride, batch.record_env_stride = self.num_envs, 1
        else:
            batch.record_word_stride, batch.record_env_stride = 1, _core.RECORD_WORDS
        for name in (
            "frameskip", "max_frames", "noop_max", "maxpool", "episodic_life", "life_loss_info", "reward_clipping",
            "fire_reset", "autoreset", "repeat_action_probability", "observation_height", "observation_width",
            "channels", "stack",
        ):  # fmt: skip
            setattr(batch, name, getattr(options, name))

    # Running -----------------------------------------------------------------------------------------------------

    def _stream(self) -> int:
        """The current stream, which close() will have to know of."""
        if self.device.type != "cuda":
            return 0
        stream = torch.cuda.current_stream(self.device)
        self._streams.add(stream)
        return stream.cuda_stream

    def close(self) -> None:
        """Before the memory is given back: nobody gets it until all streams on which envs stepped have come so far."""
        for tensor in self.tensors.values():
            for stream in self._streams:
                tensor.record_stream(stream)

    def _run(self, what: str, *arguments: int) -> None:
        """Has the backend do it, whose threads and memory are for one call at a time (guard.py)."""
        getattr(self.backend, what)(self.batch, *arguments, self._stream())

    def step(self) -> None:
        """One step of every env with the actions in `tensors["actions"]`."""
        # Not where a graph is captured, which would have the driver's work in it, or fail.
        if self._translating is not None and self._translating.done and not self._is_captured():
            self._change_over_or_warn()
        self._run("step")

    def _interruptible(self, mask: torch.Tensor | None) -> Iterator[torch.Tensor | None]:
        """The mask in parts, between which Python looks for signals, where a reset takes long: emulated on a CPU."""
        if self.device.type == "cuda" or self.options.reset_pool_size:
            yield mask
            return
        every = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        chosen = torch.nonzero(every if mask is None else mask).flatten()
        for some in chosen.split(EMULATED_RESETS_AT_ONCE):
            part = torch.zeros(self.num_envs, dtype=torch.uint8, device=self.device)
            part[some] = 1
            yield part

    def reset(self, mask: torch.Tensor | None, seeds: torch.Tensor | None) -> None:
        """Resets the envs that `mask` (uint8) selects, seeding those whose entry in `seeds` (int64) is not -1."""
        for part in self._interruptible(mask):
            self._run("reset", *(0 if tensor is None else tensor.data_ptr() for tensor in (part, seeds)))

    # Looking inside ----------------------------------------------------------------------------------------------

    def records(self) -> torch.Tensor:
        """The envs' records: (num_envs, RECORD_WORDS) int32, a view."""
        words = self.tensors["records"]
        if self.runs_on_gpu:
            return words.view(_core.RECORD_WORDS, self.num_envs).t()
        return words.view(self.num_envs, _core.RECORD_WORDS)

    def screen(self, env: int) -> torch.Tensor:
        """One env's (height, 160) uint8 palette indices, as `screens` gives them."""
        word = int(self.records()[env, _core.FRONT_BYTE // 4])
        front = (word >> (_core.FRONT_BYTE % 4 * 8)) & 1
        return self._rows(self.tensors["pictures"][env, front], self.tensors["row_of"][env, front])

    def screens(self) -> torch.Tensor:
        """(num_envs, height, 160) uint8 palette indices of the last frame; rows below a lower picture are 0."""
        word = self.records()[:, _core.FRONT_BYTE // 4]
        front = (word >> (_core.FRONT_BYTE % 4 * 8)) & 1
        chosen = torch.arange(self.num_envs, device=self.device), front.long()
        return self._rows(self.tensors["pictures"][chosen], self.tensors["row_of"][chosen])

    def pictures(self, env_ids: torch.Tensor) -> torch.Tensor:
        """(len(env_ids), 2, height, 160) uint8: both pictures of envs `env_ids` (int64)."""
        return self._rows(self.tensors["pictures"][env_ids], self.tensors["row_of"][env_ids])

    def pooled(self, env_ids: torch.Tensor) -> torch.Tensor:
        """(len(env_ids), bytes) uint8: the frames of the newest observations; 0 if they are not kept."""
        frames = self.tensors["pooled"]
        if self.keeps_pooled:
            return frames[env_ids]
        return frames.new_zeros((len(env_ids), frames.shape[1]))

    def _rows(self, pixels: torch.Tensor, row_of: torch.Tensor) -> torch.Tensor:
        """The (..., height, 160) scanlines that show the rows of `pixels` that `row_of` says."""
        rows = pixels.unflatten(-1, (-1, _core.LINE_PIXELS))
        chosen = row_of[..., : rows.shape[-2], None].long()
        return rows.gather(-2, chosen.expand(rows.shape))
