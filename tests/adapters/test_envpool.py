"""EnvPool 1.x's interface, and, where EnvPool is installed, the same numbers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cule
from cule.adapters import envpool

OPTIONS: dict[str, Any] = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2}
INFO = {"env_id", "players", "lives", "reward", "terminated", "ram", "elapsed_step"}


@pytest.mark.parametrize("maker", [envpool.make, envpool.make_gym, envpool.make_gymnasium])
def test_every_maker_gives_two_and_five_values(maker: Any) -> None:
    """In EnvPool 1.x "gym" means the same as "gymnasium"."""
    env = maker("Pong-v5", num_envs=2, max_episode_steps=8, **OPTIONS)
    assert isinstance(env, gym.Env) and isinstance(env, gym.vector.VectorEnv)
    observations, info = env.reset()
    assert isinstance(observations, np.ndarray) and observations.shape == (2, 4, 84, 84)
    assert set(info) == INFO
    for step in range(1, 12):
        observations, rewards, terminated, truncated, info = env.step(np.zeros(2, int))
        assert rewards.dtype == np.float32
        assert terminated.dtype == truncated.dtype == np.bool_
        assert truncated.tolist() == [step == 8] * 2 and not terminated.any()
        assert info["elapsed_step"].tolist() == [step if step <= 8 else step - 9] * 2, (
            "the step after an end resets"
        )
        assert set(info) == INFO
        assert info["ram"].shape == (2, 128) and info["ram"].dtype == np.uint8
        assert {info[key].dtype for key in ("env_id", "lives", "terminated", "elapsed_step")} == {
            np.dtype(np.int32)
        }
        np.testing.assert_array_equal(info["ram"], env.env.get_ram())
        np.testing.assert_array_equal(info["players"]["env_id"], [0, 1])
    env.close()
    assert env.env.closed and env.closed


def test_gym_in_make_means_gymnasium() -> None:
    env = envpool.make("Pong-v5", "gym", **OPTIONS)
    assert len(env.reset()) == 2
    assert len(env.step([0])) == 5
    with pytest.raises(
        ValueError, match=r"gym_reset_return_info to be True, .* cule\.adapters\.envpool_v0"
    ):
        envpool.make_gym("Pong-v5", gym_reset_return_info=False)


def test_episodes_begin_with_their_first_frame_in_every_plane() -> None:
    """In ale-py's stacks the other planes are black at first."""
    env = envpool.make("Breakout-v5", num_envs=2, max_episode_steps=6, **OPTIONS)
    observations, _ = env.reset()
    shown = [observations[0, -1]]
    for step in range(1, 14):
        observations = env.step([0, 2])[0]
        if step % 7 == 0:
            shown = []
        shown.append(observations[0, -1])
        stacked = ([shown[0]] * 4 + shown[1:])[-4:]
        np.testing.assert_array_equal(observations[0], stacked)
    assert shown[0].any()


