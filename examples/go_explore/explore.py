"""Go-Explore's first phase (Ecoffet et al., 2021): returns to where few have been, and explores.

    python -m examples.go_explore.explore montezuma_revenge --folder runs/montezuma

The archive has a cell for each kind of place that was reached: by default a picture scaled down to
a few coarse pixels, with --ram some bytes of RAM. With each cell it keeps a state and the actions
that led there, those with the most points and then the fewest steps. In each round every env goes
to a cell that was seldom visited, by putting back its state, and from there acts at random, with
actions that mostly last for a while. What scores most of all is written as a demonstration, which
ale-py can replay: nothing in it depends on states that were put back.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch.nn.functional import adaptive_avg_pool2d
from tqdm import tqdm

import cule
from cule.devices.device import find_device
from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.checks import MAX_SEED, at_least, check_types, within
from cule.train.command import run_program
from cule.train.envs.emulator import FRAMESKIP
from cule.train.logs.rows import append_row, row_of
from examples.atari57.references import human_normalised, references
from examples.go_explore.archive import Archive, Paths
from examples.go_explore.demonstration import MOST_FRAMES, Demonstration, make_env

# A cell's picture: its rows, columns and shades.
ROWS, COLUMNS, SHADES = 11, 8, 8
# In the run's folder.
BEST, RESULT = "best.json", "result.jsonl"
# What a hash of a cell's numbers is made with.
HASHES = 2**31 - 1


@dataclass
class Args:
    """Explores a game by returning to states, and keeps what scores most."""

    game: tyro.conf.Positional[str]
    """the game"""
    num_envs: int | None = None
    """envs that explore at the same time; by default 4,096 on a GPU and 64 on a CPU"""
    max_cells: int | None = None
    """the most cells in the archive; by default 65,536 on a GPU and 4,096 on a CPU, each of which
    needs some 150 KB of the device's memory"""
    rounds: int = 1_000
    """rounds, after each of which it is looked where envs have got to"""
    seconds: float | None = None
    """when to end, in seconds"""
    steps: int = 10
    """steps of a round, of four frames each"""
    horizon: int = 10
    """rounds in which an env explores before it returns to another cell"""
    repeat: float = 0.95
    """probability that an env presses once more what it has pressed in the last step"""
    ram: tuple[str, ...] = ()
    """names of bytes of RAM, as in cule.ram_labels, of which a cell is made instead of pictures"""
    ram_step: int = 8
    """how much such a byte has to change for another cell"""
    full_action_space: bool = False
    """offer all 18 actions, not only those that matter in the game"""
    seed: int = 0
    """seed of the choices of cells and actions"""
    device: str | None = None
    """where the envs are; by default cuda if there is one"""
    num_threads: int = 0
    """CPU threads of the emulator; 0: one for each core"""
    folder: Path = Path("runs/go_explore")
    """where the demonstration and the row of results go"""
    progress: bool = True
    """show a progress bar"""

    def check(self) -> None:
        """Checks the settings.

        Raises:
            TypeError, ValueError: one is wrong.
        """
        check_types(self)
        at_least(1, self, "num_envs", "max_cells", "rounds", "steps", "horizon", "ram_step")
        at_least(0, self, "seconds", "num_threads")
        within(0, 1, self, "repeat")
        within(0, MAX_SEED, self, "seed")
        known = cule.ram_labels(self.game) if self.ram else {}
        for name in self.ram:
            if name not in known:
                raise InvalidValue(
                    f"expected a name of a byte of RAM of {self.game} "
                    f"({', '.join(known) or 'none has one'}), got {name!r}"
                )


