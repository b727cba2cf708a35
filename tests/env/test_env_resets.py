"""AtariEnv: resets, sticky actions, and envs that do not affect each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rollouts import actions_of, digest, make, same

import cule

# Resets -------------------------------------------------------------------------------------------


def test_disabled_autoreset_leaves_the_env_at_its_end(device: str) -> None:
    env = make("pong", 2, device, autoreset_mode="Disabled", max_num_frames_per_episode=40)
    env.reset(seed=0)
    still = torch.zeros(2, dtype=torch.int64, device=env.device)
    for step in range(14):
        truncated = env.step(still)[3]
        assert truncated.tolist() == [step >= 9] * 2
    assert not env.step(still)[2].any()
    frames = env.step(still)[4]["episode_frame_number"].clone()
    mask = np.array([False, True])
    info = env.reset(options={"reset_mask": mask})[1]
    assert info["episode_frame_number"][0] == frames[0]
    assert info["episode_frame_number"][1] < 40
    assert env.step(still)[3].tolist() == [True, False]


def test_disabled_autoreset_does_not_play_on_after_game_over() -> None:
    env = make("breakout", 1, autoreset_mode="Disabled")
    env.reset(seed=0)
    for row in actions_of(env, 1000):
        _, _, terminated, truncated, info = env.step(row)
        if terminated:
            break
    assert terminated.tolist() == [True]
    assert info["lives"].tolist() == [0]
    frames, ram, screen = info["frame_number"].clone(), env.get_ram(), env.get_screen().clone()
    for _ in range(3):
        _, reward, terminated, truncated, info = env.step([1])
        assert (terminated.tolist(), truncated.tolist(), reward.tolist()) == ([True], [False], [0])
    assert torch.equal(info["frame_number"], frames)
    assert torch.equal(env.get_ram(), ram)
    assert torch.equal(env.get_screen(), screen)


def pool_of(env: cule.AtariEnv) -> set[bytes]:
    return {row.tobytes() for row in env.engine.tensors["pool_ram"].cpu().numpy().reshape(-1, 128)}


def test_pool_resets_start_from_states_of_the_pool(device: str) -> None:
    env = make("space_invaders", 64, device)
    env.reset(seed=0)
    starts = {row.tobytes() for row in env.get_ram().cpu().numpy()}
    assert starts <= pool_of(env)
    assert len(starts) == 6
    first = env.get_ram().clone()
    env.reset()
    assert not torch.equal(env.get_ram(), first)
    assert {row.tobytes() for row in env.get_ram().cpu().numpy()} <= pool_of(env)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_pool_autoresets_start_from_states_of_the_pool(mode: str, device: str) -> None:
    env = make("pong", 8, device, autoreset_mode=mode, max_num_frames_per_episode=24)
    env.reset(seed=0)
    pool, resets = pool_of(env), 0
    due = torch.zeros(8, dtype=torch.bool)
    for row in actions_of(env, 30):
        _, reward, terminated, truncated, _ = env.step(row)
        done = (terminated | truncated).cpu()
        fresh = due if mode == "NextStep" else done
        for env_id in torch.nonzero(fresh).flatten().tolist():
            assert env.get_ram()[env_id].cpu().numpy().tobytes() in pool
            resets += 1
            if mode == "NextStep":
                assert reward[env_id] == 0
                assert not done[env_id]
        due = done
    assert resets >= 32


def test_pool_resets_restore_cartridge_bytes_and_go_on_drawing(device: str) -> None:
    """A pool of one state: a new game is the first one, but its sticky actions are others."""
    env = cule.AtariEnv(
        "pitfall2", 2, device=device, reset_pool_size=1, repeat_action_probability=0.5
    )
    actions, games = np.random.default_rng(0).integers(18, size=(60, 2)), []
    for seed in (0, None):
        env.reset(seed=seed)
        begun = env.clone_state().tensors
        for row in actions:
            env.step(row)
        games.append((begun, env.clone_state().tensors))
    (first, end), (second, other_end) = games
    for name in ("ram", "cartridge_bytes"):
        assert torch.equal(first[name], second[name])
    assert not torch.equal(first["cartridge_bytes"], end["cartridge_bytes"])
    assert not torch.equal(end["ram"], other_end["ram"])


def test_observation_of_a_new_episode_has_one_frame(device: str) -> None:
    for size in (0, 4):
        env = make("breakout", 3, device, reset_pool_size=size)
        obs, _ = env.reset(seed=0)
        assert not obs[:, :3].any()
        assert obs[:, 3].any()


@pytest.mark.parametrize("size", [0, 6])
def test_seed_decides_the_run(size: int, device: str) -> None:
    def run(seed: int) -> list[torch.Tensor]:
        env = make(
            "breakout",
            3,
            device,
            reset_pool_size=size,
            repeat_action_probability=0.25,
            episodic_life=True,
        )
        env.reset(seed=seed)
        return digest(env, actions_of(env, 25))

    first = run(3)
    assert same(first, run(3))
    assert not same(first, run(4))


def test_seed_of_the_constructor_serves_the_first_reset() -> None:
    starts = []
    for seed in (5, 5, 6):
        env = make("space_invaders", 16, seed=seed)
        env.reset()
        starts.append(env.get_ram())
    env.reset(seed=5)
    assert torch.equal(starts[0], starts[1])
    assert torch.equal(starts[0], env.get_ram())
    assert not torch.equal(starts[0], starts[2])


def test_seed_in_the_middle_begins_the_same_run_again(device: str) -> None:
    env = make("breakout", 4, device, repeat_action_probability=0.5)
    actions = actions_of(env, 25)
    env.reset(seed=9)
    first = digest(env, actions)
    env.reset(seed=9)
    assert same(first, digest(env, actions))


# Sticky actions -----------------------------------------------------------------------------------


def test_sticky_actions_of_probability_one_never_change(device: str) -> None:
    """Without FIRE at the reset, the action that repeats forever is the reset's no-op."""
    options: dict[str, Any] = {"reset_pool_size": 1, "use_fire_reset": False}
    sticky, plain = (
        make("pong", 2, device, repeat_action_probability=p, **options) for p in (1.0, 0.0)
    )
    for env in (sticky, plain):
        env.reset(seed=0)
    still = torch.zeros(2, dtype=torch.int64, device=sticky.device)
    for _ in range(25):
        sticky.step(still + 3)
        plain.step(still)
    assert torch.equal(sticky.get_ram(), plain.get_ram())


