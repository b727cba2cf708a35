"""The env of one console: compared with ale-py's, and under common wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import error
from gymnasium.utils.env_checker import check_env
from single_envs import assert_plays_the_same, pair

import cule
from cule.single_env import SingleAtariEnv

pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")


# Compared with ale-py's ---------------------------------------------------------------------------


def test_older_ids_mean_what_they_mean_to_ale() -> None:
    """Checks the ids that ale-py 0.12.1 registers."""
    found = 0
    for game in cule.games():
        for version, flavour in ((v, f) for v in ("v0", "v4") for f in ("", "NoFrameskip")):
            name = f"{game.ale_id}{flavour}-{version}"
            if name in gymnasium.registry:
                ours, theirs = gymnasium.spec(f"cule/{name}").kwargs, gymnasium.spec(name).kwargs
                known = {"max_num_frames_per_episode": 108_000, "full_action_space": False} | ours
                assert {key: known[key] for key in theirs} == theirs
                found += 1
    assert found == 248


def test_ids_that_ale_no_longer_registers_mean_what_they_did() -> None:
    for ram, obs_type in (("", "rgb"), ("-ram", "ram")):
        for version, probability in (("v0", 0.25), ("v4", 0.0)):
            for flavour, frameskip in (("", (2, 5)), ("NoFrameskip", 1), ("Deterministic", 4)):
                kwargs = gymnasium.spec(f"cule/Pong{ram}{flavour}-{version}").kwargs
                assert kwargs["frameskip"] == frameskip
                assert kwargs["repeat_action_probability"] == probability
                assert kwargs["obs_type"] == obs_type
                assert kwargs["reset_pool_size"] == kwargs["noop_max"] == 0
    assert gymnasium.spec("cule/SpaceInvadersDeterministic-v4").kwargs["frameskip"] == 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PongNoFrameskip-v4", {"max_num_frames_per_episode": 207}),
        ("Pong-v4", {"max_num_frames_per_episode": 801}),
        ("Breakout-v4", {"obs_type": "grayscale"}),
        ("BreakoutNoFrameskip-v4", {"obs_type": "ram", "max_num_frames_per_episode": 300}),
        ("AirRaid-v4", {"max_num_frames_per_episode": 501}),
        ("Adventure-v4", {"max_num_frames_per_episode": 501, "full_action_space": True}),
        ("Seaquest-v4", {"difficulty": 1, "frameskip": [3, 9]}),
        ("ElevatorAction-v4", {"frameskip": 5}),
    ],
)
def test_older_id_plays_as_ale_does(name: str, options: dict[str, Any]) -> None:
    """Both draw the same random frameskips, and nothing else is random.

    Air Raid's resets also play frames.
    """
    theirs = gymnasium.make(
        name, **options | ({"frameskip": (3, 9)} if "difficulty" in options else {})
    ).unwrapped
    ours = gymnasium.make(f"cule/{name}", **options).unwrapped
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert_plays_the_same(theirs, ours, 320)


@pytest.mark.slow
@pytest.mark.parametrize("game", cule.games(), ids=lambda game: game.name)
def test_every_game_plays_as_ale_does(game: cule.rom.Game) -> None:
    options = {"game": game.name, "frameskip": (2, 5), "repeat_action_probability": 0.0}
    theirs = gymnasium.make(
        f"ALE/{game.ale_id}-v5", max_num_frames_per_episode=1501, **options
    ).unwrapped
    ours = gymnasium.make(f"cule/{game.ale_id}-v4", max_num_frames_per_episode=1501).unwrapped
    assert_plays_the_same(theirs, ours, 1500)


def test_latest_id_plays_as_ales_does() -> None:
    """Sticky actions are drawn from other random numbers, so the results are compared without."""
    options = {"repeat_action_probability": 0.0, "max_num_frames_per_episode": 403}
    theirs, ours = pair("ALE/Qbert-v5", "cule/Qbert-v5", **options)
    assert theirs.observation_space == ours.observation_space
    assert theirs.action_space == ours.action_space
    assert_plays_the_same(theirs, ours, 300)
    sticky = gymnasium.make("cule/Qbert-v5").unwrapped.env.engine.options
    assert sticky.repeat_action_probability == 0.25


@pytest.mark.parametrize("options", [{}, {"full_action_space": True}])
def test_keys_and_meanings_are_those_of_ale(options: dict[str, Any]) -> None:
    for name in ("PongNoFrameskip-v4", "SkiingNoFrameskip-v4", "SeaquestNoFrameskip-v4"):
        theirs, ours = (env.unwrapped for env in pair(name, **options))
        assert ours.get_action_meanings() == theirs.get_action_meanings()
        assert list(ours.get_keys_to_action().items()) == list(theirs.get_keys_to_action().items())
    with pytest.raises(AttributeError, match="expected continuous=False for get_keys_to_action"):
        gymnasium.make("cule/Pong-v4", continuous=True).unwrapped.get_keys_to_action()


def test_ale_tells_what_ales_does() -> None:
    theirs, ours = (env.unwrapped for env in pair("Breakout-v4", max_num_frames_per_episode=99))
    for env in (theirs, ours):
        env.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        action = int(rng.integers(4))
        theirs.step(action), ours.step(action)
        for name in (
            "lives", "game_over", "game_truncated", "getFrameNumber", "getEpisodeFrameNumber",
            "getRAM", "getRAMSize", "getScreen", "getScreenRGB", "getScreenGrayscale",
            "getScreenDims", "getMinimalActionSet", "getLegalActionSet", "getAvailableModes",
            "getAvailableDifficulties",
        ):  # fmt: skip
            a, b = (getattr(env.ale, name)() for env in (theirs, ours))
            a = [action.value for action in a] if name.endswith("ActionSet") else a
            np.testing.assert_array_equal(a, b, err_msg=name)
            if isinstance(b, np.ndarray):
                into = np.zeros_like(b)
                getattr(ours.ale, name)(into)
                np.testing.assert_array_equal(a, into, err_msg=name)
        assert theirs.ale.game_over(with_truncation=False) == ours.ale.game_over(
            with_truncation=False
        )
    assert ours.ale.game_truncated()
    with pytest.raises(
        AttributeError, match=r"env.unwrapped.ale has \(act, .* lives, .*\), got 'jump'"
    ):
        ours.ale.jump()


# By itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("obs_type", ["image", "ram", "rgb", "grayscale"])
def test_env_passes_the_checker(obs_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker tries all render modes, including the window."""
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for options in ({}, {"frameskip": (2, 5)}, {"continuous": True}):
        env = gymnasium.make("cule/Pong-v5", render_mode="rgb_array", obs_type=obs_type, **options)
        check_env(env.unwrapped, skip_close_check=False)


