"""Names, files, hashes and cartridge types of the 104 games."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import ale_py
import ale_py.roms
import gymnasium
import pytest

import cule
from cule.console import rom_of
from cule.facts.names import OTHER_TITLES, older_ids, spelled_alike
from cule.rom import Game, detect_scheme, find_game, games, load_rom

# Image sizes of each scheme: whole banks, except Pitfall II, where picture data follow two banks of
# program.
SIZES = {
    "2K": (2048, 4096), "4K": (4096, 8192), "F8": (8192,), "F8SC": (8192,), "F6": (16384,),
    "F6SC": (16384,),
    "E0": (8192,), "FE": (8192,), "DPC": (10240, 10495, 10496),
}  # fmt: skip
# As the differential test against ale-py confirms.
RARE_SCHEMES = {
    "F6": {"crossbow", "double_dunk", "road_runner", "solaris"},
    "F6SC": {"darkchambers", "klax"},
    "F8SC": {"elevator_action"},
    "E0": {"jamesbond", "montezuma_revenge", "tutankham"},
    "FE": {"robotank"},
    "DPC": {"pitfall2"},
}


def test_games_are_those_of_ale() -> None:
    names = [game.name for game in games()]
    assert len(names) == 104
    assert names == sorted(set(names))
    assert set(cule.ATARI_57) <= set(names)
    assert len(set(cule.ATARI_57)) == 57


def test_hashes_are_those_of_ale() -> None:
    known = json.loads((Path(ale_py.roms.__file__).parent / "md5.json").read_text())
    for game in games():
        assert known[f"{game.name}.bin"] == game.md5
        assert hashlib.md5(load_rom(game), usedforsecurity=False).hexdigest() == game.md5


@pytest.mark.parametrize("game", games(), ids=lambda game: game.name)
def test_scheme_fits_the_image(game: Game) -> None:
    image, scheme = rom_of(game)
    assert len(image) in SIZES[scheme]


def test_rare_schemes_are_found_where_they_are() -> None:
    for scheme, names in RARE_SCHEMES.items():
        assert {game.name for game in games() if rom_of(game)[1] == scheme} == names
    assert {rom_of(game)[1] for game in games()} == set(SIZES)


@pytest.mark.parametrize("size", [0, 1, 2047, 2049, 6144, 12288, 32768])
def test_image_of_no_scheme_is_refused(size: int) -> None:
    with pytest.raises(
        ValueError, match=f"expected a ROM image of 2, 4, 8 or 16 KiB, .* got {size} bytes"
    ):
        detect_scheme(bytes(size))


@pytest.mark.parametrize("game", games(), ids=lambda game: game.name)
def test_every_name_finds_its_game(game: Game) -> None:
    ids = (f"{game.ale_id}-v5", *(name for name, _ in older_ids(game.ale_id)))
    spellings = (
        game.name,
        game.ale_id,
        game.name.upper(),
        *(game.name.replace("_", mark) for mark in (" ", "-", "")),
    )
    for name in (
        *spellings,
        *ids,
        *(f"{prefix}/{name}" for prefix in ("ALE", "cule", "ale") for name in ids),
    ):
        assert find_game(name) is game
        assert find_game(name.lower()) is game


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Ms. Pac-Man", "ms_pacman"), ("Pac-Man", "pacman"), ("ms-pacman", "ms_pacman"),
        ("MSPACMAN", "ms_pacman"),
        ("space invaders", "space_invaders"), ("H.E.R.O.", "hero"), ("Q*bert", "qbert"),
        ("Pitfall!", "pitfall"),
        ("Pitfall II: Lost Caverns", "pitfall2"), ("Montezuma's Revenge", "montezuma_revenge"),
        ("Montezuma’s Revenge", "montezuma_revenge"), ("Yars' Revenge", "yars_revenge"),
        ("Up 'n Down", "up_n_down"),
        ("E.T. The Extra-Terrestrial", "et"), ("Mr. Do!", "mr_do"),
        ("Kung-Fu Master", "kung_fu_master"),
        ("  pong ", "pong"), ("Battlezone", "battle_zone"), ("River Raid", "riverraid"),
        ("3-D Tic-Tac-Toe", "tic_tac_toe_3d"),
    ],
)  # fmt: skip
def test_title_on_the_box_finds_its_game(title: str, name: str) -> None:
    assert find_game(title).name == name


def test_spellings_of_games_differ() -> None:
    spellings = [spelled_alike(game.name) for game in games()] + list(OTHER_TITLES)
    assert len(set(spellings)) == len(spellings)
    assert all(spelled_alike(title) == title for title in OTHER_TITLES)
    assert set(OTHER_TITLES.values()) <= {game.name for game in games()}


def test_ids_are_those_of_ale() -> None:
    gymnasium.register_envs(ale_py)
    theirs = {name.removeprefix("ALE/") for name in gymnasium.registry if name.startswith("ALE/")}
    ours = {f"{game.ale_id}-v5" for game in games()}
    assert ours <= theirs


def test_modes_and_difficulties_are_those_of_ale() -> None:
    for name in ("pong", "space_invaders", "adventure", "ms_pacman", "video_chess", "skiing"):
        game, ale = find_game(name), ale_py.ALEInterface()
        ale.loadROM(Path(ale_py.roms.__file__).parent / f"{name}.bin")
        assert sorted(game.modes) == sorted(ale.getAvailableModes())
        assert sorted(game.difficulties) == sorted(ale.getAvailableDifficulties())
