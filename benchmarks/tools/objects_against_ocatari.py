"""Which share of OCAtari's boxes `get_objects` finds, in each game.

    pip install ocatari
    python -m benchmarks.tools.objects_against_ocatari --games pong breakout --seed 100

Plays each game at random, and compares after each step OCAtari's objects, computed from the same
RAM without its HUD, with the rows of `get_objects`. A box of OCAtari's counts as far as it is on
the screen; it is found if a row overlaps it with an intersection over union of at least 0.5. And it
is named if that row's kind is its class. OCAtari's programs get RAM as int64, as with bytes some of
them fail with numpy 2. A line for each game, and the median; --results appends a row of each game,
also of those whose program fails. OCAtari is no part of this project:
https://github.com/k4ntz/OC_Atari.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cule
from cule.facts.objects import kinds_of
from cule.programs.results import append_row, command_line, commit, machine, now
from cule.rom import find_game

WIDTH, ENOUGH = 160, 0.5
X, VISIBLE = 1, -1
# Of OCAtari's programs.
FAILURES = (KeyError, TypeError, IndexError, OverflowError, AttributeError, NameError)


def snake_case(name: str) -> str:
    """`PlayerMissile` as `player_missile`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("__", "_")


def known_games() -> Iterator[tuple[str, str]]:
    """OCAtari's names of games, and cule's."""
    from ocatari.core import AVAILABLE_GAMES

    for name in AVAILABLE_GAMES:
        try:
            yield name, find_game(name).name
        except ValueError:
            continue


def overlaps(box: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The intersection over union of a box (x, y, width, height) with each of the rows."""
    begin = np.maximum(box[:2], rows[:, :2])
    end = np.minimum(box[:2] + box[2:], rows[:, :2] + rows[:, 2:])
    common = np.clip(end - begin, 0, None).prod(1)
    return common / (rows[:, 2:].prod(1) + box[2:].prod() - common)


def on_screen(xywh: Sequence[float], lines: int) -> np.ndarray:
    """The part of a box that is on the screen; its width and height are 0 if there is none."""
    x, y, width, height = xywh
    begin = np.clip([x, y], 0, [WIDTH, lines])
    return np.concatenate([begin, np.clip([x + width, y + height], begin, [WIDTH, lines]) - begin])


def count(name: str, game: str, steps: int, seed: int) -> tuple[int, int, int]:
    """How many boxes OCAtari has, how many of them are found, and how many of these are named."""
    from ocatari.ram.extract_ram_info import detect_objects_ram, init_objects

    env = cule.AtariEnv(game, 1, "cpu", obs_type="objects", output="numpy", num_threads=1)
    generator, kinds = np.random.default_rng(seed), kinds_of(game)
    observations, info = env.reset(seed=seed)
    boxes = found = named = 0
    lines = env.get_screen().shape[1]
    theirs: Any = init_objects(name, False)
    for _ in range(steps):
        actions = generator.integers(0, env.single_action_space.n, 1)
        observations, *_, info = env.step(actions)
        if info["new_game"][0]:
            theirs = init_objects(name, False)
        detect_objects_ram(theirs, env.get_ram()[0].astype(np.int64), name, False)
        rows = observations[0][observations[0][:, VISIBLE] > 0]
        for one in filter(None, theirs):
            box = on_screen(one.xywh, lines)
            if not box[2:].all():
                continue
            boxes += 1
            share = overlaps(box, rows[:, X : X + 4].astype(float))
            hits = rows[share >= ENOUGH] if len(rows) else rows
            found += len(hits) > 0
            named += snake_case(one.category) in {kinds[row[0]] for row in hits}
    env.close()
    return boxes, found, named


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the games' shares."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", nargs="*", default=None, help="some games; all of OCAtari's")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--results", type=Path, help="append rows to this file, as JSON lines")
    given = parser.parse_args(arguments)
    wanted = given.games and {find_game(game).name for game in given.games}
    common = {
        "commit": commit(), "date": now(), **machine(torch.device("cpu"), 1), "system": "cule",
        "mode": "objects", "ocatari": version("ocatari"), "steps": given.steps, "seed": given.seed,
        "command": command_line(),
    }  # fmt: skip
    shares = []
    for name, game in known_games():
        if wanted and game not in wanted:
            continue
        result: dict[str, Any]
        try:
            boxes, found, named = count(name, game, given.steps, given.seed)
        except FAILURES as problem:
            print(f"{game}: OCAtari fails: {problem!r}")
            result = {"problem": repr(problem)}
        else:
            result = {"boxes": boxes, "found": found, "named": named}
            if boxes:
                shares.append(found / boxes)
                print(
                    f"{game}: {boxes} boxes, {found / boxes:.1%} found, {named / boxes:.1%} named"
                )
        if given.results is not None:
            append_row(given.results, {**common, "game": game, **result})
    if shares:
        enough = sum(share >= 0.9 for share in shares)
        print(f"{len(shares)} games: median {statistics.median(shares):.1%}, {enough} have 90%")


if __name__ == "__main__":
    main()
