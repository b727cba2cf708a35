"""The JAX adapter: arrays in and out, the same numbers as tensors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cule
from cule.adapters.jax import AtariJaxEnv, to_jax, to_torch

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}


@pytest.fixture
def jax_device(device: str) -> str:
    """A device that this JAX has."""
    if device == "cuda" and jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    return device


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
        actions = jax.random.randint(jax.random.fold_in(key, step), (3,), 0, ours.single_action_space.n)
        result, expected = ours.step(actions), plain.step(np.asarray(actions))
        for a, b in zip(result[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert set(result[4]) == {key for key in expected[4] if key == "_final_obs" or key[0] != "_"}
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
        return (observations.astype(jnp.float32).sum((1, 2, 3)) % env.single_action_space.n).astype(jnp.int32)

    for _ in range(5):
        observations = env.step(policy(observations))[0]
    assert observations.shape == (2, 4, 84, 84)
    env.close()


def test_memory_is_shared_with_torch_one_way(jax_device: str) -> None:
    array = jnp.arange(4)
    tensor = to_torch(array)
    assert tensor.tolist() == [0, 1, 2, 3]
    back = to_jax(tensor)
    assert back.tolist() == [0, 1, 2, 3]


@pytest.mark.gpu
def test_jax_without_the_gpu_is_refused() -> None:
    if jax.default_backend() == "gpu":
        pytest.skip("this JAX has CUDA")
    with pytest.raises(ValueError, match="expected a JAX with CUDA for envs on cuda"):
        AtariJaxEnv("pong", 1, "cuda", **OPTIONS)
