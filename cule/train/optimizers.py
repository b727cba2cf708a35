"""Adam for parameters that are one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from cule.train import kernels


def _whole(parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The vector of which these tensors are all parts; None: there is none."""
    storage = parts[0].untyped_storage()
    alike = all(
        part.untyped_storage().data_ptr() == storage.data_ptr() and part.dtype == parts[0].dtype
        for part in parts
    )
    if not alike or sum(part.numel() * part.itemsize for part in parts) != storage.nbytes():
        return None
    return parts[0].new_empty(0).set_(storage)  # type: ignore[call-overload]


def _part(whole: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The part of a vector that a tensor is of another one."""
    return whole.as_strided(like.shape, like.stride(), like.storage_offset())


class _Vectors(NamedTuple):
    """What kernels/adam.py's `adam` works on."""

    parameters: torch.Tensor
    gradients: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    steps: torch.Tensor


class Adam(torch.optim.Adam):
    """torch's Adam. One kernel makes a step of parameters on a GPU that are one vector.

    So are those of Weights. torch's fused kernel gives 65,536 numbers to a block: the 1.7 million
    of the Nature CNN are 30 blocks, which take 75 us where all multiprocessors of an H100 would
    take 15.

    Args:
        parameters: float32.
        rate: a tensor, which a captured step reads.
        epsilon: what is added to the denominator.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], rate: torch.Tensor, epsilon: float):
        super().__init__(
            parameters, lr=rate, eps=epsilon, fused=True, capturable=rate.device.type == "cuda"
        )
        self._vectors: _Vectors | None = None
        own = self.param_groups[0]["params"]
        if kernels.serve(own[0]):
            self._vectors = self._found(own)
            self._adopt()

    @staticmethod
    def _found(own: Sequence[torch.Tensor]) -> _Vectors | None:
        """The vectors, if parameters and gradients are parts of some in the same order."""
        gradients = [p.grad for p in own if p.grad is not None]
        if len(gradients) < len(own):
            return None
        if any(
            p.storage_offset() != g.storage_offset() or p.stride() != g.stride()
            for p, g in zip(own, gradients, strict=True)
        ):
            return None
        parameters, gradient = _whole([p.detach() for p in own]), _whole(gradients)
        if parameters is None or gradient is None:
            return None
        steps = torch.zeros((), dtype=torch.float32, device=parameters.device)
        means = torch.zeros_like(gradient), torch.zeros_like(gradient)
        return _Vectors(parameters, gradient, *means, steps)

    @torch.no_grad()
    def _adopt(self) -> None:
        """Makes what torch keeps of each parameter a part of the vectors, with its values."""
        whole = self._vectors
        if whole is None:
            return
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            parts = {
                "exp_avg": _part(whole.first, p), "exp_avg_sq": _part(whole.second, p),
                "step": whole.steps,
            }  # fmt: skip
            for name, part in parts.items():
                if name in state:
                    part.copy_(state[name])
                else:
                    part.zero_()
                state[name] = part

    def load_state_dict(self, state_dict: Any) -> None:
        """See torch.optim.Adam. Captured steps go on from the new state."""
        super().load_state_dict(state_dict)
        self._adopt()

    def step(self, closure: Any = None) -> Any:
        """See torch.optim.Adam."""
        whole = self._vectors
        if whole is None:
            return super().step(closure)
        from cule.train.kernels.adam import adam

        [group] = self.param_groups
        whole.steps.add_(1)
        adam(*whole, group["lr"], group["betas"], group["eps"])
        return None
