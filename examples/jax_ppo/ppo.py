"""PPO on Atari games in JAX: envs, network and updates are one compiled program.

    python -m examples.jax_ppo.ppo --game pong --num-envs 256

The layout is PureJaxRL's (https://github.com/luchris429/purejaxrl): `make_train` returns a function
of a key, which `jax.jit` compiles. Needs nothing but JAX and cule.

Shapes: T steps of an iteration, N envs, M frames of a minibatch.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from cule.adapters.jax import Atari, EnvParams, make


@dataclasses.dataclass(frozen=True)
class Settings:
    """The command line's options; the defaults are those of examples/ppo on a GPU."""

    game: str = "pong"
    device: str | None = None
    num_envs: int = 256
    num_steps: int = 32
    minibatch_size: int = 1024
    epochs: int = 2
    total_frames: int = 40_000_000
    learning_rate: float = 6.5e-4
    discount: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.1
    entropy_cost: float = 0.01
    value_cost: float = 0.5
    max_gradient_norm: float = 0.5
    seed: int = 0

    @property
    def num_updates(self) -> int:
        return max(1, self.total_frames // (4 * self.num_envs * self.num_steps))


LAYERS = ((32, 4, 8, 4), (64, 32, 4, 2), (64, 64, 3, 1))  # out, in, width, stride


def init(key: jax.Array, num_actions: int) -> list[tuple[jax.Array, jax.Array]]:
    """Mnih et al.'s network (2015), with normal weights: (weights, biases) of each layer."""
    keys = jax.random.split(key, len(LAYERS) + 3)
    shapes = [(out, width * width * into) for out, into, width, _ in LAYERS]
    shapes += [(512, 64 * 7 * 7), (num_actions, 512), (1, 512)]
    gains = [2**0.5] * (len(LAYERS) + 1) + [0.01, 1.0]
    weights = [
        gain * jax.random.normal(key, shape) / shape[1] ** 0.5
        for key, gain, shape in zip(keys, gains, shapes, strict=True)
    ]
    for i, (out, into, width, _) in enumerate(LAYERS):
        weights[i] = weights[i].reshape(out, into, width, width)
    return [(weight, jnp.zeros(weight.shape[0])) for weight in weights]


def apply(network: Any, frames: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits (M, num_actions) and values (M,) of frames (M, 4, 84, 84) uint8."""
    x = frames.astype(jnp.float32) / 255
    for (weight, bias), (*_, stride) in zip(network, LAYERS, strict=False):
        x = jax.lax.conv(x, weight, (stride, stride), "VALID") + bias[:, None, None]
        x = jax.nn.relu(x)
    hidden, policy, value = network[-3:]
    x = jax.nn.relu(x.reshape(len(x), -1) @ hidden[0].T + hidden[1])
    return x @ policy[0].T + policy[1], (x @ value[0].T + value[1])[:, 0]


def log_prob(logits: jax.Array, actions: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), actions[:, None], 1)[:, 0]


def adam(network: Any, slopes: Any, moments: Any, count: jax.Array, rate: jax.Array) -> Any:
    """A step of Adam (Kingma and Ba, 2015). Returns the network and the moments."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slopes)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], slopes)
    scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    moved = jax.tree.map(
        lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-5), network, first, second
    )
    return moved, (first, second)


def loss(network: Any, batch: dict[str, jax.Array], s: Settings) -> jax.Array:
    """PPO's clipped loss (Schulman et al., 2017)."""
    logits, values = apply(network, batch["observations"])
    ratio = jnp.exp(log_prob(logits, batch["actions"]) - batch["log_probs"])
    advantages = batch["advantages"]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped = jnp.clip(ratio, 1 - s.clip, 1 + s.clip)
    policy_loss = -jnp.minimum(ratio * advantages, clipped * advantages).mean()
    entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(1).mean()
    value_loss = jnp.square(values - batch["returns"]).mean()
    return policy_loss - s.entropy_cost * entropy + s.value_cost * value_loss


def gae(steps: dict[str, jax.Array], last_values: jax.Array, s: Settings) -> jax.Array:
    """Advantages (T, N), generalized (Schulman et al., 2016)."""

    def back(carry: Any, step: dict[str, jax.Array]) -> Any:
        advantage, next_values = carry
        goes_on = s.discount * (1 - step["dones"])
        delta = step["rewards"] + goes_on * next_values - step["values"]
        advantage = delta + goes_on * s.gae_lambda * advantage
        return (advantage, step["values"]), advantage

    return jax.lax.scan(back, (jnp.zeros_like(last_values), last_values), steps, reverse=True)[1]


def player(env: Atari, params: EnvParams, s: Settings) -> Callable[..., Any]:
    """A function that steps all envs once: it returns the envs and what is stored of the step."""
    step_all = jax.vmap(env.step, in_axes=(0, 0, 0, None))

    def play(network: Any, carry: Any, key: jax.Array) -> Any:
        state, observations, sums, scores = carry
        choose, go_on = jax.random.split(key)
        logits, values = apply(network, observations)
        actions = jax.random.categorical(choose, logits)
        keys = jax.random.split(go_on, s.num_envs)
        following, state, rewards, dones, info = step_all(keys, state, actions, params)
        sums = sums + info["raw_reward"]
        scores = jnp.where(dones, sums, scores)  # of each env's last episode
        stored = {
            "observations": observations, "actions": actions, "values": values,
            "log_probs": log_prob(logits, actions), "rewards": rewards, "dones": dones,
        }  # fmt: skip
        return (state, following, jnp.where(dones, 0, sums), scores), stored

    return play


def learner(s: Settings) -> Callable[..., Any]:
    """A function that learns from a minibatch."""

    def learn(carry: Any, batch: dict[str, jax.Array]) -> Any:
        network, moments, count, rate = carry
        value, slopes = jax.value_and_grad(loss)(network, batch, s)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(slopes)))
        factor = jnp.minimum(1, s.max_gradient_norm / (norm + 1e-6))
        slopes = jax.tree.map(lambda g: g * factor, slopes)
        network, moments = adam(network, slopes, moments, count + 1, rate)
        return (network, moments, count + 1, rate), value

    return learn


