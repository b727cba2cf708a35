"""Makes the gallery's moving pictures: python docs/site/pictures.py FOLDER [GAME...] [--jobs N].

Each is what the best of some envs showed that played at random, pixel by pixel, at 60 frames a
second. Beside FOLDER/GAME.webp, FOLDER/GAME.json has what was measured: the lives at the start, the
screen's height, and the points and seconds of what is seen. A picture that is there already is not
made again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import torch
from PIL import Image
from tqdm import tqdm

import cule
from cule import _core
from cule.disk.files import replacing
from cule.rom import find_game

NUM_ENVS = 6
STEPS = 160
# Many programs draw some things in every second or fourth frame only. An odd number shows them all.
FRAMESKIP = 3
FRAMES_PER_SECOND = 60
# How likely an action is replaced by a random one in a step.
CHANGE = 0.2


def key(game: str) -> str:
    """What a picture depends on: the ROM, the emulator and this file."""
    texts = (find_game(game).md5, *_core.headers().values(), Path(__file__).read_text())
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def play(game: str) -> tuple[torch.Tensor, dict[str, float]]:
    """Plays at random.

    Returns:
        The screens of the env with the most points, uint8 (STEPS, height, 160, 3), and what was
        measured.
    """
    generator = torch.Generator().manual_seed(0)
    with closing(
        cule.AtariEnv(
            game, NUM_ENVS, device="cpu", num_threads=1, frameskip=FRAMESKIP, reset_pool_size=1
        )
    ) as env:
        _, info = env.reset(seed=0)
        lives = int(info["lives"][0])
        screens, points = [], torch.zeros(NUM_ENVS)
        actions = torch.zeros(NUM_ENVS, dtype=torch.int64)
        for _ in range(STEPS):
            others = torch.randint(env.single_action_space.n, (NUM_ENVS,), generator=generator)
            changed = torch.rand(NUM_ENVS, generator=generator) < CHANGE
            actions = torch.where(changed, others, actions)
            points += env.step(actions)[4]["raw_reward"]
            screens.append(env.get_screen_rgb())
    best = int(points.argmax())
    return torch.stack([screen[best] for screen in screens]), {
        "lives": lives,
        "height": screens[0].shape[1],
        "points": int(points[best]),
        "seconds": STEPS * FRAMESKIP / FRAMES_PER_SECOND,
    }


def write(screens: torch.Tensor, path: Path) -> None:
    """Writes screens, uint8 (steps, height, width, 3), as an animated WebP without loss."""
    first, *others = [Image.fromarray(screen.numpy()) for screen in screens]
    milliseconds = 1000 * FRAMESKIP // FRAMES_PER_SECOND
    first.save(path, save_all=True, append_images=others, duration=milliseconds, loop=0,
               lossless=True, quality=50, method=4)  # fmt: skip


def is_made(game: str, folder: Path) -> bool:
    """Whether a folder has a game's files as they would be made now."""
    facts, picture = (folder / f"{game}.{suffix}" for suffix in ("json", "webp"))
    return facts.exists() and picture.exists() and json.loads(facts.read_text())["key"] == key(game)


def make(game: str, folder: Path) -> None:
    """Writes a game's two files into a folder."""
    torch.set_num_threads(1)
    screens, measured = play(game)
    write(screens, folder / f"{game}.webp")
    # Last and whole, so that what was interrupted is made again.
    with replacing(folder / f"{game}.json") as file:
        file.write(json.dumps({"key": key(game), **measured}).encode())


def main() -> None:
    """Makes the pictures that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where they go")
    parser.add_argument("games", nargs="*", default=cule.list_games(), help="default: all games")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="how many at once (default: one for each CPU)")  # fmt: skip
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        made = [
            pool.submit(make, game, arguments.folder)
            for game in arguments.games
            if not is_made(game, arguments.folder)
        ]
        for one in tqdm(made, unit="picture"):
            one.result()


if __name__ == "__main__":
    main()
