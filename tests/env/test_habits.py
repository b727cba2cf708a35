"""What users of gymnasium expect: render modes, `with`, names of modes, specs, errors, wrappers of
arrays."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import error
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import cule
from cule.env import keywords as env_keywords
from tests.support import warm

SMALL: dict[str, Any] = {"device": "cpu", "num_threads": 1, "reset_pool_size": 1}


def make(game: Any = "pong", num_envs: int = 2, **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv(game, num_envs, **(SMALL | options))


# Names --------------------------------------------------------------------------------------------


def test_with_closes_the_env() -> None:
    with make() as env:
        env.reset(seed=0)
        assert not env.closed
    assert env.closed
    with pytest.raises(ZeroDivisionError), make() as env:
        raise ZeroDivisionError
    assert env.closed
    with cule.EpisodeStatistics(make()) as wrapped:
        wrapped.reset(seed=0)
    assert wrapped.closed


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_autoreset_mode_has_every_spelling(mode: AutoresetMode) -> None:
    for spelling in (
        mode,
        mode.value,
        mode.name,
        mode.name.lower(),
        mode.name.lower().replace("_", "-"),
    ):
        assert make("pong", 1, autoreset_mode=spelling).metadata["autoreset_mode"] is mode


def test_action_meanings_have_ale_pys_name_too() -> None:
    env = make()
    assert env.get_action_meanings() == env.action_meanings
    assert env.get_action_meanings() == ["NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE"]


def test_list_games_gives_the_names_of_all_games() -> None:
    assert cule.list_games() == [game.name for game in cule.games()]
    assert {"pong", "ms_pacman"} <= set(cule.list_games())


def test_class_is_gymnasiums_env_with_its_own_methods() -> None:
    """skrl looks at the bases that the class of an env names, and at no others.

    Whoever reads the class finds what plays in it.
    """
    assert cule.AtariEnv.__bases__ == (gymnasium.vector.VectorEnv,)
    assert {"reset", "step", "step_async", "step_wait"} <= vars(cule.AtariEnv).keys()


def test_repr_says_game_count_and_device() -> None:
    env = make("breakout", 3)
    assert repr(env) == "AtariEnv('breakout', num_envs=3, device='cpu')"
    assert repr(cule.EpisodeStatistics(env)) == f"<EpisodeStatistics, {env!r}>"
    env.close()
    assert repr(env) == "AtariEnv('breakout', num_envs=3, device='cpu', closed)"
    mixed = make(["pong", "breakout", "skiing", "boxing", "tennis"], 5)
    assert repr(mixed) == "AtariEnv('pong, breakout, skiing and 2 more', num_envs=5, device='cpu')"
    assert repr(cule.AtariEnv.__new__(cule.AtariEnv)) == "AtariEnv()"


@pytest.mark.parametrize("mask", [[True, False], (True, False), np.array([True, False])], ids=str)
def test_reset_mask_may_be_a_list(mask: Any) -> None:
    env = make(max_num_frames_per_episode=1000)
    env.reset(seed=0, options={"reset_mask": [True, True]})
    for _ in range(5):
        env.step([0, 0])
    before = env.step([0, 0])[4]["episode_frame_number"].tolist()
    after = env.reset(options={"reset_mask": mask})[1]["episode_frame_number"].tolist()
    assert after[0] < before[0]
    assert after[1] == before[1]


# Specs --------------------------------------------------------------------------------------------


def test_spec_makes_the_same_env() -> None:
    options: dict[str, Any] = {
        "frameskip": 3, "stack_num": 2, "mode": [0, 1], "autoreset_mode": "SameStep", "seed": 7,
        "output": "torch",
        "render_mode": "rgb_array", "maxpool": np.bool_(False),
    }  # fmt: skip
    env = make(**options)
    again = gymnasium.make_vec(env.spec)
    assert env.spec.id == again.spec.id == "cule/PongPreprocessed-v5"
    assert again.engine.options == env.engine.options
    assert (again.engine.groups, again.num_envs) == (env.engine.groups, 2)
    assert (again.output, again.render_mode, again.consoles.first_seed()) == (
        "torch",
        "rgb_array",
        7,
    )
    assert torch.equal(env.reset()[0], again.reset()[0])
    assert again.spec.kwargs == env.spec.kwargs
    assert json.loads(env.spec.to_json())["kwargs"]["mode"] == [0, 1]


def test_batch_of_several_games_has_no_spec() -> None:
    assert make(["pong", "breakout"]).spec is None
    assert gymnasium.make_vec("cule/Pong-v5", num_envs=2, **SMALL).spec.kwargs["num_envs"] == 2


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num_env", "num_envs"), ("numenvs", "num_envs"), ("n_envs", "num_envs"), ("frame_skip",
        "frameskip"), ("gray_scale", "grayscale"), ("greyscale", "grayscale"), ("reward_clip",
        "reward_clipping"), ("obs_size", "img_height and img_width"), ("clip_reward",
        "reward_clipping"), ("FrameSkip", "frameskip"), ("max_episode_steps",
        "max_num_frames_per_episode, which counts frames: steps times frameskip"), ("noops_max",
        "noop_max"), ("sticky_actions", "repeat_action_probability"), ("env_name", "game"),
    ],
)  # fmt: skip
def test_unknown_keyword_names_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match="expected a keyword of AtariEnv, got") as raised:
        make(**{name: 4})
    assert str(raised.value).endswith(f"got {name!r}; did you mean {meant}?")
    assert isinstance(raised.value, error.Error)


def test_unknown_keyword_like_none_says_where_they_are_listed() -> None:
    with pytest.raises(TypeError, match=r"got 'xyzzy': help\(cule.AtariEnv\) lists them$"):
        make(xyzzy=1)
    with pytest.raises(TypeError, match="got 'frame_skip'; did you mean frameskip"):
        gymnasium.make_vec("cule/Pong-v5", frame_skip=4, **SMALL)
    with pytest.raises(TypeError, match="got 'frame_skip'; did you mean frameskip"):
        gymnasium.make("cule/Pong-v5", frame_skip=4, **SMALL)


def test_other_libraries_names_lead_to_keywords_that_there_are() -> None:
    keywords = inspect.signature(cule.AtariEnv).parameters
    assert "num_envs" in keywords, "the signature is the constructor's own"
    for name, meant in env_keywords.OTHER_NAMES.items():
        assert name not in keywords
        assert set(meant.split(",")[0].split(" and ")) <= set(keywords)


@pytest.mark.parametrize("kind", [cule.errors.InvalidValue, cule.errors.InvalidType])
def test_errors_of_arguments_are_pythons_and_gymnasiums(kind: type[Exception]) -> None:
    assert issubclass(kind, error.Error)
    assert issubclass(kind, ValueError) != issubclass(kind, TypeError)


# Wrappers of arrays -------------------------------------------------------------------------------

OF_ARRAYS: list[tuple[type, Any]] = [
    (wrappers.RecordEpisodeStatistics, ()), (wrappers.DictInfoToList, ()),
    (wrappers.NormalizeObservation, ()), (wrappers.NormalizeReward, ()), (wrappers.ClipReward, (-1,
    1)), (wrappers.FlattenObservation, ()), (wrappers.ResizeObservation, ((20, 20),)),
    (wrappers.RescaleObservation, (0.0, 1.0)), (wrappers.DtypeObservation, (np.float32,)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wrapper", "arguments"), OF_ARRAYS, ids=lambda value: getattr(value, "__name__", "")
)
def test_wrapper_of_arrays_refuses_tensors(wrapper: type, arguments: tuple[Any, ...]) -> None:
    said = (
        f"expected an env with output='numpy' in gymnasium's {wrapper.__name__}, which computes "
        "with arrays"
    )
    with pytest.raises(ValueError, match=said):
        wrapper(make(), *arguments).reset(seed=0)
    inside = wrappers.TransformAction(
        wrapper(cule.EpisodeStatistics(make()), *arguments), lambda action: action
    )
    with pytest.raises(ValueError, match=said):
        inside.reset(seed=0)


def test_tensors_handed_on_by_a_wrapper_do_not_change_later() -> None:
    """gymnasium's NumpyToTorch hands on tensors as they are."""
    pytest.importorskip("array_api_compat")  # gymnasium's array conversions need it
    env = wrappers.NumpyToTorch(make(), "cpu")
    kept = [env.reset(seed=0)[0]] + [env.step([2, 3])[0] for _ in range(9)]
    plain = make(output="numpy")
    expected = [plain.reset(seed=0)[0]] + [plain.step([2, 3])[0] for _ in range(9)]
    for mine, theirs in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_buffers_behind_wrappers_keep_what_came(mode: str, output: str) -> None:
    """All that calls return, infos too, is as it was when later steps have been played."""
    env: Any = make(output=output, autoreset_mode=mode, max_num_frames_per_episode=30)
    env = cule.EpisodeStatistics(env) if output == "torch" else env
    env = wrappers.TransformAction(env, lambda action: action)
    kept: list[tuple[Any, Any]] = []
    for results in (env.reset(seed=0), *(env.step([2, 3]) for _ in range(20))):
        info = results[-1]
        entries = info | info.pop("episode", {})
        parts = [*results[:-1], *entries.values()]
        kept += [(part, copy.deepcopy(part)) for part in parts]
    assert len(kept) > 300
    assert all((part == then).all() for part, then in kept)


