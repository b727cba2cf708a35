"""Envs that are pure functions play what AtariEnv plays."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import cule
from cule import _core
from cule.adapters.jax import Atari, EnvParams, State, make, seed_of
from cule.state import State as Restored

GAMES = (
    "pong", "breakout", "seaquest", "pitfall2", "private_eye", "montezuma_revenge",
    "space_invaders", "star_gunner",
)  # fmt: skip
OPTIONS: dict[str, Any] = {"num_threads": 1, "max_num_frames_per_episode": 240}
# What JAX makes of a problem in a program: the second, if it was not waiting for it.
PROBLEMS = (ValueError, jax.errors.JaxRuntimeError)
SEED_WORDS = [byte // 4 for byte in _core.RANDOM_BYTES]


@pytest.fixture
def jax_device(device: str) -> Iterator[str]:
    """A device that this JAX has, on which it makes arrays."""
    if device == "cuda" and jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    with jax.default_device(jax.devices(device)[0]):
        yield device


class Oracle:
    """An AtariEnv of one env, which is seeded anew before each step, as a functional env is."""

    def __init__(self, game: str, device: str, options: dict[str, Any]):
        self.env = cule.AtariEnv(
            game, 1, device, autoreset_mode="SameStep", output="torch", **options
        )

    def reset(self, key: jax.Array) -> np.ndarray:
        return self.env.reset(seed=seed_of(key))[0][0].cpu().numpy()

    def step(self, key: jax.Array, action: int) -> tuple[Any, ...]:
        state = self.env.clone_state()
        seed = seed_of(key)
        words = torch.tensor([seed & 0xFFFFFFFF, seed >> 32, 0, 0]).to(torch.int32)
        state.tensors["records"][:, SEED_WORDS] = words.to(state.tensors["records"].device)
        self.env.restore_state(state)
        actions = torch.tensor([action], device=self.env.device)
        observations, reward, terminated, truncated, info = self.env.step(actions)
        done = bool(terminated | truncated)
        info |= {"terminated": terminated, "truncated": truncated}
        return observations[0].cpu().numpy(), float(reward), done, info


def rollout(env: Atari, params: EnvParams, count: int, steps: int) -> Any:
    """A compiled function: `steps` steps of `count` envs, and all that they return."""
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))

    def body(state: State, given: Any) -> tuple[State, Any]:
        observation, state, reward, done, info = step(*given[:1], state, given[1], params)
        return state, (observation, reward, done, info)

    def play(keys: jax.Array, step_keys: jax.Array, actions: jax.Array) -> Any:
        first, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
        return first, *jax.lax.scan(body, state, (step_keys, actions))

    return jax.jit(play)


def check_game(game: str, device: str, steps: int, options: dict[str, Any]) -> None:
    options = OPTIONS | options
    env, params = make(game, device, **options)
    count = 2
    keys = jax.random.split(jax.random.key(1), count)
    step_keys = jax.random.split(jax.random.key(2), (steps, count))
    rng = np.random.default_rng(0)
    actions = np.repeat(rng.integers(env.num_actions, size=(-(-steps // 4), count)), 4, 0)[:steps]
    first, _, (observations, rewards, dones, infos) = jax.device_get(
        rollout(env, params, count, steps)(keys, step_keys, jnp.asarray(actions))
    )
    for one in range(count):
        oracle = Oracle(game, device, options)
        np.testing.assert_array_equal(first[one], oracle.reset(keys[one]))
        for at in range(steps):
            wanted = oracle.step(step_keys[at, one], int(actions[at, one]))
            np.testing.assert_array_equal(observations[at, one], wanted[0], f"step {at}")
            assert (rewards[at, one], dones[at, one]) == wanted[1:3], f"step {at}"
            for key, value in infos.items():
                assert value[at, one] == wanted[3][key].item(), f"{key} in step {at}"
        oracle.env.close()
    missing = {key for key in wanted[3] if key[0] != "_"} - {*infos, "env_id", "final_obs"}
    assert not missing
    assert dones.any() and len({one.tobytes() for one in observations[:, 0]}) > steps // 2
    env.close()


def test_states_play_what_envs_play(jax_device: str) -> None:
    check_game("breakout", jax_device, 200, {"repeat_action_probability": 0.25})


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_states_play_what_envs_play_in_games(game: str, jax_device: str) -> None:
    check_game(game, jax_device, 200, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"grayscale": False, "stack_num": 1},
        {"life_loss_info": True, "episode_start": "baselines"},
        {"frameskip": 1, "maxpool": False, "mode": 4},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_to_envs(options: dict[str, Any], jax_device: str) -> None:
    # Until games end, as steps of one frame are a quarter as long.
    check_game("breakout", jax_device, 800 if "frameskip" in options else 200, options)


@pytest.fixture(scope="module")
def pong() -> Iterator[tuple[Atari, EnvParams]]:
    env, params = make("pong", "cpu", **OPTIONS)
    yield env, params
    env.close()


@pytest.fixture
def arrays_on_cpu() -> Iterator[None]:
    """JAX makes arrays on the CPU, where there is a GPU, too."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def same(ours: Any, theirs: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(ours), jax.device_get(theirs))


