"""Errors say what was expected and what came, and never end the process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from bad_arguments import make
from gymnasium import error

from cule import _core
from cule.engine import allocation
from cule.engine.memory import Memory

# The constructor ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("pongg", "'pong'"), ("MsPackman-v5", "'ms_pacman'"), ("ALE/Break-v5", "'breakout'"),
        ("cule/Breakuot-v5", "'breakout'"), ("PongNoFrameskp-v4", "'pong'"),
        ("invaders", "'space_invaders'"),
        ("Pong-v3", "'pong'"), ("Ms. Packman", "'ms_pacman'"),
    ],
)  # fmt: skip
def test_unknown_game_names_the_closest(name: str, closest: str) -> None:
    with pytest.raises(ValueError, match="expected one of the 104 games") as raised:
        make(name)
    assert repr(name) in str(raised.value)
    assert f"; closest: {closest}" in str(raised.value)


@pytest.mark.parametrize(
    "name", ["", "-", "xxxxxxxxxxxxxxxxx", "pong\0", "../pong", "Pong-v4-v5", "-ram-v4"]
)
def test_unknown_game_without_closest_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected one of the 104 games"):
        make(name)


@pytest.mark.parametrize("game", [None, 3, b"pong", Path("pong"), [], (), ["pong", 3], {"pong"}])
def test_game_of_wrong_type_is_refused(game: Any) -> None:
    with pytest.raises(TypeError, match="expected the name of a game"):
        make(game)


WRONG_OPTIONS = [
    ({"num_envs": 0}, ValueError, "num_envs to be at least 1, got 0"),
    ({"num_envs": -1}, ValueError, "num_envs to be at least 1, got -1"),
    ({"num_envs": 1.5}, TypeError, "num_envs to be an integer, got 1.5"),
    ({"num_envs": True}, TypeError, "num_envs to be an integer, got True"),
    ({"num_envs": "2"}, TypeError, "num_envs to be an integer, got '2'"),
    ({"num_envs": None}, TypeError, "num_envs to be an integer, got None"),
    ({"num_envs": 2**40}, ValueError, "num_envs to be at most"),
    (
        {"game": ["pong", "breakout", "qbert"]},
        ValueError,
        r"num_envs to be at least the number of games \(3\), got 2",
    ),
    ({"frameskip": 0}, ValueError, "frameskip to be at least 1, got 0"),
    ({"frameskip": -4}, ValueError, "frameskip to be at least 1, got -4"),
    ({"frameskip": 2.0}, TypeError, "frameskip to be an integer, got 2.0"),
    ({"frameskip": (2, 5)}, TypeError, r"frameskip to be an integer, got \(2, 5\)"),
    ({"frameskip": 10**9}, ValueError, "frameskip to be at most"),
    ({"stack_num": 0}, ValueError, "stack_num to be at least 1, got 0"),
    ({"stack_num": None}, TypeError, "stack_num to be an integer, got None"),
    ({"stack_num": 2**40}, ValueError, "stack_num to be at most"),
    ({"img_height": 0}, ValueError, "img_height to be at least 1, got 0"),
    ({"img_width": -84}, ValueError, "img_width to be at least 1, got -84"),
    ({"img_height": 84.0}, TypeError, "img_height to be an integer, got 84.0"),
    ({"noop_max": -1}, ValueError, "noop_max to be at least 0, got -1"),
    ({"noop_max": 2**31}, ValueError, "noop_max to be at most"),
    (
        {"max_num_frames_per_episode": 0},
        ValueError,
        "max_num_frames_per_episode to be at least 1, got 0",
    ),
    ({"max_num_frames_per_episode": 2**31}, ValueError, "max_num_frames_per_episode to be at most"),
    ({"noop_max": 10_001}, ValueError, "noop_max to be at most 10000, got 10001"),
    ({"reset_pool_size": 10_001}, ValueError, "reset_pool_size to be at most 10000, got 10001"),
    ({"stack_num": 2**31 - 1}, torch.OutOfMemoryError, "num_envs to fit in the memory of cpu"),
    ({"img_height": 2**31 - 1}, torch.OutOfMemoryError, "num_envs to fit in the memory of cpu"),
    ({"reset_pool_size": -1}, ValueError, "reset_pool_size to be at least 0, got -1"),
    ({"num_threads": -1}, ValueError, "num_threads to be at least 0, got -1"),
    ({"num_threads": 10**6}, ValueError, "num_threads to be at most"),
    (
        {"batch_size": 3},
        ValueError,
        r"batch_size to be at most num_envs \(2\), got 3",
    ),
    (
        {"thread_affinity_offset": -2},
        ValueError,
        "thread_affinity_offset to be at least -1, got -2",
    ),
    ({"seed": -1}, ValueError, "seed to be at least 0, got -1"),
    ({"seed": 2**63}, ValueError, "seed to be at most"),
    (
        {"seed": 2**63 - 1},
        ValueError,
        "seed to be at most 9223372036854775806, got 9223372036854775807",
    ),
    ({"seed": 0.5}, TypeError, "seed to be an integer, got 0.5"),
    (
        {"repeat_action_probability": 1.5},
        ValueError,
        "repeat_action_probability to be from 0 to 1, got 1.5",
    ),
    (
        {"repeat_action_probability": float("nan")},
        ValueError,
        "repeat_action_probability to be from 0 to 1, got nan",
    ),
    (
        {"repeat_action_probability": "1"},
        TypeError,
        "repeat_action_probability to be a number, got '1'",
    ),
    (
        {"continuous_action_threshold": -0.1},
        ValueError,
        "continuous_action_threshold to be from 0 to 1, got -0.1",
    ),
    (
        {"continuous_action_threshold": None},
        TypeError,
        "continuous_action_threshold to be a number, got None",
    ),
    ({"mode": 99}, ValueError, r"expected a mode of 'pong' \(0, 1\), got 99"),
    ({"mode": -1}, ValueError, "mode to be at least 0, got -1"),
    (
        {"mode": [0, 1, 0]},
        ValueError,
        r"mode to be one integer for all envs or a list of 2, .* got 3 of them, \[0, 1, 0\]",
    ),
    ({"mode": 0.5}, TypeError, "mode to be an integer or one for each env, got 0.5"),
    ({"mode": "0"}, TypeError, "mode to be an integer or one for each env, got '0'"),
    ({"mode": [0, "1"]}, TypeError, "mode to be an integer, got '1'"),
    ({"mode": True}, TypeError, "mode to be an integer or one for each env, got True"),
    ({"difficulty": 9}, ValueError, "expected a difficulty of 'pong' .* got 9"),
    ({"difficulty": 1.0}, TypeError, "difficulty to be an integer or one for each env, got 1.0"),
    (
        {"difficulty": [0]},
        ValueError,
        "difficulty to be one integer .* list of 2, one for each env, got 1",
    ),
    (
        {"autoreset_mode": "Sometimes"},
        ValueError,
        "autoreset_mode to be 'next_step' or 'same_step' or 'disabled', got 'Sometimes'",
    ),
    ({"autoreset_mode": "same"}, ValueError, "got 'same'; closest: 'same_step'"),
    ({"obs_type": "images"}, ValueError, "got 'images'; closest: 'image'"),
    ({"autoreset_mode": 1}, ValueError, "autoreset_mode to be .* got 1"),
    ({"autoreset_mode": None}, ValueError, "autoreset_mode to be .* got None"),
    ({"obs_type": "rgb"}, ValueError, "obs_type to be 'image' or 'ram' or 'objects', got 'rgb'"),
    ({"obs_type": ("ram", "ram")}, ValueError, "obs_type to name each part once"),
    ({"obs_type": []}, ValueError, "obs_type to name each part once"),
    ({"obs_type": ("ram", "rgb")}, ValueError, "obs_type to be 'image' or 'ram' or 'objects'"),
    (
        {"obs_type": "ram", "autoreset_mode": "SameStep"},
        ValueError,
        "obs_type='image' with autoreset_mode SAME_STEP",
    ),
    (
        {"render_mode": "ansi"},
        ValueError,
        "render_mode to be None or 'human' or 'rgb_array' or .* got 'ansi'",
    ),
    ({"render_mode": 1}, ValueError, "render_mode to be None or .* got 1"),
    ({"progress": "no"}, TypeError, "progress to be True or False, got 'no'"),
    ({"output": "jax"}, ValueError, "output to be 'torch' or 'torch_shared' or 'numpy', got 'jax'"),
    (
        {"device": "tpu"},
        ValueError,
        "expected a device such as 'cpu', 'cuda' or 'cuda:1', got 'tpu'",
    ),
    ({"device": ""}, ValueError, "expected a device"),
    ({"device": 1.5}, ValueError, "expected a device such as .* got 1.5"),
    ({"device": ["cpu"]}, ValueError, "expected a device such as"),
    ({"device": "meta"}, ValueError, "expected device 'cpu' or 'cuda', got 'meta'"),
    ({"grayscale": "no"}, TypeError, "grayscale to be True or False, got 'no'"),
    ({"maxpool": 1}, ValueError, "maxpool to be at least 2, got 1"),
    ({"continuous": None}, TypeError, "continuous to be True or False, got None"),
    ({"full_action_space": "yes"}, TypeError, "full_action_space to be True or False, got 'yes'"),
    ({"episodic_life": 1}, TypeError, "episodic_life to be True or False, got 1"),
    ({"life_loss_info": []}, TypeError, "life_loss_info to be True or False"),
    ({"reward_clipping": 0.0}, TypeError, "reward_clipping to be True or False, got 0.0"),
    ({"use_fire_reset": "x"}, TypeError, "use_fire_reset to be True or False, got 'x'"),
]


@pytest.mark.parametrize(
    ("options", "exception", "message"), WRONG_OPTIONS, ids=lambda value: str(value)[:60]
)
def test_wrong_option_is_refused(
    options: dict[str, Any], exception: type[Exception], message: str
) -> None:
    """Errors about arguments can be caught as gymnasium.error.Error."""
    with pytest.raises(exception, match=message) as raised:
        make(**options)
    assert isinstance(raised.value, error.Error) == (exception is not torch.OutOfMemoryError)


@pytest.mark.skipif(_core.has_cuda(), reason="this build has CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7", torch.device("cuda")])
def test_cuda_without_a_cuda_build_is_refused(device: Any) -> None:
    with pytest.raises(
        ValueError, match=r"was asked for, but this cule was built without CUDA; .*CULE_CUDA=ON"
    ):
        make(device=device)


def test_cuda_build_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ValueError, match=r"device='cuda' was asked for, but torch finds no usable CUDA GPU here"
    ):
        make(device="cuda")
    assert make(device=None).device == torch.device("cpu")


def test_cuda_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs are pretended; tests/env/test_cuda.py does this with real ones."""
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for device in ("cuda:2", torch.device("cuda", 2), "cuda:99"):
        with pytest.raises(
            ValueError, match=r"expected a CUDA device below cuda:2, got .*cuda.*\d"
        ):
            make(device=device)


