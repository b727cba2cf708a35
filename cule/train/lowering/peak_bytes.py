"""How much memory a call needs while it runs, and how much of it each row."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cule.train.plan.work import Work


class PeakBytes(TorchDispatchMode):
    """A context that counts the memory of the tensors that are made in it and still in use.

    Attributes:
        bytes: of those that are in use.
        peak: the most that were in use at the same time.
        course: `bytes` after each tensor that was made.
        waits: whether the host has waited for numbers of a GPU, or a GPU for the host's: a CUDA
            graph can hold neither.
    """

    def __new__(cls) -> PeakBytes:
        """The class whose `__torch_dispatch__` imports torch's compiler only if it is there."""
        return super().__new__(PeakBytes if "torch._dynamo" in sys.modules else _WithoutCompiler)

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.peak, self.waits = 0, 0, False
        self.course: list[int] = []
        # Tensors in use, and bytes, of each piece of memory.
        self._used: dict[int, list[int]] = {}

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = {storage._cdata for _, storage in _storages((args, kwargs))}
        result = function(*args, **(kwargs or {}))
        self.waits |= _waits(function, args, result)
        # Arguments may have been put together by the function.
        new = [a for a in _storages((args, kwargs)) if a[1]._cdata not in given | self._used.keys()]
        for tensor, storage in (*new, *_storages(result)):
            self._note(tensor, storage, given)
        return result

    def _note(self, tensor: torch.Tensor, storage: torch.UntypedStorage, given: set[int]) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key not in self._used:
            if key in given:
                return  # a view of memory from outside
            self._used[key] = [0, 0]
        used = self._used[key]
        # It may have grown, as by resize_.
        self.bytes += size - used[1]
        self.peak = max(self.peak, self.bytes)
        self.course.append(self.bytes)
        used[0], used[1] = used[0] + 1, size
        weakref.finalize(tensor, self._forget, key)

    def saving(self) -> torch.autograd.graph.saved_tensors_hooks:
        """A context in which what is saved for gradients counts until these are computed.

        torch saves results of operations as tensors of its own with the same memory. They must not
        lead back to their operation, which would keep both, and the weights' places in gradients
        with their streams, for ever where no gradient is computed.
        """

        def saved(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.grad_fn is not None:
                return tensor.detach()  # which is dispatched, and counts
            for one, storage in _storages(tensor):
                if storage._cdata in self._used:
                    self._used[storage._cdata][0] += 1
                    weakref.finalize(one, self._forget, storage._cdata)
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor)

    def _forget(self, key: int) -> None:
        used = self._used[key]
        used[0] -= 1
        if not used[0]:
            self.bytes -= used[1]
            del self._used[key]

    def work_of(self, rows: int) -> Work:
        """The memory of a call for so many rows, which are all computed at once."""
        return Work(rows, -(-self.peak // rows), least=rows)


_DEPENDENT = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})


def _waits(function: Any, args: Sequence[Any], result: Any) -> bool:
    """Whether an operation's result or its shape depends on numbers that the other side has."""
    if not _DEPENDENT.isdisjoint(function.tags):
        return True
    copies = function in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    return copies and len({one.is_cpu for one in _tensors((args, result))}) > 1


class _WithoutCompiler(PeakBytes):
    """The same where torch's compiler has not been imported, which takes one to two seconds."""


_WithoutCompiler.__torch_dispatch__ = inspect.unwrap(  # type: ignore[method-assign]
    PeakBytes.__torch_dispatch__
)


def bytes_each(few: PeakBytes, more: PeakBytes, rows: int) -> int:
    """The most bytes in use of each row, by two calls, the second of which had so many more.

    What both need alike, such as gradients of weights, is not among them.
    """
    if len(few.course) == len(more.course):
        most = max((b - a for a, b in zip(few.course, more.course, strict=True)), default=0)
    else:
        most = more.peak - few.peak
    return max(0, -(-most // rows))


def held(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor whose memory a tensor has.

    It is the tensor itself, but for Stacks (cule/train/nn/kernels/frames.py), which have memory
    only after they were put together: before, it is None.
    """
    return getattr(tensor, "held", tensor)


def _storages(values: Any) -> Iterator[tuple[torch.Tensor, torch.UntypedStorage]]:
    """The tensors among some values, each with its memory; sparse ones have none of their own."""
    for one in _tensors(values):
        if one.layout == torch.strided:
            tensor = held(one)
            if tensor is not None:
                yield tensor, tensor.untyped_storage()


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors in arguments or results of an operation, which torch nests in these alone.

    A training's start has thousands of operations; torch's tree_iter takes ten times as long.
    """
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, tuple | list):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from _tensors(value)
