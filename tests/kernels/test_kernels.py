"""The CUDA backend's kernels on the simulated GPU: each bit equals the CPU backend's.

The CPU backend does all work for an env in one thread. The kernels divide it among threads, blocks
and passes. If one of them lacks a barrier or reads the wrong place, memory differs with some seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pairs import DISABLED, NEXT_STEP, SAME_STEP, Pair, some_options
from simulated import SimulatedGpu

from cule.console import Options
from cule.env.patches import Patches
from cule.facts.patches import Patch
from cule.rom import games
from tests.support.marks import few

# A simple game; two that read collisions all the time; PAL; pictures that are cut off; a DPC.
GAMES = ("pong", "freeway", "seaquest", "air_raid", "tic_tac_toe_3d", "pitfall2")


@pytest.mark.parametrize(("autoreset", "seed"), [(NEXT_STEP, 0), (SAME_STEP, 1), (DISABLED, 2)])
def test_warps_that_wait_for_nobody(library: Path, autoreset: int, seed: int) -> None:
    """Masks, seeds and autoreset modes. Envs need more than two blocks, and not all of a warp."""
    pair = Pair(SimulatedGpu(library, seed=seed), GAMES, 43, some_options(autoreset=autoreset))
    pair.reset(None, torch.arange(43))
    for number in range(14):
        pair.step()
        if autoreset == DISABLED:
            ended = pair.cpu.tensors["terminated"] | pair.cpu.tensors["truncated"]
            others = (torch.arange(43) % 5 == number).to(torch.uint8)  # so that not all end at once
            pair.reset(ended | others, torch.where(torch.arange(43) % 2 == 0, number, -1))
    assert pair.endings > 43


@pytest.mark.parametrize(("num_envs", "seed"), few([(269, 0), (141, 1)], [(141, 1)]))
def test_warps_in_step(library: Path, num_envs: int, seed: int) -> None:
    """Two multiprocessors play in step, with several warps each, the last of which is not full."""
    pair = Pair(
        SimulatedGpu(library, seed=seed),
        GAMES,
        num_envs,
        some_options(autoreset=SAME_STEP, max_frames=10),
    )
    assert pair.gpu.backend.plays_in_step(128) and not pair.gpu.backend.plays_in_step(12)
    pair.reset(None, torch.arange(num_envs))
    for _ in range(3):
        pair.step()
    assert pair.endings >= num_envs


def test_warps_in_step_whose_lanes_have_diverged(library: Path) -> None:
    """Warps wait for each other, but not forever, also if lanes diverge at random."""
    pair = Pair(
        SimulatedGpu(library, seed=1, together=False), ("pong", "pitfall2"), 141, some_options()
    )
    pair.reset(None, torch.arange(141))
    for _ in range(3):
        pair.step()


@pytest.mark.parametrize("seed", [0, 1])
def test_warps_in_step_whose_frames_are_of_different_lengths(library: Path, seed: int) -> None:
    """In each of several warps, lanes that wait together are at different scanlines."""
    names = ("air_raid", "pong", "journey_escape") * 12
    pair = Pair(SimulatedGpu(library, seed=seed), names, 141, some_options())
    pair.reset(None, torch.arange(141))
    for _ in range(2):
        pair.step()


@pytest.mark.parametrize(
    ("num_players", "names"),
    [(2, ("pong", "wizard_of_wor", "ice_hockey", "surround", "tennis")), (4, ("pong",))],
)
@pytest.mark.parametrize("autoreset", [NEXT_STEP, SAME_STEP])
def test_several_players(
    library: Path, num_players: int, names: tuple[str, ...], autoreset: int
) -> None:
    """Rewards and lives of each player, episodes that end, and resets that report lives."""
    pair = Pair(
        SimulatedGpu(library, seed=4), names, 35, some_options(autoreset=autoreset),
        num_players=num_players,
    )  # fmt: skip
    pair.reset(None, torch.arange(35))
    assert pair.cpu.tensors["lives"].shape == (35, num_players)
    for _ in range(9):
        pair.step()
    assert pair.endings >= 35


@pytest.mark.parametrize("num_envs", [9, 141])
def test_reserved_multiprocessors(library: Path, num_envs: int) -> None:
    """One multiprocessor plays all envs, in a block of the largest size, in step or not."""
    pair = Pair(
        SimulatedGpu(library, seed=3),
        ("pong", "ms_pacman"),
        num_envs,
        some_options(),
        multiprocessors=1,
    )
    pair.reset(None, torch.arange(num_envs))
    for _ in range(3):
        pair.step()


@pytest.mark.parametrize("autoreset", [NEXT_STEP, SAME_STEP])
def test_episodes_whose_start_is_emulated(library: Path, autoreset: int) -> None:
    """Adventure needs numbers of ale-py's generator for its mode."""
    options = some_options(autoreset=autoreset, reset_pool_size=0, max_frames=8)
    pair = Pair(SimulatedGpu(library, seed=1), ("pong", "adventure", "pitfall2"), 5, options)
    pair.reset(None, torch.arange(5))
    for _ in range(4):
        pair.step()
    assert pair.endings >= 5
    pair.reset(
        torch.tensor([0, 1, 0, 1, 1], dtype=torch.uint8), torch.tensor([-1, 7, -1, -1, 2**40])
    )
    pair.step()


