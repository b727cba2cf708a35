"""All methods of ale-py's ALEInterface beside cule's: values, types and errors, frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest

from cule import _core
from cule.adapters.ale import ALEInterface
from cule.env.ale_settings import DEFAULTS
from cule.env.ale_view import AleView
from cule.rom import find_game, rom_path

SEED = 3
# Paddles, sticks, PAL, modes that need SELECT, start frames, several bank-switching schemes.
GAMES = (
    "air_raid", "boxing", "breakout", "elevator_action", "kaboom", "klax", "montezuma_revenge",
    "ms_pacman", "pitfall2", "pong",
)  # fmt: skip
SEEN = (
    "lives", "game_over", "game_truncated", "getFrameNumber", "getEpisodeFrameNumber", "getRAM",
    "getScreen", "getScreenRGB", "getScreenGrayscale", "getScreenDims", "getAvailableModes",
    "getAvailableDifficulties",
)  # fmt: skip
KINDS = ("Int", "Float", "Bool", "String")
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


def path_of(name: str) -> str:
    return str(rom_path(find_game(name)))


def pair(name: str, **integers: int) -> tuple[Any, Any]:
    """ale-py's interface and cule's, with a ROM."""
    both = ale_py.ALEInterface(), ALEInterface()
    for ale in both:
        ale.setFloat("repeat_action_probability", 0.0)
        for key, value in {"random_seed": SEED, **integers}.items():
            ale.setInt(key, value)
        ale.loadROM(path_of(name))
    return both


def same(theirs: Any, ours: Any, when: object) -> None:
    for name in SEEN:
        a, b = (getattr(ale, name)() for ale in (theirs, ours))
        assert type(a) is type(b), name
        np.testing.assert_array_equal(a, b, err_msg=f"{name}, {when}")


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or the type of its error as Python itself has it."""
    try:
        return call()
    except (RuntimeError, TypeError, ValueError) as problem:
        return next(kind for kind in (RuntimeError, TypeError, ValueError)
                    if isinstance(problem, kind))  # fmt: skip


def test_all_names_are_there() -> None:
    theirs = {name for name in dir(ale_py.ALEInterface) if not name.startswith("_")}
    assert theirs - set(dir(AleView)) == set()
    assert len(theirs) == 38
    ale = ALEInterface()
    ale.loadROM(path_of("pong"))
    for name in sorted(theirs):
        assert callable(getattr(ale, name))
    assert ale.getAudioSize() == 512 and not ale.getAudio().any()


@pytest.mark.parametrize("name", GAMES)
def test_frames_are_those_of_ale(name: str) -> None:
    """From loadROM on: actions of all kinds, paddles' strengths, bytes, modes, difficulties, ends,
    and another loadROM."""
    theirs, ours = pair(name, max_num_frames_per_episode=260)
    same(theirs, ours, "loadROM")
    rng = np.random.default_rng(0)
    for frame in range(420):
        action, strength = int(rng.integers(18)), float(rng.random())
        if frame % 60 == 59:
            address, value = int(rng.integers(128)), int(rng.integers(256))
            for ale in (theirs, ours):
                ale.setRAM(address, value)
        for what, listed, at in (
            ("setMode", "getAvailableModes", 90),
            ("setDifficulty", "getAvailableDifficulties", 130),
        ):
            if frame == at:
                for ale in (theirs, ours):
                    getattr(ale, what)(getattr(ale, listed)()[-1])
        if frame == 350:
            for ale in (theirs, ours):
                ale.loadROM(path_of(name))
            same(theirs, ours, "loadROM again")
        rewards = [
            ale.act(kind(action), strength)
            for ale, kind in ((theirs, ale_py.Action), (ours, ale_py.Action if frame % 2 else int))
        ]
        assert rewards[0] == rewards[1] and type(rewards[1]) is int
        if frame % 7 == 0 or theirs.game_over():
            same(theirs, ours, frame)
        if theirs.game_over() or frame == 200:
            assert theirs.act(0) == ours.act(0)
            for ale in (theirs, ours):
                assert ale.reset_game() is None
            same(theirs, ours, "reset")