def test_sticky_actions_stick_as_often_as_they_should(device: str) -> None:
    """All envs of pong start alike.

    After one frame with RIGHT, a quarter repeated the no-op, and differs from the rest.
    """
    count = 2048
    env = make(
        "pong",
        count,
        device,
        repeat_action_probability=0.25,
        reset_pool_size=1,
        frameskip=1,
        stack_num=1,
        img_height=1,
        img_width=1,
        use_fire_reset=False,
    )
    env.reset(seed=1)
    right = torch.full((count,), env.action_meanings.index("RIGHT"), device=env.device)
    env.step(right)
    for _ in range(2):
        env.engine.batch.repeat_action_probability = (
            1.0  # an action is held for several steps, so that the paddle is read
        )
        env.step(right)
    rows = [row.cpu().numpy().tobytes() for row in env.get_ram()]
    counts = sorted(rows.count(row) / count for row in set(rows))
    assert len(counts) == 2
    assert abs(counts[0] - 0.25) < 0.04


def test_sticky_actions_differ_from_env_to_env() -> None:
    env = make("pong", 16, repeat_action_probability=0.5, reset_pool_size=1)
    env.reset(seed=0)
    for row in actions_of(env, 30):
        env.step(row[:1].expand(16))
    assert len({row.tobytes() for row in env.get_ram().numpy()}) > 8


# Batches ------------------------------------------------------------------------------------------


def test_two_envs_in_one_process_do_not_meet(device: str) -> None:
    def pair() -> tuple[cule.AtariEnv, cule.AtariEnv]:
        return make("pong", 3, device), make("pitfall2", 2, device, frameskip=2, grayscale=False)

    apart = []
    for env in pair():
        env.reset(seed=1)
        apart.append(digest(env, actions_of(env, 20)))
    together: list[list[torch.Tensor]] = [[], []]
    envs = pair()
    for env in envs:
        env.reset(seed=1)
    rows = [actions_of(env, 20) for env in envs]
    for step in range(20):
        for seen, env, actions in zip(together, envs, rows, strict=True):
            seen += digest(env, actions[step : step + 1])
    assert same(apart[0], together[0])
    assert same(apart[1], together[1])


def test_mixed_batch_plays_each_game_as_alone(device: str) -> None:
    """The games have different picture heights, cartridges and controllers.

    A batch of them has all 18 actions.
    """
    names = ["pong", "ms_pacman", "air_raid", "pitfall2"]
    options: dict[str, Any] = {"reset_pool_size": 0, "full_action_space": True}
    mixed = make(names, 8, device, **options)
    assert [game.name for game in mixed.games] == [name for name in names for _ in range(2)]
    mixed.reset(seed=10)
    actions = actions_of(mixed, 25)
    alone = []
    for i, name in enumerate(names):
        env = make(name, 2, device, **options)
        env.reset(seed=10 + 2 * i)
        for row in actions:
            env.step(row[2 * i : 2 * i + 2])
        alone.append(env)
    for row in actions:
        obs = mixed.step(row)[0]
    for i, env in enumerate(alone):
        envs, height = slice(2 * i, 2 * i + 2), env.get_screen().shape[1]
        assert torch.equal(mixed.get_ram()[envs], env.get_ram())
        assert torch.equal(obs[envs], env.consoles.outputs.observations)
        assert torch.equal(mixed.get_screen()[envs, :height], env.get_screen())
        assert not mixed.get_screen()[envs, height:].any()
        assert torch.equal(mixed.get_screen_rgb()[envs, :height], env.get_screen_rgb())


