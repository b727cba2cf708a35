"""What cule.AtariEnv has in addition to ale-py's vector environment: pools, mixed batches, states,
RAM and screens."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
import torch
from rollouts import actions_of, digest, make, same

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


def everything(results: tuple[Any, ...]) -> list[Any]:
    *values, info = results
    return [*values, *(value for _, value in sorted(info.items()))]


@pytest.mark.parametrize("options", [{"obs_type": "ram"}, {"autoreset_mode": "SameStep"}], ids=str)
def test_what_calls_return_does_not_change_later(device: str, options: dict[str, Any]) -> None:
    """A replay buffer that keeps everything as it came holds what arrays and copies hold."""
    env, arrays, shared = (
        make("ms_pacman", device=device, output=output, max_num_frames_per_episode=60, **options)
        for output in ("torch", "numpy", "torch_shared")
    )
    kept = [[*everything(env.reset(seed=0))]]
    expected = [[*everything(arrays.reset(seed=0))]]
    copies = [[value.clone() for value in everything(shared.reset(seed=0))]]
    for row in actions_of(env, 40):
        kept.append(everything(env.step(row)))
        expected.append(everything(arrays.step(row.cpu().numpy())))
        shared.step_async(row)
        copies.append([value.clone() for value in everything(shared.step_wait())])
    env.restore_state(shared.clone_state())
    env.reset(options={"reset_mask": [True, False, True, False]})
    tensors = [value for step in kept for value in step]
    assert len({value.data_ptr() for value in tensors}) == len(tensors)
    for mine, theirs, copied in zip(kept, expected, copies, strict=True):
        assert same([value.cpu() for value in mine], [torch.from_numpy(value) for value in theirs])
        assert same(mine, copied)
    assert sum(int(step[2].sum() + step[3].sum()) for step in kept[1:]) >= env.num_envs


def test_shared_tensors_are_the_envs_own(device: str) -> None:
    env = make(device=device, output="torch_shared")
    first = env.reset(seed=0)[0]
    again = env.step(actions_of(env, 1)[0])
    assert [first.data_ptr()] * 2 == [
        again[0].data_ptr(),
        env.engine.tensors["observations"].data_ptr(),
    ]
    assert again[1].data_ptr() == env.step(actions_of(env, 1)[0])[1].data_ptr()


def test_results_of_a_rollout_in_inference_mode_can_be_learned_from() -> None:
    env, weight = make(), torch.ones(84, requires_grad=True)
    with torch.inference_mode():
        env.reset(seed=0)
        observations, rewards, *_ = env.step([0] * 4)
    ((observations * weight).sum() + rewards.sum()).backward()
    assert weight.grad is not None


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
        assert torch.equal(reward, info["raw_reward"].sign())
        rewards |= set(info["raw_reward"].tolist())
    assert 10 in rewards


# Looking inside -----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["pong", "air_raid", "ms_pacman"])
def test_screens_are_those_of_ale(game: str, device: str) -> None:
    """With frameskip 1, no no-ops and no FIRE, an env's frames are those of ale-py's
    ALEInterface."""
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


@pytest.mark.parametrize("reset_pool_size", [0, 2])
def test_states_have_one_future_with_random_numbers_and_several_without(
    reset_pool_size: int, device: str, tmp_path: Path
) -> None:
    options = {"reset_pool_size": reset_pool_size, "repeat_action_probability": 0.5}
    env = make("breakout", 2, device, **options)
    env.reset(seed=2)
    actions = actions_of(env, 20)
    digest(env, actions)
    ram = env.get_ram()
    with_them, without = env.clone_state(), env.clone_state(include_rng=False)
    without.save(tmp_path / "state")
    assert without == cule.State.load(tmp_path / "state") != with_them

    def futures(state: cule.State) -> int:
        found = []
        for _ in range(8):
            env.restore_state(state)
            assert torch.equal(env.get_ram(), ram)
            found.append(digest(env, actions))
        return sum(
            not any(same(one, other) for other in found[:at]) for at, one in enumerate(found)
        )

    assert (futures(with_them), futures(without)) == (1, 8)
    # An env goes on with its own numbers: they are what a state that holds them has.
    own = env.clone_state()
    env.restore_state(without)
    assert env.clone_state(include_rng=False) == without != own
    env.copy_state([0], [1], include_rng=False)
    first, second = (env.clone_state([i]).tensors["records"] for i in range(2))
    assert (first != second).any()
    env.copy_state([0], [1])
    assert torch.equal(env.clone_state([1]).tensors["records"], first)
    with pytest.raises(gymnasium.error.ResetNeeded, match="without random numbers"):
        make("breakout", 2, device, **options).restore_state(without)
    with pytest.raises(TypeError, match="expected include_rng to be True or False, got 1"):
        env.clone_state(include_rng=1)


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
    """torch.set_default_device decides where a user's tensors are made, not cule's."""

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