def test_spec_makes_the_env_again() -> None:
    env = gymnasium.make("cule/Pong-v4", max_num_frames_per_episode=50)
    assert env.spec is not None
    for spec in (env.spec, gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())):
        again = gymnasium.make(spec)
        assert_plays_the_same(env, again, 60)


def test_pictures_of_a_second_are_as_many_as_steps() -> None:
    for frameskip, rate in ((1, 60), (4, 15), ((2, 5), 20), (200, 1)):
        assert SingleAtariEnv("pong", frameskip=frameskip).metadata["render_fps"] == rate


def test_truncated_episode_plays_no_further() -> None:
    for obs_type in ("image", "ram", "rgb"):
        options: dict[str, Any] = {"obs_type": obs_type, "frameskip": 1}
        env = SingleAtariEnv("pong", max_num_frames_per_episode=70, **options)
        env.reset(seed=0)
        while not (last := env.step(2))[3]:
            pass
        assert last[4]["episode_frame_number"] == 70
        again = env.step(3)
        np.testing.assert_array_equal(again[0], last[0])
        assert again[1:4] == (0.0, False, True)
        assert again[4]["frame_number"] == last[4]["frame_number"]
        env.reset()
        assert env.step(0)[3] is False
        env.close()
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            env.step(0)


def test_state_is_put_back() -> None:
    env = SingleAtariEnv(
        "breakout", obs_type="rgb", repeat_action_probability=0.25, reset_pool_size=2
    )
    env.reset(seed=0)
    state, fresh = env.clone_state(include_rng=True), env.clone_state()
    assert (state, fresh) == (env.ale.cloneSystemState(), env.ale.cloneState())
    first = [env.step(action % 4) for action in range(30)]
    for restore in (env.restore_state, env.ale.restoreState, env.ale.restoreSystemState):
        restore(state)
        for action, result in enumerate(first):
            again = env.step(action % 4)
            np.testing.assert_array_equal(again[0], result[0])
            assert again[1:] == result[1:]
    env.restore_state(fresh)
    others = [env.step(action % 4) for action in range(30)]
    assert any((a[0] != b[0]).any() for a, b in zip(first, others, strict=True))


