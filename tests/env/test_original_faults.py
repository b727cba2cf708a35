"""Faults of the original CuLE, which would have failed each of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from rollouts import actions_of, digest, make, same

import cule
from cule.facts.palette import grey_palette, rgb_palette
from tests.support.programs import program_in_place_of

DRAW_STICKY_ACTIONS, DRAW_RESET_STATE = 0, 1
NOOP = 0


def draw(seed: int, env_id: int, purpose: int, counter: int) -> tuple[int, ...]:
    """The four words of csrc/common/random.h for a seed, env, purpose and counter: Philox4x32-10
    (Salmon et al., SC 2011)."""
    word = 2**32 - 1
    a, b, c, d = purpose, counter, env_id, 0
    key = [seed & word, seed >> 32]
    for _ in range(10):
        product_a, product_c = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (
            product_c >> 32 ^ b ^ key[0],
            product_c & word,
            product_a >> 32 ^ d ^ key[1],
            product_a & word,
        )
        key = [key[0] + 0x9E3779B9 & word, key[1] + 0xBB67AE85 & word]
    return a, b, c, d


def sticks(word: int, probability: float) -> bool:
    """Whether a frame repeats the action, computed in single precision."""
    return bool(np.float32((word >> 8) / 2**24) < np.float32(probability))


# Options that were taken and ignored --------------------------------------------------------------


@pytest.mark.parametrize("probability", [0.25, 0.7])
def test_sticky_actions_are_those_that_were_drawn(probability: float, device: str) -> None:
    """An env without sticky actions plays the same if it gets the actions that the random
    numbers choose, for both players."""
    seed, count, frames = 11, 5, 100
    options: dict[str, Any] = {"frameskip": 1, "reset_pool_size": 3, "use_fire_reset": False}
    sticky = make("pong", count, device, repeat_action_probability=probability, **options)
    told = make("pong", count, device, **options)
    free = make("pong", count, device, **options)
    for env in (sticky, told, free):
        env.reset(seed=seed)
    actions, actions_b = actions_of(sticky, frames), actions_of(sticky, frames, seed=1)
    held = torch.full((2, count), NOOP)
    for frame in range(frames):
        for i in range(count):
            words = draw(seed + i, i, DRAW_STICKY_ACTIONS, frame)
            for player, chosen in enumerate((actions, actions_b)):
                if not sticks(words[player], probability):
                    held[player, i] = chosen[frame, i]
        played, played_b = held.to(told.device)
        ours = sticky.step(actions[frame], player_b_actions=actions_b[frame])[0]
        assert torch.equal(ours, told.step(played, player_b_actions=played_b)[0]), frame
        assert torch.equal(sticky.get_ram(), told.get_ram()), frame
        free.step(actions[frame], player_b_actions=actions_b[frame])
    assert not torch.equal(sticky.get_ram(), free.get_ram())


@pytest.mark.parametrize(("mode", "ends"), [("NextStep", [10, 21, 32]), ("SameStep", [10, 20, 30])])
def test_episode_limit_ends_episodes(mode: str, ends: list[int], device: str) -> None:
    """An episode of 37 frames has nine steps of four frames and one of a single frame.

    In NEXT_STEP one more step resets.
    """
    env = make("pong", 3, device, autoreset_mode=mode, max_num_frames_per_episode=37, noop_max=10)
    info = env.reset(seed=0)[1]
    begun = info["episode_frame_number"].clone()
    total = info["frame_number"].clone()
    for step, row in enumerate(actions_of(env, 33), 1):
        _, _, terminated, truncated, info = env.step(row)
        ended = step in ends
        assert truncated.tolist() == [ended] * 3, step
        assert not terminated.any()
        if mode == "NextStep":
            if step - 1 in ends:
                begun, total = info["episode_frame_number"].clone(), info["frame_number"].clone()
            played = 37 if ended else 4 * (step % 11)
            assert torch.equal(
                info["episode_frame_number"] - begun, torch.full_like(begun, played)
            ), step
            assert torch.equal(info["frame_number"] - total, torch.full_like(total, played)), step


# Resets and seeds ---------------------------------------------------------------------------------


def test_reset_starts_from_the_state_that_its_seed_draws(device: str) -> None:
    """The pool's state depends on seed, env and the number of resets since the seed was set.

    All 64 bits of a seed count.
    """
    size, count = 6, 7
    env = make("space_invaders", count, device, reset_pool_size=size)
    pool = env.engine.tensors["pool_ram"].view(size, 128)
    assert len(pool.unique(dim=0)) == size

    def expect(seeds: list[int], resets: list[int]) -> None:
        words = [
            draw(seed, i, DRAW_RESET_STATE, k)[0]
            for i, (seed, k) in enumerate(zip(seeds, resets, strict=True))
        ]
        slots = [word * size >> 32 for word in words]
        assert torch.equal(env.get_ram(), pool[slots]), (seeds, resets, slots)

    seeds = [3, 3, 900, 5, 2**32 + 5, 2**62, 0]
    env.reset(seed=seeds)
    expect(seeds, [0] * count)
    env.reset()
    expect(seeds, [1] * count)
    mask = np.array([False, True, False, False, True, False, True])
    seeds[1], seeds[4], seeds[6] = 77, 78, 2**40
    env.reset(seed=[77, 78, 2**40], options={"reset_mask": mask})
    expect(seeds, [1, 0, 1, 1, 0, 1, 0])
    env.reset(seed=20)
    expect(list(range(20, 20 + count)), [0] * count)


def test_emulated_resets_of_one_seed_are_alike(device: str) -> None:
    env = make("space_invaders", 4, device, reset_pool_size=0)
    env.reset(seed=[5, 6, 5, 6])
    rows = actions_of(env, 10)
    for row in rows:
        obs = env.step(row[:1].expand(4))[0]
    for seen in (env.get_ram(), env.get_screen(), obs):
        assert torch.equal(seen[:2], seen[2:])
        assert not torch.equal(seen[0], seen[1])
    env.reset(seed=[6, 5], options={"reset_mask": np.array([True, True, False, False])})
    for row in rows:
        env.step(row[:1].expand(4))
    kept = env.get_ram().clone()
    env.reset(seed=[5, 6], options={"reset_mask": np.array([False, False, True, True])})
    for row in rows:
        env.step(row[:1].expand(4))
    assert torch.equal(env.get_ram()[[2, 3]], kept[[1, 0]])


# States -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["pong", "freeway", "seaquest", "riverraid", "pitfall2"])
def test_states_put_back_in_another_order_keep_ram_and_objects_together(
    game: str, device: str
) -> None:
    """RAM and screens can be compared at once; the TIA's objects and collisions are visible only
    in the next frames."""
    env, twin = (make(game, 5, device) for _ in range(2))
    for one in (env, twin):
        one.reset(seed=1)
        digest(one, actions_of(one, 12))
    ram, screen = env.get_ram().clone(), env.get_screen().clone()
    assert len(ram.unique(dim=0)) == 5
    state = env.clone_state([4, 3, 2, 1, 0])
    digest(env, actions_of(env, 7, seed=3))
    env.restore_state(state)
    assert torch.equal(env.get_ram(), ram.flip(0))
    assert torch.equal(env.get_screen(), screen.flip(0))
    for row in actions_of(env, 15, seed=2):
        ours, theirs = env.step(row.flip(0)), twin.step(row)
        for mine, its in zip(ours[:4], theirs[:4], strict=True):
            assert torch.equal(mine, its.flip(0))
        assert torch.equal(env.get_ram(), twin.get_ram().flip(0))
        assert torch.equal(env.get_screen(), twin.get_screen().flip(0))
        assert not (ours[2] | ours[3]).any()  # a reset would draw by env


# Observations -------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("grayscale", [True, False])
def test_resize_is_exact_for_envs_far_out(grayscale: bool) -> None:
    """From the 2,378th env on, a pixel's number is above 2^24, where single precision skips
    integers. This batch has three times as many envs."""
    options: dict[str, Any] = {"reset_pool_size": 1, "grayscale": grayscale}
    env = make("ms_pacman", 7_200, "cuda", **options)
    alone = make("ms_pacman", 1, "cpu", **options)
    for one in (env, alone):
        one.reset(seed=0)
    for action in actions_of(alone, 12):
        obs = env.step(action.to("cuda").expand(env.num_envs))[0]
        expected = alone.step(action)[0]
        assert torch.equal(obs[0].cpu(), expected[0])
        assert (obs == obs[:1]).all()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("game", ["space_invaders", "ms_pacman"])
def test_first_observation_of_an_episode_has_nothing_of_the_last_one(
    game: str, mode: str, device: str
) -> None:
    """All episodes start from one state, so their first observations must equal those of the
    first episode."""
    options: dict[str, Any] = {
        "reset_pool_size": 1,
        "autoreset_mode": mode,
        "max_num_frames_per_episode": 120,
    }
    env = make(game, 2, device, **options)
    first = env.reset(seed=0)[0].clone()
    unpooled = make(game, 2, device, maxpool=False, **options).reset(seed=0)[0]
    assert torch.equal(first, unpooled)
    actions = actions_of(env, 30)
    second = env.step(actions[0])[0].clone()
    for row in actions[1:]:
        obs, _, terminated, truncated, info = env.step(row)
    assert truncated.all() and not terminated.any()
    last = info["final_obs"] if mode == "SameStep" else obs
    # Pooled with this frame, a new episode's first one would look different.
    assert (last[:, -1] > first[:, -1]).flatten(1).any(dim=1).all()
    if mode == "NextStep":
        obs = env.step(actions[0])[0]
    elif mode == "Disabled":
        obs = env.reset(options={"reset_mask": np.array([True, True])})[0]
    assert torch.equal(obs, first)
    assert torch.equal(env.step(actions[0])[0], second)


@pytest.mark.parametrize(("game", "height", "pal"), [("air_raid", 250, True), ("pong", 210, False)])
@pytest.mark.parametrize("grayscale", [True, False])
def test_observations_have_the_palette_of_the_game_s_television(
    game: str, height: int, pal: bool, grayscale: bool, device: str
) -> None:
    """tests/env/test_palette.py compares the palettes with ale-py's."""
    env = make(
        game,
        2,
        device,
        grayscale=grayscale,
        img_height=height,
        img_width=160,
        stack_num=1,
        maxpool=False,
    )
    env.reset(seed=0)
    for row in actions_of(env, 20):
        obs = env.step(row)[0][:, 0].cpu().numpy()
    screen = env.get_screen().cpu().numpy()
    palette = grey_palette if grayscale else rgb_palette
    colored, other = (palette(pal=which)[screen] for which in (pal, not pal))
    np.testing.assert_array_equal(obs.reshape(colored.shape), colored)
    assert not np.array_equal(colored, other)


