"""Plays a trained policy on ale-py, not on cule, as the paper does, and prints the score.

    python -m examples.a2c_vtrace.evaluate runs/a2c_vtrace --episodes 100 --sticky 0 0.25

Each episode starts with up to 30 no-ops. All are played at the same time, one in each env, so that
long episodes count as much as short ones. Actions are sampled from the policy, unless --greedy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ale_py
import numpy as np
import torch
import tyro

from cule.device import find_device
from cule.rom import find_game
from examples.a2c_vtrace import checkpoint
from examples.a2c_vtrace.model import ActorCritic, sample
from examples.a2c_vtrace.world import World
from examples.common.checks import MAX_SEED, at_least, within
from examples.common.emulator import FRAMESKIP
from examples.common.program import run_program
from examples.common.results import append_row, row_of

NOOPS = 30
Policy = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class Evaluator:
    """Envs of ale-py on which policies are evaluated.

    Args:
        game: what to play.
        episodes: how many, each in an env of its own.
        device: where the policy is.
        sticky: probability that a frame repeats the last frame's action.
        max_frames: frames after which an episode is truncated.
        num_threads: ale-py's threads; 0: one for each core.

    Raises:
        ValueError: there is no such game.
    """

    def __init__(
        self,
        game: str,
        episodes: int,
        device: torch.device,
        *,
        sticky: float,
        max_frames: int,
        num_threads: int = 0,
    ):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.device, self.episodes = device, episodes
        self.env = ale_py.AtariVectorEnv(
            find_game(game).name, episodes, num_threads=num_threads, noop_max=NOOPS,
            reward_clipping=False,
            repeat_action_probability=sticky, max_num_frames_per_episode=max_frames,
            frameskip=FRAMESKIP,
        )  # fmt: skip

    @torch.no_grad()
    def scores(
        self,
        policy: Policy,
        seed: int,
        *,
        greedy: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> np.ndarray | None:
        """Plays an episode in every env.

        Args:
            policy: maps (n, 4, 84, 84) uint8 to a tuple, which begins with the log-probabilities
                (n, num_actions).
            seed: of the envs and of the actions, which have a random generator of their own.
            greedy: take the most probable action.
            stop: called before each step; True ends the evaluation.

        Returns:
            (episodes,) float64, the scores, of unclipped rewards; None if it was stopped.
        """
        generator = torch.Generator(self.device).manual_seed(seed)
        observations, _ = self.env.reset(seed=seed)
        scores, playing = np.zeros(self.episodes), np.ones(self.episodes, dtype=bool)
        while playing.any():
            if stop():
                return None
            log_probabilities, _ = policy(torch.from_numpy(observations).to(self.device))
            actions = (
                log_probabilities.argmax(dim=1) if greedy else sample(log_probabilities, generator)
            )
            observations, rewards, terminated, truncated, _ = self.env.step(actions.cpu().numpy())
            scores += np.where(playing, rewards, 0)
            playing &= ~(terminated | truncated)
        return scores

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


@dataclass
class Args:
    """Plays a trained policy on ale-py and reports mean and deviation of its score."""

    run: tyro.conf.Positional[Path]
    """the run folder that train.py wrote"""
    episodes: int = 100
    """number of episodes, for each probability of sticky actions"""
    sticky: tuple[float, ...] = (0.0, 0.25)
    """probabilities that a frame repeats the last frame's action; each is evaluated"""
    seed: int = 1_000_000
    """seed of the envs and the actions"""
    greedy: bool = False
    """take the most probable action instead of sampling one"""
    max_frames: int = 108_000
    """frames after which an episode is truncated"""
    device: str | None = None
    """where the policy computes; by default cuda if there is one"""
    num_threads: int = 0
    """ale-py's threads; 0: one for each core"""
    results: Path | None = None
    """file to which the results are appended, as JSON lines; the run's folder always gets them"""


def load_policy(run: Path, device: torch.device) -> tuple[ActorCritic, dict[str, Any]]:
    """The policy of a run's newest checkpoint, and the checkpoint's state.

    Raises:
        ValueError: there is no checkpoint, or all are damaged.
    """
    state = checkpoint.load(run / "checkpoints", World(0, 1, device))
    if state is None:
        raise ValueError(
            f"expected a run folder with checkpoints, as train.py writes it, got {run}"
        )
    weights = state["trainer"]["learner"]["model"]
    args = state["args"]
    policy = ActorCritic(len(weights["policy.weight"]), args["model"], args["width"]).to(device)
    policy.load_state_dict(weights)
    return policy.eval(), state


def evaluate(args: Args) -> list[dict[str, Any]]:
    """Does what the command line asks for; returns the rows.

    Raises:
        ValueError: there is no checkpoint, or a setting is wrong.
    """
    at_least(1, args, "episodes", "max_frames")
    at_least(0, args, "num_threads")
    within(0, MAX_SEED, args, "seed")
    within(0, 1, args, "sticky")
    device = find_device(args.device)
    policy, state = load_policy(args.run, device)
    trained = state["args"]
    rows = []
    for sticky in args.sticky:
        evaluator = Evaluator(
            trained["game"], args.episodes, device,
            sticky=sticky, max_frames=args.max_frames, num_threads=args.num_threads,
        )  # fmt: skip
        scores = evaluator.scores(policy, args.seed, greedy=args.greedy)
        evaluator.close()
        row = row_of(
            system="ale-py", mode="evaluation", game=trained["game"], num_envs=args.episodes,
            fps=0.0, device=device,
            threads=args.num_threads, algorithm=state["algorithm"], seed=trained["seed"],
            frames=state["frames"],
            sticky=sticky, noops=NOOPS, greedy=args.greedy, episodes=args.episodes,
            score=float(scores.mean()), score_deviation=float(scores.std()),
            score_min=float(scores.min()), score_max=float(scores.max()),
        )  # fmt: skip
        for rate in ("fps", "steps_per_second"):
            del row[rate]
        append_row(row, args.run / "evaluations.jsonl", args.results)
        score = f"{row['score']:.2f} +- {row['score_deviation']:.2f}"
        print(f"{trained['game']}, sticky {sticky:g}: {score}, {args.episodes} episodes")
        rows.append(row)
    return rows


def main() -> int:
    """Runs the evaluation; returns the exit status."""
    return run_program("examples.a2c_vtrace.evaluate", Args, evaluate)


if __name__ == "__main__":
    sys.exit(main())
