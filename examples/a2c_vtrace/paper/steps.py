"""FPS step by step, with resets and divergence: what figure 3 of the paper shows.

All envs begin with the same state, and random actions make them different. Lanes of a GPU's warp
that do the same at the same time are faster than lanes that do not.
"""

from __future__ import annotations

from typing import Any

import torch

import cule
from cule.bench.systems import distinct_share, timed
from cule.programs import results
from cule.rom import find_game
from cule.train.command import options_of

FRAMESKIP = 4
# A row has a number for so many steps together.
BIN = 10


def measure_steps(
    game: str, num_envs: int, steps: int, device: str, threads: int
) -> dict[str, Any]:
    """Plays at random from one state, and times each BIN steps.

    Args:
        game: which.
        num_envs: how many envs.
        steps: how many steps each plays, a multiple of BIN.
        device: where they are emulated.
        threads: CPU threads.

    Returns:
        The row: `fps`, `resets` (envs that began an episode) and `distinct_share` (of the contents
        of RAM, at the end) of each BIN steps.
    """
    place = torch.device(device)
    env = cule.AtariEnv(
        game, num_envs, device=place, num_threads=threads, frameskip=FRAMESKIP, noop_max=0,
        reset_pool_size=1,
    )  # fmt: skip
    try:
        env.wait_until_translated()
        generator = torch.Generator(place).manual_seed(0)
        actions = torch.zeros(num_envs, dtype=torch.int64, device=place)
        limit = int(env.single_action_space.n)
        resets, shares, seconds = [], [], []
        over = torch.zeros((), dtype=torch.int64, device=place)

        def play(count: int) -> None:
            for _ in range(count):
                actions.random_(0, limit, generator=generator)
                _, _, terminated, truncated, _ = env.step(actions)
                over.add_((terminated | truncated).sum())

        env.reset(seed=0)
        play(BIN)  # what is allocated at first use is not timed
        env.reset(seed=0)
        for _ in range(steps // BIN):
            over.zero_()
            seconds.append(timed(place, play, BIN))
            resets.append(int(over))
            shares.append(round(distinct_share(env), 4))
    finally:
        env.close()
    frames = BIN * num_envs * FRAMESKIP
    options = {"games": game, "num_envs": num_envs, "steps": steps, "num_threads": threads}
    words = ["python", "-m", "examples.a2c_vtrace.paper", "figure3", *options_of(options)]
    fps = frames * len(seconds) / sum(seconds)
    return {
        "commit": results.commit(), "date": results.now(), "system": "cule",
        "mode": "step-by-step", **results.machine(place, threads), "torch": torch.__version__,
        "game": find_game(game).name, "rom_md5": find_game(game).md5, "num_envs": num_envs,
        "num_threads": threads, "frameskip": FRAMESKIP, "fps": round(fps, 1),
        "steps_per_second": round(fps / FRAMESKIP, 1), "command": " ".join(words),
        "steps_in_bin": BIN, "bin_fps": [round(frames / took, 1) for took in seconds],
        "bin_resets": resets, "bin_distinct_share": shares,
    }  # fmt: skip
