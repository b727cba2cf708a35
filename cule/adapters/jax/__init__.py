"""JAX: arrays in and out, envs in compiled programs, and envs that are pure functions.

`AtariJaxEnv` is called from Python; `AtariJaxEnv.xla` gives functions that `jax.jit` and
`jax.lax.scan` take. `make` gives an env in gymnax's conventions, whose state is a JAX value.
"""

from cule.adapters.jax.env import AtariJaxEnv, to_jax, to_torch
from cule.adapters.jax.functional import Atari, EnvParams, State, make, seed_of

__all__ = [
    "Atari", "AtariJaxEnv", "EnvParams", "State", "make", "seed_of", "to_jax", "to_torch",
]  # fmt: skip