@pytest.mark.parametrize(
    ("options", "exception", "message"),
    [
        ({"frameskip": 0}, ValueError, "frameskip to be at least 1, got 0"),
        ({"frameskip": 4.0}, TypeError, "frameskip to be an integer, got 4.0"),
        (
            {"frameskip": (5, 2)},
            ValueError,
            r"frameskip to be \(low, high\) with 1 <= low < high, got \(5, 2\)",
        ),
        ({"frameskip": (2, 2)}, ValueError, r"with 1 <= low < high, got \(2, 2\)"),
        ({"frameskip": (0, 5)}, ValueError, r"with 1 <= low < high, got \(0, 5\)"),
        ({"frameskip": (2, 10**6)}, ValueError, "frameskip to be at most 10000, got 999999"),
        (
            {"frameskip": (1, 2, 3)},
            TypeError,
            r"an integer or two of them, \(low, high\), got \(1, 2, 3\)",
        ),
        (
            {"frameskip": (2, 5.5)},
            TypeError,
            r"an integer or two of them, \(low, high\), got \(2, 5.5\)",
        ),
        ({"frameskip": "25"}, TypeError, "frameskip to be an integer, got '25'"),
        (
            {"obs_type": "rgba"},
            ValueError,
            "obs_type to be 'image' or 'ram' or 'rgb' or 'grayscale', got 'rgba'",
        ),
        (
            {"obs_type": "rgb", "img_height": 84},
            TypeError,
            "expected no img_height .* are whole screens, got 84",
        ),
        (
            {"obs_type": "grayscale", "stack_num": 4},
            TypeError,
            "expected no stack_num .* are whole screens, got 4",
        ),
        (
            {"render_mode": "mosaic"},
            ValueError,
            "render_mode to be None or 'human' or 'rgb_array', got 'mosaic'",
        ),
        (
            {"max_num_frames_per_episode": None},
            TypeError,
            "max_num_frames_per_episode to be an integer, got None",
        ),
    ],
    ids=str,
)
def test_wrong_option_is_refused(
    options: dict[str, Any], exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        SingleAtariEnv("pong", **options)


def test_wrong_reset_is_refused() -> None:
    env = SingleAtariEnv("pong")
    env.reset(seed=np.int64(3), options={})
    with pytest.raises(
        ValueError, match=r"expected no options, as one console takes none, got {'noops': 3}"
    ):
        env.reset(options={"noops": 3})
    with pytest.raises(ValueError, match="seed to be at least 0, got -1"):
        env.reset(seed=-1)


def test_name_that_means_more_than_the_options_do_is_told_of() -> None:
    with pytest.warns(
        UserWarning,
        match=r"'PongNoFrameskip-v4' means frameskip=1 in gymnasium, .* has frameskip=4:",
    ):
        SingleAtariEnv("PongNoFrameskip-v4")
    meant = r"frameskip=\(2, 5\) and repeat_action_probability=0.25 and obs_type='ram'"
    with pytest.warns(UserWarning, match=f"'Pong-ram-v0' means {meant}"):
        SingleAtariEnv("Pong-ram-v0")


def test_name_that_means_more_than_the_keywords_of_a_batch_is_told_of() -> None:
    with pytest.warns(
        UserWarning, match=r"'PongNoFrameskip-v4' means frameskip=1 in gymnasium, .* frameskip=4"
    ) as told:
        cule.AtariEnv(["pong", "PongNoFrameskip-v4", "Qbert-v0"], 3, "cpu", reset_pool_size=1)
    assert [warning.filename for warning in told] == [__file__]
    sticky = "means repeat_action_probability=0.25 in gymnasium, but this env has .*=0.0:"
    with pytest.warns(UserWarning, match=f"'ALE/Pong-v5' {sticky}"):
        cule.AtariEnv("ALE/Pong-v5", 1, "cpu", reset_pool_size=1)
    with pytest.warns(
        UserWarning, match="'Pong-ramNoFrameskip-v4' means obs_type='ram' .* has obs_type='image'"
    ):
        cule.AtariEnv("Pong-ramNoFrameskip-v4", 1, "cpu", reset_pool_size=1, frameskip=1)


@pytest.mark.parametrize("name", ["PongNoFrameskip-v5", "ALE/Pong-ramDeterministic-v5"])
def test_id_of_two_versions_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"an id that gymnasium has, such as 'Pong.*-v4' .* of ver"
    ):
        cule.AtariEnv(name, 1, "cpu")


def test_console_cannot_be_looked_at_before_the_first_reset() -> None:
    env = SingleAtariEnv("pong", reset_pool_size=1, render_mode="rgb_array")
    ale = env.unwrapped.ale
    for look in (ale.lives, ale.getRAM, ale.getScreenRGB, ale.getFrameNumber, env.render):
        with pytest.raises(error.ResetNeeded, match=r"expected reset\(\) before the first"):
            look()
    assert (ale.getScreenDims(), ale.getRAMSize()) == ((210, 160), 128)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PongNoFrameskip-v4", {"frameskip": 1}), ("Pong-v4", {"frameskip": [2, 5]}),
        ("pong", {}), ("Pong-v5", {}), ("cule/PongPreprocessed-v5", {}),
        ("ALE/Pong-v5", {"repeat_action_probability": 0.25}),
        ("PongDeterministic-v0", {"repeat_action_probability": 0.25}),
        ("Pong-ramDeterministic-v4", {"obs_type": "ram"}),
    ],
)  # fmt: skip
def test_name_that_means_what_the_options_do_is_taken(name: str, options: dict[str, Any]) -> None:
    SingleAtariEnv(name, **options)
    if "frameskip" not in options or isinstance(options["frameskip"], int):
        cule.AtariEnv(name, 2, "cpu", reset_pool_size=1, **options)
