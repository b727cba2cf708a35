"""`python -m cule.play`: a game in a window, played with the keyboard.

Without a display it records a video of random play.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from cule import _core, record
from cule.env.window import INVISIBLE_DRIVERS
from cule.errors import MissingPackage
from cule.facts.actions import ACTIONS, action_number
from cule.programs.command_line import Parser, number, run_main
from cule.rom import find_game
from cule.vector_env import AtariEnv
from cule.wrappers.soundtrack import SAMPLE_RATE, audible

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
KEYS = "Arrow keys move, space fires, R restarts, Esc quits."


class NoWindowError(Exception):
    """No window can be opened; the message is why."""


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.play",
        description=f"Opens a game in a window. {KEYS} "
        "Without a display, or with --output, it records a video of random play instead.",
        epilog="Example: python -m cule.play breakout --scale 4",
    )
    add = parser.add_argument
    add("game", metavar="GAME", help="a game such as pong, ms_pacman or ALE/Pong-v5")
    add("--scale", type=number(int), default=3, metavar="N", help="size of the window (default: 3)")
    add(
        "--speed",
        type=number(float),
        default=1.0,
        metavar="X",
        help="1 is a console's, 60 frames a second (default: 1)",
    )
    add("--mode", type=number(int, 0), metavar="M", help="the game's mode (default: its own)")
    add(
        "--difficulty",
        type=number(int, 0),
        metavar="D",
        help="the difficulty switches (default: 0)",
    )
    add("--seed", type=number(int, 0), default=0, metavar="N", help="which start (default: 0)")
    add("--output", type=Path, metavar="FILE",
        help="record random play to this .mp4 or .gif (default without a display: "
        "GAME.mp4)")  # fmt: skip
    add("--seconds", type=number(float), default=10.0, metavar="S",
        help="length of a video (default: 10)")  # fmt: skip
    add("--mute", action="store_true", help="no sound")
    add("--quiet", action="store_true", help="no progress bar")
    return parser


def open_window(width: int, height: int) -> Any:
    """Opens a window of so many pixels.

    Raises:
        ImportError: pygame is not installed.
        NoWindowError: no display can show it.
    """
    named = [f"{name}={os.environ[name]}" for name in DISPLAY_VARIABLES if os.environ.get(name)]
    if not named:
        raise NoWindowError("There is no display here")
    if importlib.util.find_spec("pygame") is None:
        raise MissingPackage(
            "a window needs pygame: pip install pygame; or name a video with --output"
        )
    import pygame

    try:
        window = pygame.display.set_mode((width, height))
    except pygame.error as problem:
        raise NoWindowError(f"The display takes no window ({problem})") from problem
    # If SDL cannot reach the display, it uses one of these drivers without an error.
    if (driver := pygame.display.get_driver()) in INVISIBLE_DRIVERS:
        pygame.display.quit()
        raise NoWindowError(
            f"No window can be seen here ({' '.join(named)}: SDL's video driver is {driver!r})"
        )
    return window


def action_of_keys(keys: Any, pygame: Any, offered: Sequence[str]) -> int:
    """The index in `offered` of the action that the pressed keys mean.

    Two games offer no action with the button.
    """
    horizontal = int(keys[pygame.K_RIGHT]) - int(keys[pygame.K_LEFT])
    vertical = int(keys[pygame.K_UP]) - int(keys[pygame.K_DOWN])
    fire = bool(keys[pygame.K_SPACE]) and "FIRE" in offered
    return offered.index(ACTIONS[action_number(horizontal, vertical, fire)])


class Speaker:
    """Plays the console's sound by pygame's mixer, as far as there is a device for it.

    Args:
        speed: how many times as fast as a console.
        muted: whether it is silent.
    """

    # A sound that waits is begun when the one before it ends: so each has some frames.
    FRAMES = 4

    def __init__(self, speed: float, muted: bool):
        import pygame

        self._channel: Any = None
        self._waiting: list[np.ndarray] = []
        if muted:
            return
        try:
            pygame.mixer.init(
                round(SAMPLE_RATE * speed), 8, 1, _core.FRAME_SAMPLES, allowedchanges=0
            )
        except pygame.error as problem:
            print(f"There is no sound: {problem}.")
            return
        self._pygame, self._channel = pygame, pygame.mixer.Channel(0)

    def hear(self, samples: np.ndarray) -> None:
        """Adds a frame's samples, (512,) uint8. Leaves out what would make it late."""
        if self._channel is None:
            return
        self._waiting.append(samples)
        if len(self._waiting) < self.FRAMES or self._channel.get_queue() is not None:
            del self._waiting[: -2 * self.FRAMES]
            return
        together, self._waiting = np.concatenate(self._waiting), []
        self._channel.queue(self._pygame.mixer.Sound(buffer=audible(together)))


