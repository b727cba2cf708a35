"""Compiled programs that step envs: the functions of `AtariJaxEnv.xla`."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from cule import arguments
from cule.adapters.jax import AtariJaxEnv, handler, traced
from cule.errors import Failed
from tests.support.waiting import repeat_until, wait_for

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}
GAMES = (
    "pong", "breakout", "seaquest", "pitfall2", "private_eye", "montezuma_revenge",
    "space_invaders", "star_gunner",
)  # fmt: skip
# What JAX makes of a problem in a program: the second, if it was not waiting for it.
PROBLEMS = (ValueError, jax.errors.JaxRuntimeError)


@pytest.fixture
def jax_device(device: str) -> Iterator[str]:
    """A device that this JAX has, on which it makes arrays."""
    if device == "cuda" and jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    with jax.default_device(jax.devices(device)[0]):
        yield device


@pytest.fixture
def arrays_on_cpu() -> Iterator[None]:
    """JAX makes arrays on the CPU, where there is a GPU, too."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def compare(ours: Any, theirs: Any) -> None:
    """Asserts that the arrays of two results are the same, dtypes and names included."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def check_rollout(game: str, device: str, actions: np.ndarray, options: dict[str, Any]) -> None:
    """Plays a compiled loop, twice from other seeds, and the same steps one by one."""
    count = actions.shape[1]
    env, plain = (AtariJaxEnv(game, count, device, **options) for _ in range(2))
    handle, reset, step = env.xla()
    steps = jnp.asarray(actions)

    @jax.jit
    def rollout(handle: jax.Array, seed: jax.Array) -> Any:
        handle, first = reset(handle, seed=seed)
        handle, results = jax.lax.scan(step, handle, steps)
        return handle, first, results

    for seed in (jnp.array(5), jnp.arange(count) * 7 + 1):
        handle, first, results = rollout(handle, seed)
        results = jax.tree.map(np.asarray, results)
        compare(first, plain.reset(seed=seed))
        for row in range(len(actions)):
            played = jax.tree.map(lambda array, row=row: array[row], results)
            compare(played, plain.step(steps[row]))
    assert results[3].any(), "episodes end in it"
    np.testing.assert_array_equal(env.get_ram(), plain.get_ram())
    mask = jnp.arange(count) % 2 == 0
    for given in ({"reset_mask": mask}, {"reset_mask": mask, "seed": 2**40 - 1}):
        handle, again = reset(handle, **given)
        compare(again, plain.reset(seed=given.get("seed"), options={"reset_mask": mask}))
    compare(env.step(steps[0]), plain.step(steps[0]))
    env.close(), plain.close()


@pytest.mark.parametrize(
    "options",
    [
        {"repeat_action_probability": 0.25},
        {"grayscale": False, "autoreset_mode": "Disabled"},
        {"obs_type": "ram", "continuous": True},
    ],
    ids=str,
)
def test_compiled_loop_plays_what_steps_play(options: dict[str, Any], jax_device: str) -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(4, size=(25, 3)).astype(np.int32)
    if options.get("continuous"):
        actions = rng.random((25, 3, 3)).astype(np.float32) * np.array([1, 6, 1], np.float32)
    options = OPTIONS | options | {"max_num_frames_per_episode": 60}
    check_rollout("breakout", jax_device, actions, options)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_compiled_loop_plays_what_steps_play_in_games(game: str, jax_device: str) -> None:
    actions = np.repeat(np.random.default_rng(1).integers(3, size=(50, 4)), 4, axis=0)
    options = OPTIONS | {"max_num_frames_per_episode": 400}
    check_rollout(game, jax_device, actions.astype(np.int32), options)


@pytest.mark.usefixtures("arrays_on_cpu")
def test_seeds_of_any_width_are_those_of_envs() -> None:
    with jax.enable_x64(True):
        for seed in (3, 2**32 - 2, np.int64(2**40 - 1), jnp.int64(2**33), jnp.uint8(9)):
            pairs = np.asarray(traced._seeds(seed, None, 3))
            assert pairs.dtype == np.uint32
            assert (pairs.view(np.int64)[:, 0] == int(seed) + np.arange(3)).all()
        mask = jnp.array([False, True, True])
        pairs = np.asarray(traced._seeds(8, mask, 3)).view(np.int64)[:, 0]
        assert pairs[1:].tolist() == [8, 9]
        assert np.asarray(traced._seeds(jnp.int32(-1), None, 1)).view(np.int64).item() == -1
    with pytest.raises(ValueError, match=r"expected seeds from 0 to .*, got -1"):
        traced._seeds(-1, None, 1)
    with pytest.raises(
        ValueError, match="expected seed to have one integer for each of the 2 envs"
    ):
        traced._seeds(jnp.zeros(3, int), None, 2)
    with pytest.raises(
        ValueError, match="expected one number as the seed of a traced reset with a"
    ):
        traced._seeds(jnp.zeros(3, int), mask, 3)
    with pytest.raises(TypeError, match="expected seed to be an integer or one for each env, got"):
        traced._seeds(jnp.zeros(3), None, 3)


def outcome(call: Any) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return jax.block_until_ready(call())
    except (TypeError, ValueError) as problem:
        return type(problem), str(problem)


@pytest.mark.usefixtures("arrays_on_cpu")
def test_numbers_that_are_too_wide_for_jax_mean_what_they_mean_to_envs() -> None:
    with (
        AtariJaxEnv("pong", 2, "cpu", **OPTIONS) as env,
        AtariJaxEnv("pong", 2, "cpu", **OPTIONS) as plain,
    ):
        handle, reset, step = env.xla()
        for seed in (np.array([2**33 + 7, 2**40 + 5]), [2**40, 3], 2**63 - 2, np.array(2**35)):
            compare(reset(handle, seed=seed)[1], plain.reset(seed=seed))
            records, wanted = (one.env.engine.tensors["records"] for one in (env, plain))
            np.testing.assert_array_equal(records, wanted)
        masked = np.ma.masked_array([0, 1], [True, False])
        for wrong in (2**63 - 1, [2**63, 0], [2**70, 0], [0, -1], np.zeros(3, int), True, masked):
            refused = outcome(lambda wrong=wrong: reset(handle, seed=wrong))
            assert refused == outcome(lambda wrong=wrong: plain.reset(seed=wrong))
            assert refused[1].startswith("expected seed")
        for wrong in (np.array([2**32, 0]), [0, 2**32 + 1], [-(2**32), 0], [2**70, 0], masked):
            refused = outcome(lambda wrong=wrong: step(handle, wrong))
            assert refused == outcome(lambda wrong=wrong: plain.step(wrong))
            assert refused[1].startswith("expected actions")
        with pytest.raises(TypeError, match="expected reset_mask without a mask of NumPy's"):
            reset(handle, reset_mask=masked.astype(bool))
        # Lists of what JAX has made are JAX's.
        compare(jax.jit(lambda one: step(handle, [one, 0])[1])(3), plain.step([3, 0]))


@pytest.mark.usefixtures("arrays_on_cpu")
def test_first_seeds_live_as_long_as_the_envs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled program may outlive the object that made its functions."""
    made: list[weakref.ref[torch.Tensor]] = []

    def seeds(*given: Any) -> torch.Tensor:
        tensor = arguments.seeds(*given)
        made.append(weakref.ref(tensor))
        return tensor

    env = AtariJaxEnv("pong", 2, "cpu", seed=4, **OPTIONS)
    with monkeypatch.context() as watched:
        watched.setattr(traced, "arguments", SimpleNamespace(**vars(arguments) | {"seeds": seeds}))
        handle, reset, step = env.xla()
    (first,) = made
    program = jax.jit(partial(reset)).lower(handle).compile()
    atari, functions = env.env, weakref.ref(env._traced)
    del env, reset, step
    jax.clear_caches(), gc.collect()
    assert functions() is None and first() is not None
    with AtariJaxEnv("pong", 2, "cpu", **OPTIONS) as plain:
        compare(program(handle)[1], plain.reset(seed=4))
    atari.close()
    del atari
    gc.collect()
    assert first() is None


