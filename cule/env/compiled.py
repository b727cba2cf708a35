"""`AtariEnv.step` under torch.compile: the whole step is one custom op in the graph.

Its results are fresh tensors. Each env has a ticket, a tensor that the op changes, so that a
compiler does not drop, merge or reorder steps. The graph sees nothing else that a step changes.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import error

from cule.env.consoles import Consoles
from cule.env.outputs import Observations, for_each
from cule.errors import InvalidValue

# The results of the op: three of `step`'s, and entries of the info.
_RESULTS = ("rewards", "terminated", "truncated")
_KEYS = (
    "lives", "frame_number", "episode_frame_number", "fault", "game_over", "new_game", "raw_reward",
)  # fmt: skip
# With sticky actions; otherwise empty tensors.
_STICKY = ("played_action", "repeated_frames")
# With objects; otherwise an empty tensor.
_OBJECTS = ("objects_left_out",)
# The parts of observations, and in SAME_STEP those of `final_obs`, whose mask comes before them.
# There may be fewer: the others are empty tensors.
_MOST_PARTS = 4
_PARTS = tuple(f"{what}_{i}" for what in ("part", "final_part") for i in range(_MOST_PARTS))
_NAMES = (*_RESULTS, *_KEYS, *_STICKY, *_OBJECTS, "_final_obs", *_PARTS)
_SCHEMA = (
    "(Tensor actions, Tensor? player_b_actions, str name, Tensor(a!) ticket) -> "
    f"({', '.join('Tensor ' + name for name in _NAMES)})"
)

# By their names, which a graph has as constants.
_ops: weakref.WeakValueDictionary[str, StepOp] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class StepOp:
    """An env's side of the op: its name, its ticket, and the step that the op plays.

    Args:
        consoles: the env's.
        output: as AtariEnv's.
    """

    def __init__(self, consoles: Consoles, output: str):
        self._consoles, self._output = consoles, output
        device = consoles.engine.device
        self._ticket = torch.zeros(1, dtype=torch.int64, device=device)
        self._nothing = torch.zeros(0, dtype=torch.bool, device=device)
        # Compilers cache graphs on disk, with the graph's content as the key. So the shapes have to
        # be part of the name.
        shapes = ", ".join(f"{tuple(view.shape)} {view.dtype}" for view in self.views())
        self._name = f"{next(_numbers)}: {shapes}"
        _ops[self._name] = self

    def views(self) -> tuple[torch.Tensor, ...]:
        """The env's tensors in the order of the op's results."""
        tensors, outputs = self._consoles.engine.tensors, self._consoles.outputs
        infos = outputs.step_info
        done = self._nothing if outputs.final is None else outputs.done
        return (
            tensors["rewards"], outputs.terminated, outputs.truncated,
            *(infos[key] for key in _KEYS),
            *(infos.get(key, self._nothing) for key in (*_STICKY, *_OBJECTS)), done,
            *self._parts(outputs.observations), *self._parts(outputs.final),
        )  # fmt: skip

    def _parts(self, observations: Observations | None) -> list[torch.Tensor]:
        """The parts of observations, then empty tensors."""
        found: list[torch.Tensor] = []
        if observations is not None:
            for_each(found.append, observations)
        return found + [self._nothing] * (_MOST_PARTS - len(found))

    @staticmethod
    def _together(like: Observations, parts: Sequence[torch.Tensor]) -> Observations:
        """The parts as one observation, or as a dict where `like` is one."""
        return dict(zip(like, parts, strict=False)) if isinstance(like, dict) else parts[0]

    def play(
        self, actions: torch.Tensor, player_b_actions: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        """Plays a step, with the env's guard. Returns the op's results."""
        return self._consoles.guard.call("step", True, self._play, actions, player_b_actions)

    def _play(
        self, actions: torch.Tensor, player_b_actions: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        consoles = self._consoles
        consoles.take_actions(actions, player_b_actions)
        consoles.engine.step()
        consoles.renderer.step()
        consoles.outputs.find_done()
        return tuple(view.clone() for view in self.views())

    def step(
        self, actions: Any, player_b_actions: Any
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """`AtariEnv.step` as a compiler traces it. In SAME_STEP it always gives `final_obs`.

        Raises:
            ValueError: the env has output="numpy" or a smaller batch_size. And what `AtariEnv.step`
                raises.
        """
        if self._consoles.closed:
            raise error.ClosedEnvironmentError("expected an open env, got step() after close()")
        if self._output != "torch":
            raise InvalidValue(
                "expected an env with output='torch' under torch.compile, got "
                f"output={self._output!r}"
            )
        if self._consoles.singly:
            raise InvalidValue(
                "expected an env that steps all envs under torch.compile, got one with "
                f"{self._consoles.singly}"
            )
        device, outputs = self._ticket.device, self._consoles.outputs
        if not isinstance(actions, torch.Tensor):
            actions = torch.as_tensor(actions, device=device)
        if player_b_actions is not None and not isinstance(player_b_actions, torch.Tensor):
            player_b_actions = torch.as_tensor(player_b_actions, device=device)
        results = torch.ops.cule.step(actions.detach(), player_b_actions, self._name, self._ticket)
        entries = zip((*_KEYS, *_STICKY, *_OBJECTS), results[len(_RESULTS) :], strict=False)
        known = outputs.step_info
        infos = {
            "env_id": outputs.info["env_id"].clone(),
            **{key: value for key, value in entries if key in known},
        }
        infos |= {f"_{key}": outputs.everywhere.clone() for key in infos}
        like = outputs.observations
        observations = self._together(like, results[-2 * _MOST_PARTS : -_MOST_PARTS])
        if outputs.same_step:
            final = self._together(like, results[-_MOST_PARTS:])
            infos |= {"final_obs": final, "_final_obs": results[-2 * _MOST_PARTS - 1]}
        return observations, results[0], results[1], results[2], infos


@torch.library.custom_op("cule::step", mutates_args=("ticket",), schema=_SCHEMA)
def _op(
    actions: torch.Tensor, player_b_actions: torch.Tensor | None, name: str, ticket: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    results = _ops[name].play(actions, player_b_actions)
    ticket += 1
    return results


@_op.register_fake
def _shapes(
    actions: torch.Tensor, player_b_actions: torch.Tensor | None, name: str, ticket: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    return tuple(ticket.new_empty(view.shape, dtype=view.dtype) for view in _ops[name].views())
