"""Which envs `order_envs` puts together (csrc/kernels/cuda/order.cuh), on the simulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pairs import Pair, some_options
from simulated import SimulatedGpu
from test_translated import FEW, translate

KEYS = 8192  # kOrderKeys
# Options of steps that do little; which envs are put together is the same.
BRIEF = {"frameskip": 1, "stack": 1, "observation_height": 2, "observation_width": 2}


MakeOrdered = Callable[..., Pair]


@pytest.fixture
def make_ordered(library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> MakeOrdered:
    """Makes a pair whose next step plays envs in order."""
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)

    def make(num_envs: int, multiprocessors: int, **options: int) -> Pair:
        gpu = SimulatedGpu(library, multiprocessors, seed=1)
        pair = Pair(gpu, ["pong"], num_envs, some_options(**options))
        pair.reset(None, torch.arange(num_envs))
        translate(pair, "pong", True, False, library, folder)
        assert pair.gpu.backend.reserve(num_envs, multiprocessors, True)
        return pair

    return make


@pytest.fixture
def ordered(make_ordered: MakeOrdered) -> Pair:
    """40 envs on three multiprocessors; the next step plays them in order."""
    pair = make_ordered(40, 3)
    pair.step()
    return pair


def sizes(pair: Pair) -> list[int]:
    """How many envs each block had in the last step."""
    ends = pair.gpu.tensors["order_ends"][:3].numpy()
    assert ends[-1] == 40
    return np.diff(ends, prepend=0).tolist()


def test_envs_are_in_the_order_of_their_keys(ordered: Pair) -> None:
    tensors = ordered.gpu.tensors
    for keys in (
        torch.randint(KEYS, (40,), generator=torch.Generator().manual_seed(0)),
        torch.full((40,), KEYS - 1),
        torch.arange(40) % 2,
    ):
        tensors["order_keys"].copy_(keys)
        ordered.step()  # and compares what it played with the CPU
        order = tensors["ordered_envs"].long()
        assert order.sort().values.equal(torch.arange(40))
        assert keys[order].diff().ge(0).all()


def test_keys_say_what_envs_did(ordered: Pair) -> None:
    keys = ordered.gpu.tensors["order_keys"]
    assert keys.ge(0).all() and keys.lt(KEYS).all()
    row, column = keys // 256, keys % 256
    last, third = row * 64, torch.where(row % 2 == 1, 255 - column, column) * 8
    # Pong executes some 6,000 instructions a frame.
    for quarter in (last, third):
        assert 500 < quarter.float().mean() < 2040


def test_a_block_that_takes_longer_gets_fewer_envs(make_ordered: MakeOrdered) -> None:
    ordered = make_ordered(40, 3, **BRIEF)
    ordered.step()
    clocks = ordered.gpu.tensors["order_clocks"]
    assert clocks[:3].gt(0).all(), "they are measured"
    seen = []
    for _ in range(6):
        clocks[:3] = torch.tensor([3000, 1000, 1000])
        ordered.step()
        seen.append(sizes(ordered))
    first = [size for size, _, _ in seen]
    assert first == sorted(first, reverse=True) and first[-1] < 8
    assert all(abs(second - third) <= 1 for _, second, third in seen)
    for _ in range(36):  # if all take as long, the share goes back
        clocks[:3] = 1000
        ordered.step()
    assert sorted(sizes(ordered)) == [13, 13, 14]


def test_what_was_never_measured_is_divided_evenly(ordered: Pair) -> None:
    tensors = ordered.gpu.tensors
    for clocks, shares in (((0, 0, 0), (1, 30, 9)), ((5, 5, 5), (0, 0, 0))):
        tensors["order_clocks"][:3] = torch.tensor(clocks)
        tensors["order_shares"][:3] = torch.tensor(shares)
        ordered.step()
        assert sorted(sizes(ordered)) == [13, 13, 14]


def test_a_share_is_at_most_what_a_block_holds(make_ordered: MakeOrdered) -> None:
    """Two blocks, which hold at most 512 envs each, have 720."""
    pair = make_ordered(720, 2, **BRIEF)
    for clocks, first in (((1, 1), 360), ((1, 1_000_000), 511), ((1_000_000, 1), 209)):
        pair.gpu.tensors["order_clocks"][:2] = torch.tensor(clocks)
        pair.gpu.tensors["order_shares"][:2] = 360
        pair.step()
        ends = pair.gpu.tensors["order_ends"][:2].tolist()
        assert ends == [first, 720]