@pytest.mark.usefixtures("arrays_on_cpu")
def test_wrong_calls_of_programs_are_refused() -> None:
    env = AtariJaxEnv("pong", 2, "cpu", seed=4, **OPTIONS)
    handle, reset, step = env.xla()
    mask = jnp.array([True, False])

    def refused(sentence: str, call: Any, *arguments: Any, **keywords: Any) -> None:
        with pytest.raises(PROBLEMS, match=sentence):
            jax.block_until_ready(call(*arguments, **keywords))

    refused(r"expected reset\(\) before the first step", step, handle, [0, 0])
    refused("expected the first reset to reset every env", reset, handle, reset_mask=mask)
    refused("expected seeds from 0 to .*, got a negative", reset, handle, jnp.array([1, -1]))
    with AtariJaxEnv("pong", 2, "cpu", **OPTIONS) as plain:
        compare(reset(handle)[1], plain.reset(seed=4))
    refused("expected actions from 0 to 5, got values from 0 to 7", step, handle, jnp.array([0, 7]))
    refused(
        "actions from 0 to 5, got values from -3 to 0", jax.jit(step), handle, jnp.array([0, -3])
    )
    refused(
        r"expected the functions of xla\(\) outside jax.vmap, as their envs have one state, got a "
        "batch of 3 calls", jax.vmap(step, (None, 0)), handle, jnp.zeros((3, 2), int),
    )  # fmt: skip
    with pytest.raises(TypeError, match="expected actions to be integers, got float32"):
        step(handle, jnp.zeros(2))
    with pytest.raises(ValueError, match=r"expected actions to have shape \(2,\), got \(3,\)"):
        step(handle, [0, 0, 0])
    with pytest.raises(ValueError, match=r"expected reset_mask to be \(2,\) bool, got"):
        reset(handle, reset_mask=jnp.zeros(2))
    env.env.step_async([0, 0])
    refused(r"expected step_wait\(\) after step_async\(\), got a compiled", step, handle, [0, 0])
    env.env.step_wait()
    jax.block_until_ready(step(handle, [0, 0]))
    for options, sentence in (
        ({"autoreset_mode": "SameStep"}, r"autoreset_mode NEXT_STEP or DISABLED for xla\(\)"),
        ({"render_mode": "rgb_array_list"}, r"'rgb_array' for xla\(\), as compiled programs draw"),
    ):
        with pytest.raises(ValueError, match=sentence):
            AtariJaxEnv("pong", 2, "cpu", **options, **OPTIONS).xla()