def test_mixed_batch_of_different_actions_has_all() -> None:
    mixed = make(["breakout", "pong"], 2)
    assert mixed.action_meanings == list(cule.ACTIONS)
    mixed.reset(seed=0)
    mixed.step([17, 1])


def test_modes_and_difficulties_are_per_env() -> None:
    names = ("mode", "difficulty")
    settings = [(0, 0), (1, 0), (0, 1), (1, 1)]
    env = make(
        "pong", 4, reset_pool_size=0, **dict(zip(names, zip(*settings, strict=True), strict=True))
    )
    env.reset(seed=0)
    screens = {row.tobytes() for row in env.get_ram().numpy()} | {
        row.tobytes() for row in env.get_screen().numpy()
    }
    assert len(screens) > 2
    for i, (mode, difficulty) in enumerate(settings):
        alone = make("pong", 1, reset_pool_size=0, mode=mode, difficulty=difficulty)
        alone.reset(seed=i)
        assert torch.equal(alone.get_ram()[0], env.get_ram()[i])
        assert torch.equal(alone.get_screen()[0], env.get_screen()[i])


def test_ram_observations_are_the_ram(device: str) -> None:
    env = make("pong", 2, device, obs_type="ram")
    assert env.single_observation_space.shape == (128,)
    obs, _ = env.reset(seed=0)
    assert torch.equal(obs, env.get_ram())
    for row in actions_of(env, 10):
        obs = env.step(row)[0]
    assert torch.equal(obs, env.get_ram())
    assert env.observation_space.contains(obs.cpu().numpy())


def test_player_b_turns_the_other_paddle(device: str) -> None:
    """Pong stores its reading of the second paddle in byte 59 of RAM."""
    readings = []
    for b in (None, 0, 3, 4, 2):
        env = make("pong", 2, device, reset_pool_size=0, noop_max=0)
        env.reset(seed=0)
        still = torch.zeros(2, dtype=torch.int64, device=env.device)
        for _ in range(20):
            env.step(still, player_b_actions=None if b is None else still + b)
        ram = env.get_ram()[0].tolist()
        readings.append(ram.pop(59))
        if b is None:
            others = ram
        assert ram == others
    none, still, right, left, up = readings
    assert none == still == up
    assert len({still, right, left}) == 3


def test_player_b_moves_the_other_joystick(device: str) -> None:
    """Each direction moves space_war's second ship elsewhere.

    Without actions it gets no-ops, whatever it got before.
    """
    env = make("space_war", 7, device, reset_pool_size=1)
    env.reset(seed=0)
    still = torch.zeros(7, dtype=torch.int64, device=env.device)
    for _ in range(20):
        env.step(still, player_b_actions=torch.tensor([0, 1, 2, 3, 4, 5, 0], device=env.device))
    ram = env.get_ram()
    assert len({row.cpu().numpy().tobytes() for row in ram}) > 3
    assert torch.equal(ram[0], ram[6])
    alone = make("space_war", 1, device, reset_pool_size=1)
    alone.reset(seed=0)
    for _ in range(20):
        alone.step(still[:1])
    assert torch.equal(alone.get_ram()[0], ram[0])


@pytest.mark.parametrize("size", [0, 5])
def test_number_of_threads_does_not_matter(size: int) -> None:
    runs = []
    for threads in (1, 2):
        env = make(
            "breakout",
            9,
            num_threads=threads,
            reset_pool_size=size,
            repeat_action_probability=0.3,
            autoreset_mode="SameStep",
            episodic_life=True,
        )
        env.reset(seed=0)
        runs.append(digest(env, actions_of(env, 30)))
    assert same(*runs)


@pytest.mark.gpu
@pytest.mark.parametrize("size", [0, 5])
def test_devices_agree(size: int) -> None:
    runs = []
    for device in ("cpu", "cuda"):
        env = make(
            "breakout",
            9,
            device,
            reset_pool_size=size,
            repeat_action_probability=0.3,
            episodic_life=True,
        )
        env.reset(seed=0)
        runs.append(digest(env, actions_of(env, 60)))
    assert same(*runs)