def test_several_frames_of_an_act_are_those_of_ale() -> None:
    theirs, ours = pair("breakout", frame_skip=3)
    for step in range(60):
        assert theirs.act((1, 3, 4)[step % 3]) == ours.act((1, 3, 4)[step % 3])
        same(theirs, ours, step)


def test_env_s_own_interface_plays_as_ales() -> None:
    """act between steps of the env, then the game goes on, also after an end."""
    gymnasium.register_envs(ale_py)
    options = {"max_num_frames_per_episode": 300}
    theirs = gymnasium.make("SeaquestNoFrameskip-v4", **options).unwrapped
    ours = gymnasium.make("cule/SeaquestNoFrameskip-v4", **options).unwrapped
    for env in (theirs, ours):
        env.reset(seed=1)
    rng = np.random.default_rng(2)
    for frame in range(340):
        action = int(rng.integers(18))
        if frame % 3:
            a, b = theirs.step(action), ours.step(action)
            np.testing.assert_array_equal(a[0], b[0])
            assert a[1:4] == b[1:4]
        else:
            assert theirs.ale.act(action) == ours.ale.act(action)
        same(theirs.ale, ours.ale, frame)
    assert ours.ale.game_truncated()


def test_an_action_that_the_env_does_not_offer_leaves_no_trace() -> None:
    """FIRE is no action of Freeway, so resets do not press it, even if a frame has."""
    env: Any = gymnasium.make("cule/FreewayPreprocessed-v5", reset_pool_size=0).unwrapped
    found = []
    for _ in range(2):
        observation, _ = env.reset(seed=9)
        found.append([observation, env.ale.getRAM(), env.ale.getScreen()])
        env.ale.act(1)
    for before, after in zip(*found, strict=True):
        np.testing.assert_array_equal(after, before)


def test_a_reported_life_does_not_end_the_game_for_act() -> None:
    env: Any = gymnasium.make("cule/Breakout-v5", life_loss_info=True).unwrapped
    env.reset(seed=SEED)
    ended = False
    for _ in range(400):
        ended = env.step(1)[2]
        if ended:
            break
    assert ended and env.ale.lives() == 4
    before = env.ale.getFrameNumber()
    env.ale.act(1)
    assert env.ale.getFrameNumber() == before + 1
    env.ale.setInt("max_num_frames_per_episode", 9)
    env.ale.loadROM(path_of("breakout"))
    env.ale.reset_game()
    for _ in range(20):
        env.ale.act(1)
    assert env.ale.game_truncated() and env.ale.getEpisodeFrameNumber() == 9


