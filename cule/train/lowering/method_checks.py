"""Checks of what an algorithm's methods return, with errors in plain sentences."""

from __future__ import annotations

import collections
import math
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.checks import described, is_name
from cule.train.learning import Copy, Learning
from cule.train.plan.program import Program

# Parts of every batch.
PARTS = ("observations", "next_observations", "actions", "rewards", "discounts", "played")
# Keys of the log, which a loss must not return.
LOGGED = frozenset({
    "kind", "frames", "training_frames", "updates", "seconds", "fps", "ups", "pps", "ttop",
    "staleness", "staleness_max", "actors_waited", "episodes", "score", "score_so_far", "reward",
    "grad_norm", "multiprocessors", "ordered",
})  # fmt: skip


def check_networks(declared: Any) -> None:
    """Checks what `networks` returns.

    Raises:
        ValueError: it is no mapping of names to networks and copies.
    """
    if not isinstance(declared, Mapping):
        raise InvalidValue(
            'expected networks() to return networks by name, such as {"net": network}, got '
            f"{described(declared)}"
        )
    for name, net in declared.items():
        if not is_name(name):
            raise InvalidValue(f"expected networks() to name networks as attributes, got {name!r}")
        if not isinstance(net, (nn.Module, Copy)):
            raise InvalidValue(
                f"expected networks() to return a torch.nn.Module or a train.Copy as {name}, got "
                f"{described(net)}"
            )
    _check_weights({name: net for name, net in declared.items() if isinstance(net, nn.Module)})


def _check_weights(nets: Mapping[str, nn.Module]) -> None:
    """Checks that networks have weights that can be trained, each in one place.

    Raises:
        ValueError: one has none, shares some, or has some that are frozen or not in float32.
    """
    owners: dict[nn.Parameter, str] = {}
    for name, net in nets.items():
        for own, p in net.named_parameters():
            if isinstance(p, nn.parameter.UninitializedParameter):
                wrong = "which has no shape yet: call the network once in networks()"
            elif p.dtype != torch.float32:
                wrong = f"which is in {p.dtype}, not in float32 (bf16 of the settings rounds it)"
            elif not p.requires_grad:
                wrong = "which is frozen: weights that stay as they are belong in buffers"
            elif p in owners:
                wrong = f"which is also of {owners[p]}: parts that are shared belong in one network"
            else:
                owners[p] = name
                continue
            raise InvalidValue(f"expected weights that can be trained, got {name}.{own}, {wrong}")
    if not owners:
        raise InvalidValue("expected a network that is trained, got none")


def check_parts(
    algorithm: Algorithm[Any],
    reads: Collection[str],
    prepared: Collection[str] = (),
    *,
    prioritized: bool = False,
) -> None:
    """Checks that no two parts of a batch have the same name.

    Args:
        algorithm: whose `keeps` and `evaluates` name some.
        reads: the names of further parts that declare() declares.
        prepared: the names of what `prepare` returns, which may replace what `evaluates` names.
        prioritized: whether batches have importance weights.

    Raises:
        ValueError: a name stands twice.
    """
    evaluates = algorithm.evaluates
    taken = dict.fromkeys(PARTS, "a part of every batch")
    if prioritized:
        taken["weights"] = "a part of what is sampled by priorities"
    for source, names in (
        ("keeps", algorithm.keeps.keys() - {"actions"}),
        ("evaluates", evaluates),
        ("what learning reads", reads),
        ("prepare", [name for name in prepared if name not in evaluates]),
    ):
        for name in names:
            if name in taken:
                raise InvalidValue(
                    f"expected {source} to have names of its own for parts of a batch, got {name}, "
                    f"which is {taken[name]}"
                )
            taken[name] = f"one of {source}"


def check_names(program: Program) -> None:
    """Checks that no two tensors over time, and no two objects, are saved by the same name.

    Raises:
        ValueError: a name stands twice.
    """
    names = collections.Counter((r.name, r.object is not None) for r in program.recurrents)
    if twice := [name for (name, _), count in names.items() if count > 1]:
        raise InvalidValue(
            f"expected names of their own for all that a program keeps, got {', '.join(twice)} "
            "for two, of which a checkpoint would hold one"
        )


def check_learning(learning: Any) -> Learning:
    """Checks what `learning` returns, and returns it.

    Raises:
        ValueError: it is no Learning.
    """
    if not isinstance(learning, Learning):
        raise InvalidValue(
            f"expected learning() to return a train.Learning, got {described(learning)}"
        )
    return learning


def check_schedules(schedules: Any) -> dict[str, Callable[[int], float]]:
    """Checks what `schedules` returns, and returns it as a dict.

    Raises:
        ValueError: it is no mapping of names to functions.
    """
    if not isinstance(schedules, Mapping):
        raise InvalidValue(
            "expected schedules() to return functions of the frames by name, got "
            f"{described(schedules)}"
        )
    for name, function in schedules.items():
        if not is_name(name):
            raise InvalidValue(f"expected schedules() to name numbers as attributes, got {name!r}")
        if not callable(function):
            raise InvalidValue(
                f"expected schedules() to return a function of the frames as {name}, got "
                f"{described(function)}"
            )
    return dict(schedules)


