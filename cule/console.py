"""One console on the CPU: its cartridge decoded, powered on, and brought to where episodes start.

States that episodes start from are emulated once, whatever device the envs live on, and kept for the process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cule import _core, actions
from cule.rom import Game, detect_scheme, load_rom

# Entries of the TIA instruction buffer: room for one frame of nothing but writes (a PAL frame's 343 scanlines of 76
# cycles, 3 cycles a write), and for each further frame of a step some twice of what games write on average. A single
# frame can need more: Robot Tank has some of over 2,560.
LONGEST_FRAME_ENTRIES, FURTHER_FRAME_ENTRIES = 8704, 2560
# On a GPU each env has a buffer for what practically all steps write, but for some games half as
# large again, and those that envs share are of the size above (design/tia_instruction_buffer.md).
OWN_FIRST_ENTRIES, OWN_FURTHER_ENTRIES = 1792, 768
ENVS_PER_SPARE, LEAST_SPARES = 64, 8
# Numbers of the power-on generator that are tabulated: one a reset, 129 with a Superchip.
POWER_ON_NUMBERS = 1 << 20
NTSC_HEIGHT, PAL_HEIGHT = 210, 250
# Power-on frames, of the 30 that are looked at, that must be longer than NTSC's for a cartridge to be PAL's.
PAL_FRAMES = 15
AUTORESET_MODES = ("NextStep", "SameStep", "Disabled")


@dataclass(frozen=True)
class Group:
    """Envs that play the same game in the same mode and difficulty."""

    game: Game
    mode: int
    difficulty: int


@dataclass(frozen=True)
class Options:
    """What a step does; the fields mean what AtariEnv's keywords of the same names do."""

    frameskip: int = 4
    max_frames: int = 108_000
    noop_max: int = 30
    maxpool: bool = True
    episodic_life: bool = False
    life_loss_info: bool = False
    reward_clipping: bool = True
    fire_reset: bool = True
    autoreset: int = 0
    repeat_action_probability: float = 0.0
    action_space: str = "minimal"
    observation_height: int = 84
    observation_width: int = 84
    channels: int = 1
    stack: int = 4
    reset_pool_size: int = 30


@dataclass(frozen=True)
class Snapshot:
    """One console's state, as numpy arrays: words of its record, RAM, cartridge bytes, both pictures."""

    record: np.ndarray
    ram: np.ndarray
    cartridge_bytes: np.ndarray
    pictures: np.ndarray


@dataclass(frozen=True)
class Boot:
    """A console after power-on, as ale-py leaves it when a ROM has been loaded."""

    snapshot: Snapshot
    pal: bool
    height: int


def buffer_entries(frameskip: int) -> int:
    """The capacity of a TIA instruction buffer that holds any game's step of `frameskip` frames."""
    return LONGEST_FRAME_ENTRIES + FURTHER_FRAME_ENTRIES * (frameskip - 1)


def own_buffer_entries(frameskip: int, games: Iterable[Game]) -> int:
    """The capacity of the buffer that an env on a GPU has of its own, whichever game it plays."""
    entries = OWN_FIRST_ENTRIES + OWN_FURTHER_ENTRIES * (frameskip - 1)
    return entries * 3 // 2 if any(game.facts["writes_much"] for game in games) else entries


