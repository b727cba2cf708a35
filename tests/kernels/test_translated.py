"""Kernels of translated games on the simulated GPU, compared with the CPU's interpreter."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pairs import SAME_STEP, Pair, some_options
from simulated import SimulatedGpu, build_text

from cule import translation
from cule.console import Group
from cule.console.console import Snapshot
from cule.devices import nvrtc
from cule.engine import changeover
from cule.rom import find_game
from cule.state import State
from cule.translation import Translation
from tests.support.marks import few

# The function through which the simulator calls a kernel loaded at run time (stand_ins/cuda.h).
CALL = """
extern "C" __attribute__((visibility("default")))
void call_play_translated(const void*, void** arguments) {
  simulated::kernel_of(cule::play_translated).call(
      reinterpret_cast<const void*>(&cule::play_translated), arguments);
}
"""
# A kernel of this many instructions is compiled in seconds.
FEW = 120
# What the simulator says of lanes where envs are played in order (kernels/cuda/play.cuh).
IN_ORDER = 0
# One of each bank-switching scheme.
GAMES = ("pong", "freeway", "seaquest", "montezuma_revenge", "pitfall2", "robotank", "klax")


def translate(
    pair: Pair, game: str, in_step: bool, whole: bool, library: Path, folder: Path
) -> None:
    """Makes the GPU play the game's own kernel from its next step on.

    It is as if the thread that compiles kernels had just finished.
    """
    found = find_game(game)
    blocks = translation.blocks_of(found)
    if not whole:
        blocks = translation.most_frequent(found, blocks)
    sound = pair.gpu.options.sound
    words = [game, "in_step" if in_step else "freely", "whole" if whole else "few"]
    name = "_".join(words + ["sound"] * sound)
    made = build_text(
        name, translation.kernel_source(found, blocks, in_step, sound) + CALL, folder, library
    )
    played = translation.profile(found)
    kernel = Translation(str(made).encode(), translation.marked_ops(found, blocks), True, played)
    ready = SimpleNamespace(done=True, result=lambda _: kernel)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(changeover, "translating", lambda *_: ready)
        context.setattr(changeover, "architecture_of", lambda _: "sm_90")
        pair.gpu._begin_translation(at_first=False)


def compare(
    game: str,
    num_envs: int,
    in_step: bool,
    whole: bool,
    library: Path,
    folder: Path,
    steps: int = 8,
    multiprocessors: int = 2,
    frameskip: int = 4,
    **changes: Any,
) -> None:
    gpu = SimulatedGpu(library, multiprocessors, seed=1)
    options = some_options(autoreset=SAME_STEP, frameskip=frameskip, **changes)
    pair = Pair(gpu, [game], num_envs, options)
    assert pair.gpu.backend.plays_in_step(num_envs) == in_step
    pair.reset(None, torch.arange(num_envs))
    for step in range(steps):
        if step == 1:
            translate(pair, game, in_step, whole, library, folder)
        pair.step()
        assert pair.gpu.translated == (step >= 1)
    if options.sound:
        assert (pair.cpu.tensors["sounds"] > 128).any()
    assert pair.endings >= num_envs


@pytest.mark.parametrize(("num_envs", "in_step"), few([(11, False), (141, True)], [(141, True)]))
def test_part_of_a_game_is_played_as_interpreted(
    num_envs: int, in_step: bool, library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)
    compare("pong", num_envs, in_step, False, library, folder)


def test_translated_game_sounds_as_interpreted(
    library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)
    compare("freeway", 3, False, False, library, folder, sound=True)


@pytest.mark.parametrize(
    ("num_envs", "multiprocessors"), [(13, 1), pytest.param(70, 1, marks=pytest.mark.slow)]
)
def test_all_ways_of_playing_give_the_same(
    num_envs: int, multiprocessors: int, library: Path, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """There are enough steps to try each way (kernels/cuda/play_choice.cuh)."""
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)
    compare("pong", num_envs, True, False, library, folder, 100, multiprocessors, frameskip=1)


@pytest.mark.slow
def test_other_multiprocessors_can_be_reserved_while_a_game_is_played(
    library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)
    num_envs = 40
    pair = Pair(SimulatedGpu(library, 4, seed=1), ["pong"], num_envs, some_options())
    pair.reset(None, torch.arange(num_envs))
    backend = pair.gpu.backend
    in_step = backend.plays_in_step(num_envs)
    assert in_step and backend.reserve(num_envs, 2, None)
    translate(pair, "pong", in_step, False, library, folder)
    for multiprocessors, ordered, lanes in (
        (2, False, 10), (2, True, IN_ORDER), (1, True, IN_ORDER), (1, False, 20),
        (3, True, IN_ORDER), (3, False, 7), (3, None, IN_ORDER),
    ):  # fmt: skip
        assert backend.reserve(num_envs, multiprocessors, ordered)
        assert backend.plays_in_step(num_envs)
        for _ in range(2):
            pair.step()
            assert backend.lanes == lanes
    # On so many, a multiprocessor would have so few envs that they need not be in step.
    assert not backend.reserve(num_envs, 12, True)
    assert backend.plays_in_step(num_envs)
    pair.step()


def test_a_game_is_translated_again_while_it_is_played(
    library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second kernel has what a first one of few instructions lacks."""

    def compile_cubin(text: str, *_: object) -> bytes:
        return str(build_text("again", text + CALL, folder, library)).encode()

    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", FEW)
    num_envs = 11
    pair = Pair(SimulatedGpu(library, 2, seed=1), ["pong"], num_envs, some_options())
    pair.reset(None, torch.arange(num_envs))
    translate(pair, "pong", False, False, library, folder)

    def states() -> list[tuple[Group, Snapshot]]:
        return State.take(pair.gpu, torch.arange(num_envs)).consoles()

    assert not pair.gpu.translated
    assert pair.gpu.translate_again(None), "it loads the first kernel"
    for _ in range(3):
        pair.step()
    assert pair.gpu.translated and not pair.gpu.translate_again(None)
    # As if random play had reached no more than the first kernel has.
    found = find_game("pong")
    few = translation.most_frequent(found, translation.blocks_of(found))
    reached = np.zeros_like(translation.profile(found))
    offsets = [instruction.offset for block in few for instruction in block]
    reached[offsets] = translation.profile(found)[offsets]
    changeover = pair.gpu._changeover
    assert changeover is not None and changeover._loaded is not None
    changeover._loaded = changeover._loaded._replace(played=reached)
    monkeypatch.setattr("cule.translation.executed.LEAST_COUNT", 600)
    assert not pair.gpu.translate_again(states), "it looks, and compiles"
    assert pair.gpu.wait_until_translated()
    assert changeover.kernels == 2
    for _ in range(6):
        pair.step()
    assert not pair.gpu.translate_again(states)
    assert pair.gpu.wait_until_translated() and changeover.kernels == 2


@pytest.mark.slow
@pytest.mark.parametrize(("num_envs", "in_step"), [(11, False), (141, True)])
@pytest.mark.parametrize("game", GAMES)
def test_translated_game_is_played_as_interpreted(
    game: str, num_envs: int, in_step: bool, library: Path, folder: Path
) -> None:
    compare(game, num_envs, in_step, True, library, folder)
