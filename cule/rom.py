"""Games and their ROM images: names, files, MD5 sums, cartridge types.

ROMs come from the ale-py wheel, or from the folder in the environment variable CULE_ROM_DIR. Four
games that ale-py lacks come from AutoROM. The MD5 of an image must be that of the game.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib.util
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cule import _core
from cule.errors import Failed, InvalidType, InvalidValue, MissingFile, shown
from cule.facts.modifications import MODIFICATIONS, Modification
from cule.facts.names import OTHER_TITLES, spelled_alike, take_apart
from cule.facts.objects import kinds_of
from cule.facts.ram_labels import RAM_LABELS
from cule.facts.second_players import SECOND_PLAYERS

ROM_DIR_VARIABLE = "CULE_ROM_DIR"
# The numbers of players that there are games for.
PLAYERS = (1, 2, 4)
# In bytes: Solaris and five other games are this large.
LARGEST_IMAGE = 16384


@dataclass(frozen=True)
class Game:
    """One of the 104 games, or the rules of one for several players.

    Attributes:
        index: its place in the core's list, in which each number of players is an entry.
        name: ale-py's ROM id, such as "ms_pacman".
        md5: the MD5 of the one ROM image that the game's rules are written for.
        facts: the other fields of GameInfo (csrc/games/game.h).
    """

    index: int
    name: str
    md5: str
    facts: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(self.index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Game) and other.index == self.index

    @property
    def num_players(self) -> int:
        """How many play it, each with rewards of its own: 1, 2 or 4."""
        return self.facts["num_players"]

    @property
    def words(self) -> str:
        """The name, and the number of players if there are several: "pong for 2 players"."""
        return self.name if self.num_players == 1 else f"{self.name} for {self.num_players} players"

    @property
    def ale_id(self) -> str:
        """The name in gymnasium's ids, such as "MsPacman"."""
        return self.name.title().replace("_", "")

    @property
    def modes(self) -> tuple[int, ...]:
        """The modes that ale-py lists; the default is not always the first."""
        return tuple(self.facts["modes"])

    @property
    def difficulties(self) -> tuple[int, ...]:
        """The difficulties that ale-py lists."""
        return tuple(self.facts["difficulties"])

    @property
    def modes_of_two(self) -> tuple[int, ...]:
        """The modes for one player in which a second one, who is not scored, can join in."""
        return tuple(SECOND_PLAYERS.get(self.name, ())) if self.num_players == 1 else ()


@functools.cache
def _entries() -> tuple[Game, ...]:
    """The core's list of games, in its order."""
    return tuple(
        Game(i, facts["name"], facts["md5"], facts) for i, facts in enumerate(_core.games())
    )


def games(num_players: int = 1) -> tuple[Game, ...]:
    """All games that so many players can play, in alphabetical order of their names.

    Args:
        num_players: as AtariEnv's: 1, 2 or 4.

    Raises:
        ValueError: it is another number.
    """
    if num_players not in PLAYERS:
        raise InvalidValue(f"expected num_players to be 1, 2 or 4, got {shown(num_players)}")
    return tuple(game for game in _entries() if game.num_players == num_players)


def list_games(num_players: int = 1) -> list[str]:
    """The names of `games(num_players)`: what AtariEnv takes as `game`."""
    return [game.name for game in games(num_players)]


@functools.cache
def _games_by_spelling(num_players: int = 1) -> dict[str, Game]:
    by_name = {game.name: game for game in games(num_players)}
    return {spelled_alike(game.name): game for game in by_name.values()} | {
        title: by_name[name] for title, name in OTHER_TITLES.items() if name in by_name
    }


def _closest(text: str) -> list[str]:
    """At most three games: those whose names the text begins with, then the most similar."""
    known = _games_by_spelling()
    starts = sorted(
        (spelling for spelling in known if text.startswith(spelling)), key=len, reverse=True
    )
    alike = difflib.get_close_matches(text, list(known), n=3, cutoff=0.6)
    return list(dict.fromkeys(known[spelling].name for spelling in starts + alike))[:3]


