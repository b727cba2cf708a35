"""`AtariEnv.step` under torch.compile: one custom op, which stands for the whole step in the graph.

Its results are fresh tensors. An env has a ticket, which the op changes, so that no compiler drops,
merges or reorders steps; what else a step changes a graph does not see.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch
from gymnasium import error
from gymnasium.vector import AutoresetMode

if TYPE_CHECKING:
    from cule.vector_env import AtariEnv

# What the op gives: these, of the info these, and in SAME_STEP `final_obs` and of which envs it is,
# else nothing twice.
_RESULTS = ("observations", "rewards", "terminated", "truncated")
_KEYS = ("lives", "frame_number", "episode_frame_number", "fault", "reward")
_FINAL = ("final_obs", "_final_obs")
_SCHEMA = (
    "(Tensor actions, Tensor? player_b_actions, str name, Tensor(a!) ticket) -> "
    f"({', '.join('Tensor ' + name for name in (*_RESULTS, *_KEYS, *_FINAL))})"
)

_envs: weakref.WeakValueDictionary[str, AtariEnv] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def register(env: AtariEnv) -> tuple[str, torch.Tensor, tuple[torch.Tensor, ...]]:
    """Makes an env known to the op.

    Returns:
        The name by which the op finds it, its ticket, and its tensors in the order of the results.
    """
    tensors = env.engine.tensors
    infos = {**env._info, "reward": tensors["raw_rewards"]}
    nothing = torch.zeros(0, dtype=torch.bool, device=env.device)
    final = (
        (tensors["final_observations"], env._done)
        if "final_observations" in tensors
        else (nothing, nothing)
    )
    views = (
        env._observations, tensors["rewards"], env._terminated, env._truncated,
        *(infos[key] for key in _KEYS), *final,
    )  # fmt: skip
    # Compilers keep graphs on the disk, by what stands in them: shapes are to stand there, too.
    name = f"{next(_numbers)}: {', '.join(f'{tuple(view.shape)} {view.dtype}' for view in views)}"
    _envs[name] = env
    return name, torch.zeros(1, dtype=torch.int64, device=env.device), views


def _step(
    env: AtariEnv, actions: torch.Tensor, player_b_actions: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    env._play(actions, player_b_actions)
    env._renderer.step()
    torch.logical_or(env._terminated, env._truncated, out=env._done)
    return tuple(view.clone() for view in env._views)


@torch.library.custom_op("cule::step", mutates_args=("ticket",), schema=_SCHEMA)
def _op(
    actions: torch.Tensor, player_b_actions: torch.Tensor | None, name: str, ticket: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    results = _envs[name]._guard.call("step", True, _step, _envs[name], actions, player_b_actions)
    ticket += 1
    return results


@_op.register_fake
def _shapes(
    actions: torch.Tensor, player_b_actions: torch.Tensor | None, name: str, ticket: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    return tuple(ticket.new_empty(view.shape, dtype=view.dtype) for view in _envs[name]._views)


def step(
    env: AtariEnv, actions: Any, player_b_actions: Any
) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """What `AtariEnv.step` does, as a compiler traces it; in SAME_STEP it always gives `final_obs`.

    Raises:
        ValueError: the env gives arrays.
        And what `AtariEnv.step` raises.
    """
    if env.closed:
        raise error.ClosedEnvironmentError("expected an open env, got step() after close()")
    if env.output != "torch":
        raise ValueError(
            f"expected an env with output='torch' under torch.compile, got output={env.output!r}"
        )
    if not isinstance(actions, torch.Tensor):
        actions = torch.as_tensor(actions, device=env.device)
    if player_b_actions is not None and not isinstance(player_b_actions, torch.Tensor):
        player_b_actions = torch.as_tensor(player_b_actions, device=env.device)
    results = torch.ops.cule.step(actions.detach(), player_b_actions, env._op_name, env._ticket)
    infos = {
        "env_id": env._info["env_id"],
        **dict(zip(_KEYS, results[len(_RESULTS) :], strict=False)),
    }
    infos |= {f"_{key}": env._everywhere for key in infos}
    if env.autoreset_mode == AutoresetMode.SAME_STEP:
        infos |= dict(zip(_FINAL, results[-2:], strict=True))
    return results[0], results[1], results[2], results[3], infos
