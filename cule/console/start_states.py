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


def reset_pool(group: Group, options: Options) -> tuple[Snapshot, ...]:
    """The `options.reset_pool_size` states that episodes of the group start from.

    Their numbers of no-ops are spread evenly over [least_noops, noop_max).
    """
    kept = options.reset_pool_size <= MAX_KEPT_STATES
    return (kept_reset_pool if kept else make_reset_pool)(group, options.of_starts)


def make_reset_pool(group: Group, options: Options) -> tuple[Snapshot, ...]:
    """The states that `reset_pool` returns, emulated."""
    booted = boot(group.game)
    console = Console(group, options, booted.pal)
    console.configure()
    console.load(booted.snapshot)
    size, least = options.reset_pool_size, options.least_noops
    span = max(options.noop_max - least, 0)
    noops = [least + i * span // size for i in range(size)]
    states = []
    for before, count in zip([None, *noops], noops, strict=False):
        # Each state is some no-ops after the one before it.
        if before is None:
            _core.start_pool_episode(console.batch, count)
        else:
            _core.continue_pool_episode(console.batch, before, count)
        after_noops = console.snapshot()
        _core.end_pool_episode(console.batch, count)
        states.append(console.snapshot())
        console.load(after_noops)
    return tuple(states)


kept_reset_pool = functools.lru_cache(maxsize=256)(make_reset_pool)
