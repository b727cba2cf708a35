"""Presets are what their sources say, and docs/api.md shows them as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import cule
from cule import presets

NAMES = ("DQN_2015", "MACHADO_2017", "DOPAMINE", "BASELINES", "ENVPOOL")
# As EnvPool's documentation lists them, under its names; 27,000 steps of 4 frames.
ENVPOOLS_DEFAULTS = {
    "img_height": 84, "img_width": 84, "stack_num": 4, "gray_scale": True, "frame_skip": 4,
    "noop_max": 30,
    "episodic_life": False, "reward_clip": False, "repeat_action_probability": 0,
    "use_fire_reset": True,
    "full_action_space": False, "max_episode_steps": 27_000,
}  # fmt: skip
OUR_NAMES = {
    "gray_scale": "grayscale", "frame_skip": "frameskip", "reward_clip": "reward_clipping",
    "episodic_life": "life_loss_info",
}  # fmt: skip


def make(preset: Mapping[str, Any], **options: Any) -> cule.AtariEnv:
    return cule.AtariEnv(
        "breakout", 2, "cpu", num_threads=1, reset_pool_size=2, **preset, **options
    )


@pytest.mark.parametrize("name", NAMES)
def test_preset_makes_an_env_with_its_values(name: str) -> None:
    preset = getattr(presets, name)
    env = make(preset)
    options = env.engine.options
    assert (options.frameskip, options.stack, options.maxpool) == (
        preset["frameskip"],
        preset["stack_num"],
        True,
    )
    assert options.max_frames == preset["max_num_frames_per_episode"]
    assert (options.noop_max, options.fire_reset) == (preset["noop_max"], preset["use_fire_reset"])
    assert (options.life_loss_info, options.episodic_life) == (preset["life_loss_info"], False)
    assert options.repeat_action_probability == preset["repeat_action_probability"]
    assert options.reward_clipping == preset["reward_clipping"]
    assert env.single_observation_space.shape == (4, 84, 84)
    assert env.single_action_space.n == (18 if preset["full_action_space"] else 4)
    env.reset(seed=0)
    assert env.step([1, 1])[0].shape == (2, 4, 84, 84)


def test_presets_have_the_same_keywords_and_cannot_be_changed() -> None:
    assert len({frozenset(getattr(presets, name)) for name in NAMES}) == 1
    with pytest.raises(TypeError, match="does not support item assignment"):
        presets.DQN_2015["frameskip"] = 3  # type: ignore[index]
    assert make(presets.DQN_2015 | {"frameskip": 3}).engine.options.frameskip == 3
    assert presets.DQN_2015["frameskip"] == 4


def test_values_are_those_of_the_sources() -> None:
    """Checks what each source is known for."""
    sticky = {name: getattr(presets, name)["repeat_action_probability"] for name in NAMES}
    assert sticky == {
        "DQN_2015": 0,
        "MACHADO_2017": 0.25,
        "DOPAMINE": 0.25,
        "BASELINES": 0,
        "ENVPOOL": 0,
    }
    life = {name for name in NAMES if getattr(presets, name)["life_loss_info"]}
    assert life == {"DQN_2015", "BASELINES"}
    limits = [getattr(presets, name)["max_num_frames_per_episode"] // 60 / 60 for name in NAMES[:3]]
    assert limits == [5, 30, 30]
    assert [name for name in NAMES if getattr(presets, name)["full_action_space"]] == [
        "MACHADO_2017"
    ]
    assert [getattr(presets, name)["frameskip"] for name in NAMES] == [4, 5, 4, 4, 4]


def test_envpools_preset_is_its_defaults() -> None:
    documented = {OUR_NAMES.get(name, name): value for name, value in ENVPOOLS_DEFAULTS.items()}
    documented["max_num_frames_per_episode"] = (
        documented.pop("max_episode_steps") * documented["frameskip"]
    )
    assert dict(presets.ENVPOOL) == documented | {"maxpool": True, "episode_start": "envpool"}


def test_documentation_has_the_table_of_presets() -> None:
    """The table has a row for each keyword and a column for each preset.

    Keywords that are equal in all presets are left out.
    """
    page = (Path(cule.__file__).parents[1] / "docs" / "api.md").read_text()
    header = "| keyword | " + " | ".join(f"`{name}`" for name in NAMES) + " |"
    assert header in page
    rows = page[page.index(header) :].split("\n\n")[0].splitlines()[2:]
    told = set()
    for row in rows:
        keyword, *values = (cell.strip() for cell in row.strip("|").split("|"))
        keyword = re.sub("`", "", keyword)
        assert values == [str(getattr(presets, name)[keyword]) for name in NAMES], keyword
        told.add(keyword)
    differing = {
        key for key in presets.ENVPOOL if len({getattr(presets, name)[key] for name in NAMES}) > 1
    }
    assert told == differing
