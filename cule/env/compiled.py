"""`AtariEnv.step` under torch.compile: the whole step is one custom op in the graph.

Its results are fresh tensors. Each env has a ticket, a tensor that the op changes, so that a
compiler does not drop, merge or reorder steps. The graph sees nothing else that a step changes.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch
from gymnasium import error
from gymnasium.vector import AutoresetMode

from cule.errors import InvalidValue

if TYPE_CHECKING:
    from cule.vector_env import AtariEnv

# The results of the op: the first four of `step`, entries of the info, and in SAME_STEP `final_obs`
# with its mask, else two empty tensors.
_RESULTS = ("observations", "rewards", "terminated", "truncated")
_KEYS = (
    "lives", "frame_number", "episode_frame_number", "fault", "game_over", "new_game", "raw_reward",
)  # fmt: skip
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
    outputs = env._outputs
    infos = outputs.step_info
    nothing = torch.zeros(0, dtype=torch.bool, device=env.device)
    final = (
        (tensors["final_observations"], outputs.done)
        if "final_observations" in tensors
        else (nothing, nothing)
    )
    views = (
        outputs.observations, tensors["rewards"], outputs.terminated, outputs.truncated,
        *(infos[key] for key in _KEYS), *final,
    )  # fmt: skip
    # Compilers cache graphs on disk, with the graph's content as the key. So the shapes have to be
    # part of the name.
    name = f"{next(_numbers)}: {', '.join(f'{tuple(view.shape)} {view.dtype}' for view in views)}"
    _envs[name] = env
    return name, torch.zeros(1, dtype=torch.int64, device=env.device), views


def _step(
    env: AtariEnv, actions: torch.Tensor, player_b_actions: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    env._play(actions, player_b_actions)
    env._renderer.step()
    env._outputs.find_done()
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
    """`AtariEnv.step` as a compiler traces it. In SAME_STEP it always gives `final_obs`.

    Raises:
        ValueError: the env has output="numpy". And what `AtariEnv.step` raises.
    """
    if env.closed:
        raise error.ClosedEnvironmentError("expected an open env, got step() after close()")
    if env.output != "torch":
        raise InvalidValue(
            f"expected an env with output='torch' under torch.compile, got output={env.output!r}"
        )
    if not isinstance(actions, torch.Tensor):
        actions = torch.as_tensor(actions, device=env.device)
    if player_b_actions is not None and not isinstance(player_b_actions, torch.Tensor):
        player_b_actions = torch.as_tensor(player_b_actions, device=env.device)
    results = torch.ops.cule.step(actions.detach(), player_b_actions, env._op_name, env._ticket)
    infos = {
        "env_id": env._outputs.info["env_id"].clone(),
        **dict(zip(_KEYS, results[len(_RESULTS) :], strict=False)),
    }
    infos |= {f"_{key}": env._outputs.everywhere.clone() for key in infos}
    if env.autoreset_mode == AutoresetMode.SAME_STEP:
        infos |= dict(zip(_FINAL, results[-2:], strict=True))
    return results[0], results[1], results[2], results[3], infos
