"""Plays a trained policy in processes that share the episodes; writes the scores."""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro
from tqdm import tqdm

from cule.arguments import MOST
from cule.devices.device import MAX_THREADS, find_device, usable_cpus
from cule.env.patches import patches_of
from cule.env.settings import MAX_NOOPS
from cule.errors import Failed, InvalidValue
from cule.rom import find_game
from cule.train.checks import MAX_SEED, within
from cule.train.distributed.die_with_parent import die_with_parent
from cule.train.envs.emulator import in_parts
from cule.train.evaluate.ended_groups import EndedGroups
from cule.train.evaluate.evaluator import MAX_EPISODES, NOOPS, Evaluator, groups_of
from cule.train.evaluate.policies import digest_of, full_actions_of, load_policy, policy_of
from cule.train.evaluate.policy import Policy
from cule.train.logs.rows import COMMIT, append_row, row_of

MAX_PROCESSES = 1024


@dataclass
class Args:
    """Plays a trained policy on ale-py, or on cule, and reports mean and deviation of its score."""

    run: tyro.conf.Positional[Path]
    """the run folder that training wrote"""
    episodes: int = 100
    """number of episodes, for each probability of sticky actions"""
    emulator: Literal["ale-py", "cule"] = "ale-py"
    """what plays the episodes, on CPU threads: ale-py, on which nothing was trained, or cule, which
    is several times as fast and gives the same scores without sticky actions"""
    sticky: tuple[float, ...] = (0.0, 0.25)
    """probabilities that a frame repeats the last frame's action; each is evaluated"""
    noops: int = NOOPS
    """an episode starts with fewer no-ops than this, and with none for 0"""
    seed: int = 1_000_000
    """seed of the envs and the actions"""
    greedy: bool = False
    """take the most probable action instead of sampling one"""
    max_frames: int = 108_000
    """frames after which an episode is truncated"""
    device: str | None = None
    """where the policy computes; by default cuda if there is one"""
    num_threads: int = 0
    """threads of all processes together, each of which plays some episodes; 0: one for each core"""
    num_processes: int = 1
    """processes that share the episodes, if the policy computes on a CPU: of the threads of a
    process only one at a time can be in Python, which is 8% of a step"""
    results: Path | None = None
    """file to which the results are appended, as JSON lines; the run's folder always gets them"""
    progress: bool = True
    """show a progress bar"""
    program: tuple[str, ...] = ()
    """modules or scripts that have the algorithm's code, such as my_program or my_program.py. Those
    of cule need not be named; of others a checkpoint runs none that is not named here"""
    patches: tuple[str, ...] = ()
    """modifications of the game, by the names that cule.modifications lists, in each episode; the
    emulator has to be cule"""


def _share(
    policy: Policy,
    state: dict[str, Any],
    args: Args,
    device: torch.device,
    sticky: float,
    ended: Mapping[int, np.ndarray],
    on_group: Callable[[int, np.ndarray], object],
    *,
    share: tuple[int, int] = (0, 1),
    on_ended: Callable[[int], object] = lambda ended: None,
) -> np.ndarray:
    """The scores of a share of the episodes, in this process.

    Args:
        policy: the policy.
        state: the state of its checkpoint.
        args: the settings of the evaluation.
        device: where the policy computes.
        sticky: the probability that a frame repeats the last frame's action.
        ended: the scores of groups that were played before, as in Evaluator.scores.
        on_group: called when a group has ended, as there.
        share: (i, n): the i-th of n shares, as in Evaluator.
        on_ended: called with how many episodes have just ended, as in Evaluator.scores.
    """
    number, shares = share
    threads = in_parts(args.num_threads or usable_cpus(), shares)[number]
    evaluator = Evaluator(
        state["args"]["game"], args.episodes, device, emulator=args.emulator, sticky=sticky,
        max_frames=args.max_frames, noops=args.noops, full_action_space=full_actions_of(state),
        share=share, num_threads=max(1, threads.stop - threads.start), patches=args.patches,
        graphs=state["args"].get("cuda_graphs", False),
    )  # fmt: skip
    try:
        scores = evaluator.scores(
            policy, args.seed, greedy=args.greedy, on_ended=on_ended, known=ended,
            on_group=on_group,
        )  # fmt: skip
    finally:
        evaluator.close()
    assert scores is not None, "nothing stops it"
    return scores


def _send_share(
    theirs: Connection, parent: int, args: Args, sticky: float, share: tuple[int, int],
    ended: Mapping[int, np.ndarray],
) -> None:  # fmt: skip
    """Receives a checkpoint's state, and sends a share's scores, or the error that came up.

    Before that it sends each group that has ended: its first episode, and its scores.
    """
    die_with_parent(parent)
    torch.set_num_threads(1)  # its threads compute by themselves
    result: Any
    try:
        saved, device = io.BytesIO(theirs.recv_bytes()), torch.device("cpu")
        state = torch.load(saved, weights_only=True)
        result = _share(
            policy_of(state, device, args.program), state, args, device, sticky, ended,
            lambda first, scores: theirs.send((first, scores)), share=share,
        )  # fmt: skip
    except Exception as problem:  # whatever it is, it is raised again where it is received
        result = ExceptionWithTraceback(problem, problem.__traceback__)
    theirs.send(result)


