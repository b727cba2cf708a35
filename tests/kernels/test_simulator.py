"""The simulated GPU finds the faults of kernels that have one (faults.cu)."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from simulated import HERE, SIMULATOR, build

THREADS = 64
# CUDA's numbers.
INVALID_VALUE, INVALID_CONFIGURATION, LAUNCH_FAILURE = 1, 9, 719


class Kernels:
    """The kernels of faults.cu."""

    def __init__(self, path: Path):
        self.library = ctypes.CDLL(str(path))
        self.library.what_happened.restype = ctypes.c_char_p
        self.choose()

    def choose(self, seed: int = 0, together: bool = True) -> None:
        self.library.set_device(ctypes.c_uint64(seed), ctypes.c_bool(together))

    def run(
        self, name: str, *arguments: int, given: np.ndarray | None = None
    ) -> tuple[int, np.ndarray]:
        """Runs a kernel of two blocks. Returns CUDA's error, and what the second block leaves."""
        values = np.zeros(THREADS, np.int32) if given is None else given.copy()
        error = getattr(self.library, f"run_{name}")(
            ctypes.c_void_p(values.ctypes.data), *arguments
        )
        return error, values

    def failure(self, name: str, *arguments: int) -> str:
        """Runs a kernel whose launch must fail, and returns the message."""
        assert self.run(name, *arguments)[0] == LAUNCH_FAILURE
        return self.library.what_happened().decode()


@pytest.fixture
def kernels(folder: Path) -> Kernels:
    return Kernels(build("faults", [*SIMULATOR, HERE / "faults.cu"], folder))


def test_missing_barrier_is_seen_in_what_it_leaves(kernels: Kernels) -> None:
    reversed_threads = np.arange(THREADS)[::-1]
    for seed in range(3):
        kernels.choose(seed)
        error, values = kernels.run("reverse", True)
        assert error == 0 and np.array_equal(values, reversed_threads)
        error, values = kernels.run("reverse", False)
        assert error == 0 and not np.array_equal(values, reversed_threads)


def test_shared_memory_is_full_of_garbage(kernels: Kernels) -> None:
    counts = []
    for seed in range(3):
        kernels.choose(seed)
        counts.append(int(kernels.run("count_from_garbage")[1][0]))
    assert len({*counts, THREADS}) == 4


@pytest.mark.parametrize("words", [0, 1])
def test_write_after_dynamic_shared_memory_is_a_failure(kernels: Kernels, words: int) -> None:
    if words == 0:
        assert kernels.run("overrun", 0)[0] == 0
    else:
        said = kernels.failure("overrun", words)
        assert said == "byte 256 of 256 of dynamic shared memory was written to in block (0, 0, 0)"


def test_deadlock_says_who_waits_where(kernels: Kernels) -> None:
    assert kernels.failure("part_at_a_barrier") == (
        "deadlock in block (0, 0, 0): 32 in __syncthreads, 16 in __syncwarp(0xffffffff) of warp 0, "
        "16 in __syncwarp(0xffffffff) of warp 1"
    )
    # The threads that waited do not disturb the next launch.
    assert kernels.run("vote")[0] == 0


def test_waiting_for_nobody_ends(kernels: Kernels) -> None:
    assert (
        kernels.failure("wait_for_nobody")
        == "threads nap without end in block (0, 0, 0): 64 in __nanosleep"
    )


def test_mask_without_the_lane_is_a_failure(kernels: Kernels) -> None:
    said = kernels.failure("leave_own_lane_out")
    assert said.startswith("thread 0 calls with a mask without its lane in block (0, 0, 0)")


def test_votes_are_counted(kernels: Kernels) -> None:
    halves = np.arange(THREADS).reshape(4, 16)
    ballots = [sum((thread % 3 == 0) << (thread % 32) for thread in half) for half in halves]
    any_is_40 = np.array([0, 0, 1, 0])
    expected = np.repeat(np.array(ballots, np.uint32).view(np.int32) + any_is_40, 16)
    for seed in range(3):
        kernels.choose(seed)
        error, values = kernels.run("vote")
        assert error == 0 and np.array_equal(values, expected)


@pytest.mark.parametrize("by_votes", [False, True])
@pytest.mark.parametrize("most", [1, 3, 2**16, 2**32])
def test_least_word_of_some_lanes(by_votes: bool, most: int, kernels: Kernels) -> None:
    """With a reduction, and as on GPUs that have none."""
    random = np.random.default_rng(most)
    for seed in range(5):
        kernels.choose(seed)
        words = random.integers(0, most, THREADS, np.uint32, endpoint=most < 2**32)
        error, values = kernels.run("find_least", by_votes, given=words.view(np.int32))
        halves = values.view(np.uint32).reshape(4, 16)
        # The second block works on what the first has left.
        assert error == 0
        assert (halves == words.reshape(4, 16).min(axis=1, keepdims=True)).all()


def test_lanes_with_the_same_value(kernels: Kernels) -> None:
    random = np.random.default_rng(0)
    for seed in range(3):
        kernels.choose(seed)
        words = random.integers(0, 5, THREADS, np.int32)
        error, values = kernels.run("match", given=words)
        assert error == 0
        for half in range(0, THREADS, 16):
            same = words[half : half + 16, None] == words[half : half + 16]
            lanes = np.uint32(1) << np.arange(half % 32, half % 32 + 16, dtype=np.uint32)
            expected = (same * lanes).sum(axis=1, dtype=np.uint32)
            again = values[half : half + 16].view(np.uint32)
            assert (again == expected).all()


def test_lanes_at_one_place_are_together_or_in_parts(kernels: Kernels) -> None:
    whole = {0x55555555, 0xAAAAAAAA}
    lanes = np.uint32(1) << np.arange(32, dtype=np.uint32)
    odd = np.tile(
        np.array([0, ~0]), THREADS // 2
    )  # odd lanes ask at another place; their answers are inverted to tell them from the others
    for seed in range(3):
        kernels.choose(seed)
        assert set((kernels.run("see_who_is_here")[1] ^ odd).astype(np.uint32).tolist()) == whole
        kernels.choose(seed, together=False)
        seen = (kernels.run("see_who_is_here")[1] ^ odd).astype(np.uint32).reshape(2, 32)
        assert set(seen.ravel().tolist()) != whole
        # Each lane sees itself, and all lanes that it sees see the same lanes.
        assert ((seen & lanes) != 0).all()
        for warp in seen:
            assert all(warp[i] == warp[k] for i in range(32) for k in range(32) if warp[i] >> k & 1)


@pytest.mark.parametrize(
    ("threads", "shared_bytes", "error"),
    [
        (64, 0, 0), (64, 48 * 1024, 0), (64, 48 * 1024 + 1, INVALID_VALUE),
        (0, 0, INVALID_CONFIGURATION), (1025, 0, INVALID_CONFIGURATION),
    ],
)  # fmt: skip
def test_launches_have_limits(
    kernels: Kernels, threads: int, shared_bytes: int, error: int
) -> None:
    assert kernels.run("with", threads, shared_bytes)[0] == error