@pytest.mark.usefixtures("arrays_on_cpu")
def test_batches_play_what_single_envs_play(pong: tuple[Atari, EnvParams]) -> None:
    """Neither the place in a batch nor the axes of vmap matter, and a state can be used again."""
    env, params = pong
    keys = jax.random.split(jax.random.key(5), 4)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    actions = jnp.array([2, 3, 2, 3], jnp.int8)
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
    together = step(keys, states, actions, params)
    alone = env.step(keys[3], env.reset(keys[3])[1], actions[3])
    same(alone, jax.tree.map(lambda array: array[3], together))
    same(step(keys, states, actions, params), together)
    square = jax.vmap(step, in_axes=(0, 0, 0, None))
    apart = jax.tree.map(lambda array: array.reshape(2, 2, *array.shape[1:]), states)
    twofold = square(keys.reshape(2, 2), apart, actions.reshape(2, 2), params)
    same(jax.tree.map(lambda array: array.reshape(4, *array.shape[2:]), twofold), together)
    one_state = jax.tree.map(lambda array: array[0], states)
    shared = jax.vmap(env.step, in_axes=(0, None, None))(keys, one_state, 2)
    same(jax.tree.map(lambda array: array[0], shared), env.step(keys[0], one_state, 2))


@pytest.mark.usefixtures("arrays_on_cpu")
def test_states_that_playing_cannot_produce_are_refused(pong: tuple[Atari, EnvParams]) -> None:
    env, params = pong
    keys = jax.random.split(jax.random.key(0), 2)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    step(keys, states, jnp.zeros(2, int), params)
    damaged = {
        "the processor's registers": ("records", states.records.at[1].set(0xFFFFFFFF)),
        "the rows of its pictures": ("row_of", states.row_of.at[1, 0, 7].set(8)),
    }
    for part, (name, array) in damaged.items():
        state = dataclasses.replace(states, **{name: array})
        with pytest.raises(
            PROBLEMS,
            match="expected states that playing can produce, got state 1 with an impossible value "
            f"in {part}",
        ):
            jax.block_until_ready(step(keys, state, jnp.zeros(2, int), params))
    rng = np.random.default_rng(0)
    for _ in range(20):
        noise = rng.integers(2**32, size=states.records.shape, dtype=np.uint32)
        chosen = np.where(rng.random(noise.shape) < 0.2, noise, states.records)
        rubbish = dataclasses.replace(states, records=jnp.asarray(chosen))
        with pytest.raises(PROBLEMS, match="impossible value"):
            jax.block_until_ready(step(keys, rubbish, jnp.zeros(2, int), params))


