"""The example that trains in one compiled program."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest

from cule.adapters.jax import make
from examples.jax_ppo.ppo import Settings, gae, init, main, make_train


@pytest.fixture(autouse=True)
def arrays_on_cpu() -> Iterator[None]:
    """JAX makes arrays on the CPU, where there is a GPU, too."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def test_advantages_are_those_worked_out_by_hand() -> None:
    rng = np.random.default_rng(0)
    rewards, values, last = rng.random((5, 2)), rng.random((5, 2)), rng.random(2)
    dones = np.zeros((5, 2), bool)
    dones[2, 1] = True
    s = Settings(discount=0.9, gae_lambda=0.8)
    found = gae({"rewards": rewards, "values": values, "dones": dones}, last, s)
    following = np.vstack([values[1:], last])
    for env in range(2):
        for at in range(5):
            total, weight = 0.0, 1.0
            for later in range(at, 5):
                ends = dones[later, env]
                after = 0.0 if ends else 0.9 * following[later, env]
                total += weight * (rewards[later, env] + after - values[later, env])
                weight *= 0.9 * 0.8
                if ends:
                    break
            assert abs(float(found[at, env]) - total) < 1e-5


def test_training_in_one_program_moves_all_weights_and_repeats() -> None:
    """Whether it learns is seen on a GPU: test_pong_is_learned_on_a_gpu."""
    s = Settings(device="cpu", num_envs=2, num_steps=4, minibatch_size=4, total_frames=64, epochs=1)
    with make(s.game, s.device, num_threads=1)[0] as env:
        train = jax.jit(make_train(env, env.default_params, s))
        network, scores = train(jax.random.key(1))
        again, _ = train(jax.random.key(1))
        before = init(jax.random.split(jax.random.key(1), 3)[0], env.num_actions)
    assert scores["loss"].shape == (s.num_updates,) == (2,)
    assert np.isfinite(scores["loss"]).all()
    for first, second, old in zip(*map(jax.tree.leaves, (network, again, before)), strict=True):
        np.testing.assert_array_equal(first, second)
        assert np.isfinite(first).all() and (np.asarray(first) != np.asarray(old)).any()


@pytest.mark.slow
def test_command_line_says_how_fast_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["--device", "cpu", "--num-envs", "2", "--num-steps", "4", "--minibatch-size", "8",
         "--total-frames", "32"]
    )  # fmt: skip
    assert "frames a second" in capsys.readouterr().out


@pytest.mark.gpu
@pytest.mark.slow
def test_pong_is_learned_on_a_gpu() -> None:
    if jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    with jax.default_device(jax.devices("gpu")[0]):
        scores = main(["--device", "cuda", "--total-frames", "20000000"])
    assert float(scores["score"][-1]) > 0