def test_each_rom_without_a_seed_has_another_one() -> None:
    env: Any = gymnasium.make("cule/Pong-v5", seed=7).unwrapped
    env.reset()
    first, second = _core.RANDOM_BYTES[:2]
    seeds = set()
    for _ in range(3):
        env.ale.loadROM(path_of("pong"))
        record = env.env.engine.contents.records()[0].tolist()
        seeds.add((record[first // 4], record[second // 4]))
    assert len(seeds) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_read_as_ales_are(kind: str) -> None:
    theirs, ours = ale_py.ALEInterface(), ALEInterface()
    for round_ in range(2):
        for name in [*DEFAULTS, "no_such_setting"]:
            if (name, kind) == ("sound", "String"):  # ale-py's is "false" until it is set
                continue
            a, b = (getattr(ale, f"get{kind}")(name) for ale in (theirs, ours))
            assert (a, type(a)) == (b, type(b)), name
        if round_ == 0:
            for ale in (theirs, ours):
                ale.setInt("random_seed", 1)
                ale.setFloat("repeat_action_probability", 0.375)
                ale.setBool("color_averaging", True)
                ale.setString("record_screen_dir", "12")


CALLS = (
    "setInt('random_seed', 2**31)", "setInt('random_seed', 1.5)", "setInt('random_seed', True)",
    "setInt('sound_obs', 1)", "setInt('nope', 1)", "setInt(3, 3)", "setFloat('random_seed', 1.5)",
    "setFloat('repeat_action_probability', 1)", "setFloat('repeat_action_probability', '1')",
    "setBool('sound_obs', 1)", "setBool('random_seed', True)", "setString('random_seed', '5')",
    "setString('cpu', 3)", "setMode(99)", "setMode(-1)", "setMode('a')", "setDifficulty(99)",
    "setDifficulty(1.0)", "setRAM(128, 0)", "setRAM(-1, 0)", "setRAM(0, 256)", "setRAM(0, -1)",
    "setRAM(0, 1.0)", "setRAM(numpy.int64(3), numpy.uint8(200))", "act(-1)", "act(1.0)",
    "act(True)", "act(numpy.int64(2))", "act(2, 0.5)", "act(2, paddle_strength=3)", "act(2, 'a')",
    "isSupportedROM('/no/such/file')", "isSupportedROM(readme)", "isSupportedROM(rom)",
    "getInt(3)",
)  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls_and_wrong_calls_do_what_ales_do(call: str, interfaces: tuple[Any, Any]) -> None:
    known = {"numpy": np, "readme": __file__, "rom": path_of("pong")}
    theirs, ours = (
        outcome(lambda ale=ale: eval(f"ale.{call}", {**known, "ale": ale})) for ale in interfaces
    )
    assert theirs == ours and type(theirs) is type(ours)


@pytest.fixture(scope="module")
def interfaces() -> tuple[Any, Any]:
    return pair("pong")


def test_pictures_are_those_of_ale(interfaces: tuple[Any, Any], tmp_path: Path) -> None:
    theirs, ours = interfaces
    for ale, name in ((theirs, "a.png"), (ours, "b.png")):
        ale.reset_game()
        assert ale.saveScreenPNG(str(tmp_path / name)) is None
    a, b = (cv2.imread(str(tmp_path / name), -1) for name in ("a.png", "b.png"))
    np.testing.assert_array_equal(a, b)
    with pytest.raises(RuntimeError, match=r"to write a picture to .*No such file"):
        ours.saveScreenPNG(str(tmp_path / "none" / "c.png"))


def test_states_go_back_as_ales_do(interfaces: tuple[Any, Any]) -> None:
    theirs, ours = pair("breakout")
    states = []
    for ale in (theirs, ours):
        for frame in range(40):
            ale.act(frame % 5)
        states.append((ale.cloneState(), ale.cloneState(include_rng=True), ale.cloneSystemState()))
    for k, restore in ((0, "restoreState"), (1, "restoreState"), (2, "restoreSystemState")):
        for ale, own in zip((theirs, ours), states, strict=True):
            for _ in range(20):
                ale.act(3)
            getattr(ale, restore)(own[k])
        # ale-py shows another picture until the next frame.
        np.testing.assert_array_equal(theirs.getRAM(), ours.getRAM())
        for frame in range(20):
            assert theirs.act(frame % 4) == ours.act(frame % 4)
            same(theirs, ours, frame)


def test_what_cule_cannot_do_is_refused() -> None:
    ale = ALEInterface()
    for name in ("act", "getRAM", "reset_game", "lives"):
        with pytest.raises(RuntimeError, match=rf"loadROM\(\) before {name}\(\)"):
            getattr(ale, name)
    with pytest.raises(AttributeError, match="a method of ale-py's ALEInterface, got 'jump'"):
        ale.jump()
    ale.setBool("color_averaging", True)
    with pytest.raises(RuntimeError, match="color_averaging to be False, as cule has nothing else"):
        ale.loadROM(path_of("pong"))
    ale.setBool("color_averaging", False)
    with pytest.raises(RuntimeError, match=r"the ROM of one of cule.list_games\(\), got"):
        ale.loadROM(__file__)
    ale.loadROM(path_of("pong"))
    with pytest.raises(ValueError, match="an action below 18, got 18"):
        ale.act(18)
    ale.loadROM(path_of("breakout"))  # another game in the same interface
    assert ale.getAvailableModes() == [*find_game("breakout").modes]
    env = gymnasium.make("cule/Pong-v4").unwrapped
    with pytest.raises(
        RuntimeError, match="the ROM of 'pong', which this env plays, got 'breakout'"
    ):
        env.ale.loadROM(path_of("breakout"))
    pooled = gymnasium.make("cule/PongPreprocessed-v5").unwrapped
    with pytest.raises(RuntimeError, match="reset_pool_size=0 for another mode or difficulty"):
        pooled.ale.setMode(1)
