"""What cule.AtariEnv has and ale-py's vector environment has not: pools, mixed batches, states, a
look inside."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
import torch
from runs import actions_of, digest, make, same

import cule
from cule.rom import find_game, rom_path

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


# Results ------------------------------------------------------------------------------------------


def test_env_returns_tensors_on_its_device(device: str) -> None:
    env = make(device=device)
    obs, info = env.reset(seed=0)
    assert obs.shape == (4, 4, 84, 84)
    assert obs.dtype == torch.uint8
    results = env.step(torch.zeros(4, dtype=torch.int64, device=env.device))
    assert [value.dtype for value in results[:4]] == [
        torch.uint8,
        torch.int32,
        torch.bool,
        torch.bool,
    ]
    for value in (
        *results[:4],
        *results[4].values(),
        *info.values(),
        env.get_screen(),
        env.get_screen_rgb(),
    ):
        assert value.device == env.device
    assert env.observation_space.contains(results[0].cpu().numpy())
    assert info["env_id"].tolist() == [0, 1, 2, 3]


def test_env_overwrites_tensors_and_returns_fresh_arrays() -> None:
    env, arrays = make(), make(output="numpy")
    assert env.reset(seed=0)[0].data_ptr() == env.step([0] * 4)[0].data_ptr()
    first = arrays.reset(seed=0)[0]
    kept = first.copy()
    for _ in range(20):
        arrays.step([0] * 4)
    assert isinstance(first, np.ndarray)
    np.testing.assert_array_equal(first, kept)


def test_gymnasium_makes_the_env() -> None:
    env = gymnasium.make_vec(
        "cule/Pong-v5", num_envs=2, device="cpu", reset_pool_size=2, output="numpy"
    )
    assert isinstance(env.unwrapped, cule.AtariEnv)
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[0].shape == (2, 4, 84, 84)
    env.close()


def test_action_meanings_are_those_of_ale() -> None:
    for name in ("pong", "ms_pacman", "skiing", "seaquest"):
        ale = ale_py.ALEInterface()
        ale.loadROM(rom_path(find_game(name)))
        assert make(name).action_meanings == [action.name for action in ale.getMinimalActionSet()]
        legal = [action.name for action in ale.getLegalActionSet()]
        assert make(name, full_action_space=True).action_meanings == legal


def test_reward_in_info_is_not_clipped() -> None:
    env = make("ms_pacman", 2)
    env.reset(seed=0)
    rewards = set()
    for row in actions_of(env, 100):
        _, reward, _, _, info = env.step(row)
        assert torch.equal(reward, info["reward"].sign())
        rewards |= set(info["reward"].tolist())
    assert 10 in rewards


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
    """Without FIRE at the reset, the action that is held is the reset's no-op."""
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
    """All envs of pong start alike; after a frame with RIGHT for the no-op, three in four differ
    from the rest."""
    count = 2048
    env = make("pong", count, device, repeat_action_probability=0.25, reset_pool_size=1, frameskip=1, stack_num=1,
               img_height=1, img_width=1, use_fire_reset=False)  # fmt: skip
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
    """Of different picture heights, cartridges, controllers; a batch of them has all 18 actions."""
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
        assert torch.equal(obs[envs], env._outputs.observations)
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
    """Pong keeps its reading of the second paddle in RAM 59."""
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
    """Each direction takes space_war's second ship elsewhere; no action is a no-op, and does not
    last."""
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
        env = make("breakout", 9, num_threads=threads, reset_pool_size=size, repeat_action_probability=0.3,
                   autoreset_mode="SameStep", episodic_life=True)  # fmt: skip
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


# Looking inside -----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["pong", "air_raid", "ms_pacman"])
def test_screens_are_those_of_ale(game: str, device: str) -> None:
    """With frameskip 1, no no-ops and no FIRE, an env's frames are those of ale-py's plain
    interface."""
    env = make(game, 1, device, reset_pool_size=0, noop_max=0, use_fire_reset=False, frameskip=1)
    env.reset(seed=4)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 4)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(rom_path(find_game(game)))
    ale.reset_game()
    legal = ale.getMinimalActionSet()
    for row in actions_of(env, 30):
        env.step(row)
        ale.act(legal[int(row)])
    for ours, theirs in (
        (env.get_ram(), ale.getRAM()), (env.get_screen(), ale.getScreen()),
        (env.get_screen_rgb(), ale.getScreenRGB()),
        (env.get_screen_grayscale(), ale.getScreenGrayscale()),
    ):  # fmt: skip
        assert ours.dtype == torch.uint8
        np.testing.assert_array_equal(ours[0].cpu().numpy(), theirs)


def test_render_shows_every_screen() -> None:
    env = make("pong", 3)
    env.reset(seed=0)
    picture, rgb = env.render(), env.get_screen_rgb().numpy()
    assert picture.shape == (2 * 210, 2 * 320, 3)
    assert picture.dtype == np.uint8
    for i, (row, column) in enumerate([(0, 0), (0, 1), (1, 0)]):
        part = picture[row * 210 : (row + 1) * 210, column * 320 : (column + 1) * 320]
        np.testing.assert_array_equal(part[:, ::2], rgb[i])
        np.testing.assert_array_equal(part[:, 1::2], rgb[i])
    assert not picture[210:, 320:].any()