@pytest.mark.gpu
def test_gpu_replaces_states_that_playing_cannot_produce() -> None:
    if jax.default_backend() != "gpu":
        pytest.skip("needs a JAX with CUDA")
    env, params = make("pong", "cuda", **OPTIONS)
    keys = jax.random.split(jax.random.key(0), 2)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    good = step(keys, states, jnp.zeros(2, int), params)
    damaged = dataclasses.replace(states, records=states.records.at[1].set(0xFFFFFFFF))
    mended = step(keys, damaged, jnp.zeros(2, int), params)
    assert mended[4]["fault"].tolist() == [0, cule.FAULTS["impossible_state"]]
    first = [jax.tree.map(lambda array: array[0], one) for one in (good, mended)]
    same(*first)


@pytest.mark.usefixtures("arrays_on_cpu")
def test_wrong_arguments_are_refused(pong: tuple[Atari, EnvParams]) -> None:
    env, params = pong
    key = jax.random.key(0)
    _, state = env.reset(key, params)
    with pytest.raises(PROBLEMS, match="expected actions from 0 to 5, got values"):
        jax.block_until_ready(env.step(key, state, 6))
    for wide in (2**32 + 1, np.int64(2**32 + 1), np.uint64(2**32)):
        with pytest.raises(PROBLEMS, match="expected actions from 0 to 5, got values"):
            jax.block_until_ready(env.step(key, state, wide))
    for action in (1.0, True, jnp.zeros(2, int)):
        with pytest.raises(TypeError, match="expected action to be an integer, got"):
            env.step(key, state, action)
    with pytest.raises(TypeError, match=r"expected a State of reset\(\) or step\(\), got"):
        env.step(key, "state", 0)
    colored = make("pong", "cpu", num_threads=1, grayscale=False)
    with pytest.raises(ValueError, match="expected a state of 'pong' with the same options, got"):
        env.step(key, colored[0].reset(key)[1], 0)
    with pytest.raises(
        ValueError, match=r"expected the params that make\(\) returned with the env"
    ):
        env.reset(key, colored[1])
    with pytest.raises(TypeError, match=r"expected no num_envs for make, as jax\.vmap makes"):
        make("pong", "cpu", num_envs=4)
    for options, reason in (({"num_players": 2}, "it has"), ({"sound_obs": True}, "its obs")):
        with pytest.raises(TypeError, match=f"expected no .* for make, as {reason}.*, got"):
            make("pong", "cpu", **options)
    with pytest.raises(TypeError, match="expected a keyword of AtariEnv, got 'framskip'"):
        make("pong", "cpu", framskip=4)


@pytest.mark.usefixtures("arrays_on_cpu")
def test_env_is_as_gymnax_has_it(pong: tuple[Atari, EnvParams]) -> None:
    env, params = pong
    assert (env.name, env.num_actions, params) == ("pong", 6, env.default_params)
    assert env.action_space(params).n == 6 and env.action_meanings[0] == "NOOP"
    assert env.observation_space(params).shape == (4, 84, 84)
    assert params.max_steps_in_episode == OPTIONS["max_num_frames_per_episode"] // 4
    plain = cule.AtariEnv("pong", 1, "cpu", autoreset_mode="SameStep", **OPTIONS)
    key = jax.random.key(9)
    _, state = env.reset(key)
    plain.reset(seed=seed_of(key))
    cloned: Restored = plain.clone_state()
    for name in ("ram", "cartridge_bytes", "pictures", "observations"):
        np.testing.assert_array_equal(
            getattr(state, name), cloned.tensors[name][0].reshape(getattr(state, name).shape)
        )
    np.testing.assert_array_equal(state.records, cloned.tensors["records"][0].numpy().view("u4"))


@pytest.mark.usefixtures("arrays_on_cpu")
def test_programs_of_a_closed_env_are_refused() -> None:
    env, params = make("pong", "cpu", **OPTIONS)
    key = jax.random.key(0)
    reset = jax.jit(env.reset)
    reset(key, params)
    env.close()
    with pytest.raises(PROBLEMS, match="expected an open env, got a compiled"):
        jax.block_until_ready(reset(key, params))
    with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="expected an open env, got"):
        jax.vmap(env.reset)(jax.random.split(key))