def play_in_window(env: AtariEnv, options: argparse.Namespace) -> None:
    """Plays until the window is closed; prints the keys, and the score of each game.

    Raises:
        ImportError: pygame is not installed.
        NoWindowError: there is no display.
    """
    env.reset(seed=options.seed)
    height = env.get_screen().shape[1]
    window = open_window(320 * options.scale, height * options.scale)
    import pygame

    print(KEYS)
    try:
        picture = pygame.Surface((320, height))
        clock, score = pygame.time.Clock(), 0
        speaker = Speaker(options.speed, options.mute)
        while True:
            for event in pygame.event.get():
                if event.type == pygame.QUIT or (
                    event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE
                ):
                    print(f"Stopped at {score} points.")
                    return
                if event.type == pygame.KEYDOWN and event.key == pygame.K_r:
                    print(f"Restarted at {score} points.")
                    env.reset()
                    score = 0
            action = action_of_keys(pygame.key.get_pressed(), pygame, env.action_meanings)
            observations, _, terminated, truncated, info = env.step([action])
            speaker.hear(observations["sound"][0].numpy())
            score += int(info["raw_reward"][0])
            pygame.display.set_caption(
                f"{env.games[0].name}  score {score}  lives {int(info['lives'][0])}"
            )
            if terminated[0] or truncated[0]:
                print(f"Game over: {score} points.")
                score = 0
            pygame.surfarray.blit_array(picture, env.render().swapaxes(0, 1))
            pygame.transform.scale(picture, window.get_size(), window)
            pygame.display.flip()
            clock.tick(60 * options.speed)
    finally:
        pygame.mixer.quit()
        pygame.display.quit()


def run(options: argparse.Namespace) -> None:
    """Opens a window and plays the game of the command line.

    Raises:
        ImportError: pygame, or imageio for a video, is not installed.
        ValueError: an argument is wrong.
    """
    env = AtariEnv(
        find_game(options.game).name,
        device="cpu",
        frameskip=1,
        full_action_space=True,
        mode=options.mode,
        difficulty=options.difficulty,
        reset_pool_size=1,
        sound_obs=True,
    )
    with closing(env):
        if options.output is None:
            try:
                play_in_window(env, options)
                return
            except NoWindowError as reason:
                print(f"{reason}: recording a video of random play instead.")
    output = options.output or Path(f"{env.games[0].name}.mp4")
    words = [
        env.games[0].name,
        "--output",
        str(output),
        "--seconds",
        str(options.seconds),
        "--seed",
        str(options.seed),
    ]
    for name in ("mode", "difficulty"):
        if getattr(options, name) is not None:
            words += [f"--{name}", str(getattr(options, name))]
    words += ["--device", "cpu"] + ["--quiet"] * options.quiet + ["--mute"] * options.mute
    record.run(record.make_parser().parse_args(words))


def main(argv: Sequence[str] | None = None) -> int:
    """Plays; returns the exit status."""
    return run_main(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
