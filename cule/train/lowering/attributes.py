"""The state that an algorithm has in attributes of its own, for checkpoints and the sandbox.

An algorithm may change its attributes, such as a running mean, whenever one of its methods is
called. Saved are numbers, texts, tensors, arrays, random generators, objects with a state_dict, and
containers and plain objects of these. Functions, classes, settings and the envs are not saved: they
are made again.
"""

from __future__ import annotations

import collections
import enum
import io
import random
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from cule.errors import InvalidValue, is_others

# Attributes that the training sets.
GIVEN = frozenset({"args", "context", "now", "num_actions", "device", "read_at_start"})
PLAIN = (bool, int, float, complex, str, bytes, type(None))
# A saved value: its kind, and a copy of its content.
Taken = tuple[str, Any]
NOTHING: Taken = ("nothing", None)
_LIBRARIES = {*sys.stdlib_module_names, "torch", "numpy", "gymnasium", "cule"}


def _cannot_hold(where: str, what: str) -> InvalidValue:
    return InvalidValue(
        f"expected attributes of an algorithm that a checkpoint can hold, got {where}, a {what}: "
        "what it says would be lost when the training is resumed"
    )


def _is_own(value: Any) -> bool:
    """Whether an object is of a class of the user's, and no env."""
    module = type(value).__module__.partition(".")[0]
    known = module in _LIBRARIES and type(value).__name__ != "SimpleNamespace"
    return hasattr(value, "__dict__") and not known and not hasattr(value, "step")


