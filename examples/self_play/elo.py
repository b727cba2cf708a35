"""Plays policies of self-play against each other, and rates them.

    python -m examples.self_play.elo runs/self_play

Each policy plays each other one as the first player and as the second, and so does one that presses
random buttons, whose rating is 0. Who has more points at the end of an episode wins it: a fact of
the rewards of each player. ratings.py says how ratings follow.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from tqdm import tqdm

from cule.devices.device import compute_with, find_device
from cule.disk.files import replacing
from cule.errors import InvalidValue
from cule.train.algorithm import Nets
from cule.train.checkpoints import checkpoint
from cule.train.checks import MAX_SEED, at_least, check_types, within
from cule.train.command import run_program
from cule.train.envs.emulator import STACK
from cule.train.evaluate.policies import trained_algorithm
from cule.train.logs.rows import append_row, row_of
from cule.train.nn.models import sample
from examples.self_play import ratings
from examples.self_play.train import PLAYERS, SelfPlay, make_env

# What checkpoints have to have in common.
GAME = ("game", "game_mode", "full_action_space", "sticky")
RANDOM = "random"
MOST_ENVS = 4096  # that play at the same time
# Of a player's observations, the logarithms of the probabilities of its actions.
Scores = Callable[[torch.Tensor, int], torch.Tensor]


@dataclass
class Args:
    """Plays policies of self-play against each other, on both sides, and prints Elo ratings."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """run folders, of which all checkpoints play that they have, or files of checkpoints"""
    episodes: int = 16
    """episodes of each pair with each as the first player; all pairs play at the same time"""
    max_frames: int = 18_000
    """frames after which an episode ends, and whoever has more points has won"""
    seed: int = 1_000_000
    """seed of the envs and the actions"""
    device: str | None = None
    """where the games and policies are; by default cuda if there is one"""
    num_threads: int = 0
    """CPU threads of the emulator and of torch, as in a training"""
    output: Path | None = None
    """the JSON file that is written; by default elo.json in the first run's folder"""
    results: Path | None = None
    """file to which a row of each policy is appended, as a JSON line"""
    progress: bool = True
    """show how many steps have been played"""


@dataclass(frozen=True)
class Player:
    """A policy that plays either side.

    Attributes:
        name: its name in the table.
        scores: of observations (n, 4, 84, 84) uint8 and the number of the player that it plays, the
            logarithms of the probabilities of actions: (n, num_actions) float32.
        trained: of a checkpoint's policy what its row says of the training.
    """

    name: str
    scores: Scores
    trained: dict[str, Any] = field(default_factory=dict)


def _checkpoints(path: Path) -> list[tuple[Path, int]]:
    """The run folder and the steps of each checkpoint that a path names.

    Raises:
        ValueError: there is none.
    """
    match = checkpoint.PART.fullmatch(path.name)
    if match is not None and path.is_file():
        return [(path.parent.parent, int(match[1]))]
    sets = checkpoint.complete_sets(path / "checkpoints")
    if not sets:
        raise InvalidValue(f"expected a run folder or a file with a checkpoint, got {path}")
    return [(path, one.steps) for one in reversed(sets)]


def _scores_of(algorithm: SelfPlay, nets: Nets) -> Scores:
    """The policies of an algorithm's players."""

    def scores(observations: torch.Tensor, player: int) -> torch.Tensor:
        return algorithm.heads(nets, observations, (player,))[0][0]

    return scores


def random_player(num_actions: int) -> Player:
    """The policy that presses each button as often as another."""

    def scores(observations: torch.Tensor, player: int) -> torch.Tensor:
        return torch.zeros(len(observations), num_actions, device=observations.device)

    return Player(RANDOM, scores)