# One process, one batch ---------------------------------------------------------------------------


def test_games_in_one_process_leave_each_other_alone(device: str) -> None:
    """Cartridges of 2, 8 and 10 KiB are stepped alternately, and one env is closed on the way."""
    names = ("pong", "ms_pacman", "pitfall2")
    alone = []
    for name in names:
        env = make(name, 3, device)
        env.reset(seed=4)
        alone.append(digest(env, actions_of(env, 24)))
        env.close()
    envs = [make(name, 3, device) for name in names]
    rows = [actions_of(env, 24) for env in envs]
    together: list[list[torch.Tensor]] = [[] for _ in names]
    for env in envs:
        env.reset(seed=4)
    for step in range(24):
        if step == 12:
            envs[1].close()
        for env, actions, seen in zip(envs, rows, together, strict=True):
            if not env.closed:
                seen += digest(env, actions[step : step + 1])
    together[1] += alone[1][len(together[1]) :]
    for name, ours, theirs in zip(names, together, alone, strict=True):
        assert same(ours, theirs), name


@pytest.fixture
def flooding_boxing() -> Iterator[None]:
    """Replaces boxing's ROM by a program that only strobes RESP0, in every third cycle, and never
    ends a frame. Boxing has one mode: at its start none is waited for."""
    sta_resp0, jump, vectors = b"\x85\x10", b"\x4c\x00\xf0", b"\x00\xf0" * 3
    image = sta_resp0 * 2043 + jump + b"\xea" + vectors
    assert len(image) == 4096
    with program_in_place_of("boxing", image):
        yield


