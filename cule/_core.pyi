"""The compiled part of cule (csrc/bindings/module.cpp).

Addresses are of memory that Python owns.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T")

RECORD_WORDS: int
CONFIG_BYTES: int
TRACE_BYTES: int
SEGMENT_WORDS: int
SEGMENTS: int
MOST_ENVS_APART: int
ENVS_PER_POOLED: int
RANDOM_WORDS: int
RAM_BYTES: int
CARTRIDGE_BYTES: int
LINE_PIXELS: int
PICTURE_ROWS: int
LINE_CYCLES: int
WSYNC: int
NUM_ACTIONS: int
FRONT_BYTE: int
MICRO_OP: dict[str, int]
PLACES: dict[str, int]
PROFILED_PLACES: tuple[int, ...]
FAULTS: dict[str, int]
CUDA_ARCHITECTURES: list[str]

def games() -> list[dict[str, Any]]: ...
def make_config(settings: dict[str, Any], /) -> bytes: ...
def decode_rom(image: bytes, scheme: str, entries: int) -> bytes: ...
def operations() -> bytes: ...
def power_on_numbers(count: int, /) -> bytes: ...
def make_resample(kind: int, rows: int, columns: int, weights: int, scale: float, /) -> bytes: ...
def find_misfit_state(
    records: np.ndarray, cartridge_bytes: np.ndarray, configs: np.ndarray, groups: np.ndarray
) -> tuple[int, str] | None: ...
def has_cuda() -> bool: ...
def headers() -> dict[str, str]: ...

class Guard:
    def __init__(self) -> None: ...
    def call(
        self,
        name: str,
        changes: bool,
        function: Callable[..., _T],
        /,
        *arguments: Any,
        **keywords: Any,
    ) -> _T: ...

class Batch:
    def __init__(self) -> None: ...
    @property
    def address(self) -> int: ...
    num_envs: int
    buffer_capacity: int
    spare_capacity: int
    spare_count: int
    picture_bytes: int
    envs_per_pooled: int
    keeps_pooled: bool
    num_groups: int
    power_on_count: int
    record_word_stride: int
    record_env_stride: int
    boot_size: int
    pool_size: int
    frameskip: int
    max_frames: int
    noop_max: int
    maxpool: bool
    episodic_life: bool
    life_loss_info: bool
    reward_clipping: bool
    fire_reset: bool
    autoreset: int
    repeat_action_probability: float
    observation_height: int
    observation_width: int
    channels: int
    stack: int
    # Addresses, each set as (address, bytes), or 0.
    group: int
    configs: int
    action_ids: int
    roms: int
    micro_ops: int
    operations: int
    marked_ops: int
    power_on_numbers: int
    records: int
    ram: int
    cartridge_bytes: int
    pictures: int
    row_of: int
    pooled: int
    buffers: int
    spare_buffers: int
    spares_taken: int
    traces: int
    segments: int
    noop_random: int
    env_random: int
    boot_records: int
    boot_ram: int
    boot_cartridge_bytes: int
    boot_pictures: int
    pool_records: int
    pool_ram: int
    pool_cartridge_bytes: int
    pool_pictures: int
    palettes: int
    resamples: int
    actions: int
    strengths: int
    actions_b: int
    strengths_b: int
    observations: int
    final_observations: int
    rewards: int
    raw_rewards: int
    terminated: int
    truncated: int
    lives: int
    frame_numbers: int
    episode_frame_numbers: int
    faults: int

class Backend:
    def step(self, batch: Batch, stream: int = 0) -> None: ...
    def reset(self, batch: Batch, mask: int = 0, seeds: int = 0, stream: int = 0) -> None: ...
    def plays_in_step(self, num_envs: int) -> bool: ...
    def load_translation(self, cubin: bytes, marked_ops: int) -> None: ...

def cpu_backend(threads: int, /) -> Backend: ...
def cuda_backend(device: int, multiprocessors: int) -> Backend: ...
def power_on_env(batch: Batch, /) -> int: ...
def start_first_episode(batch: Batch, /) -> None: ...
def start_pool_episode(batch: Batch, noops: int, /) -> None: ...
def continue_pool_episode(batch: Batch, played: int, noops: int, /) -> None: ...
def profile(batch: Batch, frames: int) -> bytes: ...
