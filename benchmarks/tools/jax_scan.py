"""How fast JAX's programs step envs, beside a loop of AtariEnv.step in the same run.

For example `python benchmarks/tools/jax_scan.py pong --num-envs 4096 --device cuda`. Prints a line
for each way: million FPS, the median of `--rounds` rounds that take turns, and its part of the
torch loop's. All play the same random actions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import torch

import cule
from cule.adapters.jax import AtariJaxEnv, State, make

Round = Callable[[], None]


def torch_loop(game: str, num_envs: int, device: str, actions: torch.Tensor) -> Round:
    """Steps from Python."""
    env = cule.AtariEnv(game, num_envs, device, autoreset_mode="SameStep")
    env.reset(seed=0)
    env.wait_until_translated()
    rows = actions.to(env.device)

    def play() -> None:
        for row in rows:
            env.step(row)
        if env.device.type == "cuda":
            torch.cuda.synchronize()

    return play


def xla(game: str, num_envs: int, device: str, actions: torch.Tensor) -> Round:
    """`jax.lax.scan` of AtariJaxEnv.xla's step."""
    handle, reset, step = AtariJaxEnv(game, num_envs, device).xla()
    handle, _ = reset(handle, seed=0)
    rows = jnp.asarray(actions.numpy())

    @jax.jit
    def rollout(handle: jax.Array) -> tuple[jax.Array, jax.Array]:
        def body(handle: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            handle, (observations, rewards, *_) = step(handle, row)
            return handle, rewards + observations[:, -1, 0, 0]

        return jax.lax.scan(body, handle, rows)

    def play() -> None:
        nonlocal handle
        handle, _ = jax.block_until_ready(rollout(handle))

    return play


def functional(game: str, num_envs: int, device: str, actions: torch.Tensor) -> Round:
    """`jax.lax.scan` of the pure functions, the state donated."""
    env, params = make(game, device)
    keys = jax.random.split(jax.random.key(0), num_envs)
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
    state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, params)[1]
    rows = jnp.asarray(actions.numpy())

    def rollout(state: State) -> tuple[State, jax.Array]:
        def body(state: State, row: jax.Array) -> tuple[State, jax.Array]:
            observations, state, rewards, *_ = step(keys, state, row, params)
            return state, rewards + observations[:, -1, 0, 0]

        return jax.lax.scan(body, state, rows)

    compiled = jax.jit(rollout, donate_argnums=0)

    def play() -> None:
        nonlocal state
        state, _ = jax.block_until_ready(compiled(state))

    return play


WAYS = {"torch loop": torch_loop, "xla()": xla, "pure functions": functional}


def main() -> None:
    """Measures as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("game")
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--device", default=None)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    device = given.device or cule.AtariEnv(given.game, 1).device.type
    num_actions = make(given.game, "cpu")[0].num_actions
    torch.manual_seed(0)
    actions = torch.randint(num_actions, (given.steps, given.num_envs), dtype=torch.int32)
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    with jax.default_device(jax.devices("gpu" if device.startswith("cuda") else "cpu")[0]):
        rounds = {
            name: way(given.game, given.num_envs, device, actions) for name, way in WAYS.items()
        }
        for play in rounds.values():
            play()  # compiles, and lets the games spread out
        for _ in range(given.rounds):
            for name, play in rounds.items():
                begin = time.perf_counter()
                play()
                seconds[name].append(time.perf_counter() - begin)
    fps = {
        name: 4 * given.steps * given.num_envs / statistics.median(times)
        for name, times in seconds.items()
    }
    for name, speed in fps.items():
        part = speed / fps["torch loop"]
        print(f"{given.game} {given.num_envs} {device} {name:15} {speed / 1e6:8.3f} {part:6.1%}")


if __name__ == "__main__":
    main()