@pytest.mark.usefixtures("flooding_boxing")
def test_tia_buffer_that_overflows_is_a_fault_and_harms_no_other_env(device: str) -> None:
    """Each flooding env is between two of Breakout, which must play as they do without it."""
    names = ["breakout", "boxing", "breakout", "boxing", "breakout"]
    options: dict[str, Any] = {"reset_pool_size": 1, "full_action_space": True}
    env = make(names, 5, device, **options)
    alone = make("breakout", 3, device, **options)
    for one in (env, alone):
        one.reset(seed=0)
    for row in actions_of(env, 5):
        obs, reward, terminated, truncated, info = env.step(row)
        expected = alone.step(row[::2])
        for ours, theirs in zip((obs, reward, terminated, truncated), expected, strict=False):
            assert torch.equal(ours[::2], theirs)
        for key in set(info) - {"env_id"}:
            assert torch.equal(info[key][::2], expected[4][key]), key
        assert (
            info["fault"][1::2] & cule.FAULTS["buffer_full"] == cule.FAULTS["buffer_full"]
        ).all()
        assert torch.equal(env.get_ram()[::2], alone.get_ram())
        assert torch.equal(env.get_screen()[::2, :210], alone.get_screen())
    # Four frames of 262 lines and more, each with 25 writes: more than the buffer holds.
    assert env.engine.batch.buffer_capacity < 4 * 262 * 25


COUNTS = (1, 31, 33, 127, 129, 1000)


@pytest.fixture(scope="module")
def thousand_envs() -> list[torch.Tensor]:
    """What a thousand envs on the CPU return."""
    env = make("breakout", max(COUNTS))
    env.reset(seed=0)
    return digest(env, actions_of(env, 4).clone())


@pytest.mark.parametrize("count", COUNTS)
def test_envs_are_the_same_in_batches_of_any_size(
    count: int, device: str, thousand_envs: list[torch.Tensor]
) -> None:
    """All results and RAM are compared. The sizes are not multiples of a warp or a block."""
    env = make("breakout", count, device)
    env.reset(seed=0)
    actions = actions_of(make("breakout", max(COUNTS)), 4)[:, :count].to(env.device)
    assert same(digest(env, actions), [value[:count] for value in thousand_envs])
    last = env.clone_state([count - 1])
    assert torch.equal(last.tensors["ram"][0], env.get_ram()[count - 1])