def test_color_has_three_planes_for_each_frame() -> None:
    color, gray = (
        envpool.make(
            "MsPacman-v5",
            num_envs=2,
            gray_scale=gray,
            stack_num=2,
            img_height=60,
            img_width=50,
            **OPTIONS,
        )
        for gray in (False, True)
    )
    assert color.observation_space.shape == (6, 60, 50)
    assert gray.observation_space.shape == (2, 60, 50)
    plain = cule.AtariEnv(
        "ms_pacman",
        2,
        grayscale=False,
        stack_num=2,
        img_height=60,
        img_width=50,
        output="numpy",
        episode_start="envpool",
        **OPTIONS,
    )
    observations, _ = color.reset(seed=3)
    assert observations.shape == (2, 6, 60, 50)
    theirs, _ = plain.reset(seed=3)
    for _ in range(3):
        observations = color.step([1, 2])[0]
        theirs = plain.step([1, 2])[0]
    for plane in range(6):
        np.testing.assert_array_equal(
            observations[:, plane], theirs[:, plane // 3, :, :, plane % 3]
        )


def test_lost_life_ends_an_episode_but_not_the_game() -> None:
    env = envpool.make("Breakout-v5", num_envs=2, episodic_life=True, seed=1, **OPTIONS)
    env.reset()
    lives, games = np.full(2, 5), 0
    elapsed = np.zeros(2, int)
    over, ended = np.zeros(2, bool), np.zeros(2, bool)
    for _ in range(500):
        _, _, terminated, _, info = env.step(env.action_space.sample() * np.ones(2, int))
        assert not (ended & terminated).any(), "the step after an end only starts what is next"
        elapsed, ended = np.where(over, 0, elapsed + ~ended), terminated
        np.testing.assert_array_equal(info["elapsed_step"], elapsed)
        over = info["terminated"].astype(bool)
        np.testing.assert_array_equal(over, terminated & (info["lives"] == 0))
        np.testing.assert_array_equal(terminated, info["lives"] < lives)
        lives, games = np.where(over, 5, info["lives"]), games + over.sum()
    assert games >= 2


def test_asynchronous_calls_give_what_steps_give() -> None:
    options = {"num_envs": 3, "seed": 9} | OPTIONS
    waits, steps = envpool.make("Pong-v5", **options), envpool.make("Pong-v5", **options)
    waits.async_reset()
    result = waits.recv()
    np.testing.assert_array_equal(result[0], steps.reset()[0])
    assert len(result) == 5
    np.testing.assert_array_equal(result[-1]["env_id"], [0, 1, 2])
    rng = np.random.default_rng(0)
    for step in range(10):
        actions, order = rng.integers(6, size=3), rng.permutation(3)
        if step % 2:
            waits.send(actions[order], order)
        else:
            waits.send(
                {
                    "env_id": order,
                    "players.env_id": order,
                    "action": actions[order].astype(np.int32),
                }
            )
        for a, b in zip(waits.recv()[:-1], steps.step(actions)[:-1], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("ids", [[0, 2], np.array([2, 0]), np.array([True, False, True])], ids=str)
def test_reset_of_some_envs_lets_the_others_go_on(ids: Any) -> None:
    """Only the rows of the envs that are reset are returned, in the order of the ids."""
    env = envpool.make("Breakout-v5", num_envs=3, **OPTIONS)
    env.reset()
    for _ in range(5):
        before = env.step([1, 2, 3])[0]
    masked = np.asarray(ids).dtype == np.bool_
    observations, info = env.reset(options={"reset_mask": ids}) if masked else env.reset(ids)
    order = [0, 2] if masked else list(ids)
    assert observations.shape == (2, 4, 84, 84)
    assert info["env_id"].tolist() == info["players"]["env_id"].tolist() == order
    assert info["elapsed_step"].tolist() == [0, 0]
    assert info["lives"].tolist() == [5, 5]
    observations, *_, info = env.step([0, 0, 0])
    assert info["elapsed_step"].tolist() == [1, 6, 1]
    np.testing.assert_array_equal(observations[1, :3], before[1, 1:])


def test_seeds_of_make_and_reset_are_those_of_the_env() -> None:
    options = OPTIONS | {"num_envs": 3, "noop_max": 30, "reset_pool_size": 0}
    env = envpool.make("Pong-v5", **options)
    plain = cule.AtariEnv(
        "pong", 3, device="cpu", num_threads=1, reset_pool_size=0, output="numpy",
        episode_start="envpool",
    )  # fmt: skip
    plain.reset(seed=7)
    np.testing.assert_array_equal(env.reset(seed=7)[1]["ram"], plain.get_ram())
    # Env 2 gets the seed 20, env 0 the seed 10.
    _, info = env.reset(np.array([2, 0]), seed=[20, 10])
    plain.reset(seed=[10, 20], options={"reset_mask": np.array([True, False, True])})
    np.testing.assert_array_equal(info["ram"], plain.get_ram()[[2, 0]])
    assert (info["ram"][0] != info["ram"][1]).any(), "these seeds can be told apart"
    plain.reset(seed=[7, 3, 5])
    for given in ({"seed": [7, 3, 5]}, {"seed": np.array([7, 3, 5])}, {"env_seed": [7, 3, 5]}):
        seeded = envpool.make("Pong-v5", **options, **given)
        np.testing.assert_array_equal(seeded.reset()[1]["ram"], plain.get_ram())
        assert list(seeded.config["env_seed"]) == [7, 3, 5]
    with pytest.warns(UserWarning, match=r"expected a seed in make\(\) or reset\(\)"):
        env.seed(1)


def test_attributes_are_there() -> None:
    env = envpool.make("Pong-v5", num_envs=3, frame_skip=2, seed=5, **OPTIONS)
    assert env.all_env_ids.tolist() == [0, 1, 2] and env.all_env_ids.dtype == np.int32
    assert env.is_async is False
    assert len(env) == env.num_envs == 3
    assert env.single_observation_space == env.observation_space
    assert env.single_action_space == env.action_space
    config = env.config
    assert (config["task"], config["num_envs"], config["batch_size"], config["seed"]) == (
        "pong",
        3,
        3,
        5,
    )
    assert (config["frame_skip"], config["gray_scale"], config["stack_num"]) == (2, True, 4)
    assert (config["num_threads"], config["max_episode_steps"], config["reward_clip"]) == (
        1,
        27_000,
        False,
    )
    assert {"Pong-v5", "MsPacman-v5"} < set(envpool.list_all_envs())
    assert len(envpool.list_all_envs()) == len(cule.games())
    assert repr(env).startswith("AtariEnvPool(num_envs=3, batch_size=3, ")
    assert str(env) == repr(env)


def test_spec_says_what_the_env_is() -> None:
    env = envpool.make("Breakout-v5", num_envs=2, gray_scale=False, **OPTIONS)
    spec = envpool.make_spec("Breakout-v5", num_envs=2, gray_scale=False)
    for one in (env.spec, spec):
        assert (
            one.config.gray_scale is False
            and one.config.mode == -1
            and one.config.task == "breakout"
        )
        assert one.observation_space == one.gymnasium_observation_space == env.observation_space
        assert one.action_space == env.action_space == gym.spaces.Discrete(4)
        assert one.action_array_spec["action"].maximum == 3
        assert one.reward_threshold is None
    observations, info = env.reset()
    arrays = spec.state_array_spec
    assert arrays["obs"].shape == list(observations.shape[1:]) and arrays["obs"].maximum == 255
    for name in ("env_id", "lives", "reward", "terminated", "ram"):
        assert arrays[f"info:{name}"].dtype == info[name].dtype
    assert arrays["info:ram"].shape == [128]
    assert envpool.make_spec("Pong-v5", full_action_space=True).action_space.n == 18
    assert repr(spec).startswith("AtariEnvSpec(num_envs=2, ")
    config = envpool.EnvSpec.gen_config(task="pong", num_envs=4, batch_size=5)
    with pytest.raises(ValueError, match="batch_size to be at most 4, got 5"):
        envpool.EnvSpec(config)


def test_keywords_mean_what_envpools_mean() -> None:
    env = envpool.make("MsPacman-v5", frame_skip=3, max_episode_steps=50, mode=1, **OPTIONS)
    plain = env.env
    assert plain.engine.options.frameskip == 3
    assert plain.engine.options.max_frames == 3 * 50
    assert not plain.engine.options.reward_clipping
    assert plain.games[0].name == "ms_pacman"
    assert plain.engine.groups[0].mode == 1


def test_screens_are_rendered_where_asked_for() -> None:
    env = envpool.make(
        "Pong-v5", num_envs=3, render_mode="rgb_array", img_height=210, img_width=160, stack_num=1,
        gray_scale=False,
        use_inter_area_resize=False, frame_skip=1, **OPTIONS,
    )  # fmt: skip
    env.reset()
    observations = env.step([2, 3, 4])[0]
    screens = env.env.get_screen_rgb()
    np.testing.assert_array_equal(env.render(), screens[:1])
    np.testing.assert_array_equal(env.render(1), screens[1:2])
    np.testing.assert_array_equal(env.render([2, 0]), screens[[2, 0]])
    np.testing.assert_array_equal(observations.transpose(0, 2, 3, 1), screens)
    with pytest.raises(
        RuntimeError, match=r"render_mode='rgb_array' in make\(\) for render\(\), got None"
    ):
        envpool.make("Pong-v5", **OPTIONS).render()
    with pytest.raises(ValueError, match="expected render_mode to be 'rgb_array', got 'human'"):
        envpool.make("Pong-v5", render_mode="human", **OPTIONS)


@pytest.mark.parametrize(
    "options",
    [
        {"noop_max": 1},
        {"gray_scale": False},
        {"stack_num": 2, "frame_skip": 3, "reward_clip": True, "episodic_life": True},
        {"img_height": 100, "episodic_life": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("task", ["Breakout-v5", "Pong-v5", "SpaceInvaders-v5"])
def test_envpool_itself_gives_the_same(task: str, options: dict[str, Any]) -> None:
    """EnvPool's results are equal, bit for bit.

    Only the last observation of an episode is pooled from other frames.
    """
    real = pytest.importorskip("envpool")
    options = {"num_envs": 2, "seed": 3, "max_episode_steps": 60} | options
    theirs = real.make(task, "gym", **options)
    ours = envpool.make(task, "gym", **(OPTIONS | options | {"reset_pool_size": 0}))
    assert (
        theirs.observation_space == ours.observation_space
        and theirs.action_space == ours.action_space
    )
    (expected, _), (got, _) = theirs.reset(), ours.reset()
    np.testing.assert_array_equal(got, expected)
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(150):
        actions = rng.integers(theirs.action_space.n, size=2)
        *expected, info = theirs.step(actions)
        *got, our_info = ours.step(actions)
        ended = expected[2] | expected[3]
        ends += ended.sum()
        np.testing.assert_array_equal(got[0][~ended], expected[0][~ended])
        for a, b in zip(got[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert list(our_info) == list(info)
        for key in INFO - {"players"}:
            np.testing.assert_array_equal(our_info[key], info[key])
            assert our_info[key].dtype == info[key].dtype
    assert ends >= 4