def _take(value: Any, where: str, seen: set[int]) -> Taken:
    """A saved value, of types that torch.load reads without running code."""
    if type(value) in PLAIN:
        return "plain", value
    if isinstance(value, (enum.Enum, type)):
        return NOTHING
    if id(value) in seen:
        return NOTHING
    seen = seen | {id(value)}
    if isinstance(value, torch.Tensor):
        return "host" if value.is_cpu else "tensor", value.detach().clone()
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return "array", torch.from_numpy(np.array(value))
    if isinstance(value, torch.Generator):
        return "torch", value.get_state()
    if isinstance(value, np.random.Generator):
        return "numpy", _take(value.bit_generator.state, where, seen)
    if isinstance(value, random.Random):
        return "python", value.getstate()
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        return "state", _take(value.state_dict(), where, seen)
    if isinstance(value, Mapping):
        items = {key: _take(one, f"{where}[{key!r}]", seen) for key, one in value.items()}
        strange = [key for key in items if type(key) not in PLAIN]
        if any(items.pop(key) != NOTHING for key in strange):
            raise _cannot_hold(where, "dict whose keys are not numbers or texts")
        return "mapping", items
    if isinstance(value, (list, tuple, collections.deque)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return kind, [_take(one, f"{where}[{i}]", seen) for i, one in enumerate(value)]
    if isinstance(value, (set, frozenset)) and all(type(one) in PLAIN for one in value):
        return "set", list(value)
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        raise _cannot_hold(where, type(value).__name__)
    if _is_own(value):
        return "object", {n: _take(one, f"{where}.{n}", seen) for n, one in vars(value).items()}
    return NOTHING


def _put(now: Any, taken: Taken) -> Any:
    """Restores a saved value: changes `now` in place where that is possible, or makes a new one."""
    kind, value = taken
    if kind == "nothing":
        return now
    if kind in ("tensor", "host"):
        return _put_tensor(now, value.cpu() if kind == "host" else value)
    if kind == "array":
        array = value.cpu().numpy().copy()
        return array if isinstance(now, np.ndarray) or array.ndim else array[()]
    if kind == "mapping":
        return _put_mapping({} if now is None else now, value)
    if kind in ("list", "tuple"):
        return _put_sequence(kind, now, value)
    if kind in ("plain", "set"):
        return value if kind == "plain" else (set(value) if now is None else type(now)(value))
    if now is None:
        raise InvalidValue(
            "expected an algorithm to make what it keeps in __init__, got an object of a "
            "checkpoint that is not there yet"
        )
    if kind == "torch":
        now.set_state(value.cpu())
    elif kind == "numpy":
        now.bit_generator.state = _put(None, value)
    elif kind == "python":
        now.setstate((value[0], tuple(value[1]), value[2]))
    elif kind == "state":
        now.load_state_dict(_put(None, value))
    else:
        _put_attributes(now, value)
    return now


def _put_tensor(now: Any, value: torch.Tensor) -> torch.Tensor:
    """Restores a tensor in its own memory, where captured steps read it.

    A tensor of another shape, dtype or device, or one that is computed from others, is replaced.
    """
    alike = isinstance(now, torch.Tensor) and (
        (now.shape, now.dtype, now.device) == (value.shape, value.dtype, value.device)
    )
    if not alike or not now.is_leaf:
        return value.clone()
    with torch.no_grad():
        return now.copy_(value)


def _put_mapping(now: Any, taken: Mapping[Any, Taken]) -> Any:
    before = dict(now)
    for key in [key for key in before if key not in taken and type(key) in PLAIN]:
        del now[key]
    for key, one in taken.items():
        if one != NOTHING:
            now[key] = _put(before.get(key), one)
    return now


def _put_sequence(kind: str, now: Any, taken: list[Taken]) -> Any:
    before = list(now) if isinstance(now, (list, tuple, collections.deque)) else []
    before += [None] * (len(taken) - len(before))
    values = [_put(one, part) for one, part in zip(before, taken, strict=False)]
    if isinstance(now, (list, collections.deque)):
        now.clear()
        now.extend(values)
        return now
    if kind == "list":
        return values
    return type(now)(*values) if hasattr(now, "_fields") else tuple(values)


def _put_attributes(now: Any, taken: Mapping[str, Taken]) -> None:
    before = vars(now)
    for name in [name for name in before if name not in taken and name not in GIVEN]:
        delattr(now, name)
    for name, one in taken.items():
        value = _put(before.get(name), one)
        if value is not before.get(name):
            object.__setattr__(now, name, value)


def _class_marks(algorithm: Any) -> dict[str, tuple[Any, ...]]:
    """Marks of the values in an algorithm's classes, by name; a changed value has another mark."""
    marks = {}
    for kind in type(algorithm).__mro__:
        if kind.__module__.partition(".")[0] == "cule" or kind is object:
            break
        for name, value in vars(kind).items():
            version = value._version if isinstance(value, torch.Tensor) else None
            sized = isinstance(value, (list, dict, set, collections.deque))
            marks[f"{kind.__name__}.{name}"] = (id(value), version, len(value) if sized else None)
    return marks


@contextmanager
def constant_classes(algorithm: Any) -> Iterator[None]:
    """Checks that a block changes nothing in an algorithm's class, which no checkpoint holds.

    Raises:
        ValueError: an attribute of the class was changed in the block.
    """
    before = _class_marks(algorithm)
    yield
    now = _class_marks(algorithm)
    if changed := [name for name, mark in now.items() if before.get(name) != mark]:
        raise InvalidValue(
            f"expected an algorithm to make what it changes in __init__, got {', '.join(changed)} "
            "changed, of its class, which no checkpoint holds"
        )


def _alike_on_host(one: Any, other: Any) -> bool:
    """Whether two saved values are equal; tensors of a device may have other numbers."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        if one.is_cpu and other.is_cpu:
            return torch.equal(one, other)
        return one.shape == other.shape and one.device == other.device
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _alike_on_host(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike_on_host, one, other))
    return bool(one == other)


class Attributes:
    """Saves and restores the attributes of an algorithm.

    Args:
        algorithm: the algorithm.
        others: objects that checkpoints save elsewhere, such as its networks.
    """

    def __init__(self, algorithm: Any, others: Collection[Any] = ()):
        self._algorithm, self._others = algorithm, others

    def state_dict(self) -> dict[str, Any]:
        """Copies of all attributes by name, as kind and content.

        Raises:
            ValueError: an attribute is of a type that cannot be restored.
        """
        seen = {id(one) for one in self._others}
        own = {name: one for name, one in vars(self._algorithm).items() if name not in GIVEN}
        return {name: _take(one, name, seen) for name, one in own.items()}

    def are_alike_on_host(self, before: Mapping[str, Taken]) -> bool:
        """Whether only tensors of the device have changed since `state_dict` returned `before`."""
        return _alike_on_host(before, self.state_dict())

    def load_state_dict(self, state: Mapping[str, Taken]) -> None:
        """Restores what state_dict() returned.

        Raises:
            ValueError: the state is that of another algorithm.
        """
        own = {name: one for name, one in state.items() if name not in GIVEN}
        try:
            _put_attributes(self._algorithm, own)
        except (TypeError, ValueError, AttributeError, LookupError, RuntimeError) as problem:
            if is_others(problem):
                raise
            raise InvalidValue(
                f"expected the attributes of {type(self._algorithm).__name__} in the checkpoint, "
                f"got others: {' '.join(str(problem).split())}"
            ) from problem