class Explorer:
    """Envs that explore, and the archive of where they have been.

    Args:
        args: the settings, checked.

    Attributes:
        env: the envs.
        archive: the cells.
        demonstration: what has scored most, without actions if nothing has scored.
    """

    def __init__(self, args: Args):
        device = find_device(args.device)
        many = device.type == "cuda"
        self.args, self._rng = args, np.random.default_rng(args.seed)
        self.env = make_env(
            args.game, args.num_envs or (4096 if many else 64), device,
            full_action_space=args.full_action_space, num_threads=args.num_threads,
            max_num_frames_per_episode=MOST_FRAMES,
        )  # fmt: skip
        self._count, self._actions = self.env.num_envs, int(self.env.single_action_space.n)
        shape = (len(args.ram) or ROWS * COLUMNS,)
        self._factors = torch.from_numpy(self._rng.integers(1, HASHES, shape)).to(device)
        labels = cule.ram_labels(args.game) if args.ram else {}
        self._bytes = torch.tensor([labels[name] for name in args.ram], device=device).long()
        observations, _ = self.env.reset(seed=args.seed)
        self._paths = Paths()
        start, zeros = self.env.clone_state([0]), np.zeros(1, dtype=np.int64)
        self.archive = Archive(start, args.max_cells or (2**16 if many else 2**12))
        self.archive.put(self._cells(observations)[:1], np.zeros(1), zeros, [0], start)
        self.demonstration = self._demonstration(np.zeros(0, np.uint8), 0.0)
        self._most = -np.inf  # what it scores; nothing counts so far
        # Of each env: its path, the actions since then, its points and steps, the rounds since it
        # has returned, and whether its game is over.
        self._path, self._steps, self._rounds = np.zeros((3, self._count), dtype=np.int64)
        self._since: list[list[np.ndarray]] = [[] for _ in range(self._count)]
        self._scores, self._over = np.zeros(self._count), np.ones(self._count, dtype=bool)
        self._pressed = self._rng.integers(self._actions, size=self._count)

    def _cells(self, observations: torch.Tensor) -> np.ndarray:
        """The cell of each env, (num_envs,) int64: a hash of what it is made of."""
        if self.args.ram:
            numbers = self.env.get_ram()[:, self._bytes].long() // self.args.ram_step
        else:
            small = adaptive_avg_pool2d(observations[:, -1:].float(), (ROWS, COLUMNS)).flatten(1)
            numbers = (small * SHADES / 256).long()
        return ((numbers + 1) * self._factors).sum(1).cpu().numpy()

    def _demonstration(self, actions: np.ndarray, score: float) -> Demonstration:
        name = find_game(self.args.game).name
        return Demonstration(name, self.args.full_action_space, tuple(actions.tolist()), score)

    def _return(self) -> None:
        """Sends envs to cells: those whose game is over, and those that have explored enough."""
        who = np.nonzero(self._over | (self._rounds >= self.args.horizon))[0]
        if not who.size:
            return
        places = self.archive.choose(len(who), self._rng)
        self.env.restore_state(self.archive.states(places), who)
        self._path[who], self._steps[who] = self.archive.paths[places], self.archive.steps[places]
        self._scores[who] = self.archive.scores[places]
        self._rounds[who], self._over[who] = 0, False
        for number in who:
            self._since[number] = []

    def _play(self) -> np.ndarray:
        """Plays a round; returns the cells in the end, (num_envs,) int64."""
        args = self.args
        actions = np.empty((args.steps, self._count), dtype=np.int64)
        for row in actions:
            other = self._rng.random(self._count) >= args.repeat
            drawn = self._rng.integers(self._actions, size=self._count)
            row[:] = self._pressed = np.where(other, drawn, self._pressed)
        played, points, ends = torch.from_numpy(actions).to(self.env.device), [], []
        for row in played:
            observations, _, terminated, truncated, infos = self.env.step(row)
            points.append(infos["raw_reward"].clone())
            ends.append(terminated | truncated)
        rewards, ended = (torch.stack(parts).cpu().numpy() for parts in (points, ends))
        self._count_points(actions, rewards, ended)
        return self._cells(observations)

    def _count_points(self, actions: np.ndarray, points: np.ndarray, ends: np.ndarray) -> None:
        """Adds up the points of a round: (steps, num_envs) each.

        What comes after the end of a game belongs to another one.
        """
        ended = ends.any(0)
        last = np.where(ended, ends.argmax(0), len(ends) - 1)
        points = np.where(np.arange(len(ends))[:, None] <= last, points, 0)
        self._scores += points.sum(0)
        self._steps += last + 1
        for number in range(self._count):
            self._since[number].append(actions[: last[number] + 1, number].astype(np.uint8))
        self._over, self._rounds = ended, self._rounds + 1
        self._keep_best(ended, points, last)

    def _keep_best(self, ended: np.ndarray, points: np.ndarray, last: np.ndarray) -> None:
        """Makes a demonstration of what has scored most.

        A game that is not over has to have more than 0 points: where only losing is possible, as in
        Skiing, one that has just begun has the most.
        """
        scores = np.where(ended | (self._scores > 0), self._scores, -np.inf)
        best = int(scores.argmax())
        if scores[best] <= self._most:
            return
        self._most = float(scores[best])
        way = np.concatenate([self._paths.actions(int(self._path[best])), *self._since[best]])
        if self._most > 0:  # until the last point: what comes after it scores nothing
            way = way[: len(way) - int(last[best]) + int(np.flatnonzero(points[:, best])[-1])]
        elif self._most == 0:  # as without playing
            way = way[:0]
        self.demonstration = self._demonstration(way, self._most)

    def round(self) -> None:
        """Returns to cells, explores from there, and keeps where that has led."""
        self._return()
        cells = self._play()
        alive = np.nonzero(~self._over)[0]
        found = alive[self.archive.see(cells[alive], self._scores[alive], self._steps[alive])]
        if not found.size:
            return
        for number in found:
            way = np.concatenate(self._since[number])
            self._path[number] = self._paths.add(int(self._path[number]), way)
            self._since[number] = []
        self.archive.put(
            cells[found], self._scores[found], self._steps[found], self._path[found].tolist(),
            self.env.clone_state(found),
        )  # fmt: skip