def _spelling_of(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidType(f"expected the name of a game, such as 'pong', got {shown(name)}")
    return take_apart(name).game


def _players_of(spelling: str) -> list[int]:
    """For how many players there is a game of this spelling, the fewest first."""
    return [count for count in PLAYERS if spelling in _games_by_spelling(count)]


def find_game(name: str, num_players: int = 1) -> Game:
    """The game that `name` means; case and punctuation do not matter.

    A name is a ROM id ("ms_pacman"), a title ("Ms. Pac-Man"), or one of gymnasium's ids
    ("ALE/MsPacman-v5", "cule/MsPacman-v5", "MsPacmanNoFrameskip-v4"). Of an id, only the game
    counts here; cule.facts.names says what the rest means.

    Args:
        name: the name.
        num_players: for how many players: 1, 2 or 4.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if there is no such game, which names the closest ones, or it is not for so many
            players.
    """
    spelling = _spelling_of(name)
    found = _games_by_spelling(num_players).get(spelling)
    if found:
        return found
    if others := _players_of(spelling):
        listed = " or ".join(map(str, others))
        raise InvalidValue(
            f"expected num_players={listed}, which {shown(name)} is for, got {num_players}"
        )
    guesses = _closest(spelling)
    hint = f"; closest: {', '.join(map(repr, guesses))}" if guesses else ""
    raise InvalidValue(
        f"expected one of the {len(games())} games of cule.list_games(), got {shown(name)}{hint}"
    )


def find_cartridge(name: str) -> Game:
    """The game that `name` means, as `find_game`, for the fewest players that it is for.

    Raises:
        TypeError, ValueError: as find_game's.
    """
    return find_game(name, *_players_of(_spelling_of(name))[:1])


def game_in_words(words: str) -> Game:
    """The game whose `words` these are: its name, and the number of players if it is several.

    Raises:
        ValueError: there is none.
    """
    name, _, players = words.partition(" for ")
    count = next((n for n in PLAYERS if players == f"{n} players"), 1)
    game = find_game(name, count)
    if game.words != words:
        raise InvalidValue(f"expected the name of a game as states have it, got {shown(words)}")
    return game


def modifications(game: str) -> list[Modification]:
    """The game's named modifications, which `AtariEnv(patches=...)` takes; none for most games.

    Args:
        game: as AtariEnv's.

    Raises:
        TypeError, ValueError: as find_game.
    """
    return list(MODIFICATIONS.get(find_game(game).name, {}).values())


def ram_labels(game: str) -> dict[str, int | tuple[int, ...]]:
    """What the game keeps in which byte of RAM, numbered as `get_ram` has them; for 24 games.

    Args:
        game: as AtariEnv's.

    Returns:
        The byte of each thing by its name; a tuple where there are several of a kind or digits.

    Raises:
        TypeError: as find_game.
        ValueError: there is no such game, or its RAM has no labels.
    """
    name = find_game(game).name
    if name not in RAM_LABELS:
        raise InvalidValue(
            f"expected a game whose RAM has labels ({', '.join(RAM_LABELS)}), got {name!r}"
        )
    return dict(RAM_LABELS[name])


def objects(game: str) -> tuple[str, ...]:
    """The kinds of objects that `AtariEnv.get_objects` tells apart in a game, by their numbers.

    Args:
        game: as AtariEnv's.

    Returns:
        Their names, which are OCAtari's; number 0 is "unknown". Games without facts have only that.

    Raises:
        TypeError, ValueError: as find_game.
    """
    return kinds_of(find_game(game).name)


@functools.cache
def _game_of_md5(md5: str) -> Game | None:
    return next((game for game in _entries() if game.md5 == md5), None)


def rom_path(game: Game) -> Path:
    """The path at which the game's ROM image is expected.

    Raises:
        FileNotFoundError: if ale-py is asked for and is not installed; or the game is one that it
            lacks, and AutoROM is not installed.
    """
    folder = os.environ.get(ROM_DIR_VARIABLE)
    if folder:
        return Path(folder) / f"{game.name}.bin"
    if game.name not in (one.name for one in games()):
        return _autorom_path(game)
    paths = _paths_in("ale_py", game)
    if paths:
        return paths[0]
    raise MissingFile(
        "expected ale-py, whose wheel carries the ROMs, or a folder of ROMs named by "
        f"{ROM_DIR_VARIABLE}; found neither"
    )


def _paths_in(package: str, game: Game) -> list[Path]:
    """Where a package may have the game's ROM image; none if it is not installed.

    It is not imported: ale-py's import takes a while, as it registers hundreds of ids.
    """
    found = importlib.util.find_spec(package)
    folders = (found and found.submodule_search_locations) or ()
    return [Path(folder) / "roms" / f"{game.name}.bin" for folder in folders]


def _autorom_path(game: Game) -> Path:
    """The path at which AutoROM puts the game's ROM image."""
    for path in _paths_in("AutoROM", game):
        if path.exists():
            return path
    raise MissingFile(
        f"expected the ROM of {game.name!r}, which ale-py lacks, from AutoROM (`pip install "
        f"'autorom[accept-rom-license]'`), or in a folder of ROMs named by {ROM_DIR_VARIABLE}; "
        "found neither"
    )


def _read_image(game: Game, path: Path) -> bytes:
    """The content of a file, which must be a regular file and no larger than a ROM image.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a regular file, or is too large.
    """
    # Without O_NONBLOCK, opening a FIFO would wait for a writer.
    flag = getattr(os, "O_NONBLOCK", 0)  # Windows has none, and no FIFOs that are files
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            kind = "a FIFO" if stat.S_ISFIFO(found.st_mode) else "a device"
            raise InvalidValue(
                f"expected the ROM of {game.name!r} at {path}, got {kind} in place of a file"
            )
        # Files in /proc report that they are empty.
        image = b"" if found.st_size > LARGEST_IMAGE else file.read(LARGEST_IMAGE + 1)
    size = max(found.st_size, len(image))
    if size > LARGEST_IMAGE:
        raise InvalidValue(
            f"expected {path} to be the ROM of {game.name!r}, and so at most {LARGEST_IMAGE} "
            "bytes, "
            f"got {size}"
        )
    return image


def game_of_rom(path: str | os.PathLike[str]) -> Game | None:
    """The game of one player whose ROM image a file is; None if cule knows none.

    Raises:
        RuntimeError: the file cannot be read.
    """
    try:
        image = Path(path).read_bytes()[: LARGEST_IMAGE + 1]
    except OSError as problem:
        raise Failed(f"expected a ROM file at {path}: {problem.strerror}") from problem
    found = _game_of_md5(hashlib.md5(image, usedforsecurity=False).hexdigest())
    return found if found in games() else None


def load_rom(game: Game) -> bytes:
    """The game's ROM image.

    Raises:
        ValueError: if the file is missing, or is not the image that is known for the game.
    """
    path = rom_path(game)
    try:
        image = _read_image(game, path)
    except OSError as error:
        raise InvalidValue(
            f"expected the ROM of {game.name!r} at {path}, but it cannot be read: {error.strerror}"
        ) from error
    md5 = hashlib.md5(image, usedforsecurity=False).hexdigest()
    if md5 != game.md5:
        other = _game_of_md5(md5)
        what = f"the ROM of {other.name!r}" if other else "no ROM that cule knows"
        raise InvalidValue(
            f"expected {path} to be the ROM of {game.name!r} with MD5 {game.md5}, "
            f"got {len(image)} bytes with MD5 {md5}, which is {what}"
        )
    return image


def _contains(image: bytes, *signatures: str) -> bool:
    return any(bytes.fromhex(signature) in image for signature in signatures)


def detect_scheme(image: bytes) -> str:
    """The bank-switching scheme of a ROM image, found from its size and from code signatures.

    The signatures are 6502 instructions that access a scheme's hot spots, the same as ale-py looks
    for. Schemes that none of the 104 games uses are not distinguished.

    Raises:
        ValueError: if no scheme has images of this size.
    """
    size = len(image)
    if size == 2048 or (size == 4096 and image[:2048] == image[2048:]):
        return "2K"
    if size == 4096:
        return "4K"
    banks = [image[at : at + 4096] for at in range(0, size, 4096)]
    superchip = all(len(set(bank[:256])) == 1 for bank in banks)
    if size == 8192:
        if superchip:
            return "F8SC"
        if banks[0] == banks[1]:
            return "4K"
        # STA $1FE0, STA $5FE0, STA $FFE9, LDA $FFE9, LDA $FFED, LDA $BFF3
        if _contains(image, "8DE01F", "8DE05F", "8DE9FF", "ADE9FF", "ADEDFF", "ADF3BF"):
            return "E0"
        # JSR $D000; DEC $C5  JSR $F8C3; LDA $82  BNE *-3; JSR $FE73  JSR $F000; STY $D6
        if _contains(image, "2000D0C6C5", "20C3F8A582", "D0FB2073FE", "2000F084D6"):
            return "FE"
        return "F8"
    if size in (10240, 10495, 10496):
        return "DPC"
    if size == 16384:
        return "F6SC" if superchip else "F6"
    raise InvalidValue(
        f"expected a ROM image of 2, 4, 8 or 16 KiB, or Pitfall II's 10 KiB, got {size} bytes"
    )