def spare_buffers(num_envs: int) -> int:
    """How many buffers of `buffer_entries` the envs of a GPU share, for longer steps."""
    return max(-(-num_envs // ENVS_PER_SPARE), min(num_envs, LEAST_SPARES))


@functools.cache
def power_on_numbers() -> np.ndarray:
    """(POWER_ON_NUMBERS,) uint32: what ale-py's generator of power-on states gives, in order."""
    return np.frombuffer(_core.power_on_numbers(POWER_ON_NUMBERS), dtype=np.uint32)


@functools.cache
def _rom(game: Game, md5: str) -> tuple[bytes, str]:
    """The game's image and its scheme; `md5` only names what is cached."""
    image = load_rom(game)
    return image, detect_scheme(image)


def rom_of(game: Game) -> tuple[bytes, str]:
    """The game's ROM image and its bank-switching scheme. Raises ValueError as load_rom does."""
    return _rom(game, game.md5)


def action_numbers(game: Game, space: str) -> tuple[int, ...]:
    """The actions (0 to 17) that an env of the game offers, in the order of its action space.

    `space` is "minimal" (those that matter in the game), "full" (those that it allows) or "all" (all 18).
    """
    if space == "all":
        return tuple(range(_core.NUM_ACTIONS))
    return actions.action_set(game.facts["legal_actions" if space == "full" else "minimal_actions"])


def picture_height(game: Game, pal: bool) -> int:
    """Visible scanlines of the game's picture."""
    height = game.facts["height"]
    return PAL_HEIGHT if pal and height == NTSC_HEIGHT else height


def config_bytes(group: Group, pal: bool, rom_offset: int, difficulty: int | None = None) -> bytes:
    """The group's ConsoleConfig; `difficulty` in place of its own."""
    image, scheme = rom_of(group.game)
    return _core.make_config(
        {
            "scheme": scheme,
            "pal": int(pal),
            "height": picture_height(group.game, pal),
            "rom_offset": rom_offset,
            "rom_bytes": len(image),
            "game": group.game.index,
            "mode": group.mode,
            "difficulty": group.difficulty if difficulty is None else difficulty,
        }
    )


def padded(image: bytes) -> np.ndarray:
    """An image and at least one byte of padding, at a multiple of 16 bytes."""
    return np.frombuffer(image + bytes(16 + -len(image) % 16), dtype=np.uint8)


def micro_ops(game: Game) -> np.ndarray:
    """The game's ROM decoded ahead of time: eight bytes for each byte of its padded image."""
    image, scheme = rom_of(game)
    return np.frombuffer(_core.decode_rom(image, scheme, len(padded(image))), dtype=np.uint8)


def action_ids(group: Group, space: str) -> np.ndarray:
    """(18,) uint8: the actions of the group's action space, then 0xFF."""
    numbers = np.full(_core.NUM_ACTIONS, 0xFF, dtype=np.uint8)
    offered = action_numbers(group.game, space)
    numbers[: len(offered)] = offered
    return numbers


class Console:
    """A console that is prepared: start states, profiles (cule/translation.py)."""

    def __init__(self, group: Group, options: Options, pal: bool):
        self.group, self.pal = group, pal
        height = picture_height(group.game, True)
        self.picture_bytes = height * _core.LINE_PIXELS
        self.arrays: dict[str, np.ndarray] = {
            "group": np.zeros(1, np.uint32),
            "configs": np.zeros(_core.CONFIG_BYTES, np.uint8),
            "action_ids": action_ids(group, options.action_space),
            "roms": padded(rom_of(group.game)[0]),
            "micro_ops": micro_ops(group.game),
            "operations": np.frombuffer(_core.operations(), np.uint8),
            "power_on_numbers": power_on_numbers(),
            "records": np.zeros(_core.RECORD_WORDS, np.uint32),
            "ram": np.zeros(_core.RAM_BYTES, np.uint8),
            "cartridge_bytes": np.zeros(_core.CARTRIDGE_BYTES // 8, np.uint64).view(np.uint8),
            "pictures": np.zeros(2 * self.picture_bytes, np.uint8),
            # Here each scanline has its own row.
            "row_of": np.tile(np.arange(_core.PICTURE_ROWS, dtype=np.uint8), 2),
        }
        self.batch = _core.Batch()
        self.batch.num_envs = self.batch.num_groups = 1
        self.batch.picture_bytes = self.picture_bytes
        self.batch.buffer_capacity = buffer_entries(1)
        self.batch.power_on_count = POWER_ON_NUMBERS
        self.batch.record_word_stride, self.batch.record_env_stride = 1, _core.RECORD_WORDS
        self.batch.fire_reset, self.batch.noop_max = options.fire_reset, options.noop_max
        self.batch.channels = 1
        for name, array in self.arrays.items():
            setattr(self.batch, name, (array.ctypes.data, array.nbytes))

    def configure(self, difficulty: int | None = None) -> None:
        """Plugs the cartridge in."""
        self.arrays["configs"][:] = np.frombuffer(config_bytes(self.group, self.pal, 0, difficulty), np.uint8)

    def load(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot."""
        for name in ("ram", "cartridge_bytes", "pictures"):
            self.arrays[name][:] = getattr(snapshot, name)
        self.arrays["records"][:] = snapshot.record

    def snapshot(self) -> Snapshot:
        """The state that it is in."""
        a = self.arrays
        return Snapshot(a["records"].copy(), a["ram"].copy(), a["cartridge_bytes"].copy(), a["pictures"].copy())


@functools.cache
def boot(game: Game) -> Boot:
    """The game's console as ale-py's loadROM leaves it: powered on, TV standard known, one default episode begun."""
    console = Console(Group(game, game.facts["default_mode"], 0), Options(), pal=False)
    console.configure(difficulty=game.facts["power_on_difficulty"])
    console.pal = _core.power_on_env(console.batch) >= PAL_FRAMES
    console.configure()
    _core.start_first_episode(console.batch)
    return Boot(console.snapshot(), console.pal, picture_height(game, console.pal))


# Larger pools are emulated anew for each batch: one state is 80 KB.
MOST_KEPT_STATES = 64


def reset_pool(group: Group, size: int, noop_max: int, fire_reset: bool, action_space: str) -> tuple[Snapshot, ...]:
    """`size` states that episodes of the group start from, their numbers of no-ops spread evenly over [0, noop_max)."""
    make = kept_reset_pool if size <= MOST_KEPT_STATES else make_reset_pool
    return make(group, size, noop_max, fire_reset, action_space)


def make_reset_pool(
    group: Group, size: int, noop_max: int, fire_reset: bool, action_space: str
) -> tuple[Snapshot, ...]:
    """As reset_pool says."""
    booted = boot(group.game)
    options = Options(noop_max=noop_max, fire_reset=fire_reset, action_space=action_space)
    console = Console(group, options, booted.pal)
    console.configure()
    console.load(booted.snapshot)
    _core.start_pool_episode(console.batch, 0)
    # Each state is the one before it some no-ops later.
    states = [console.snapshot()]
    for i in range(1, size):
        _core.continue_pool_episode(console.batch, (i - 1) * noop_max // size, i * noop_max // size)
        states.append(console.snapshot())
    return tuple(states)


kept_reset_pool = functools.lru_cache(maxsize=256)(make_reset_pool)