@pytest.mark.parametrize(
    "shape",
    [
        (84, 84, 1),
        (30, 17, 1),
        (42, 40, 1),
        (210, 160, 1),
        (1, 1, 3),
        (84, 83, 3),
        (105, 80, 3),
        (250, 180, 3),
        (300, 200, 1),
    ],
    ids=str,
)
def test_observations_of_any_size(library: Path, shape: tuple[int, int, int]) -> None:
    """Copies, shrinks by whole numbers and by others, enlarges, in grey and color; rows and frames
    have any number of bytes."""
    height, width, channels = shape
    sizes = {"observation_height": height, "observation_width": width, "channels": channels}
    options = some_options(**sizes, stack=3, autoreset=SAME_STEP, max_frames=10)
    pair = Pair(
        SimulatedGpu(library, seed=1), ("ms_pacman", "air_raid", "tic_tac_toe_3d"), 5, options
    )
    pair.reset(None, torch.arange(5))
    for _ in range(4):
        pair.step()
    assert pair.endings >= 5


OTHER_STARTS = [
    (1, NEXT_STEP, 0), (1, NEXT_STEP, 2), (1, SAME_STEP, 0),
    (2, NEXT_STEP, 0), (2, SAME_STEP, 0), (2, SAME_STEP, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("episode_start", "autoreset", "pool"),
    [
        (1, SAME_STEP, 2), (2, NEXT_STEP, 2), (3, NEXT_STEP, 2),
        *(pytest.param(*others, marks=pytest.mark.slow) for others in OTHER_STARTS),
    ],
)  # fmt: skip
def test_lives_that_start_with_fire(
    library: Path, episode_start: int, autoreset: int, pool: int
) -> None:
    """Enough play that lives are lost in Breakout."""
    options = some_options(
        autoreset=autoreset, reset_pool_size=pool, max_frames=4000, episode_start=episode_start,
        life_loss_info=True, frameskip=9, fire_reset=True,
    )  # fmt: skip
    pair = Pair(SimulatedGpu(library, seed=1), ("breakout", "ms_pacman"), 4, options)
    pair.reset(None, torch.arange(4))
    for _ in range(30):
        pair.step()
    assert pair.endings >= 2


@pytest.mark.parametrize(
    "changes",
    [
        {"frameskip": 1}, {"frameskip": 2, "maxpool": False}, {"frameskip": 5, "stack": 1},
        {"episodic_life": True, "max_frames": 1000}, {"life_loss_info": True, "max_frames": 1000},
        {"action_space": "all", "reward_clipping": False, "fire_reset": False},
        {"episode_start": 1}, {"episode_start": 2},
    ],
    ids=str,
)  # fmt: skip
def test_options(library: Path, changes: dict[str, Any]) -> None:
    pair = Pair(
        SimulatedGpu(library, seed=1), ("breakout", "tic_tac_toe_3d"), 7, some_options(**changes)
    )
    pair.reset(None, torch.arange(7))
    for _ in range(8):
        pair.step()


def over_endings(
    library: Path,
    options: Options,
    games: tuple[str, ...] = ("asteroids", "freeway", "montezuma_revenge", "pitfall2"),
) -> Iterator[dict[str, torch.Tensor]]:
    """Plays games until episodes of all have ended; yields the CPU's tensors after each step."""
    pair = Pair(SimulatedGpu(library, seed=3), games, 7, options)
    pair.reset(None, torch.arange(7))
    for _ in range(48 // options.frameskip):
        pair.step()
        yield pair.cpu.tensors
    assert pair.endings >= 7


@pytest.mark.parametrize(
    ("autoreset", "changes"),
    [
        (NEXT_STEP, {}),
        (SAME_STEP, {}),
        (SAME_STEP, {"reset_pool_size": 0, "frameskip": 8, "noop_max": 2}),
    ],
)
def test_sound(library: Path, autoreset: int, changes: dict[str, Any]) -> None:
    """Over ends of episodes, with start states and with emulated starts; of the memory that is
    compared, it is the samples, the channels, and what each frame has left in the registers."""
    options = some_options(autoreset=autoreset, sound=True, **changes)
    steps = over_endings(library, options)
    assert sum(int((one["sounds"] > 128).any(-1).sum()) for one in steps) > 100


@pytest.mark.parametrize(
    ("autoreset", "changes"),
    [
        (NEXT_STEP, {}),
        (SAME_STEP, {"frameskip": 1}),
        (SAME_STEP, {"reset_pool_size": 0, "frameskip": 8, "noop_max": 2}),
    ],
)
def test_objects(library: Path, autoreset: int, changes: dict[str, Any]) -> None:
    """Over ends of episodes, with start states and with emulated starts: the boxes of two frames,
    and the list of objects, which has some that RAM says (visible is 4)."""
    options = some_options(autoreset=autoreset, objects=True, **changes)
    games = ("asteroids", "yars_revenge", "montezuma_revenge", "pitfall2", "riverraid", "skiing")
    steps = [one["objects"][..., -1].clone() for one in over_endings(library, options, games)]
    for visible in (3, 4):
        assert sum(int((one == visible).sum()) for one in steps) > 100


def test_patches(library: Path) -> None:
    """Each env has its own, and gets others in the middle."""
    pair = Pair(SimulatedGpu(library, seed=1), ("pong", "seaquest"), 6, some_options())
    rng = np.random.default_rng(0)

    def patch() -> None:
        for env in range(6):
            own = [
                Patch(*map(int, rng.integers(0, 128, 4)), when=(int(rng.integers(128)), 0, 99),
                      every=int(rng.integers(1, 5)))
                for _ in range(env)
            ]  # fmt: skip
            for engine in pair.engines:
                Patches(engine).set(own, torch.tensor([env]))

    patch()
    pair.reset(None, torch.arange(6))
    for step in range(8):
        if step == 4:
            patch()
        pair.step()


@pytest.mark.slow
@pytest.mark.parametrize("game", [game.name for game in games()])
def test_every_game(library: Path, game: str) -> None:
    pair = Pair(SimulatedGpu(library, seed=1), [game], 3, some_options(max_frames=100))
    pair.reset(None, torch.arange(3))
    for _ in range(40):
        pair.step()
    assert pair.endings >= 3


@pytest.mark.slow
def test_every_game_in_one_batch(library: Path) -> None:
    names = [game.name for game in games()]
    num_envs = 2 * len(names)
    options = some_options(max_frames=50, autoreset=SAME_STEP, action_space="all")
    pair = Pair(SimulatedGpu(library, seed=2), names, num_envs, options)
    assert num_envs > 128  # so that they play in step
    pair.reset(None, torch.arange(num_envs))
    for _ in range(20):
        pair.step()
    assert pair.endings >= num_envs
