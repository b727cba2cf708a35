"""The base class of cule's wrappers."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import VectorEnv, VectorWrapper

from cule.errors import InvalidType, InvalidValue
from cule.vector_env import AtariEnv


class AtariWrapper(VectorWrapper):
    """A wrapper that uses the AtariEnv below it, `atari`, and passes on both players' actions.

    Args:
        env: an AtariEnv, or a wrapper of one.

    Raises:
        TypeError: it is another env.
    """

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        if not isinstance(env.unwrapped, AtariEnv):
            raise InvalidType(f"expected a cule.AtariEnv, got {type(env.unwrapped).__name__}")
        self.atari = env.unwrapped
        if self.atari.batches is not None:
            raise InvalidValue(
                f"expected an env that steps all envs in {type(self).__name__}, got one with "
                f"batch_size={self.atari.batch_size} and {self.atari.num_envs} envs"
            )

    def __enter__(self) -> AtariWrapper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(
        self, actions: Any, player_b_actions: Any = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env; the second player's actions are passed on only if given.

        Other wrappers do not take them.
        """
        options = {} if player_b_actions is None else {"player_b_actions": player_b_actions}
        return self.env.step(actions, **options)
