"""Methods of AtariEnv that clone, restore and copy states."""

from __future__ import annotations

from typing import Any

import torch

from cule import arguments
from cule.env.consoles import Consoles, HasConsoles
from cule.env.guard import changes, reads
from cule.errors import InvalidType, InvalidValue
from cule.state import State


def env_ids_of(consoles: Consoles, env_ids: Any) -> torch.Tensor:
    """The numbers of some envs as (n,) int64 on the device.

    Args:
        consoles: the env's consoles.
        env_ids: the user's list of envs; None: all.

    Raises:
        TypeError, ValueError: `env_ids` is not a list of envs.
    """
    engine = consoles.engine
    return arguments.env_ids(env_ids, engine.num_envs, engine.device)


def target_ids(consoles: Consoles, env_ids: Any) -> torch.Tensor:
    """As env_ids_of, for envs that are written to: each may be named only once."""
    ids = env_ids_of(consoles, env_ids)
    if ids.unique().numel() != ids.numel():
        raise InvalidValue(f"expected each env once, got env_ids {ids.tolist()}")
    return ids


@reads
def clone_state(env: HasConsoles, env_ids: Any = None, *, include_rng: bool = True) -> State:
    """The states of the given envs (None: all). They can be pickled and saved with torch.save.

    Args:
        env_ids: which envs.
        include_rng: whether the states hold the random numbers of sticky actions and of resets.
            If so, the same env plays the same again after each restore. If not, it goes on with
            the random numbers that it has then: each restore has another future.

    Raises:
        gymnasium.error.ResetNeeded: there is no state before the first reset.
        TypeError, ValueError: `env_ids` is not a list of envs, or `include_rng` is no bool.
    """
    included = arguments.flag("include_rng", include_rng)
    env.consoles.check_idle("clone_state")
    env.consoles.check_started("clone_state")
    return State.take(env.consoles.engine, env_ids_of(env.consoles, env_ids), included)


@changes
def restore_state(env: HasConsoles, state: State, env_ids: Any = None) -> None:
    """Restores states from clone_state, one in each of the given envs (None: all).

    Raises:
        gymnasium.error.ResetNeeded: before the first reset, envs are left out, or the states
            hold no random numbers.
        TypeError, ValueError: the state is of another version, game or kind of env, or the
            number of states is not that of the envs.
    """
    env.consoles.check_idle("restore_state")
    if not isinstance(state, State):
        raise InvalidType(f"expected a cule.State, got {type(state).__name__}")
    ids = target_ids(env.consoles, env_ids)
    if len(ids) < env.consoles.engine.num_envs:
        env.consoles.check_started("restore_state to some of the envs")
    if not state.include_rng:
        env.consoles.check_started("restore_state without random numbers")
    state.put(env.consoles.engine, ids)
    env.consoles.start()


@changes
def copy_state(env: HasConsoles, src_ids: Any, dst_ids: Any, *, include_rng: bool = True) -> None:
    """Copies the state of each env in `src_ids` to the env at the same place in `dst_ids`.

    The states stay on the device.

    Args:
        src_ids: the envs to copy from.
        dst_ids: the envs to copy to.
        include_rng: as in clone_state.

    Raises:
        gymnasium.error.ResetNeeded: there is no state before the first reset.
        TypeError, ValueError: the lists differ in length, or an env would get two states or the
            state of another game, or `include_rng` is no bool.
    """
    included = arguments.flag("include_rng", include_rng)
    env.consoles.check_idle("copy_state")
    env.consoles.check_started("copy_state")
    sources = env_ids_of(env.consoles, src_ids)
    targets = target_ids(env.consoles, dst_ids)
    if len(sources) != len(targets):
        raise InvalidValue(
            "expected src_ids and dst_ids of the same length, as each target has its source, "
            f"got {len(sources)} and {len(targets)}: copy_state([0, 0], [1, 2]) copies env 0 "
            "to two others"
        )
    State.take(env.consoles.engine, sources, included).put(
        env.consoles.engine, targets, trusted=True
    )
