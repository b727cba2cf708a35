"""Plays some steps on a simulated GPU with sanitizers. test_sanitized.py starts this program.

    python sanitized_steps.py LIBRARY [planted]

With `planted` the kernels get a tensor that is too short.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from pairs import SAME_STEP, Pair, some_options
from simulated import SimulatedGpu

GAMES = ("pong", "seaquest", "tic_tac_toe_3d", "pitfall2")
# Few envs and color; emulated starts; so many envs that warps play in step.
RUNS = [
    (7, {"observation_width": 170, "channels": 3}),
    (5, {"reset_pool_size": 0, "max_frames": 8}),
    (137, {"max_frames": 8}),
]


def main(library: str, *words: str) -> None:
    torch.set_num_threads(1)
    gpu = SimulatedGpu(Path(library), seed=1)
    for num_envs, changes in RUNS:
        pair = Pair(gpu, GAMES, num_envs, some_options(autoreset=SAME_STEP, **changes))
        if "planted" in words:
            pair.gpu.memory.place("lives", torch.zeros(num_envs - 1, dtype=torch.int32))
        pair.reset(None, torch.arange(num_envs))
        for _ in range(3):
            pair.step()
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
