"""The weights that learn: float32 for the optimizer, bfloat16 for what computes with them.

This is mixed precision with master weights (Micikevicius et al., 2018). The weights of linear
layers and convolutions are rounded to bfloat16 once after each update, all of them together.
Without that, autocast rounds them in every forward pass, one by one. All other parameters, such as
biases and those of normalizations, stay in float32: autocast rounds what it has to, as it always
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import nn


def _matrices(net: nn.Module) -> list[nn.Parameter]:
    """The parameters that autocast would round, and nothing else would use in float32."""
    layers = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return [cast(nn.Parameter, m.weight) for m in net.modules() if isinstance(m, layers)]


def _dense(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A gradient's numbers in the order of the parameter's memory."""
    if gradient.stride() != like.stride():
        gradient = torch.empty_like(like).copy_(gradient)
    return gradient.as_strided((gradient.numel(),), (1,))


def _views(whole: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Parts of a vector with the shapes and memory formats of some tensors."""
    parts = whole.split([p.numel() for p in like])
    return [part.as_strided(p.shape, p.stride()) for part, p in zip(parts, like, strict=True)]


class Weights:
    """The parameters of some networks, and their gradients.

    Args:
        nets: the networks, in float32 and in their final memory format.
        device: where they are.
        rounded: compute in bfloat16: the weights of linear layers and convolutions become
            bfloat16.

    Attributes:
        used: the networks' parameters.
        parameters: what the optimizer updates, float32, in the same order: the parameters
            themselves, or what they are rounded from; parts of one vector.
        gradient: all gradients as one float32 vector: one all-reduce, one norm.
        gradients: each parameter's part of it, with its shape and memory format, as fused
            optimizers need.
    """

    def __init__(self, nets: Sequence[nn.Module], device: torch.device, *, rounded: bool):
        self.used = [p for net in nets for p in net.parameters()]
        self._matrices: list[nn.Parameter] = []
        self._others: list[nn.Parameter] = []
        matrices = {p for net in nets for p in _matrices(net)} if rounded else set()
        for p in self.used:
            (self._matrices if p in matrices else self._others).append(p)
        # Those of matrices come first.
        in_order = [*self._matrices, *self._others]
        count, size = (sum(p.numel() for p in some) for some in (self._matrices, in_order))
        # One vector, so that one kernel updates all, and one rounds all.
        numbers = torch.empty(size, device=device)
        self._precise = numbers[:count]
        self._rounded = torch.empty(count, device=device, dtype=torch.bfloat16)
        places, precise = _views(numbers, in_order), {}
        for p, place in zip(self._others, places[len(self._matrices) :], strict=True):
            p.data = place.copy_(p.detach())
        rounded_places = _views(self._rounded, self._matrices)
        for p, place, rounded_place in zip(self._matrices, places, rounded_places, strict=False):
            precise[p] = nn.Parameter(place.copy_(p.detach()))
            p.data = rounded_place
        self.round()
        self.parameters = [precise.get(p, p) for p in self.used]
        self.gradient = torch.zeros(size, device=device)
        self._of_matrices, self._of_others = self.gradient.tensor_split([count])
        place_of = dict(zip(in_order, _views(self.gradient, in_order), strict=True))
        self.gradients = [place_of[p] for p in self.used]
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient

    def round(self) -> None:
        """Rounds the optimizer's numbers to those that are used."""
        self._rounded.copy_(self._precise)

    def precise(self, net: nn.Module) -> dict[str, torch.Tensor]:
        """The state_dict of one of the networks with the optimizer's numbers."""
        known = dict(zip(self.used, self.parameters, strict=True))
        own = {name: known[p].detach() for name, p in net.named_parameters()}
        return net.state_dict() | own

    def precise_parameters(self, net: nn.Module) -> list[torch.Tensor]:
        """The optimizer's numbers of the parameters of one of the networks, in their order."""
        known = dict(zip(self.used, self.parameters, strict=True))
        return [known[p].detach() for p in net.parameters()]

    def set_gradient(self, gradients: Sequence[torch.Tensor | None], *, add: bool) -> None:
        """Puts gradients of `used` into `gradient`, or adds them to it; None is zeros."""
        by_parameter = dict(zip(self.used, gradients, strict=True))
        for some, place in ((self._matrices, self._of_matrices), (self._others, self._of_others)):
            if not some:
                continue
            flat = [
                torch.zeros_like(like).flatten() if (one := by_parameter[like]) is None
                else _dense(one, like)
                for like in some
            ]  # fmt: skip
            if add:
                place += torch.cat(flat)
            elif flat[0].dtype == place.dtype:
                torch.cat(flat, out=place)
            else:
                place.copy_(torch.cat(flat))

    def state_dict(self) -> list[torch.Tensor]:
        """The parameters that the optimizer updates, float32."""
        return [p.detach() for p in self.parameters]

    @torch.no_grad()
    def load_state_dict(self, state: Sequence[torch.Tensor]) -> None:
        """Restores what state_dict() returned."""
        for mine, its in zip(self.parameters, state, strict=True):
            mine.copy_(its)
        self.round()

    @property
    def finite(self) -> bool:
        """Whether all numbers are. Waits for the device."""
        finite = [p.detach().isfinite().all() for p in self.parameters]
        return bool(torch.stack(finite).all())

    @property
    def bytes(self) -> int:
        """Bytes of parameters, gradients, a chunk's, and an optimizer with two numbers for each."""
        return 5 * 4 * self.gradient.numel() + 2 * self._rounded.numel()


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Copies weights and buffers. All weights of a dtype are one launch on a GPU."""
    kinds: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for mine, its in zip(target.parameters(), source.parameters(), strict=True):
        for some, one in zip(kinds.setdefault(its.dtype, ([], [])), (mine, its), strict=True):
            some.append(one)
    with torch.no_grad():
        for targets, sources in kinds.values():
            torch._foreach_copy_(targets, sources)
    _copy_buffers(source, target)


@torch.no_grad()
def move_weights(
    source: nn.Module, precise: Sequence[torch.Tensor], target: nn.Module, tau: float
) -> None:
    """Moves weights in float32 a share of the way to those of another network; copies buffers.

    Args:
        source: the other network.
        precise: its parameters in float32, in their order.
        target: is changed.
        tau: the share.
    """
    torch._foreach_lerp_(list(target.parameters()), list(precise), tau)
    _copy_buffers(source, target)


@torch.no_grad()
def _copy_buffers(source: nn.Module, target: nn.Module) -> None:
    for buffer, its_buffer in zip(target.buffers(), source.buffers(), strict=True):
        buffer.copy_(its_buffer)
