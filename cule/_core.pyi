"""The compiled part of cule (csrc/bindings/module.cpp).

Addresses are of memory that Python owns.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T")

RECORD_WORDS: int
CONFIG_BYTES: int
MAX_ENVS_APART: int
ENVS_PER_POOLED: int
RAM_BYTES: int
FRAME_SAMPLES: int
SILENCE: int
OBJECT_FIELDS: int
OBJECT_FACT_ROWS: int
OBJECT_FACT_COLUMNS: int
SOUND_CHANNELS_BYTE: int
LINE_PIXELS: int
PICTURE_ROWS: int
LINE_CYCLES: int
WSYNC: int
NUM_ACTIONS: int
MAX_PLAYERS: int
MAX_FRAMESKIP: int
MAX_NOOPS: int
MAX_PATCHES: int
PATCH_BYTES: int
MAX_START_STATES: int
STEP_OPTIONS: tuple[str, ...]
ELAPSED_BYTE: int
RANDOM_BYTES: tuple[int, ...]
FRONT_BYTE: int
PREDECODED: dict[str, int]
GO_ON_AT_OPERAND: frozenset[int]
GO_ON_ELSEWHERE: frozenset[int]
WINDOW_BYTES: int
SCHEMES: dict[str, dict[str, int]]
REGIONS: dict[str, int]
PROFILED_REGIONS: tuple[int, ...]
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
def catch_signal(number: int, file: int, /) -> bool: ...
def release_signal(number: int, /) -> None: ...
def headers() -> dict[str, str]: ...
def hear(sound: np.ndarray, samples: np.ndarray) -> None: ...
def is_cartridge_address(address: int, /) -> bool: ...
def is_timer_address(address: int, /) -> bool: ...

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
    def arrays(self, envs: bool, on_gpu: bool) -> dict[str, tuple[str, str, bool, tuple[int, ...]]]:
        """{name: (dtype, life, needed, shape)} of the arrays (csrc/kernels/batch_fields.h)."""

    # Fields: written by tests/test_stub.py.
    autoreset: int
    boot_size: int
    buffer_capacity: int
    channels: int
    envs_per_pooled: int
    episode_start: int
    episodic_life: bool
    fire_reset: bool
    frameskip: int
    keeps_pooled: bool
    life_loss_info: bool
    max_frames: int
    max_objects: int
    maxpool: bool
    noop_max: int
    num_envs: int
    num_groups: int
    num_patches: int
    num_players: int
    observation_height: int
    observation_width: int
    own_seeds: bool
    picture_bytes: int
    pool_size: int
    pooled_frames: int
    power_on_count: int
    record_env_stride: int
    record_word_stride: int
    repeat_action_probability: float
    reward_clipping: bool
    sound_frames: int
    spare_capacity: int
    spare_count: int
    stack: int
    started: bool
    # Each is set as (address, bytes), or 0.
    group: int
    configs: int
    action_ids: int
    roms: int
    predecoded: int
    operations: int
    marked_ops: int
    object_facts: int
    power_on_numbers: int
    palettes: int
    resamples: int
    boot_records: int
    boot_ram: int
    boot_cartridge_bytes: int
    boot_pictures: int
    boot_sound: int
    boot_sounds: int
    boot_boxes: int
    pool_records: int
    pool_ram: int
    pool_cartridge_bytes: int
    pool_pictures: int
    pool_sound: int
    pool_sounds: int
    pool_boxes: int
    records: int
    ram: int
    cartridge_bytes: int
    pictures: int
    row_of: int
    pooled: int
    noop_random: int
    env_random: int
    sound: int
    sounds: int
    boxes: int
    traces: int
    buffers: int
    spare_buffers: int
    spares_taken: int
    order_keys: int
    ordered_envs: int
    order_shares: int
    order_ends: int
    order_clocks: int
    segments: int
    runs: int
    segment_boxes: int
    changed_logs: int
    num_changed_logs: int
    heard: int
    actions: int
    strengths: int
    actions_b: int
    strengths_b: int
    patches: int
    repeated: int
    played: int
    observations: int
    final_observations: int
    final_sounds: int
    rewards: int
    raw_rewards: int
    terminated: int
    truncated: int
    over: int
    began: int
    lives: int
    frame_numbers: int
    episode_frame_numbers: int
    faults: int
    objects: int
    objects_left_out: int
    final_objects: int
    # End of fields.

class Backend:
    def step(self, batch: Batch, stream: int = 0) -> None: ...
    def reset(self, batch: Batch, mask: int = 0, seeds: int = 0, stream: int = 0) -> None: ...
    def send(self, batch: Batch, stream: int = 0) -> None: ...
    def wait(self) -> None: ...
    def receive(self) -> None: ...
    def start(
        self, batch: Batch, envs: np.ndarray, resets: bool, seeds: np.ndarray | None, singly: bool
    ) -> int: ...
    def is_done(self, flight: int) -> bool: ...
    def wait_for(self, flight: int) -> None: ...
    def take(self, count: int) -> list[int]: ...
    def finish(self) -> None: ...
    @property
    def in_flight(self) -> bool: ...
    def plays_in_step(self, num_envs: int) -> bool: ...
    def reserve(self, num_envs: int, multiprocessors: int, ordered: bool | None) -> bool: ...
    def load_translation(self, cubin: bytes, marked_ops: int) -> None: ...

def cpu_backend(threads: int, cpus: tuple[int, ...] = ()) -> Backend: ...
def cuda_backend(device: int, multiprocessors: int) -> Backend: ...
def power_on_env(batch: Batch, /) -> int: ...
def start_first_episode(batch: Batch, /) -> None: ...
def start_pool_episode(batch: Batch, noops: int, /) -> None: ...
def continue_pool_episode(batch: Batch, played: int, noops: int, /) -> None: ...
def end_pool_episode(batch: Batch, noops: int, /) -> None: ...
def profile(batch: Batch, frames: int, from_start: bool = True, seed: int = 1) -> bytes: ...

class Port:
    def __init__(
        self,
        backend: Backend,
        batch: Batch,
        guard: Guard,
        inputs: list[str],
        reset_outputs: list[str],
        step_outputs: list[str],
        elsewhere: bool,
        device: int,
        num_actions: int,
        first_seeds: int = 0,
    ) -> None: ...
    @property
    def number(self) -> int: ...
    def close(self) -> None: ...

PLAY_CALL: int