def play(
    env: Any, pairs: Sequence[tuple[Player, Player]], seed: int, *, progress: bool = False
) -> np.ndarray:
    """Plays episodes of all pairs at the same time.

    Args:
        env: envs of two players, as make_env makes them; each pair has as many as another.
        pairs: the policies that play the first and the second player.
        seed: of the envs and the actions.
        progress: show how many steps have been played.

    Returns:
        (pairs, episodes of each, 2) int64: the points of each player, of unclipped rewards.
    """
    episodes = env.num_envs // len(pairs)
    # For each policy and side the envs that it plays, and of all envs those whose episode goes on.
    sides = [(one, player) for player in range(len(PLAYERS)) for one in _members(pairs)]
    plays = np.array([[pair[player] is one for pair in pairs] for one, player in sides])
    plays, going = plays.repeat(episodes, axis=1), np.zeros(env.num_envs, bool)
    generator = torch.Generator(env.device).manual_seed(seed)
    observations, _ = env.reset(seed=seed)
    points = torch.zeros(env.num_envs, len(PLAYERS), dtype=torch.int64, device=env.device)
    playing = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    actions = torch.zeros_like(points)
    steps = tqdm(desc="steps", disable=not progress)
    while (now := playing.cpu().numpy()).any():
        steps.update()
        if (now != going).any():
            going = now
            rows = [torch.from_numpy((one & going).nonzero()[0]).to(env.device) for one in plays]
        for (policy, player), own in zip(sides, rows, strict=True):
            if len(own):
                scores = policy.scores(observations[own], player)
                actions[own, player] = sample(scores, generator)
        observations, _, terminated, truncated, infos = env.step(actions)
        points += infos["raw_reward"] * playing.unsqueeze(1)
        playing = playing & ~(terminated | truncated)
    steps.close()
    return points.cpu().numpy().reshape(len(pairs), episodes, len(PLAYERS))


def _members(pairs: Sequence[tuple[Player, Player]]) -> list[Player]:
    """The players of some pairs, each once."""
    return list({id(one): one for pair in pairs for one in pair}.values())


