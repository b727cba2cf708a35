"""Observations that need more than the two pictures, on the simulated GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pairs import DISABLED, NEXT_STEP, SAME_STEP, Pair, some_options
from simulated import SimulatedGpu

import cule
from cule.console import Group
from cule.engine import Engine
from cule.rom import find_game
from cule.state import State
from tests.support.programs import program_in_place_of
from tests.support.traces import last_two_share_picture, pools_onto_shown


@pytest.mark.parametrize(
    ("num_envs", "autoreset", "changes"),
    [
        (141, SAME_STEP, {}),
        (43, DISABLED, {}),
        (141, NEXT_STEP, {"channels": 3, "observation_height": 50, "observation_width": 40}),
        pytest.param(141, NEXT_STEP, {}, marks=pytest.mark.slow),
        pytest.param(141, SAME_STEP, {"channels": 3, "frameskip": 2}, marks=pytest.mark.slow),
        pytest.param(141, NEXT_STEP, {"maxpool": False}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_all_episodes_end_at_a_steps_last_frame(
    library: Path, num_envs: int, autoreset: int, changes: dict[str, Any]
) -> None:
    """All envs then need the frame of the last observation and one picture. A block of the kernel
    `pool` cannot take 141 envs."""
    options = some_options(autoreset=autoreset, max_frames=8, **changes)
    gpu = SimulatedGpu(library, seed=1)
    pair = Pair(gpu, ("pong", "air_raid", "pitfall2"), num_envs, options)
    pair.reset(None, torch.arange(num_envs))
    seen = 0
    for _ in range(options.max_frames // options.frameskip + (autoreset == NEXT_STEP)):
        pair.step()
        seen += int(pools_onto_shown(pair.gpu.tensors["traces"]).sum())
    assert pair.endings >= num_envs
    # In SAME_STEP mode the next episode has begun in the same step, and its plan replaces this one.
    assert seen >= num_envs or autoreset == SAME_STEP or not options.maxpool
    assert not pair.gpu.tensors["faults"].any()
    frames = num_envs if autoreset == DISABLED else 2
    assert len(pair.gpu.tensors["pooled"]) == (frames if options.maxpool else 2)


@pytest.mark.parametrize(
    ("autoreset", "changes"),
    [
        (NEXT_STEP, {"frameskip": 4, "pooled_frames": 4}),
        (SAME_STEP, {"frameskip": 5, "pooled_frames": 3, "channels": 3}),
        (DISABLED, {"frameskip": 3, "pooled_frames": 3}),
    ],
    ids=str,
)
def test_more_than_two_frames(library: Path, autoreset: int, changes: dict[str, Any]) -> None:
    """Each env has a block of the kernel `pool`. Some frames are cut off."""
    options = some_options(autoreset=autoreset, max_frames=42, **changes)
    pair = Pair(SimulatedGpu(library, seed=1), ("tic_tac_toe_3d", "pong", "air_raid"), 7, options)
    assert pair.gpu.keeps_pooled and len(pair.gpu.tensors["pooled"]) == 7
    pair.reset(None, torch.arange(7))
    onto_shown = 0
    for _ in range(24):
        pair.step()
        onto_shown += int(pools_onto_shown(pair.gpu.tensors["traces"]).sum())
    assert pair.endings >= 7 and (onto_shown or autoreset == SAME_STEP)
    assert not pair.gpu.tensors["faults"].any()


@pytest.mark.parametrize(
    ("autoreset", "kept"),
    [(NEXT_STEP, True), (SAME_STEP, True), (DISABLED, False), (SAME_STEP, False)],
)
def test_frames_that_are_cut_off(
    library: Path, autoreset: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two frames share a picture, and an episode may end after them."""
    if not kept:
        monkeypatch.setitem(find_game("tic_tac_toe_3d").facts, "frames_cut_off", False)
    options = some_options(autoreset=autoreset, max_frames=64)
    pair = Pair(SimulatedGpu(library, seed=1), ("tic_tac_toe_3d", "pong"), 11, options)
    assert pair.gpu.keeps_pooled == pair.cpu.keeps_pooled == (kept or autoreset == DISABLED)
    pair.reset(None, torch.arange(11))
    resumed = 0
    for _ in range(18):
        pair.step()
        resumed += int(last_two_share_picture(pair.gpu.tensors["traces"]).sum())
    assert resumed and pair.endings >= 11
    lost = pair.gpu.tensors["faults"] == cule.FAULTS["frame_lost"]
    assert not lost.any() or not pair.gpu.keeps_pooled


def test_frames_that_were_not_kept_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Observations differ from those of envs that keep frames only if the fault bit is set."""
    group = Group(find_game("tic_tac_toe_3d"), 0, 0)
    engines = []
    for cut_off in (True, False):
        monkeypatch.setitem(group.game.facts, "frames_cut_off", cut_off)
        options = some_options(max_frames=64)
        engines.append(Engine([group], np.zeros(16, np.uint32), options, torch.device("cpu"), 1))
        engines[-1].reset(None, torch.arange(16))
    generator = torch.Generator().manual_seed(1)
    lost = 0
    for _ in range(100):
        actions = torch.randint(10, (16,), generator=generator)
        for engine in engines:
            engine.tensors["actions"][:] = actions
            engine.step()
        kept, others = (engine.tensors["observations"] for engine in engines)
        told = engines[1].tensors["faults"] & cule.FAULTS["frame_lost"] > 0
        assert torch.equal(kept[~told], others[~told])
        assert not engines[0].tensors["faults"].any()
        lost += int(told.sum())
    assert lost


# A color, and then a loop, or the processor's halt.
@pytest.mark.parametrize("program", ["a9348509 4c04f0", "a9348509 02"])
def test_programs_that_hang_lose_no_frame(program: str) -> None:
    """Each frame goes on in the picture of the frame before, and draws nothing."""
    code, vectors = bytes.fromhex(program), b"\x00\xf0" * 3
    image = code + bytes(4096 - len(code) - len(vectors)) + vectors
    # A game of one mode: at its start none is waited for, which these programs never have.
    group, options = Group(find_game("boxing"), 0, 0), some_options(max_frames=16)
    with program_in_place_of("boxing", image):
        engine = Engine([group], np.zeros(1, np.uint32), options, torch.device("cpu"), 1)
    engine.reset(None, torch.arange(1))
    ends = 0
    for _ in range(14):
        engine.step()
        traces = engine.tensors["traces"]
        ends += int((pools_onto_shown(traces) & last_two_share_picture(traces)).sum())
        assert not (engine.tensors["faults"] & cule.FAULTS["frame_lost"]).any()
    assert ends >= 2 and not engine.keeps_pooled


def test_states_go_from_envs_that_keep_frames_to_others_and_back() -> None:
    group, engines = Group(find_game("breakout"), 0, 0), []
    for autoreset in (NEXT_STEP, DISABLED):
        options = some_options(max_frames=1000, autoreset=autoreset)
        engines.append(Engine([group], np.zeros(3, np.uint32), options, torch.device("cpu"), 1))
        engines[-1].reset(None, torch.arange(3))
    every = torch.arange(3)
    for source, target in (engines, engines[::-1]):
        for _ in range(5):
            source.step()
        State.take(source, every).put(target, every)
        for _ in range(5):
            for engine in engines:
                engine.step()
        assert torch.equal(*(engine.tensors["observations"] for engine in engines))