def test_wrappers_of_other_libraries_refuse_shared_tensors() -> None:
    """cule's own, and a user's, do not."""
    shared = cule.EpisodeStatistics(make(output="torch_shared"))
    for wrapper in (lambda env: wrappers.TransformReward(env, abs), Foreign):
        with pytest.raises(
            ValueError, match=r"expected an env with output='torch' in \w+'s \w+, w"
        ):
            wrapper(shared).reset(seed=0)
    shared.reset(seed=0)
    Mine(shared).reset(seed=0)


class Mine(gymnasium.vector.VectorWrapper):
    """A wrapper of a user."""


class Foreign:
    """Calls an env as skrl's wrapper does, which is no VectorWrapper."""

    __module__ = "skrl.envs.wrappers.torch.gymnasium_envs"

    def __init__(self, env: gymnasium.vector.VectorEnv):
        self._env = env

    def reset(self, seed: int) -> Any:
        return self._env.reset(seed=seed)


def test_wrapper_of_anything_takes_tensors() -> None:
    env = wrappers.TransformReward(
        wrappers.TransformObservation(make(), lambda o: o + 1), lambda reward: reward * 2
    )
    env.reset(seed=0)
    assert all(isinstance(value, torch.Tensor) for value in env.step([0, 0])[:4])
    base = make()
    counted = wrappers.RecordEpisodeStatistics(make(output="numpy"))
    counted.reset(seed=0)
    base.reset(seed=0)  # its caller is no wrapper of it