def number_of(name: str, function: Callable[[int], float], frames: int) -> float:
    """The value of a schedule.

    Raises:
        ValueError: it is no finite number, or a negative learning rate.
    """
    value = function(frames)
    number = isinstance(value, numbers.Real) and math.isfinite(value)
    if not number or (name == "learning_rate" and value < 0):
        wanted = "a number of at least 0" if name == "learning_rate" else "a finite number"
        raise InvalidValue(
            f"expected schedule {name} to be {wanted} after {frames:,} frames, got "
            f"{described(value)}"
        )
    return float(value)


def check_optimizer(optimizer: Any, parameters: Sequence[nn.Parameter]) -> None:
    """Checks what `optimizer` returns.

    Raises:
        ValueError: it is no optimizer of all these parameters and no others.
    """
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        raise InvalidValue(
            f"expected optimizer() to return a torch.optim.Optimizer, got {described(optimizer)}"
        )
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if len(own) != len(parameters) or set(own) != set(parameters):
        raise InvalidValue(
            f"expected optimizer() to return one of all {len(parameters)} parameters that it gets, "
            f"and of no others, got one of {len(set(own) & set(parameters))} of them and of "
            f"{len(set(own) - set(parameters))} others"
        )


def check_norm(norm: Any) -> None:
    """Checks what `norm` returns.

    Raises:
        ValueError: it is no tensor of one number.
    """
    if not isinstance(norm, torch.Tensor) or norm.dim():
        raise InvalidValue(f"expected norm to return a tensor of one number, got {described(norm)}")


def check_scores(scores: Any, count: int, num_actions: int) -> torch.Tensor:
    """Checks what `scores` returns, and returns it.

    Raises:
        ValueError: it is no number for each of `num_actions` actions of `count` observations.
    """
    if not isinstance(scores, torch.Tensor) or tuple(scores.shape) != (count, num_actions):
        raise InvalidValue(
            f"expected scores to return log-probabilities, {(count, num_actions)}, a number "
            f"for each action, got {described(scores)}"
        )
    return scores


def check_dtypes(
    method: str, values: Mapping[str, torch.Tensor], kinds: Mapping[str, torch.dtype]
) -> None:
    """Checks that values of a method can be stored in the dtypes that are declared.

    Raises:
        ValueError: numbers would be cut off, such as fractions in an int64.
    """
    for name, kind in kinds.items():
        if name in values and not torch.can_cast(values[name].dtype, kind):
            raise InvalidValue(
                f"expected {method} to return {name} as {kind}, which is kept, got "
                f"{values[name].dtype}"
            )


def check_tensors(method: str, values: Any, names: Collection[str] = ()) -> None:
    """Checks that a method returns tensors by name.

    Args:
        method: the method's name.
        values: what it returns.
        names: the names that have to be among them.

    Raises:
        ValueError: it returns no tensors by name, or one of `names` is missing.
    """
    if not isinstance(values, Mapping):
        raise InvalidValue(
            f"expected {method} to return tensors by name, as a dict, got {described(values)}"
        )
    if missing := [name for name in names if name not in values]:
        raise InvalidValue(
            f"expected {method} to return {', '.join(missing)}, got {', '.join(values)}"
        )
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            raise InvalidValue(
                f"expected {method} to return {name} as a tensor, got {described(value)}"
            )


def strange_weights(loss: torch.Tensor, known: Collection[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors with a gradient that a loss depends on, besides those that are known."""
    nodes, seen, leaves = [loss.grad_fn], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and not any(leaf is one for one in known):
            leaves.append(leaf)
        nodes += [before for before, _ in node.next_functions]
    return leaves


def check_loss(values: Any, names: Collection[str] | None = None) -> None:
    """Checks what `loss` returns; does not wait for the device.

    Args:
        values: what it returns.
        names: the names that it returned before besides "loss"; None: this is its first call.

    Raises:
        ValueError: there is no scalar "loss" with a gradient, or something else is no scalar.
    """
    if not isinstance(values, dict) or "loss" not in values:
        raise InvalidValue(f'expected loss to return a dict with "loss", got {values!r}')
    loss = values["loss"]
    if not isinstance(loss, torch.Tensor) or loss.dim() or not loss.requires_grad:
        shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else loss
        raise InvalidValue(f"expected a loss that is a scalar with a gradient, got {shape}")
    for name, value in values.items():
        if name == "priorities":
            continue  # see check_priorities
        if not isinstance(name, str) or name in LOGGED or name.startswith("ms_"):
            raise InvalidValue(
                f"expected loss to name what is logged otherwise than the log itself does, got "
                f"{name!r}"
            )
        if not isinstance(value, torch.Tensor) or value.dim():
            raise InvalidValue(
                f"expected loss to return what is logged as tensors of one number, which stay on "
                f"the device (without .item()), got {name} as {described(value)}"
            )
        if value.is_complex() or value.is_meta:
            raise InvalidValue(
                f"expected loss to return {name} as a real number, got {value.dtype} on "
                f"{value.device}"
            )
    if names is not None and values.keys() - {"priorities"} != {"loss", *names}:
        raise InvalidValue(
            f"expected loss to return the same in each call, {', '.join(['loss', *names])}, got "
            f"{', '.join(values)}"
        )
