"""translate=: where it is allowed, which blocks a kernel has, and what is kept on disk."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import cule
from cule import _core, translation
from cule.console import Group, rom_of
from cule.console.console import Snapshot
from cule.devices import nvrtc
from cule.rom import find_game
from cule.translation import executed
from cule.translation.blocks import MAX_INSTRUCTIONS, share_of
from cule.translation.executed import INDEXED
from cule.translation.source import BLOCK_CODE, QUIET_BLOCK

PROFILED_TIA = executed.PROFILED.index(executed.REGIONS["kToTia"])


def test_translation_needs_a_gpu_and_one_game() -> None:
    expected = r"expected translate=True with device='cuda' and one game .*device cpu and 1 game$"
    with pytest.raises(ValueError, match=expected):
        cule.AtariEnv("pong", 2, device="cpu", translate=True, reset_pool_size=1)
    with pytest.raises(TypeError, match="expected translate to be True or False, got 'yes'"):
        cule.AtariEnv("pong", 2, device="cpu", translate="yes", reset_pool_size=1)
    assert not cule.AtariEnv("pong", 2, device="cpu", reset_pool_size=1).translated


def test_blocks_follow_the_profile() -> None:
    """Each block begins where the program entered it, and has what the program executed there.

    No byte is in two blocks.
    """
    game = find_game("breakout")
    counts, blocks = translation.profile(game), translation.blocks_of(game)
    operations = translation.marked_ops(game, blocks)[:, 1]
    marks = operations[operations >> 8 & 0xFF == BLOCK_CODE] >> 16
    assert sorted(marks) == list(range(1, len(blocks) + 1))
    seen: set[int] = set()
    for block in blocks:
        assert len(block) <= MAX_INSTRUCTIONS
        for before, instruction in zip((None, *block), block, strict=False):
            ran, refused = counts[instruction.offset, [executed.COUNT, executed.REFUSED]].tolist()
            assert ran >= executed.LEAST_COUNT
            for column, reached in enumerate(executed.PROFILED, executed.REACHED):
                if reached & instruction.regions != reached:
                    refused += int(counts[instruction.offset, column])
            if instruction.register is not None:
                refused += int(counts[instruction.offset, executed.OTHER_REGISTER])
                assert instruction.register == counts[instruction.offset, executed.REGISTER]
            assert refused <= executed.MAX_REFUSED * ran
            assert not instruction.waits or instruction is block[-1]
            assert before is None or before.pc + before.length == instruction.pc
            assert instruction.offset not in seen
            seen.add(instruction.offset)
    ran_in_all = counts[:, executed.COUNT].sum()
    assert sum(int(counts[offset, 0]) for offset in seen) > 0.9 * ran_in_all


@pytest.mark.parametrize(("name", "in_ram"), [("up_n_down", True), ("pong", False)])
def test_kernels_know_which_programs_run_in_ram(name: str, in_ram: bool) -> None:
    game = find_game(name)
    source = translation.kernel_source(game, translation.blocks_of(game)[:1], True)
    assert translation.runs_in_ram(game) is in_ram
    assert re.search(rf"TranslatedCore<RunBlock, .*, {str(in_ram).lower()}>", source)


def test_listing_in_the_design_notes_is_what_is_made() -> None:
    """design/translation.md shows a block of Breakout, and its bytes."""
    text = (Path(__file__).resolve().parents[2] / "design" / "translation.md").read_text()
    a_listing = r"^CULE_BLOCK.*?^  CULE_LOOK_UP\(\d+\)\n"
    (listing,) = re.findall(a_listing, text, re.DOTALL | re.MULTILINE)
    game = find_game("breakout")
    assert listing in translation.source_of(game, translation.blocks_of(game))
    image, _ = rom_of(game)
    lines = re.findall(r"^\$F(\w{3})  ((?:[0-9A-F]{2} )+)", text, re.MULTILINE)
    assert len(lines) == listing.count("  CULE_DO") + listing.count("  CULE_BRANCH")
    for address, code in lines:
        assert image[int(address, 16) % len(image) :].startswith(bytes.fromhex(code)), address


def test_marks_tell_blocks_that_write_nothing_to_the_tia() -> None:
    game = find_game("breakout")
    blocks = translation.blocks_of(game)
    marks = translation.marked_ops(game, blocks)[:, 0]
    source = translation.source_of(game, blocks)
    found = {True: 0, False: 0}
    for number, block in enumerate(blocks, 1):
        writes = any("kToTia" in each.reach or "to_register" in each.reach for each in block)
        assert marks[block[0].offset] == block[0].pc | (0 if writes else QUIET_BLOCK)
        assert f"CULE_GO_ON{'_QUIETLY' if writes else ''}({number})" not in source
        found[writes] += 1
    assert min(found.values()) > 10


@pytest.mark.parametrize(("name", "registers"), [("pitfall2", 0x80), ("klax", 0x100)])
def test_blocks_reach_a_cartridge_s_registers(name: str, registers: int) -> None:
    """Blocks access the DPC's registers, or a Superchip's RAM, if the program was seen to do so."""
    reaching = [
        each
        for block in translation.blocks_of(find_game(name))
        for each in block
        if "kInCartridge" in each.reach
    ]
    absolute = [each for each in reaching if each.length == 3 and not each.control & INDEXED]
    addresses = [each.operand & 0xFFF for each in absolute]
    assert len(addresses) > 20
    assert max(addresses) < registers


def test_kernel_is_made_from_what_it_includes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If another header changes, the cached kernel stays valid."""
    compiled = []
    texts = dict(_core.headers())
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *made: compiled.append(made) or b"cubin")
    monkeypatch.setattr(_core, "headers", lambda: texts)
    game = find_game("pong")
    for changed in (None, "kernels/draw.h", "tia/chip/state.h"):
        if changed:
            texts[changed] += "// changed\n"
        translation.translate(game, "sm_90")
    assert len(compiled) == 2
    assert "tia/chip/state.h" in compiled[1][1]
    assert "kernels/draw.h" not in compiled[1][1]


