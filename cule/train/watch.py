"""Records a video of a trained policy: a run's newest checkpoint plays on cule.

    python -m cule.train.watch runs/pong --output pong.mp4

It also prints the scores. Each episode starts with up to 30 no-ops. Several are played at the same
time, each in an env of its own, and shown side by side. To measure a policy, use
cule.train.evaluate, which plays on ale-py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from tqdm import tqdm

import cule
from cule.devices.device import MAX_THREADS, compute_with, find_device
from cule.train.checks import MAX_SEED, at_least, within
from cule.train.command import run_program
from cule.train.envs.emulator import FRAMESKIP
from cule.train.evaluate.policies import full_actions_of, load_policy
from cule.train.evaluate.policy import Policy
from cule.train.nn.models import sample


@dataclass
class Args:
    """Records a video of a trained policy and prints its scores."""

    run: tyro.conf.Positional[Path]
    """the run folder that training wrote"""
    output: Path = Path("video.mp4")
    """the video, .mp4 or .gif"""
    episodes: int = 1
    """number of episodes, shown side by side; the video ends with the longest"""
    sticky: float = 0.0
    """probability that a frame repeats the last frame's action"""
    greedy: bool = False
    """take the most probable action instead of sampling one"""
    seed: int = 0
    """seed of the envs and the actions"""
    max_frames: int = 18_000
    """frames after which an episode is truncated; 3,600 are a minute"""
    device: str | None = None
    """where the policy computes and the game is emulated; by default cuda if there is one"""
    num_threads: int = 0
    """CPU threads of the emulator and of torch; 0: as in training"""
    progress: bool = True
    """show a progress bar"""
    program: tuple[str, ...] = ()
    """modules or scripts that have the algorithm's code, as evaluate has it"""
    patches: tuple[str, ...] = ()
    """modifications of the game, by the names that cule.modifications lists"""


@torch.no_grad()
def play(policy: Policy, env: cule.RecordVideo, args: Args) -> list[float]:
    """Plays an episode in every env; returns the scores, of unclipped rewards."""
    device = env.atari.device
    generator = torch.Generator(device).manual_seed(args.seed)
    observations, _ = env.reset(seed=args.seed)
    scores = torch.zeros(env.num_envs, dtype=torch.float64, device=device)
    episodes = policy.begin(env.num_envs, device)
    playing = torch.ones(env.num_envs, dtype=torch.bool, device=device)
    # An episode that ends sooner leaves the rest of the bar empty.
    most = -(-args.max_frames // FRAMESKIP)
    with tqdm(total=most, unit="step", disable=not args.progress, file=sys.stderr) as bar:
        while playing.any():
            chances = episodes.scores(observations)
            actions = chances.argmax(dim=1) if args.greedy else sample(chances, generator)
            observations, _, terminated, truncated, info = env.step(actions)
            scores += info["raw_reward"] * playing
            playing &= ~(terminated | truncated)
            bar.update()
            bar.set_postfix_str(f"{int(playing.sum())} of {len(scores)} episodes go on", False)
    return scores.tolist()


def watch(args: Args) -> list[float]:
    """Records a video of a checkpoint's policy; returns the scores of its episodes.

    Raises:
        ImportError: imageio is not installed.
        ValueError: there is no checkpoint, a setting is wrong, or the video cannot be written.
    """
    at_least(1, args, "episodes", "max_frames")
    within(0, MAX_THREADS, args, "num_threads")
    within(0, MAX_SEED, args, "seed")
    within(0, 1, args, "sticky")
    device = find_device(args.device)
    compute_with(args.num_threads)
    policy, state = load_policy(args.run, device, args.program)
    trained = state["args"]
    game = trained["game"]
    env = cule.AtariEnv(
        game, args.episodes, device, frameskip=FRAMESKIP, repeat_action_probability=args.sticky,
        max_num_frames_per_episode=args.max_frames,
        full_action_space=full_actions_of(state), num_threads=args.num_threads,
        patches=args.patches,
    )  # fmt: skip
    with closing(env), closing(cule.RecordVideo(env, args.output)) as video:
        scores = play(policy, video, args)
    shown = ", ".join(f"{score:g}" for score in scores)
    sys.stdout.write(
        f"{', '.join((game, *args.patches))}, {state['algorithm']} after {state['frames']:,} "
        f"frames: score {shown}\n"
        f"The video is in {args.output}.\n"
    )
    return scores


def main(argv: Sequence[str] | None = None) -> int:
    """Records the video; returns the exit status."""
    return run_program("python -m cule.train.watch", Args, watch, argv)


if __name__ == "__main__":
    sys.exit(main())
