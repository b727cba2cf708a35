"""`python -m cule.demo`: plays a dozen games at random, says how fast, and draws their screens."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import torch
from tqdm import tqdm

from cule.devices.device import find_device
from cule.disk.files import replacing
from cule.env.screens import mosaic
from cule.errors import InvalidValue
from cule.programs.command_line import Parser, check_output, number, run_main
from cule.rom import find_game
from cule.vector_env import AtariEnv

GAMES = (
    "pong", "breakout", "ms_pacman", "space_invaders", "seaquest", "montezuma_revenge",
    "qbert", "enduro", "pitfall2", "riverraid", "road_runner", "beam_rider",
)  # fmt: skip
COLUMNS = 4
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tiff")


def play(
    game: str, num_envs: int, steps: int, device: torch.device, bar: tqdm
) -> tuple[float, np.ndarray]:
    """Plays `steps` steps of random actions.

    Returns:
        Frames per second, and the first env's last frame, (height, 160, 3) uint8 RGB.
    """
    bar.set_description(f"{game:>17}")
    with closing(AtariEnv(game, num_envs, device=device)) as env:
        env.reset(seed=0)
        generator = torch.Generator(device).manual_seed(0)
        actions = torch.zeros(num_envs, dtype=torch.int64, device=device)
        frames = num_envs * steps * env.engine.options.frameskip
        begin = time.perf_counter()
        for _ in range(steps):
            env.step(actions.random_(0, env.single_action_space.n, generator=generator))
            bar.update()
        screen = env.get_screen_rgb()[0].cpu().numpy()  # .cpu() waits for the device
        return frames / (time.perf_counter() - begin), screen


def check_suffix(path: Path) -> None:
    """Checks that a picture can have this name.

    Raises:
        ValueError: it ends in none of SUFFIXES.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidValue(f"expected --output to end in one of {', '.join(SUFFIXES)}, got {path}")


def write_picture(path: Path, rgb: np.ndarray) -> None:
    """Writes an RGB picture, in the format that the end of its name says.

    Raises:
        OSError: the file cannot be written.
    """
    encoded = cv2.imencode(path.suffix.lower(), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))[1]
    with replacing(path) as file:
        file.write(encoded.tobytes())


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.demo",
        description="Plays some games with random actions, prints the frames per second, and "
        "writes "
        "a picture of the screens. FPS are emulated frames per second of all consoles together.",
    )
    add = parser.add_argument
    add("games", nargs="*", default=GAMES, metavar="GAME", help="which games (default: a dozen)")
    add(
        "--num-envs",
        type=number(int),
        default=16,
        metavar="N",
        help="consoles for each game (default: 16)",
    )
    add(
        "--steps",
        type=number(int),
        default=150,
        metavar="N",
        help="steps of four frames (default: 150)",
    )
    add("--device", help="cpu, cuda or cuda:1 (default: cuda if there is one, else cpu)")
    add("--output", type=Path, default=Path("demo.png"), metavar="FILE",
        help="a picture: .png, .jpg, .jpeg, .webp, .bmp or .tiff (default: demo.png)")  # fmt: skip
    add("--quiet", action="store_true", help="no progress bar")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Plays the games of the command line and writes a picture of them.

    Raises:
        OSError: the picture cannot be written.
        ValueError: an argument is wrong.
    """
    device = find_device(arguments.device)
    games = [find_game(name).name for name in arguments.games]
    check_suffix(arguments.output)
    check_output("--output", arguments.output)
    speeds, screens = [], []
    with tqdm(
        total=len(games) * arguments.steps, unit="step", disable=arguments.quiet, file=sys.stderr
    ) as bar:
        for game in games:
            fps, screen = play(game, arguments.num_envs, arguments.steps, device, bar)
            speeds.append(fps)
            screens.append(screen)
    print(f"{arguments.num_envs} consoles of each game on {device}, frames per second:")
    for game, fps in zip(games, speeds, strict=True):
        print(f"  {game:<20}{fps:>12,.0f}")
    print(f"  {'median':<20}{np.median(speeds):>12,.0f}")
    write_picture(arguments.output, mosaic(screens, titles=games, columns=min(COLUMNS, len(games))))
    print(f"The screens are in {arguments.output}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; returns the exit status."""
    return run_main(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
