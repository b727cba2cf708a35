"""The stable-baselines3 adapter, with stable-baselines3's own checker, algorithms and
evaluation."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import cule
from cule.adapters.stable_baselines3 import PLAYED, AtariVecEnv

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}


def make(game: str = "pong", num_envs: int = 4, device: str = "cpu", **options: Any) -> AtariVecEnv:
    return AtariVecEnv(game, num_envs, device, **(OPTIONS | options))


def test_single_env_passes_the_checker() -> None:
    check_env(
        gymnasium.make("cule/PongPreprocessed-v5", **OPTIONS), warn=False, skip_render_check=True
    )


def test_ppo_learns_from_images(device: str) -> None:
    env = make(device=device, num_envs=4, max_num_frames_per_episode=120)
    model = PPO("CnnPolicy", env, n_steps=32, batch_size=64, n_epochs=1, device=device, seed=0)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    assert model.env is env, "no transposing wrapper, as channels come first"
    model.learn(4 * 32 * 2)
    assert model.num_timesteps == 256
    assert model.ep_info_buffer, "episodes are reported"
    assert any(not before[name].equal(value) for name, value in model.policy.state_dict().items())


def test_dqn_learns_from_images() -> None:
    env = make(num_envs=2, max_num_frames_per_episode=60, grayscale=False, stack_num=1)
    assert env.observation_space.shape == (3, 84, 84)
    model = DQN(
        "CnnPolicy", env, buffer_size=200, learning_starts=20, train_freq=4, device="cpu", seed=0
    )
    model.learn(80)
    assert model.num_timesteps == 80


def test_evaluation_counts_whole_games() -> None:
    env = make("breakout", 3, reward_clipping=True, life_loss_info=True)
    model = PPO("CnnPolicy", env, n_steps=8, device="cpu", seed=0)
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.env_is_wrapped(VecMonitor) == [False] * 3
    _, lengths = evaluate_policy(
        model, env, n_eval_episodes=2, return_episode_rewards=True, deterministic=False
    )
    assert len(lengths) == 2
    assert min(lengths) > 60, "five lives, not one"


@pytest.mark.parametrize("grayscale", [True, False])
def test_step_gives_what_the_env_gives(grayscale: bool, device: str) -> None:
    options = {"grayscale": grayscale, "max_num_frames_per_episode": 60, "reset_pool_size": 0}
    ours = make("ms_pacman", 3, device, **options)
    plain = cule.AtariEnv(
        "ms_pacman",
        3,
        device=device,
        num_threads=1,
        output="numpy",
        autoreset_mode="SameStep",
        episode_start="baselines",
        **options,
    )
    ours.seed(5)
    kept = ours.reset()
    first = kept.copy()

    def images(observations: np.ndarray) -> np.ndarray:
        return (
            observations
            if grayscale
            else observations.transpose(0, 1, 4, 2, 3).reshape(len(observations), 12, 84, 84)
        )

    np.testing.assert_array_equal(first, images(plain.reset(seed=5)[0]))
    assert first.shape[1:] == ours.observation_space.shape
    rng = np.random.default_rng(0)
    ends, total = 0, np.zeros(3)
    for _ in range(25):
        actions = rng.integers(9, size=3)
        observations, rewards, dones, infos = ours.step(actions)
        theirs = plain.step(actions)
        np.testing.assert_array_equal(observations, images(theirs[0]))
        np.testing.assert_array_equal(rewards, theirs[1])
        np.testing.assert_array_equal(dones, theirs[2] | theirs[3])
        assert rewards.dtype == np.float32 and dones.dtype == np.bool_
        total += theirs[4]["raw_reward"]
        for i in range(3):
            played = {key: theirs[4][key][i] for key in PLAYED}
            assert {key: infos[i][key] for key in PLAYED} == played
            assert (set(infos[i]) == set(PLAYED)) == (not dones[i])
            if dones[i]:
                ends += 1
                np.testing.assert_array_equal(
                    infos[i]["terminal_observation"], images(theirs[4]["final_obs"])[i]
                )
                assert infos[i]["TimeLimit.truncated"]
                assert infos[i]["episode"]["r"] == total[i]
                total[i] = 0
    assert ends >= 3
    np.testing.assert_array_equal(kept, first, "what was returned stays")


@pytest.mark.parametrize(
    "option",
    [
        {"output": "numpy"},
        {"autoreset_mode": "NextStep"},
        {"render_mode": "mosaic"},
        {"batch_size": 2},
    ],
    ids=str,
)
def test_keywords_that_the_adapter_sets_are_refused(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(
        TypeError, match=f"^expected no {name} for AtariVecEnv, as .*, got {option[name]!r}$"
    ):
        make(**option)


def test_ram_is_refused_for_what_it_is() -> None:
    with pytest.raises(
        ValueError, match=r"expected obs_type to be 'image' for AtariVecEnv, .*, got 'ram'"
    ):
        make(obs_type="ram")
    make(obs_type="image").close()


def test_wrappers_attributes_and_pictures() -> None:
    env = make(num_envs=2)
    assert env.get_attr("num_envs") == [2, 2]
    assert env.get_attr("action_meanings", 0)[0][0] == "NOOP"
    with pytest.raises(
        ValueError, match="expected all envs, as they share their attributes, got indices 0"
    ):
        env.set_attr("note", 1, 0)
    env.set_attr("note", 1)
    assert env.get_attr("note") == [1, 1]
    env.reset()
    assert len(env.env_method("get_ram", indices=[1])) == 1
    assert env.render("rgb_array").shape == (420, 320, 3)
    normal = VecNormalize(VecMonitor(env), norm_obs=False)
    normal.reset()
    normal.step([0, 0])
    normal.close()
    assert env.env.closed


def test_monitor_that_would_count_lives_as_games_is_refused() -> None:
    env = make("breakout", 2, life_loss_info=True)
    for wrapped in (env, VecNormalize(env, norm_obs=False)):
        with pytest.raises(ValueError, match=r"no VecMonitor around .* life_loss_info=True"):
            VecMonitor(wrapped)
    assert env.env_is_wrapped(Monitor) == [True, True]
    env.close()


def test_options_of_a_reset_reach_the_env() -> None:
    env = make("breakout", 3)
    env.seed(1)
    env.reset()
    assert [info["lives"] for info in env.reset_infos] == [5, 5, 5]
    assert [info["env_id"] for info in env.reset_infos] == [0, 1, 2]
    for _ in range(3):
        env.step([2, 2, 2])
    frames = [info["episode_frame_number"] for info in env.reset_infos]
    env.set_options({"reset_mask": np.array([False, True, False])})
    env.seed(5)
    env.reset()
    after = [info["episode_frame_number"] for info in env.reset_infos]
    assert [after[0] - frames[0], after[2] - frames[2]] == [12, 12], "these go on"
    plain = cule.AtariEnv("breakout", 3, device="cpu", episode_start="baselines", **OPTIONS)
    plain.reset(seed=1)
    plain.reset(seed=[6], options={"reset_mask": np.array([False, True, False])})
    assert env.env.get_ram()[1].equal(plain.get_ram()[1]), "env 1 got the seed of env 1"
    env.reset()
    assert len({info["episode_frame_number"] // 40 for info in env.reset_infos}) == 1, (
        "options are for one reset"
    )


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"difficulty": 1}, ValueError, "options of a reset to be reset_mask, got 'difficulty'"),
        ({"reset_mask": [1, 0]}, TypeError, "reset_mask to be a boolean array"),
        ([{}, {"mode": 1}], ValueError, "the same options for all 2 envs, as they are one batch"),
        ([{}], ValueError, "the same options for all 2 envs"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=f"expected {sentence}"):
        make(num_envs=2).set_options(options)
