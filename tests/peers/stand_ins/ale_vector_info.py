"""As `ale_vector`, with ale-py's entries of `info`: without `fault`, `reward` and gymnasium's
masks."""

from __future__ import annotations

from typing import Any

import ale_py
import ale_vector

KEYS = ("env_id", "lives", "frame_number", "episode_frame_number", "final_obs")


def plain(result: Any) -> Any:
    """What a call gives, with ale-py's entries of `info`."""
    *values, info = result
    return (*values, {key: info[key] for key in KEYS if key in info})


class AtariVectorEnv(ale_vector.AtariVectorEnv):
    """The stand-in with ale-py's entries of `info`."""

    def reset(self, **options: Any) -> Any:
        return plain(super().reset(**options))

    def step(self, actions: Any) -> Any:
        return plain(super().step(actions))

    def recv(self) -> Any:
        return plain(super().recv())


ale_py.AtariVectorEnv = ale_py.vector_env.AtariVectorEnv = AtariVectorEnv
