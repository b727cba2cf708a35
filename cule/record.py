"""`python -m cule.record`: records games, played with random actions, to an .mp4 or .gif file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch
from tqdm import tqdm

from cule.devices.device import find_device
from cule.programs.command_line import Parser, number, run_main
from cule.rom import find_game
from cule.vector_env import AtariEnv
from cule.wrappers.recording import RecordVideo


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.record",
        description="Records a video of games that are played with random actions. Several "
        "consoles "
        "are shown side by side.",
        epilog="Example: python -m cule.record pong breakout --num-envs 4 --seconds 10 --output "
        "video.gif",
    )
    add = parser.add_argument
    add("games", nargs="+", metavar="GAME", help="games such as pong, ms_pacman or ALE/Pong-v5")
    add("--output", type=Path, default=Path("video.mp4"), metavar="FILE",
        help=".mp4 or .gif (default: video.mp4)")  # fmt: skip
    add("--seconds", type=number(float), default=10.0, metavar="S",
        help="length of the video (default: 10)")  # fmt: skip
    add("--num-envs", type=number(int), metavar="N",
        help="consoles, divided among the games (default: one each)")  # fmt: skip
    add("--frameskip", type=number(int), default=2, metavar="N",
        help="frames from one picture to the next, of 60 a second (default: 2)")  # fmt: skip
    add("--mode", type=number(int, 0), metavar="M",
        help="the games' mode (default: each game's own)")  # fmt: skip
    add("--difficulty", type=number(int, 0), metavar="D",
        help="the difficulty switches (default: 0)")  # fmt: skip
    add("--seed", type=number(int, 0), default=0, metavar="N",
        help="seed of the games and the actions (default: 0)")  # fmt: skip
    add("--device", metavar="D",
        help="cpu, cuda or cuda:1 (default: cuda if there is one, else cpu)")  # fmt: skip
    add("--mute", action="store_true",
        help="no sound (of several consoles, and in a .gif, there is none)")  # fmt: skip
    add("--quiet", action="store_true", help="no progress bar")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Records a video of the games of the command line.

    Raises:
        ImportError: imageio is not installed.
        ValueError: an argument is wrong.
    """
    options = vars(arguments)
    # Of an id only the game is meant, so that no warning has to say so.
    games = [find_game(name).name for name in options["games"]]
    frameskip = options["frameskip"]
    device = find_device(options["device"])
    env = AtariEnv(
        games if len(games) > 1 else games[0],
        options["num_envs"] or len(games),
        device,
        frameskip=frameskip,
        mode=options["mode"],
        difficulty=options["difficulty"],
        sound_obs=not options["mute"] and (options["num_envs"] or len(games)) == 1,
    )
    steps = max(1, round(options["seconds"] * env.metadata["render_fps"] / frameskip))
    generator = torch.Generator(device).manual_seed(options["seed"])
    actions = torch.zeros(env.num_envs, dtype=torch.int64, device=device)
    with closing(env), closing(RecordVideo(env, options["output"])) as video:
        video.reset(seed=options["seed"])
        for _ in tqdm(range(steps), unit="frame", disable=options["quiet"], file=sys.stderr):
            video.step(actions.random_(0, int(env.single_action_space.n), generator=generator))
    print(f"The video is in {options['output']}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Records the video; returns the exit status."""
    return run_main(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
