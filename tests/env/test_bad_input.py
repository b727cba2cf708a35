"""Errors say what was expected and what came, and never end the process."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import error

import cule
from cule import _core, engine
from cule.rom import LARGEST_IMAGE, ROM_DIR_VARIABLE, find_game, load_rom, rom_path


def make(game: Any = "pong", num_envs: Any = 2, **options: Any) -> cule.AtariEnv:
    options = {"device": "cpu", "num_threads": 1, "reset_pool_size": 2} | options
    return cule.AtariEnv(game, num_envs, **options)


def started(game: Any = "pong", num_envs: int = 2, **options: Any) -> cule.AtariEnv:
    env = make(game, num_envs, **options)
    env.reset(seed=0)
    return env


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
        {"batch_size": 1},
        ValueError,
        r"batch_size to be 0 or num_envs \(2\), as cule steps all envs at once, got 1",
    ),
    (
        {"thread_affinity_offset": 0},
        ValueError,
        "thread_affinity_offset to be -1, as cule pins no threads, got 0",
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
    ({"mode": [0, 1, 0]}, ValueError, "mode to be one integer or 2 of them, got 3"),
    ({"mode": 0.5}, TypeError, "mode to be an integer or one for each env, got 0.5"),
    ({"mode": "0"}, TypeError, "mode to be an integer or one for each env, got '0'"),
    ({"mode": [0, "1"]}, TypeError, "mode to be an integer, got '1'"),
    ({"mode": True}, TypeError, "mode to be an integer or one for each env, got True"),
    ({"difficulty": 9}, ValueError, "expected a difficulty of 'pong' .* got 9"),
    ({"difficulty": 1.0}, TypeError, "difficulty to be an integer or one for each env, got 1.0"),
    ({"difficulty": [0]}, ValueError, "difficulty to be one integer or 2 of them, got 1"),
    (
        {"autoreset_mode": "Sometimes"},
        ValueError,
        "autoreset_mode to be one of .*NextStep.* got 'Sometimes'",
    ),
    ({"autoreset_mode": 1}, ValueError, "autoreset_mode to be one of .* got 1"),
    ({"autoreset_mode": None}, ValueError, "autoreset_mode to be one of .* got None"),
    ({"obs_type": "rgb"}, ValueError, "obs_type to be 'image' or 'ram', got 'rgb'"),
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
    ({"output": "jax"}, ValueError, "output to be 'torch' or 'numpy', got 'jax'"),
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
    ({"maxpool": 2}, TypeError, "maxpool to be True or False, got 2"),
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
    """With two pretended GPUs; tests/env/test_cuda.py does this with real ones."""
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
    """Stacks of two billion frames: 15 terabytes an env."""
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
    """With the device's word that memory is out, whatever it is; fewer envs than came are said to
    fit all the same."""
    envs, room = 2_000, gib << 30
    real_zeros = torch.zeros

    def zeros(shape: Any, **options: Any) -> torch.Tensor:
        if shape[0] == envs:
            raise torch.OutOfMemoryError("out of memory")
        return real_zeros(shape, **options)

    bytes_per_env = make(num_envs=3).engine.bytes_per_env
    monkeypatch.setattr(engine, "free_bytes", lambda device: room)
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

    monkeypatch.setattr(engine.Engine, "_place_envs", place)
    with pytest.raises(RuntimeError, match=r"^something else$"):
        make()


@pytest.mark.parametrize(("height", "width"), [(4097, 84), (84, 4097), (5000, 5000)])
def test_observation_larger_than_the_largest_is_refused(height: int, width: int) -> None:
    with pytest.raises(
        ValueError, match=r"expected observations of at most 4096 x 4096 pixels, got img_height"
    ):
        make(img_height=height, img_width=width)


# ROM files ----------------------------------------------------------------------------------------


def corrupt(kind: str, image: bytes) -> bytes:
    flipped = image[:100] + bytes([image[100] ^ 1]) + image[101:]
    return {"truncated": image[:-1], "half": image[: len(image) // 2], "altered": flipped, "empty": b"",
            "longer": image + b"\0", "random": b"\xa5" * 5000}[kind]  # fmt: skip


@pytest.mark.parametrize("kind", ["truncated", "half", "altered", "empty", "longer", "random"])
def test_wrong_rom_file_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = find_game("pong")
    image = corrupt(kind, rom_path(game).read_bytes())
    path = tmp_path / "pong.bin"
    path.write_bytes(image)
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="to be the ROM of 'pong' with MD5") as raised:
        load_rom(game)
    text = str(raised.value)
    assert str(path) in text
    assert game.md5 in text
    assert f"got {len(image)} bytes with MD5 " in text
    assert "which is no ROM that cule knows" in text


def test_rom_of_another_game_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pong.bin").write_bytes(rom_path(find_game("breakout")).read_bytes())
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="which is the ROM of 'breakout'"):
        load_rom(find_game("pong"))


def test_missing_rom_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(
        ValueError,
        match=r"expected the ROM of 'pong' at .*pong.bin, but it cannot be read: No such",
    ):
        load_rom(find_game("pong"))
    (tmp_path / "pong.bin").mkdir()
    with pytest.raises(
        ValueError, match=r"expected the ROM of 'pong' at .*pong.bin, but it cannot be read"
    ):
        load_rom(find_game("pong"))


@pytest.mark.parametrize("size", [LARGEST_IMAGE + 1, 50 << 30])
def test_larger_file_than_any_rom_is_refused_unread(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger one is a hole in a file: reading it would take 50 GiB of memory."""
    with open(tmp_path / "pong.bin", "wb") as file:
        file.truncate(size)
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(
        ValueError, match=rf"ROM of 'pong', and so at most {LARGEST_IMAGE} bytes, got {size}$"
    ):
        load_rom(find_game("pong"))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("/dev/zero", "got a device in place of a file"),
        ("/dev/null", "got a device in place of a file"),
        ("/proc/self/smaps", f"at most {LARGEST_IMAGE} bytes, got {LARGEST_IMAGE + 1}"),
        (None, "got a FIFO in place of a file"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_as_a_rom(target: str | None, says: str, tmp_path: Path) -> None:
    """In a process of its own, which can be ended if it waits for somebody to write to the FIFO."""
    path = tmp_path / "pong.bin"
    if target:
        path.symlink_to(target)
    else:
        os.mkfifo(path)
    code = (
        "from cule.rom import find_game, load_rom\n"
        "try:\n"
        "    load_rom(find_game('pong'))\n"
        "except ValueError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, ROM_DIR_VARIABLE: str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert str(path) in done.stdout


@pytest.mark.parametrize(
    ("kind", "says"), [("altered", "with MD5"), (None, "cannot be read"), ("good", "fine")]
)
def test_env_reads_the_rom_that_the_variable_names(
    kind: str | None, says: str, tmp_path: Path
) -> None:
    """In a process of its own, as images are kept for the process."""
    image = rom_path(find_game("pong")).read_bytes()
    if kind:
        (tmp_path / "pong.bin").write_bytes(image if kind == "good" else corrupt(kind, image))
    code = (
        f"import os; os.environ[{ROM_DIR_VARIABLE!r}] = {str(tmp_path)!r}\n"
        "import cule\n"
        "try:\n"
        "    cule.AtariEnv('pong', device='cpu', num_threads=1, reset_pool_size=0).reset(seed=0)\n"
        "except ValueError as problem:\n"
        "    print(problem)\n"
        "else:\n"
        "    print('fine')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert not done.stderr


# Actions ------------------------------------------------------------------------------------------

WRONG_ACTIONS = [
    (np.zeros(2, np.float32), TypeError, "actions to be integers, got torch.float32"),
    (np.zeros(2, bool), TypeError, "actions to be integers, got torch.bool"),
    (
        torch.zeros(2, dtype=torch.complex64),
        TypeError,
        "actions to be integers, got torch.complex64",
    ),
    (np.zeros(2, np.complex64), TypeError, "actions to be an array of numbers"),
    ([None, 1], TypeError, r"actions to be an array of numbers, got \[None, 1\]"),
    ([[1], [1, 2]], TypeError, "actions to be an array of numbers"),
    ("ab", TypeError, "actions to be an array of numbers, got 'ab'"),
    (["a", "b"], TypeError, "actions to be an array of numbers"),
    (None, TypeError, "actions to be an array of numbers, got None"),
    ({"a": 1}, TypeError, "actions to be an array of numbers"),
    (3, ValueError, r"actions to have shape \(2,\), got \(\)"),
    ([], TypeError, "actions to be integers, got torch.float64"),
    (np.zeros(0, int), ValueError, r"actions to have shape \(2,\), got \(0,\)"),
    (np.zeros(3, int), ValueError, r"actions to have shape \(2,\), got \(3,\)"),
    (np.zeros((2, 1), int), ValueError, r"actions to have shape \(2,\), got \(2, 1\)"),
    ([0, 6], ValueError, "actions from 0 to 5, got values from 0 to 6"),
    ([-1, 0], ValueError, "actions from 0 to 5, got values from -1 to 0"),
    ([0, 2**32], ValueError, "actions from 0 to 5, got values from 0 to 4294967296"),
    (
        torch.zeros(2, dtype=torch.int64, device="meta"),
        ValueError,
        "actions on cpu, got a tensor on meta",
    ),
]


@pytest.fixture(scope="module")
def pong() -> cule.AtariEnv:
    return started()


@pytest.mark.parametrize(
    ("actions", "exception", "message"), WRONG_ACTIONS, ids=lambda value: str(value)[:40]
)
def test_wrong_actions_are_refused(
    pong: cule.AtariEnv, actions: Any, exception: type[Exception], message: str
) -> None:
    frames = pong.step(np.zeros(2, int))[4]["frame_number"].clone()
    with pytest.raises(exception, match=message) as raised:
        pong.step(actions)
    assert isinstance(raised.value, error.Error)
    after = pong.step(np.zeros(2, int))[4]["frame_number"]
    assert torch.equal(after, frames + 4)


@pytest.mark.parametrize(
    ("actions", "exception", "message"),
    [
        ([0, 18], ValueError, "player_b_actions from 0 to 17, got values from 0 to 18"),
        ([0.0, 1.0], TypeError, "player_b_actions to be integers, got torch.float64"),
        ([0], ValueError, r"player_b_actions to have shape \(2,\), got \(1,\)"),
    ],
)
def test_wrong_actions_of_player_b_are_refused(
    pong: cule.AtariEnv, actions: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        pong.step(np.zeros(2, int), player_b_actions=actions)
    pong.step(np.zeros(2, int))


@pytest.mark.parametrize(
    "dtype", ["int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"]
)
def test_integer_actions_of_any_width_are_taken(pong: cule.AtariEnv, dtype: str) -> None:
    state = pong.clone_state()

    def ram(actions: Any) -> torch.Tensor:
        pong.restore_state(state)
        for _ in range(5):
            pong.step(actions)
        return pong.get_ram()

    wanted = ram([2, 5])
    assert not torch.equal(wanted, ram([5, 2]))
    assert torch.equal(ram(np.array([2, 5], dtype)), wanted)
    assert torch.equal(ram(torch.from_numpy(np.array([2, 0, 5, 0], dtype))[::2]), wanted)
    with pytest.raises(ValueError, match="expected actions from 0 to 5, got values from 5 to 6"):
        pong.step(np.array([5, 6], dtype))


@pytest.mark.filterwarnings("error")
def test_read_only_and_reversed_arrays_are_taken(pong: cule.AtariEnv) -> None:
    actions = np.array([0, 5])[::-1]
    actions.flags.writeable = False
    pong.step(actions)
    pong.reset(options={"reset_mask": np.array([True, False])[::-1]})


@pytest.mark.parametrize(
    ("actions", "exception", "message"),
    [
        (
            np.full((2, 3), np.nan, np.float32),
            ValueError,
            "actions to be finite, got NaN or infinity",
        ),
        (
            np.full((2, 3), np.inf, np.float32),
            ValueError,
            "actions to be finite, got NaN or infinity",
        ),
        (np.full((2, 3), 1e30, np.float32), ValueError, "radius from 0 to 1, got 1.0"),
        (
            np.array([[0, 0, 0], [-0.5, 0, 0]], np.float32),
            ValueError,
            "radius from 0 to 1, got -0.5 to 0.0",
        ),
        (np.zeros((2, 3)), TypeError, "actions to be float32, got torch.float64"),
        (np.zeros((2, 3), int), TypeError, "actions to be float32, got torch.int64"),
        (np.zeros((2, 2), np.float32), ValueError, r"actions to have shape \(2, 3\), got \(2, 2\)"),
        (np.zeros(2, np.float32), ValueError, r"actions to have shape \(2, 3\), got \(2,\)"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_continuous_actions_are_refused(
    actions: Any, exception: type[Exception], message: str
) -> None:
    env = started(continuous=True)
    with pytest.raises(exception, match=message):
        env.step(actions)
    env.step(np.zeros((2, 3), np.float32))


def test_continuous_actions_with_a_gradient_leave_none_behind() -> None:
    env = started(continuous=True)
    actions = torch.full((2, 3), 0.5, requires_grad=True)
    for _ in range(2):
        results = env.step(actions * 1.0)
    assert not results[1].requires_grad
    assert not env.engine.tensors["strengths"].requires_grad


# Order of calls -----------------------------------------------------------------------------------

CALLS: list[Callable[[cule.AtariEnv], Any]] = [
    lambda env: env.reset(), lambda env: env.step([0, 0]), lambda env: env.get_ram(),
    lambda env: env.get_screen(),
    lambda env: env.get_screen_rgb(), lambda env: env.get_screen_grayscale(),
    lambda env: env.render(),
    lambda env: env.clone_state(), lambda env: env.restore_state(None),
    lambda env: env.copy_state([0], [1]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_call_after_close_is_refused(call: Callable[[cule.AtariEnv], Any]) -> None:
    env = started()
    env.close()
    env.close()
    with pytest.raises(
        error.ClosedEnvironmentError, match=r"expected an open env, got \w+\(\) after close\(\)"
    ):
        call(env)


def test_halves_of_a_step_come_in_turns() -> None:
    env = started()
    with pytest.raises(error.NoAsyncCallError, match=r"expected send\(\) before recv\(\)"):
        env.recv()
    env.send([0, 0])
    with pytest.raises(error.AlreadyPendingCallError, match=r"expected recv\(\) after send\(\)"):
        env.send([0, 0])
    assert env.recv()[0].shape == (2, 4, 84, 84)
    env.send([0, 0])
    env.reset()
    with pytest.raises(error.NoAsyncCallError):
        env.recv()


def test_tensors_outlive_close() -> None:
    env = started()
    obs = env.step([0, 0])[0]
    env.close()
    assert obs.shape == (2, 4, 84, 84)
    assert obs.any()


def test_call_before_reset_is_refused() -> None:
    env = make()
    state = started(num_envs=1).clone_state()
    for call in (
        lambda: env.step([0, 0]), env.clone_state, lambda: env.copy_state([0], [1]),
        lambda: env.restore_state(state, [1]),
    ):  # fmt: skip
        with pytest.raises(error.ResetNeeded, match=r"expected reset\(\) before the first"):
            call()
    with pytest.raises(
        error.ResetNeeded, match="expected the first reset to reset every env, got a reset_mask"
    ):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(error.ResetNeeded, match="before the first step"):
        env.step([0, 0])
    assert env.get_screen().shape == (2, 210, 160)
    env.reset(seed=0)
    env.step([0, 0])


def test_constructor_that_raises_leaves_an_env_that_can_be_closed() -> None:
    env = cule.AtariEnv.__new__(cule.AtariEnv)
    with pytest.raises(ValueError, match="num_envs"):
        env.__init__("pong", 0)
    env.close()


# Resets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "exception", "message"),
    [
        (np.zeros(2, int), TypeError, "reset_mask to be a boolean array, got int64"),
        (np.zeros(2, object), TypeError, "reset_mask to be a boolean array, got object"),
        (torch.zeros(2), TypeError, "reset_mask to be a boolean array, got torch.float32"),
        ([1, 0], TypeError, "reset_mask to be a boolean array, got int64"),
        (["yes", "no"], TypeError, "reset_mask to be an array of numbers"),
        ([True], ValueError, r"reset_mask to have shape \(2,\), got \(1,\)"),
        (True, TypeError, "reset_mask to be a boolean array, got bool"),
        (np.zeros(3, bool), ValueError, r"reset_mask to have shape \(2,\), got \(3,\)"),
        (np.zeros((2, 1), bool), ValueError, r"reset_mask to have shape \(2,\), got \(2, 1\)"),
        (np.array(True), ValueError, r"reset_mask to have shape \(2,\), got \(\)"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_reset_mask_is_refused(
    pong: cule.AtariEnv, mask: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message) as raised:
        pong.reset(options={"reset_mask": mask})
    assert isinstance(raised.value, error.Error)


@pytest.mark.parametrize("key", ["resetmask", "mask", 3, None])
def test_unknown_key_of_reset_options_is_refused(pong: cule.AtariEnv, key: Any) -> None:
    with pytest.raises(
        ValueError, match=f"expected options of a reset to be reset_mask, got {key!r}"
    ):
        pong.reset(options={"reset_mask": [True, True], key: 1})


@pytest.mark.parametrize("options", [[1], "reset_mask", 3])
def test_wrong_reset_options_are_refused(pong: cule.AtariEnv, options: Any) -> None:
    with pytest.raises(TypeError, match="expected options to be a dict"):
        pong.reset(options=options)


@pytest.mark.parametrize(
    ("seed", "exception", "message"),
    [
        (-1, ValueError, "seeds from 0 to 9223372036854775807, got -1"),
        (2**63, ValueError, "seeds from 0 to 9223372036854775807, got 9223372036854775809"),
        (2**70, ValueError, "seeds from 0 to"),
        (2**63 - 1, ValueError, "seeds from 0 to 9223372036854775807, got 9223372036854775808"),
        (0.5, TypeError, "seed to be an integer or one for each env, got 0.5"),
        (True, TypeError, "seed to be an integer or one for each env, got True"),
        ("7", TypeError, "seed to be an integer or one for each env, got '7'"),
        ({"a": 1}, TypeError, "seed to be an integer or one for each env"),
        (
            [1],
            ValueError,
            r"one integer for each of the 2 envs that are reset, got int64 of shape \(1,\)",
        ),
        ([1, -2], ValueError, "seeds from 0 to 9223372036854775807, got -2"),
        ([1.0, 2.0], ValueError, "one integer for each of the 2 envs that are reset, got float64"),
        ([True, False], ValueError, "one integer for each of the 2 envs that are reset, got bool"),
        ([None, 1], TypeError, "seed to be an array of numbers"),
        ([[1], [1, 2]], TypeError, "seed to be an array of numbers"),
        (
            np.array([0, 2**64 - 1], np.uint64),
            ValueError,
            "seeds from 0 to .*, got 18446744073709551615",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_seed_is_refused(
    pong: cule.AtariEnv, seed: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message) as raised:
        pong.reset(seed=seed)
    assert isinstance(raised.value, error.Error)


def test_seeds_are_counted_by_the_mask(pong: cule.AtariEnv) -> None:
    with pytest.raises(ValueError, match="one integer for each of the 1 envs that are reset"):
        pong.reset(seed=[1, 2], options={"reset_mask": np.array([True, False])})


# States -------------------------------------------------------------------------------------------


def test_wrong_state_is_refused(pong: cule.AtariEnv) -> None:
    state = pong.clone_state()

    def other(**parts: Any) -> cule.State:
        return dataclasses.replace(state, **parts)

    def with_part(part: torch.Tensor) -> cule.State:
        return other(tensors=state.tensors | {"ram": part})

    ram = state.tensors["ram"]
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (None, None, TypeError, "expected a cule.State, got NoneType"),
        ({"version": 1}, None, TypeError, "expected a cule.State, got dict"),
        (other(version=99), None, ValueError, "expected a state of version 2, got version 99"),
        (
            started("breakout").clone_state(),
            None,
            ValueError,
            r"\('pong', 0, 0\), got one of \('breakout', 0, 0\)",
        ),
        (
            started(mode=1).clone_state(),
            None,
            ValueError,
            r"\('pong', 0, 0\), got one of \('pong', 1, 0\)",
        ),
        (
            started(difficulty=1).clone_state(),
            None,
            ValueError,
            r"\('pong', 0, 0\), got one of \('pong', 0, 1\)",
        ),
        (pong.clone_state([0]), None, ValueError, "expected 2 states, one for each env, got 1"),
        (state, [0], ValueError, "expected 1 states, one for each env, got 2"),
        (
            started(reset_pool_size=0).clone_state(),
            None,
            ValueError,
            "with the same reset_pool_size, 0 or not 0",
        ),
        (
            started(stack_num=2).clone_state(),
            None,
            ValueError,
            "the envs were made with other options",
        ),
        (
            started(img_width=40).clone_state(),
            None,
            ValueError,
            "the envs were made with other options",
        ),
        (
            started(grayscale=False).clone_state(),
            None,
            ValueError,
            "the envs were made with other options",
        ),
        (other(tensors={}), None, ValueError, "expected a state of an env"),
        (
            with_part(ram[:1]),
            None,
            ValueError,
            "expected ram to hold torch.uint8 for 2 envs, got torch.uint8 for 1",
        ),
        (
            with_part(ram.float()),
            None,
            ValueError,
            "expected ram to hold torch.uint8 for 2 envs, got torch.float32",
        ),
        (
            with_part(ram[:, :5]),
            None,
            ValueError,
            r"expected ram of shape \(128,\) for each env, got \(5,\)",
        ),
        (state, [0, 0], ValueError, r"each env to get one state, got env_ids \[0, 0\]"),
        (state, [0, 2], ValueError, r"env_ids from 0 to 1, got \[0, 2\]"),
        (state, [-1, 0], ValueError, r"env_ids from 0 to 1, got \[-1, 0\]"),
        (state, [0.0, 1.0], TypeError, "env_ids to be a list of integers, got torch.float64"),
        (state, [True, False], TypeError, "env_ids to be a list of integers, got torch.bool"),
        (state, 0, TypeError, r"env_ids to be a list of integers, got torch.int64 of shape \(\)"),
        (state, "01", TypeError, "env_ids to be an array of numbers, got '01'"),
    ]
    for wrong, ids, exception, message in cases:
        with pytest.raises(exception, match=message):
            pong.restore_state(wrong, ids)
    pong.restore_state(state)


def test_wrong_copy_is_refused(pong: cule.AtariEnv) -> None:
    for source, target, message in (
        ([0, 1], [1], "expected 1 states, one for each env, got 2"),
        ([0], [5], r"env_ids from 0 to 1, got \[5\]"),
        ([0, 0], [1, 1], "each env to get one state"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            pong.copy_state(source, target)
    mixed = started(["pong", "breakout"])
    with pytest.raises(ValueError, match=r"\('breakout', 0, 0\), got one of \('pong', 0, 0\)"):
        mixed.copy_state([0], [1])
