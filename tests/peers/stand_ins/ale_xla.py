"""`cule.adapters.jax.AtariJaxEnv` in the place of `ale_py.AtariVectorEnv`, whose `xla` is
tested."""

from __future__ import annotations

from typing import Any

import ale_py
import ale_py.vector_env
import ale_vector_info

from cule.adapters.jax import AtariJaxEnv


class AtariVectorEnv(ale_vector_info.AtariVectorEnv):
    """The vector stand-in, with the JAX adapter's `xla`."""

    def __init__(self, game: str, num_envs: int = 1, **options: Any):
        super().__init__(game, num_envs, **options)
        own = {"reset_pool_size": 0, "num_threads": 1}
        self._jax = AtariJaxEnv(game, num_envs, "cpu", **(own | options))

    def xla(self) -> Any:
        handle, reset, step = self._jax.xla()

        def kept(result: Any) -> Any:
            handle, values = result
            return handle, ale_vector_info.plain(values)

        return (
            handle,
            lambda *args, **options: kept(reset(*args, **options)),
            lambda *args: kept(step(*args)),
        )


ale_py.AtariVectorEnv = ale_py.vector_env.AtariVectorEnv = AtariVectorEnv