def _from_processes(
    state: dict[str, Any], args: Args, sticky: float, count: int, ended: Mapping[int, np.ndarray],
    on_group: Callable[[int, np.ndarray], object],
) -> np.ndarray:  # fmt: skip
    """The scores of all episodes, of which each of `count` processes plays a share.

    Args:
        state: the state of the checkpoint.
        args: the settings of the evaluation.
        sticky: the probability that a frame repeats the last frame's action.
        count: how many processes play.
        ended: the scores of groups that were played before, as in Evaluator.scores.
        on_group: called when a group has ended, as there.

    Raises:
        RuntimeError: a process was killed.
    """
    saved = io.BytesIO()
    torch.save(state, saved)
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, Any] = {}
    scores: dict[Connection, np.ndarray] = {}
    try:
        for number in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(
                target=_send_share, daemon=True,
                args=(theirs, os.getpid(), args, sticky, (number, count), ended),
            )  # fmt: skip
            worker.start()
            workers[ours] = worker
            theirs.close()
        # Not as an argument: who starts a process that ends before it reads them waits for ever.
        for ours in workers:
            with suppress(ConnectionError):  # it has ended, which _received reports
                ours.send_bytes(saved.getvalue())
        while waiting := [ours for ours in workers if ours not in scores]:
            ready = connection.wait(waiting)
            for ours in (ours for ours in waiting if ours in ready):
                received = _received(ours, workers[ours], count)
                if isinstance(received, tuple):
                    on_group(*received)
                else:
                    scores[ours] = received
    finally:
        for ours, worker in workers.items():
            worker.terminate()
            worker.join()
            ours.close()
    return np.concatenate([scores[ours] for ours in workers])


def _received(ours: Connection, worker: Any, count: int) -> Any:
    """What one of `count` processes has sent: a group or its share; raises an error that it sent.

    Raises:
        RuntimeError: it was killed.
    """
    try:
        received = ours.recv()
    except (EOFError, ConnectionError):
        worker.join()
        raise Failed(
            f"expected scores from each of {count} processes, but one ended without them (exit "
            f"status {worker.exitcode})"
        ) from None
    if isinstance(received, Exception):
        raise received
    return received


def _ended_before(args: Args, networks: str, device: torch.device, sticky: float) -> EndedGroups:
    """The groups of an evaluation that have ended, if it was stopped; `networks` names those."""
    decisive = ("episodes", "emulator", "noops", "seed", "greedy", "max_frames", "patches")
    what = {name: getattr(args, name) for name in decisive} | {
        "sticky": sticky, "device": device.type, "networks": networks, "version": COMMIT,
    }  # fmt: skip
    parts = in_parts(args.episodes, groups_of(args.episodes, device))
    return EndedGroups(args.run, what, {part.start: part.stop - part.start for part in parts})


def _scores(
    args: Args, policy: Policy, state: dict[str, Any], device: torch.device, sticky: float,
    ended: EndedGroups,
) -> np.ndarray:  # fmt: skip
    """The scores of all episodes, of which those are played that have not ended before."""
    groups = groups_of(args.episodes, device)
    count = min(args.num_processes, groups) if device.type == "cpu" else 1
    with tqdm(
        total=args.episodes, initial=ended.episodes, unit="episode",
        desc=f"{state['args']['game']}, sticky {sticky:g}", disable=not args.progress,
        file=sys.stderr, leave=False,
    ) as bar:  # fmt: skip
        if count == 1:
            return _share(
                policy, state, args, device, sticky, ended.scores, ended.add, on_ended=bar.update
            )

        def on_group(first: int, scores: np.ndarray) -> None:
            ended.add(first, scores)
            bar.update(len(scores))

        return _from_processes(state, args, sticky, count, ended.scores, on_group)


def evaluate(args: Args) -> list[dict[str, Any]]:
    """Evaluates a checkpoint; returns a row of results for each probability of sticky actions.

    If it was stopped or killed, the same evaluation goes on with the groups of episodes that had
    not ended.

    With several processes the program that calls this has to be safe to import, as multiprocessing
    has it of programs whose processes are spawned.

    Raises:
        RuntimeError: one of several processes was killed.
        ValueError: there is no checkpoint, or a setting is wrong.
    """
    within(1, MAX_EPISODES, args, "episodes")
    within(1, MOST, args, "max_frames")
    within(0, MAX_NOOPS, args, "noops")
    within(1, MAX_PROCESSES, args, "num_processes")
    within(0, MAX_THREADS, args, "num_threads")
    within(0, MAX_SEED, args, "seed")
    within(0, 1, args, "sticky")
    if args.patches and args.emulator != "cule":
        raise InvalidValue(
            f"expected the emulator cule for patches {', '.join(args.patches)}, got {args.emulator}"
        )
    device = find_device(args.device)
    policy, state = load_policy(args.run, device, args.program)
    trained = state["args"]
    patches_of(args.patches, find_game(trained["game"]))  # a wrong name is an error before all else
    rows, networks = [], digest_of(state)
    for sticky in args.sticky:
        ended = _ended_before(args, networks, device, sticky)
        scores = _scores(args, policy, state, device, sticky, ended)
        row = row_of(
            system=args.emulator, mode="evaluation", game=trained["game"], num_envs=args.episodes,
            fps=0.0, device=device,
            threads=args.num_threads, algorithm=state["algorithm"], seed=trained["seed"],
            frames=state["frames"],
            sticky=sticky, noops=args.noops, greedy=args.greedy, episodes=args.episodes,
            max_frames=args.max_frames, full_action_space=full_actions_of(state),
            eval_seed=args.seed, patches=list(args.patches), networks=networks,
            score=float(scores.mean()), score_deviation=float(scores.std()),
            score_min=float(scores.min()), score_max=float(scores.max()),
        )  # fmt: skip
        for rate in ("fps", "steps_per_second"):
            del row[rate]
        append_row(row, args.run / "evaluations.jsonl", args.results)
        ended.remove()
        score = f"{row['score']:.2f} +- {row['score_deviation']:.2f}"
        game = ", ".join((trained["game"], *args.patches))
        sys.stdout.write(f"{game}, sticky {sticky:g}: {score}, {args.episodes} episodes\n")
        rows.append(row)
    return rows