def results_of(
    players: list[Player], make: Callable[[int], Any], episodes: int, seed: int, *,
    progress: bool = False,
) -> list[dict[str, Any]]:  # fmt: skip
    """Plays all pairs on both sides.

    Args:
        players: the policies.
        make: makes so many envs.
        episodes: of each pair and side.
        seed: of the first env of the first pair; each pair has others.
        progress: show how many steps have been played.

    Returns:
        For each pair and side the names of the `first` and the `second` player, and of the first
        one the `wins`, `draws` and `losses`, and the mean `margin` in points.
    """
    results, pairs = [], [*itertools.permutations(players, 2)]
    at_once = max(1, MOST_ENVS // episodes)
    for begin in range(0, len(pairs), at_once):
        some = pairs[begin : begin + at_once]
        with closing(make(len(some) * episodes)) as env:
            points = play(env, some, seed + begin * episodes, progress=progress)
        for (first, second), own in zip(some, points, strict=True):
            margin = np.subtract(*own.T)
            counts = {
                "wins": int((margin > 0).sum()), "draws": int((margin == 0).sum()),
                "losses": int((margin < 0).sum()), "margin": float(margin.mean()),
            }  # fmt: skip
            results.append({"first": first.name, "second": second.name, **counts})
    return results


def rate(names: list[str], results: list[dict[str, Any]]) -> dict[str, Any]:
    """The ratings of policies from their results; the last name's rating is 0."""
    place = {name: number for number, name in enumerate(names)}
    # Of i against j on both sides: wins, draws, losses.
    counts = np.zeros((3, len(names), len(names)), dtype=np.int64)
    for one in results:
        i, j = place[one["first"]], place[one["second"]]
        counts[:, i, j] += [one["wins"], one["draws"], one["losses"]]
        counts[:, j, i] += [one["losses"], one["draws"], one["wins"]]
    fitted = ratings.fit(counts[0] + counts[1] / 2, anchor=len(names) - 1)
    rows = [
        {
            "name": name, "elo": float(fitted.elo[i]), "standard_error": float(fitted.errors[i]),
            **dict(zip(("wins", "draws", "losses"), counts[:, i].sum(1).tolist(), strict=True)),
        }
        for i, name in enumerate(names)
    ]  # fmt: skip
    return {"anchor": names[-1], "bounded": fitted.bounded, "policies": rows, "results": results}


def table(rated: dict[str, Any]) -> str:
    """Ratings as lines of text, the best first."""
    rows = sorted(rated["policies"], key=lambda row: -row["elo"])
    wide = max(len("policy"), *(len(row["name"]) for row in rows))
    lines = [f"{'policy':{wide}}    Elo  error   wins  draws  losses"]
    for row in rows:
        error = "      " if row["name"] == rated["anchor"] else f"+-{row['standard_error']:4.0f}"
        lines.append(
            f"{row['name']:{wide}}  {row['elo']:5.0f} {error}  {row['wins']:5d}  {row['draws']:5d}"
            f"  {row['losses']:6d}"
        )
    if rated["bounded"]:
        lines.append(
            "Somebody has won or lost all games against others, which no rating is far enough for: "
            "each pair counts as if it had drawn one more."
        )
    return "\n".join(lines)


def _loaded(args: Args, device: torch.device) -> tuple[list[Player], SelfPlay]:
    """The policies of all checkpoints, and the algorithm of the first.

    Raises:
        ValueError: there is none, one comes twice, or their games differ.
    """
    found = [one for path in args.runs for one in _checkpoints(path)]
    if not found or len({*found}) < len(found):
        raise InvalidValue(
            f"expected one checkpoint or more, each once, got {', '.join(map(str, args.runs))}"
        )
    players, games = list[Player](), list[tuple[SelfPlay, dict[str, Any]]]()
    for run, steps in found:
        state = checkpoint.networks_of(checkpoint.of_steps(run, steps, device))
        algorithm, nets = trained_algorithm(SelfPlay, state, device)
        trained = {name: state["args"][name] for name in ("seed", "learners", "mirror", "width")}
        trained |= {"algorithm": algorithm.name, "frames": state["frames"]}
        name = f"{run} {state['frames']:,}"
        players.append(Player(name, _scores_of(algorithm, nets), trained))
        games.append((algorithm, {name: getattr(algorithm.args, name) for name in GAME}))
    first, wanted = games[0]
    for _, game in games:
        if game != wanted:
            raise InvalidValue(f"expected policies of the same game, {wanted}, got {game}")
    return players, first


def _append_rows(
    args: Args, device: torch.device, players: list[Player], rated: dict[str, Any]
) -> None:
    """Appends a row of each checkpoint's policy to the file of results.

    Raises:
        ValueError: it cannot be written.
    """
    for player, one in zip(players[:-1], rated["policies"], strict=False):
        row = row_of(
            system="cule", mode="evaluation", game=rated["game"], num_envs=args.episodes, fps=0.0,
            device=device, threads=args.num_threads, **player.trained,
            episodes=args.episodes, max_frames=args.max_frames, eval_seed=args.seed,
            sticky=rated["sticky"], full_action_space=rated["full_action_space"],
            policies=len(players), bounded=rated["bounded"], **one,
        )  # fmt: skip
        for rate in ("fps", "steps_per_second"):
            del row[rate]
        append_row(row, args.results)


def rated_runs(args: Args) -> dict[str, Any]:
    """Plays the policies of some runs, and rates them; appends rows, if a file is named.

    Returns:
        What is written as JSON: the game and its mode, how many episodes each pair has played on
        each side, and what `rate` returns.

    Raises:
        ValueError: a setting or a checkpoint is wrong, the games of two differ, or a row cannot be
            written.
    """
    check_types(args)
    at_least(1, args, "episodes", "max_frames")
    within(0, MAX_SEED, args, "seed")
    compute_with(args.num_threads)
    device = find_device(args.device)
    players, algorithm = _loaded(args, device)
    players.append(random_player(algorithm.num_actions))
    settings = dataclasses.replace(
        algorithm.args, num_threads=args.num_threads, max_episode_frames=args.max_frames
    )
    make = functools.partial(make_env, settings, device=device, stack_num=STACK)
    with torch.no_grad():
        results = results_of(players, make, args.episodes, args.seed, progress=args.progress)
    game = {name: getattr(settings, name) for name in GAME} | {"episodes": args.episodes}
    rated = game | rate([player.name for player in players], results)
    if args.results is not None:
        _append_rows(args, device, players, rated)
    return rated


def run(args: Args) -> None:
    """Prints the table of some runs, and writes it as JSON.

    Raises:
        ValueError: as of rated_runs, or the file cannot be written.
    """
    rated = rated_runs(args)
    output = args.output or _checkpoints(args.runs[0])[0][0] / "elo.json"
    try:
        with replacing(output) as file:
            file.write(json.dumps(rated, indent=1).encode())
    except OSError as problem:
        raise InvalidValue(
            f"expected a file that can be written at {output}: {problem.strerror}"
        ) from problem
    sys.stdout.write(f"{table(rated)}\nIn {output}: the same, and each pair's results.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Plays and rates; returns the exit status."""
    return run_program("python -m examples.self_play.elo", Args, run, argv)


if __name__ == "__main__":
    sys.exit(main())