# States -------------------------------------------------------------------------------------------

STATE_OPTIONS: list[dict[str, Any]] = [
    {}, {"reset_pool_size": 0}, {"repeat_action_probability": 0.5},
    {"grayscale": False, "stack_num": 2},
    {"autoreset_mode": "SameStep", "max_num_frames_per_episode": 60},
    {"max_num_frames_per_episode": 44},
]  # fmt: skip


@pytest.mark.parametrize("options", STATE_OPTIONS, ids=str)
@pytest.mark.parametrize("game", ["breakout", "pitfall2", "adventure"])
def test_restored_state_goes_on_identically(
    game: str, options: dict[str, Any], device: str
) -> None:
    env = make(game, 3, device, **options)
    env.reset(seed=2)
    actions = actions_of(env, 30)
    digest(env, actions[:11])
    state = env.clone_state()
    screen = env.get_screen().clone()
    first = digest(env, actions[11:])
    env.restore_state(state)
    assert torch.equal(env.get_screen(), screen)
    assert same(first, digest(env, actions[11:]))
    other = make(game, 3, device, **options)
    other.restore_state(state)
    assert same(first, digest(other, actions[11:]))


def test_states_are_equal_bit_for_bit(device: str) -> None:
    env = make("breakout", 2, device)
    env.reset(seed=2)
    state = env.clone_state()
    assert state == env.clone_state() and state == pickle.loads(pickle.dumps(state))
    env.step(torch.tensor([0, 2], device=device))
    assert env.clone_state() != state
    env.restore_state(state)
    assert env.clone_state() == state
    assert env.clone_state([0]) != state
    assert state != "breakout"
    with pytest.raises(TypeError, match="unhashable"):
        hash(state)


def test_state_is_pickled_and_saved(device: str, tmp_path: Path) -> None:
    env = make("breakout", 3, device)
    env.reset(seed=2)
    actions = actions_of(env, 20)
    digest(env, actions[:7])
    state = env.clone_state()
    torch.save(state, tmp_path / "state.pt")
    copies = [
        pickle.loads(pickle.dumps(state)),
        torch.load(tmp_path / "state.pt", weights_only=False),
    ]
    first = digest(env, actions[7:])
    for copy in copies:
        env.restore_state(copy)
        assert same(first, digest(env, actions[7:]))


def test_state_does_not_change_with_its_env() -> None:
    env = make("breakout", 2)
    env.reset(seed=0)
    state = env.clone_state()
    kept = pickle.dumps(state)
    digest(env, actions_of(env, 10))
    assert pickle.dumps(state) == kept


def test_states_of_some_envs_leave_the_others_alone(device: str) -> None:
    env = make("space_invaders", 4, device)
    env.reset(seed=0)
    actions = actions_of(env, 30)
    digest(env, actions[:10])
    state = env.clone_state([2, 0])
    digest(env, actions[10:20])
    before = env.get_ram().clone()
    env.restore_state(state, np.array([3, 1]))
    after = env.get_ram()
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    assert torch.equal(after[[3, 1]], state.tensors["ram"])
    assert state.games == [("space_invaders", 0, 0)] * 2


def test_copied_env_goes_on_as_its_source(device: str) -> None:
    env = make("breakout", 4, device)
    env.reset(seed=0)
    digest(env, actions_of(env, 10))
    env.copy_state([0, 1], torch.tensor([2, 3]))
    for row in actions_of(env, 40, seed=5):
        obs, _, _, _, info = env.step(row[:2].repeat(2))
        assert torch.equal(obs[:2], obs[2:])
        assert torch.equal(info["frame_number"][:2], info["frame_number"][2:])
    env.copy_state([0, 1], [1, 0])
    swapped = env.get_ram()
    assert torch.equal(swapped[[1, 0]], swapped[[2, 3]])


@pytest.mark.parametrize(
    "options", [{}, {"reset_pool_size": 0}, {"continuous": True}, {"autoreset_mode": "SameStep"}]
)
def test_torchs_default_device_is_not_the_envs(options: dict[str, Any]) -> None:
    """torch.set_default_device says where a user's tensors are made, not cule's."""

    def play() -> list[Any]:
        env = cule.AtariEnv(
            "pong", 2, device="cpu", num_threads=1, noop_max=2, **({"reset_pool_size": 2} | options)
        )
        env.reset(seed=[3, 4])
        env.reset(options={"reset_mask": np.array([True, False])})
        actions = np.zeros((2, 3), np.float32) if env.continuous else np.array([2, 3])
        for _ in range(3):
            results = env.step(actions)
        env.copy_state([0], [1])
        env.restore_state(env.clone_state([1, 0]))
        return [results[0].clone(), env.get_ram(), env.get_screen_rgb()]

    expected = play()
    torch.set_default_device("meta")
    try:
        played = play()
    finally:
        torch.set_default_device(None)
    assert all(torch.equal(one, other) for one, other in zip(played, expected, strict=True))