@pytest.mark.usefixtures("arrays_on_cpu")
def test_continuous_actions_out_of_range_are_refused() -> None:
    env = AtariJaxEnv("pong", 1, "cpu", continuous=True, **OPTIONS)
    handle, reset, step = env.xla()
    handle, _ = reset(handle, seed=0)
    for values, sentence in (
        ([1.5, 0, 0], "expected actions with a radius from 0 to 1, got 1.5"),
        ([0.5, np.nan, 0], "expected actions to be finite, got NaN or infinity"),
    ):
        with pytest.raises(PROBLEMS, match=sentence):
            jax.block_until_ready(step(handle, jnp.array([values], jnp.float32)))


def endless(step: Any) -> Any:
    """A compiled loop of very many steps."""

    def play(handle: jax.Array) -> jax.Array:
        actions = jnp.zeros(2, jnp.int32)
        return jax.lax.fori_loop(0, 10**9, lambda _, handle: step(handle, actions)[0], handle)

    return jax.jit(play)


@pytest.mark.usefixtures("arrays_on_cpu")
@pytest.mark.parametrize("end", ["close", "step"])
def test_program_ends_when_its_env_is_used_by_another(end: str) -> None:
    """Python's call waits for the step that is being played, and the program's next is refused."""
    env = AtariJaxEnv("pong", 2, "cpu", **OPTIONS)
    handle, reset, step = env.xla()
    handle, _ = reset(handle, seed=0)
    problems: list[Exception] = []

    def run() -> None:
        try:
            jax.block_until_ready(endless(step)(handle))
        except PROBLEMS as problem:
            problems.append(problem)

    frames = env.env.engine.tensors["frame_numbers"]
    before = int(frames[0])
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(lambda: int(frames[0]) > before)
    for _ in repeat_until(lambda: not thread.is_alive()):
        if end == "close":
            env.close()
        else:
            env.step([0, 0])
    thread.join()
    sentence = "got a compiled program's call " + (
        "after close()" if end == "close" else "while another thread is in one"
    )
    assert sentence in str(problems[0])
    if end == "step":
        jax.block_until_ready(step(handle, [0, 0]))


# The compiled handlers ----------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_handlers_are_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = handler._library()
    assert made[:4] == b"\x7fELF"
    (kept,) = cache.iterdir()
    with monkeypatch.context() as without:
        without.setenv("CXX", "/nowhere/c++")
        assert handler._library() == made
        content = kept.read_bytes()
        kept.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(Failed, match="expected /nowhere/c\\+\\+ to compile the calls from JAX"):
            handler._library()
        without.setenv("CXX", "false")
        with pytest.raises(Failed, match=r"expected false to compile the calls from JAX.*, got 1"):
            handler._library()
        without.setenv("CXX", "")
        without.setenv("PATH", os.devnull)
        with pytest.raises(
            Failed, match=r"expected a C\+\+ compiler for calls from JAX's programs"
        ):
            handler._library()
    # A file of another machine, where it loads.
    monkeypatch.setattr(handler, "_compiled", lambda: made)
    handler._FILE.write(kept, lambda file: file.write(b"none that loads"))
    assert handler._loaded().cule_connect and handler._library() == made
    handler._FILE.write(kept, lambda file: file.write(b"none that loads"))
    monkeypatch.setattr(handler, "_compiled", lambda: b"another that does not")
    with pytest.raises(Failed, match="expected the compiled calls from JAX's programs to load, g"):
        handler._loaded()


# On a GPU -----------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_programs_on_another_device_are_refused() -> None:
    if jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    env = AtariJaxEnv("pong", 2, "cpu", **OPTIONS)
    handle, reset, _ = env.xla()
    on_gpu = jax.device_put(handle, jax.devices("gpu")[0])
    with pytest.raises(PROBLEMS, match="expected a program on the CPU, where the envs are, got"):
        jax.block_until_ready(jax.jit(lambda handle: reset(handle, seed=0))(on_gpu))
