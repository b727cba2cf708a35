"""Envs whose observations have no images: what they play and draw is what envs with images do."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import cule
from cule.env.settings import OF_IMAGES

# The instruction limit cuts frames of the last two off, so that earlier frames show.
GAMES = ("pong", "qbert", "turmoil", "video_chess", "othello")
COMMON = {"num_threads": 1, "output": "torch_shared", "max_num_frames_per_episode": 300}


def played(
    obs_type: Any, games: tuple[str, ...], device: str, steps: int, **options: Any
) -> list[list[torch.Tensor]]:
    """For each step: RAM, rewards, endings, and the screens that `render` would show."""
    env = cule.AtariEnv(games, len(games), device, obs_type=obs_type, **COMMON, **options)
    env.reset(seed=5)
    generator = torch.Generator().manual_seed(7)
    found = []
    for _ in range(steps):
        actions = torch.randint(18, (len(games),), generator=generator)
        _, rewards, terminated, truncated, infos = env.step(actions.to(env.device))
        rows = (env.get_ram(), rewards, terminated, truncated, infos["frame_number"])
        screens = [torch.as_tensor(screen).cpu() for screen in env.get_screen()]
        found.append([torch.as_tensor(row).cpu().clone() for row in rows] + screens)
    env.close()
    return found


@pytest.mark.parametrize("obs_type", ["ram", "objects", ("ram", "objects")])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"frameskip": 1},
        {"frameskip": 5, "maxpool": 3},
        {"reset_pool_size": 0, "repeat_action_probability": 0.25},
    ],
    ids=str,
)
def test_envs_without_images_play_and_draw_what_others_do(
    obs_type: Any, options: dict[str, Any], device: str
) -> None:
    options = {**options, "full_action_space": True}
    with_images = played("image", GAMES, device, 90, **options)
    options.pop("maxpool", None)  # how many frames an image is made of
    without = played(obs_type, GAMES, device, 90, **options)
    for step, (expected, found) in enumerate(zip(with_images, without, strict=True)):
        for one, other in zip(expected, found, strict=True):
            assert torch.equal(one, other), step


@pytest.mark.parametrize("obs_type", ["ram", "objects", ("ram", "objects")])
@pytest.mark.parametrize(
    ("name", "value"),
    [("img_height", 42), ("img_width", 42), ("grayscale", False), ("stack_num", 1),
     ("maxpool", False), ("maxpool", 3)],
)  # fmt: skip
def test_what_is_said_of_images_needs_images(obs_type: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"expected obs_type with 'image' for {name}={value}, got"):
        cule.AtariEnv("pong", 1, "cpu", obs_type=obs_type, **{name: value})


def test_keywords_of_images_have_their_defaults() -> None:
    parameters = inspect.signature(cule.AtariEnv).parameters
    assert {name: parameters[name].default for name in OF_IMAGES} == OF_IMAGES


def test_final_objects_are_those_of_envs_with_images(device: str) -> None:
    found = []
    for obs_type in (("image", "objects"), "objects"):
        env = cule.AtariEnv(
            "pong", 4, device, obs_type=obs_type, autoreset_mode="SameStep", **COMMON
        )
        env.reset(seed=1)
        finals = []
        for _ in range(80):
            infos = env.step(torch.zeros(4, dtype=torch.int64, device=env.device))[4]
            if "final_obs" in infos:
                final = infos["final_obs"]
                finals.append((final["objects"] if obs_type != "objects" else final).cpu().clone())
        env.close()
        found.append(finals)
    assert len(found[0]) == len(found[1]) > 0
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_states_of_envs_with_images_fit_those_without_and_no_others(device: str) -> None:
    images, objects = (
        cule.AtariEnv("pong", 2, device, obs_type=kind, **COMMON) for kind in ("image", "objects")
    )
    images.reset(seed=1)
    objects.reset(seed=2)
    for _ in range(20):
        images.step(torch.ones(2, dtype=torch.int64, device=images.device))
    objects.restore_state(images.clone_state())
    assert torch.equal(torch.as_tensor(objects.get_ram()), torch.as_tensor(images.get_ram()))
    for env in (images, objects):
        env.step(torch.zeros(2, dtype=torch.int64, device=env.device))
    assert torch.equal(torch.as_tensor(objects.get_ram()), torch.as_tensor(images.get_ram()))
    with pytest.raises(ValueError, match=r"expected observations of shape \(4, 84, 84\)"):
        images.restore_state(objects.clone_state())
    images.close()
    objects.close()