def make_train(env: Atari, params: EnvParams, s: Settings) -> Callable[[jax.Array], Any]:
    """The whole training as a function of a key: it returns the network and each update's score."""
    reset = jax.vmap(env.reset, in_axes=(0, None))
    play, learn = player(env, params, s), learner(s)

    def update(carry: Any, given: Any) -> Any:
        network, moments, count, envs = carry
        key, index = given
        roll, shuffle = jax.random.split(key)
        envs, steps = jax.lax.scan(
            lambda envs, key: play(network, envs, key), envs, jax.random.split(roll, s.num_steps)
        )
        advantages = gae(steps, apply(network, envs[1])[1], s)
        steps |= {"advantages": advantages, "returns": advantages + steps["values"]}
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
        frames = s.num_envs * s.num_steps
        order = jnp.concatenate(
            [jax.random.permutation(key, frames) for key in jax.random.split(shuffle, s.epochs)]
        ).reshape(-1, min(s.minibatch_size, frames))
        rate = s.learning_rate * (1 - index / s.num_updates)
        (network, moments, count, _), losses = jax.lax.scan(
            lambda carry, rows: learn(carry, jax.tree.map(lambda x: x[rows], flat)),
            (network, moments, count, rate), order,
        )  # fmt: skip
        scores = {"score": envs[3].mean(), "loss": losses.mean()}
        return (network, moments, count, envs), scores

    def train(key: jax.Array) -> Any:
        begin, start, go_on = jax.random.split(key, 3)
        network = init(begin, env.num_actions)
        zeros = jax.tree.map(jnp.zeros_like, network)
        observations, state = reset(jax.random.split(start, s.num_envs), params)
        none = jnp.zeros(s.num_envs, jnp.int32)
        carry = network, (zeros, zeros), 0, (state, observations, none, none)
        updates = jax.random.split(go_on, s.num_updates), jnp.arange(s.num_updates)
        carry, scores = jax.lax.scan(update, carry, updates)
        return carry[0], scores

    return train


def main(arguments: list[str] | None = None) -> dict[str, jax.Array]:
    """Trains as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.jax_ppo.ppo", description=__doc__.splitlines()[0]
    )
    for field in dataclasses.fields(Settings):
        kind = str if field.name in ("game", "device") else type(field.default)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=kind,
            default=field.default,
            help="%(default)s",
        )
    s = Settings(**vars(parser.parse_args(arguments)))
    env, params = make(s.game, s.device)
    train = jax.jit(make_train(env, params, s)).lower(jax.random.key(s.seed)).compile()
    began = time.perf_counter()
    _, scores = jax.block_until_ready(train(jax.random.key(s.seed)))
    seconds = time.perf_counter() - began
    frames = 4 * s.num_envs * s.num_steps * s.num_updates
    print(f"{s.game}: score {scores['score'][-1]:.2f} in the envs' last episodes")
    print(f"{frames} frames in {seconds:.1f} s: {frames / seconds:.0f} frames a second")
    return scores


if __name__ == "__main__":
    main()