# Pictures -----------------------------------------------------------------------------------------


def test_list_of_pictures_has_those_since_the_last_reset_or_render(device: str) -> None:
    env, single = (
        make(render_mode=mode, device=device) for mode in ("rgb_array_list", "rgb_array")
    )
    shown: list[tuple[np.ndarray, ...]] = []
    for one in (env, single):
        one.reset(seed=3)
    shown.append(single.render())
    for _ in range(3):
        for one in (env, single):
            one.step([2, 3])
        shown.append(single.render())
    pictures = env.render()
    assert [len(frames) for frames in pictures] == [4, 4]
    for i in range(2):
        np.testing.assert_array_equal(np.stack(pictures[i]), np.stack([step[i] for step in shown]))
    assert env.render() == ([], [])
    env.step([0, 0])
    env.reset(options={"reset_mask": [False, True]})
    assert [len(frames) for frames in env.render()] == [1, 1]
    for _ in range(2):
        env.step([0, 0])
    env.reset(options={"reset_mask": [False, True]})
    assert [len(frames) for frames in env.render()] == [2, 1]


def test_list_of_pictures_has_each_games_colors() -> None:
    env, single = (
        make(["pong", "air_raid"], render_mode=mode) for mode in ("rgb_array_list", "rgb_array")
    )
    for one in (env, single):
        one.reset(seed=3)
    for frames, picture in zip(env.render(), single.render(), strict=True):
        np.testing.assert_array_equal(frames[0], picture)


def play_in(
    mode: str, environment: dict[str, str], code: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a process that plays with a render mode, and with these and no other variables about
    displays."""
    program = (
        "import cule\n"
        f"env = cule.AtariEnv('pong', 2, 'cpu', render_mode={mode!r}, num_threads=1, "
        "reset_pool_size=1, frameskip=1)\n"
        "env.reset(seed=0)\n"
        "for _ in range(5): env.step([0, 0])\n" + code
    )
    kept = {
        "PATH": "/usr/bin",
        "PYTHONPATH": str(Path(cule.__file__).parents[1]),
        "HOME": "/nowhere",
    }
    return warm.run(["-c", program], env=kept | environment)


def test_human_shows_the_mosaic_in_a_window() -> None:
    """The window is of SDL's driver for tests, whose surface can be read."""
    done = play_in(
        "human",
        {"SDL_VIDEODRIVER": "dummy"},
        "import pygame\n"
        "surface = pygame.display.get_surface()\n"
        "print(env.render(), surface.get_size(), pygame.display.get_caption()[0])\n"
        "shown = pygame.surfarray.array3d(surface)\n"
        "print(len(set(map(tuple, shown.reshape(-1, 3)))) > 3)\n"
        "pygame.event.post(pygame.event.Event(pygame.QUIT))\n"
        "env.step([0, 0]); print(pygame.display.get_init())\n"
        "env.step([0, 0]); env.reset(); env.close(); env.close()\n",
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.split("\n")
    assert said[0].startswith("None (")
    assert said[0].endswith("cule: pong")
    assert said[1:3] == ["True", "False"]


@pytest.mark.parametrize("environment", [{}, {"DISPLAY": ":99"}], ids=str)
def test_human_without_a_display_is_refused(environment: dict[str, str]) -> None:
    done = play_in("human", environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "expected a display for render_mode='human', but it takes no window" in last
    assert "render_mode='rgb_array' gives pictures" in last


def test_human_without_pygame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(error.DependencyNotInstalled, match=r"pip install pygame"):
        make(render_mode="human")
