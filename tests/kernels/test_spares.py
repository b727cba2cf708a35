"""Steps that need a spare instruction buffer, because an env's own is too short."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pairs import SAME_STEP, Pair, some_options
from simulated import SimulatedGpu

import cule
from cule.console.instruction_buffers import spare_buffers
from cule.engine import layout
from tests.support.traces import SPARE, trace_words

GAMES = ("pong", "freeway", "seaquest", "tic_tac_toe_3d", "pitfall2")
GUARD = 0x5A5A5A5A


def small_buffers(monkeypatch: pytest.MonkeyPatch, own: int, spares: int | None = None) -> None:
    """Makes envs' own buffers hold `own` entries, and `spares` the number of spare buffers."""
    monkeypatch.setattr(layout, "own_buffer_entries", lambda frameskip, games: own)
    if spares is not None:
        monkeypatch.setattr(layout, "spare_buffers", lambda num_envs: spares)


def spares_of(pair: Pair) -> torch.Tensor:
    """Returns the number of the spare buffer that each env has used, or 0."""
    return trace_words(pair.gpu.tensors["traces"])[:, SPARE]


# An env's own buffer runs short at once; in the first frame; in a later one; just after a frame.
@pytest.mark.parametrize(("own", "seed"), [(1, 0), (100, 1), (700, 0), (2000, 1)])
def test_long_steps_go_on_in_a_spare_buffer(
    library: Path, own: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_buffers(monkeypatch, own, spares=23)
    options = some_options(autoreset=SAME_STEP, max_frames=18)
    pair = Pair(SimulatedGpu(library, seed=seed), GAMES, 23, options)
    pair.reset(None, torch.arange(23))
    used = 0
    for _ in range(6):
        pair.step()
        numbers = spares_of(pair)
        taken = numbers[numbers > 0].tolist()
        assert sorted(taken) == list(range(1, len(taken) + 1))
        assert own > 1 or len(taken) == 23
        used += len(taken)
    assert used
    assert not pair.gpu.tensors["faults"].any()


def test_every_room_that_a_buffer_may_have_left(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers run short at all places, also between frames, and in warps that are in step."""
    for own in range(380, 480, 24):
        small_buffers(monkeypatch, own, spares=141)
        pair = Pair(SimulatedGpu(library, seed=own), ("ms_pacman", "pong"), 141, some_options())
        pair.reset(None, torch.arange(141))
        pair.step()
        assert spares_of(pair).any() and not pair.gpu.tensors["faults"].any()


def test_resets_that_are_emulated_take_spare_buffers(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resets can use all spare buffers, as steps can."""
    small_buffers(monkeypatch, 40, spares=5)
    options = some_options(reset_pool_size=0, max_frames=8)
    pair = Pair(SimulatedGpu(library, seed=1), ("pong", "adventure", "pitfall2"), 5, options)
    pair.reset(None, torch.arange(5))
    for _ in range(4):
        pair.step()
        assert not pair.gpu.tensors["faults"].any()
    assert pair.endings >= 5


def guarded(pair: Pair, name: str) -> torch.Tensor:
    """Puts a tensor of the engine between two guards, which this returns."""
    tensor = pair.gpu.tensors[name]
    memory = torch.full((3, tensor.numel()), GUARD, dtype=torch.int32)
    memory[1] = tensor.flatten()
    pair.gpu.memory.place(name, memory[1].view(tensor.shape))
    return memory[::2]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_more_than_the_spare_buffers_are_used(
    library: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Envs that need a spare buffer but get none have the fault bit. All others play as usual."""
    small_buffers(monkeypatch, 1500, spares=3)
    games, options = ("ms_pacman", "pong", "freeway"), some_options(max_frames=1000)
    pair = Pair(SimulatedGpu(library, seed=seed), games, 43, options)
    guards = [guarded(pair, name) for name in ("buffers", "spare_buffers")]
    pair.reset(None, torch.arange(43))
    good = torch.ones(43, dtype=torch.bool)
    for _ in range(8):
        actions = torch.randint(pair.num_actions, (43,), generator=pair.generator)
        for engine in pair.engines:
            engine.tensors["actions"][:] = actions
            engine.step()
        faults = pair.gpu.tensors["faults"]
        assert bool(((faults == 0) | (faults == cule.FAULTS["buffer_full"])).all())
        assert not pair.cpu.tensors["faults"].any()
        good &= faults == 0
        for name in pair.cpu.layout.fields.keys() - {"row_of", "traces"}:
            ours, theirs = (pair.part(engine, name)[good] for engine in (pair.gpu, pair.cpu))
            assert torch.equal(ours, theirs), name
        assert sorted(spares_of(pair)[spares_of(pair) > 0].tolist()) == [1, 2, 3]
        assert all(bool((guard == GUARD).all()) for guard in guards)
    assert 15 <= int(good.sum()) < 43  # a third of the envs is pong, which needs no spare buffer


@pytest.mark.parametrize(
    ("num_envs", "expected"), [(1, 1), (7, 7), (64, 8), (512, 8), (513, 9), (1 << 20, 1 << 14)]
)
def test_spare_buffers_are_some_and_one_for_many_envs(num_envs: int, expected: int) -> None:
    assert spare_buffers(num_envs) == expected
