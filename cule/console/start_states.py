"""The states that consoles are in when an episode starts: after power-on, and in reset pools."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from cule import _core
from cule.console.cartridge import picture_height
from cule.console.console import Console, Snapshot
from cule.console.options import Group, Options
from cule.rom import Game

# A cartridge is for PAL if at least this many of 30 frames after power-on are longer than NTSC's.
PAL_FRAMES = 15
# Larger pools are not kept, but emulated for each batch: one state takes 80 KB.
MAX_KEPT_STATES = 64


@dataclass(frozen=True)
class Boot:
    """A console after power-on, as ale-py leaves it when it has loaded a ROM.

    Attributes:
        snapshot: its state.
        pal: whether the cartridge is for PAL televisions.
        height: visible scanlines.
    """

    snapshot: Snapshot
    pal: bool
    height: int


@functools.cache
def boot(game: Game) -> Boot:
    """The game's console as ale-py's loadROM leaves it.

    It is powered on, its TV standard is known, and one episode has begun in the default mode.
    """
    console = Console(Group(game, game.facts["default_mode"], 0), Options(), pal=False)
    console.configure(difficulty=game.facts["power_on_difficulty"])
    console.pal = _core.power_on_env(console.batch) >= PAL_FRAMES
    console.configure()
    _core.start_first_episode(console.batch)
    return Boot(console.snapshot(), console.pal, picture_height(game, console.pal))


def reset_pool(
    group: Group, size: int, noop_max: int, fire_reset: bool, action_space: str
) -> tuple[Snapshot, ...]:
    """`size` states that episodes of the group start from.

    Their numbers of no-ops are spread evenly over [0, noop_max).
    """
    make = kept_reset_pool if size <= MAX_KEPT_STATES else make_reset_pool
    return make(group, size, noop_max, fire_reset, action_space)


def make_reset_pool(
    group: Group, size: int, noop_max: int, fire_reset: bool, action_space: str
) -> tuple[Snapshot, ...]:
    """The states that `reset_pool` returns, emulated."""
    booted = boot(group.game)
    options = Options(noop_max=noop_max, fire_reset=fire_reset, action_space=action_space)
    console = Console(group, options, booted.pal)
    console.configure()
    console.load(booted.snapshot)
    _core.start_pool_episode(console.batch, 0)
    # Each state is some no-ops after the one before it.
    states = [console.snapshot()]
    for i in range(1, size):
        before, after = ((k * noop_max // size) for k in (i - 1, i))
        _core.continue_pool_episode(console.batch, before, after)
        states.append(console.snapshot())
    return tuple(states)


kept_reset_pool = functools.lru_cache(maxsize=256)(make_reset_pool)