def test_translations_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled = []

    def compile_cubin(source: str, headers: dict[str, str], options: list[str]) -> bytes:
        assert "kernels/cuda/play.cuh" in headers
        assert "CULE_BLOCK(1)" in source
        compiled.append(options[0])
        return b"cubin for " + options[0].encode()

    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "new" / "folder"))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    game = find_game("pong")
    first, marked, *_ = translation.translate(game, "sm_90")
    again = translation.translate(game, "sm_90").cubin
    assert first == again == b"cubin for --gpu-architecture=sm_90"
    assert np.array_equal(marked, translation.marked_ops(game, translation.blocks_of(game)))
    assert compiled == ["--gpu-architecture=sm_90"]
    translation.translate(game, "sm_80")
    source = translation.kernel_source(game, translation.blocks_of(game), True)
    assert "play_envs<true, false>" in source
    translation.translate(game, "sm_80", in_step=True)
    monkeypatch.setattr(nvrtc, "version", lambda: "13.1")
    translation.translate(game, "sm_90")
    assert len(compiled) == 4
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 4  # and no unfinished file
    # Where nothing can be kept, it is compiled again.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "file"))
    assert translation.translate(game, "sm_90")[0] == first
    assert len(compiled) == 5


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a stand-in for the compiler has compiled: sources, each of which is its own cubin."""
    sources: list[str] = []
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(
        nvrtc, "compile_cubin", lambda source, *_: sources.append(source) or source.encode()
    )
    return sources


def test_first_kernel_has_the_most_frequent_blocks_until_the_whole_one_is_kept(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", 300)
    game = find_game("pong")
    blocks = translation.blocks_of(game)
    counts = translation.profile(game)[:, executed.COUNT]
    frequent = translation.most_frequent(game, blocks)
    assert 250 < sum(map(len, frequent)) <= 300 < sum(map(len, blocks))
    assert [block for block in blocks if block in frequent] == frequent

    def mean(block: translation.Block) -> float:
        return float(np.mean([counts[each.offset] for each in block]))

    assert min(map(mean, frequent)) >= max(mean(each) for each in blocks if each not in frequent)
    first = translation.translate(game, "sm_90", at_first=True)
    assert not first.whole
    assert compiled == [translation.kernel_source(game, frequent, False)]
    assert np.array_equal(first.marked_ops, translation.marked_ops(game, frequent))
    whole = translation.translate(game, "sm_90")
    assert whole.whole
    assert compiled[1:] == [translation.kernel_source(game, blocks, False)]
    assert np.array_equal(whole.marked_ops, translation.marked_ops(game, blocks))
    again = translation.translate(game, "sm_90", at_first=True)
    assert again.whole
    assert again.cubin == whole.cubin
    monkeypatch.setattr("cule.translation.blocks.MAX_AT_FIRST", 3000)
    assert translation.translate(game, "sm_80", at_first=True).whole
    assert len(compiled) == 3


def states_of(mode: int | None) -> list[tuple[Group, Snapshot]]:
    """Those of eight envs after some steps of Breakout."""
    env = cule.AtariEnv("breakout", 8, "cpu", mode=mode, reset_pool_size=1)
    env.reset(seed=1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        env.step(torch.randint(4, (8,), generator=generator))
    return env.clone_state().consoles()


def test_a_game_is_translated_again_with_what_its_envs_execute(
    compiled: list[str], tmp_path: Path
) -> None:
    game, states = find_game("breakout"), states_of(mode=44)
    played, now = translation.profile(game), executed.profile_from(game, states)
    before = translation.blocks_of(game)
    made = translation.translate_again(game, "sm_90", False, played, states)
    assert made is not None and made.whole
    blocks = translation.blocks_of(game, made.played)
    assert compiled == [translation.kernel_source(game, blocks, False)]
    assert np.array_equal(made.marked_ops, translation.marked_ops(game, blocks))
    assert share_of(before, now) < 0.99 < 0.995 < share_of(blocks, now)
    assert share_of(blocks, played) >= share_of(before, played) - 1e-4, "the old code stays"
    assert list(tmp_path.iterdir()) == [], "no other process needs just this kernel"
    # There is no need for a third one, nor for a second one if envs play what random play does.
    assert translation.translate_again(game, "sm_90", False, made.played, states) is None
    assert translation.translate_again(game, "sm_90", False, played, states_of(None)) is None
    assert len(compiled) == 1


def test_a_profile_from_states_does_not_change_them_and_counts_each() -> None:
    game, states = find_game("breakout"), states_of(mode=44)
    first, again = (executed.profile_from(game, states[:2]) for _ in range(2))
    assert np.array_equal(first, again)
    one = executed.profile_from(game, states[:1])
    frames = executed.FRAMES_FROM_A_STATE
    assert 2000 * frames < one[:, executed.COUNT].sum() < 6000 * frames
    assert (first[:, executed.COUNT] >= one[:, executed.COUNT]).all()


def test_two_profiles_together_are_one_of_both_plays() -> None:
    game = find_game("breakout")
    first, second = translation.profile(game), executed.profile_from(game, states_of(mode=44))
    together = executed.both(first, second)
    counted = [*range(executed.PC), *range(executed.REACHED, executed.REGISTER)]
    assert np.array_equal(together[:, counted], first[:, counted] + second[:, counted])
    ran = (first[:, executed.COUNT] > 0)[:, None]
    kept = [executed.PC]
    assert np.array_equal(together[:, kept], np.where(ran, first[:, kept], second[:, kept]))
    # An instruction that wrote to one register in the first play, and to another in the second.
    row = int(np.flatnonzero(first[:, executed.REACHED + PROFILED_TIA] > executed.LEAST_COUNT)[0])
    other = first.copy()
    other[row, executed.REGISTER] ^= 1
    mixed = executed.both(first, other)
    assert mixed[row, executed.OTHER_REGISTER] >= first[row, executed.REACHED + PROFILED_TIA]
    assert executed.reach(executed.both(first, first)[:-1])[1][row]
    assert not executed.reach(mixed[:-1])[1][row]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "as once kept", "folder"])
def test_translations_that_are_damaged_are_made_anew(
    damage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled = []
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda *_: compiled.append(1) or b"the cubin")
    game = find_game("pong")
    translation.translate(game, "sm_90")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    if damage == "folder":  # which no file can replace
        path.unlink(), path.mkdir()
    else:
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        path.write_bytes(
            {"cut": whole[:-3], "flipped": flipped, "empty": b"", "as once kept": b"the cubin"}[
                damage
            ]
        )
    for _ in range(2):
        assert translation.translate(game, "sm_90")[0] == b"the cubin"
    assert len(compiled) == (3 if damage == "folder" else 2), (
        "the file that was damaged is replaced"
    )
    assert damage == "folder" or path.read_bytes() == whole
