"""The JAX adapter: arrays in and out, the same numbers as tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import cule
from cule.adapters.jax import AtariJaxEnv, to_jax, to_torch

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}


@pytest.fixture
def jax_device(device: str) -> Iterator[str]:
    """A device that this JAX has, on which it makes arrays."""
    if device == "cuda" and jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    with jax.default_device(jax.devices(device)[0]):
        yield device


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_arrays_hold_what_tensors_hold(mode: str, jax_device: str) -> None:
    options = OPTIONS | {"max_num_frames_per_episode": 60, "autoreset_mode": mode}
    ours = AtariJaxEnv("breakout", 3, jax_device, **options)
    plain = cule.AtariEnv("breakout", 3, jax_device, output="numpy", **options)
    observations, info = ours.reset(seed=2)
    assert isinstance(observations, jax.Array) and observations.dtype == jnp.uint8
    np.testing.assert_array_equal(observations, plain.reset(seed=2)[0])
    assert info["lives"].tolist() == [5, 5, 5]
    key = jax.random.key(0)
    kept, finals = [], 0
    for step in range(30):
        actions = jax.random.randint(
            jax.random.fold_in(key, step), (3,), 0, ours.single_action_space.n
        )
        result, expected = ours.step(actions), plain.step(np.asarray(actions))
        for a, b in zip(result[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert set(result[4]) == {
            key for key in expected[4] if key == "_final_obs" or key[0] != "_"
        }
        for key_, value in result[4].items():
            np.testing.assert_array_equal(value, expected[4][key_])
        finals += "final_obs" in result[4]
        kept.append((result[0], expected[0]))
    for a, b in kept:
        np.testing.assert_array_equal(a, b, "arrays are constant")
    assert (finals > 0) == (mode == "SameStep")


def test_policy_is_compiled_by_jax(jax_device: str) -> None:
    env = AtariJaxEnv("pong", 2, jax_device, **OPTIONS)
    observations, _ = env.reset(seed=0)

    @jax.jit
    def policy(observations: jax.Array) -> jax.Array:
        return (observations.astype(jnp.float32).sum((1, 2, 3)) % env.single_action_space.n).astype(
            jnp.int32
        )

    for _ in range(5):
        observations = env.step(policy(observations))[0]
    assert observations.shape == (2, 4, 84, 84)
    env.close()


def test_memory_is_shared_with_torch_one_way(jax_device: str) -> None:
    """A tensor made from an array shares its memory.

    An array made from a tensor is a copy, as tensors change.
    """
    array = jax.device_put(jnp.arange(4), jax.devices("cpu" if jax_device == "cpu" else "gpu")[0])
    tensor = to_torch(array)
    assert tensor.tolist() == [0, 1, 2, 3]
    assert tensor.device.type == jax_device
    assert tensor.data_ptr() == array.unsafe_buffer_pointer()
    source = torch.arange(4, device=jax_device)
    copied = to_jax(source)
    assert copied.unsafe_buffer_pointer() != source.data_ptr()
    source += 1
    assert copied.tolist() == [0, 1, 2, 3]


KINDS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize(
    "make_actions", [jnp.asarray, np.asarray, None], ids=["jax", "numpy", "list"]
)
def test_actions_of_any_width_play_the_same(make_actions: Any, jax_device: str) -> None:
    """Actions are JAX arrays, numpy arrays and lists.

    The steps are compared with those of a plain env.
    """
    plain = cule.AtariEnv("breakout", 3, jax_device, output="numpy", **OPTIONS)
    plain.reset(seed=4)
    rows = np.random.default_rng(0).integers(4, size=(20, 3))
    expected = [plain.step(row) for row in rows]
    assert len({step[0].tobytes() for step in expected}) > 10
    for kind in KINDS if make_actions else [None]:
        env = AtariJaxEnv("breakout", 3, jax_device, **OPTIONS)
        env.reset(seed=4)
        with jax.enable_x64(True):
            for row, step in zip(rows, expected, strict=True):
                actions = make_actions(row, dtype=kind) if make_actions else row.tolist()
                if make_actions:
                    assert actions.dtype == kind
                for ours, theirs in zip(env.step(actions)[:4], step[:4], strict=True):
                    np.testing.assert_array_equal(ours, theirs)
        env.close()


def test_wrong_actions_and_keywords_are_refused(jax_device: str) -> None:
    with pytest.raises(
        TypeError, match="expected no output for AtariJaxEnv, as it gives JAX arrays, got 'numpy'"
    ):
        AtariJaxEnv("pong", 2, jax_device, output="numpy", **OPTIONS)
    with pytest.raises(TypeError, match="expected no batch_size for AtariJaxEnv, as it steps all"):
        AtariJaxEnv("pong", 2, jax_device, batch_size=1, **OPTIONS)
    env = AtariJaxEnv("pong", 2, jax_device, **OPTIONS)
    env.reset(seed=0)
    for actions in (jnp.zeros(2), [0.0, 0.0], "no"):
        with pytest.raises(TypeError, match="expected actions to be "):
            env.step(actions)
    with pytest.raises(ValueError, match=r"expected actions to have shape \(2,\), got \(3,\)"):
        env.step([0, 0, 0])


@pytest.mark.gpu
def test_jax_without_the_gpu_is_refused() -> None:
    if jax.default_backend() == "gpu":
        pytest.skip("this JAX has CUDA")
    with pytest.raises(ValueError, match="expected a JAX with CUDA for envs on cuda"):
        AtariJaxEnv("pong", 1, "cuda", **OPTIONS)


def test_env_has_what_a_vector_env_has(jax_device: str) -> None:
    with AtariJaxEnv("pong", 3, jax_device, **OPTIONS) as env:
        plain = cule.AtariEnv("pong", 3, jax_device, output="numpy", **OPTIONS)
        assert (
            env.observation_space == plain.observation_space
            and env.action_space == plain.action_space
        )
        assert env.action_meanings == plain.action_meanings
        for seed in (
            3,
            jnp.array([1, 2, 3]),
            np.array([1, 2, 3]),
            [1, 2, 3],
            jnp.array(3),
            np.int64(3),
        ):
            env.reset(seed=seed)
            plain.reset(seed=np.asarray(seed) if np.ndim(seed) else int(seed))
            assert isinstance(env.get_ram(), jax.Array)
            np.testing.assert_array_equal(env.get_ram(), plain.get_ram())
        np.testing.assert_array_equal(env.render(), plain.render())
        env.step([2, 3, 4]), plain.step([2, 3, 4])
        mask = np.array([True, False, True])
        for given in (jnp.asarray(mask), mask):
            observations, info = env.reset(seed=8, options={"reset_mask": given})
            expected, expected_info = plain.reset(seed=8, options={"reset_mask": mask})
            np.testing.assert_array_equal(observations, expected)
            np.testing.assert_array_equal(info["frame_number"], expected_info["frame_number"])
    assert env.env.closed


def test_calls_that_jax_traces_say_what_to_do(jax_device: str) -> None:
    env = AtariJaxEnv("pong", 2, jax_device, **OPTIONS)
    env.reset(seed=0)
    ram = env.get_ram()
    for call in (
        jax.jit(lambda actions: env.step(actions)[0]),
        jax.jit(lambda actions: env.reset()[0]),
        jax.jit(lambda actions: env.reset(seed=actions)[0]),
        jax.vmap(lambda actions: env.step(actions)[0]),
    ):
        with pytest.raises(
            TypeError,
            match=r"expected (step|reset)\(\) to be called from Python, .* AtariJaxEnv\.xla",
        ):
            call(jnp.zeros((2, 2), jnp.int32))
    np.testing.assert_array_equal(env.get_ram(), ram, "nothing was played")


@pytest.mark.gpu
def test_actions_are_kept_until_they_are_played() -> None:
    """JAX would give their memory to other arrays before the GPU has read them."""
    if jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    ours = AtariJaxEnv("breakout", 3, "cuda", reset_pool_size=2)
    plain = cule.AtariEnv("breakout", 3, "cuda", reset_pool_size=2, output="numpy")
    ours.reset(seed=0), plain.reset(seed=0)
    for step in range(30):
        actions = np.full(3, 2 + step // 8 % 2)  # right, then left
        given = jnp.asarray(actions) + 0
        given.block_until_ready()
        torch.cuda._sleep(20_000_000)  # torch's work waits
        result = ours.step(given)
        del given
        junk = [jnp.zeros(3, int) + 0 for _ in range(200)]
        np.testing.assert_array_equal(result[0], plain.step(actions)[0])
        assert len(junk) == 200