# Memory -------------------------------------------------------------------------------------------


def test_more_envs_than_memory_holds_are_refused() -> None:
    """Stacks of two billion frames take 15 terabytes an env."""
    with pytest.raises(
        torch.OutOfMemoryError, match="expected num_envs to fit in the memory of cpu, got 64"
    ) as raised:
        make(num_envs=64, stack_num=2**31 - 1)
    said = re.search(
        r"takes (\d+) bytes.* and there are ([\d.]+) GiB, enough for (\d+) at most",
        str(raised.value),
    )
    observations = (2**31 - 1) * 84 * 84
    assert observations < int(said[1]) < observations + 2**20
    assert int(said[3]) == float(said[2]) * 2**30 // int(said[1]) == 0


@pytest.mark.parametrize("gib", [1, 30])
def test_out_of_memory_says_how_many_envs_would_fit(
    gib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device says that it has too little memory, even where it seems to have enough.

    The message then names fewer envs than were asked for.
    """
    envs, room = 2_000, gib << 30
    real_zeros = torch.zeros

    def zeros(shape: Any, **options: Any) -> torch.Tensor:
        if shape[0] == envs:
            raise torch.OutOfMemoryError("out of memory")
        return real_zeros(shape, **options)

    bytes_per_env = make(num_envs=3).engine.bytes_per_env
    monkeypatch.setattr(allocation, "free_bytes", lambda device: room)
    monkeypatch.setattr(torch, "zeros", zeros)
    fitting = min(room // bytes_per_env, envs - 1)
    with pytest.raises(
        torch.OutOfMemoryError, match=f"takes {bytes_per_env} bytes.* enough for {fitting} at most$"
    ):
        make(num_envs=envs)


def test_bytes_per_env_are_those_of_its_tensors() -> None:
    few, many = make(num_envs=1).engine, make(num_envs=11).engine
    grown = sum(many.tensors[name].nbytes - tensor.nbytes for name, tensor in few.tensors.items())
    assert few.bytes_per_env == many.bytes_per_env
    assert 0 <= grown / 10 - few.bytes_per_env < 16  # the index of the env's group and the like


def test_other_failures_of_torch_are_not_taken_for_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def place(*_: Any) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr(Memory, "place_zeros", place)
    with pytest.raises(RuntimeError, match=r"^something else$"):
        make()


@pytest.mark.parametrize(("height", "width"), [(4097, 84), (84, 4097), (5000, 5000)])
def test_observation_larger_than_the_largest_is_refused(height: int, width: int) -> None:
    with pytest.raises(
        ValueError, match=r"expected observations of at most 4096 x 4096 pixels, got img_height"
    ):
        make(img_height=height, img_width=width)