def _before(args: Args) -> Demonstration | None:
    """The demonstration that is in the folder already.

    Raises:
        ValueError: it is damaged, or is one of another game or action space.
    """
    path = args.folder / BEST
    if not path.exists():
        return None
    found = Demonstration.load(path)
    wanted = find_game(args.game).name, args.full_action_space
    if (found.game, found.full_action_space) != wanted:
        raise InvalidValue(
            f"expected a folder without a demonstration of another kind, got {path}, which is of "
            f"{found.game} with full_action_space {found.full_action_space}"
        )
    return found


def _rounds(explorer: Explorer, args: Args) -> tuple[float, int]:
    """Explores until the rounds or the seconds are over, or Ctrl-C; returns seconds and rounds."""
    begun, played = time.perf_counter(), 0
    with tqdm(total=args.rounds, unit="round", disable=not args.progress) as bar:
        try:
            while played < args.rounds:
                explorer.round()
                played += 1
                bar.update()
                said = (
                    f"{len(explorer.archive):,} cells, {explorer.demonstration.score:,.0f} points"
                )
                bar.set_postfix_str(said)
                if args.seconds is not None and time.perf_counter() - begun >= args.seconds:
                    break
        except KeyboardInterrupt:
            sys.stderr.write("Stopped; what was found is kept.\n")
    return time.perf_counter() - begun, played


def explore(args: Args) -> dict[str, Any]:
    """Explores, checks that both emulators replay what scored most, and writes it down.

    A demonstration that is in the folder and scores as much stays.

    Returns:
        The row of the results, which is in the folder, too.

    Raises:
        RuntimeError: an emulator replays it with another score.
        TypeError, ValueError: a setting is wrong, the folder has a demonstration of another game,
            or a file cannot be written.
    """
    args.check()
    before = _before(args)
    explorer = Explorer(args)
    with closing(explorer.env) as env:
        seconds, played = _rounds(explorer, args)
        device, num_envs = env.device, env.num_envs
    frames, found = played * args.steps * num_envs * FRAMESKIP, explorer.demonstration
    replayed = {name: found.replayed(name) for name in ("cule", "ale-py")}
    if set(replayed.values()) != {found.score}:
        raise RuntimeError(f"expected a replay with {found.score:,.0f} points, got {replayed}")
    if before is None or not before.actions or before.score < found.score:
        found.save(args.folder / BEST)
    settings = {
        name: value for name, value in dataclasses.asdict(args).items()
        if name in ("rounds", "steps", "horizon", "repeat", "ram", "ram_step", "full_action_space")
    }  # fmt: skip
    normalised = None  # where nothing has scored, an unfinished game's 0 points say nothing
    if found.actions and found.game in references()["human"]:
        normalised = human_normalised(found.game, found.score)
    row = row_of(
        system="cule", mode="exploration", game=found.game, num_envs=num_envs,
        fps=frames / seconds, device=device, threads=args.num_threads, seed=args.seed,
        seconds=round(seconds, 3), frames=frames, cells=len(explorer.archive), score=found.score,
        score_normalised=normalised, demonstration_steps=len(found.actions), **settings,
    )  # fmt: skip
    append_row(row, args.folder / RESULT)
    return row


def run(args: Args) -> None:
    """Does what the command line asks for."""
    row = explore(args)
    share = ""
    if row["score_normalised"] is not None:
        share = f", {row['score_normalised']:.0%} of the way to a human,"
    best = Demonstration.load(args.folder / BEST)
    sys.stdout.write(
        f"{row['game']}: {row['cells']:,} cells and {row['score']:,.0f} points{share} after "
        f"{row['frames']:,} frames in {row['seconds']:.1f} seconds\n"
        f"In {args.folder / BEST}: {len(best.actions):,} actions that score {best.score:,.0f}, on "
        "ale-py, too\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Explores; returns the exit status."""
    return run_program("python -m examples.go_explore.explore", Args, run, argv)


if __name__ == "__main__":
    sys.exit(main())
