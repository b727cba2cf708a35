"""Adam for parameters that are one vector, and Muon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.optim.adam import adam as torch_adam

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


# For each iteration what x -> a x + b x^3 + c x^5 does to each singular value. They bring 0.01 to 1
# nearest to 1, one after the other: at most 0.27 is left (found by Remez' algorithm, as in Amsel et
# al., 2025). Five iterations of one polynomial, as in Jordan et al. (2024), reach a third as far
# down, and take a GPU 1.7 times as long.
COEFFICIENTS = (
    (8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526),
)  # fmt: skip
# A step's elements have this root mean square, times the rate: about that of Adam's steps (Liu et
# al., 2025), so that the same rates fit.
SIZE = 0.2
# Of gradients with a smaller root mean square less is made. A gradient that has become zero leaves
# a mean that falls from step to step, and would otherwise be a full step each time.
LEAST = 1e-10
# Matrices of at most so many numbers are made orthogonal together.
SMALL = 1 << 16


def orthogonal(matrices: torch.Tensor, least: torch.Tensor | float = 1e-12) -> torch.Tensor:
    """Nearly U V^T of each matrix U S V^T: singular values become 0.7 to 1.3, tiny ones less.

    Args:
        matrices: (k, m, n), m at most n, of any size; rows and columns of zeros stay zeros.
        least: (k, 1, 1), norms: of a matrix that is smaller less is made, and of one far smaller
            next to nothing. At least 1e-12, below which squares may be too small for floats.
    """
    gram = matrices @ matrices.mT
    norm = gram.diagonal(dim1=1, dim2=2).sum(1).sqrt().view(-1, 1, 1)
    # First to a norm of at most 1, as the next norm is of fourth powers.
    size = norm + least
    gram = gram / size.square()
    # Its root is at least the largest singular value, and nearer to it than the matrix' norm.
    # Rounding may add a little.
    bound = 1.02 * gram.norm(dim=(1, 2), keepdim=True).sqrt().clamp(min=0.05)
    x, gram = matrices / size / bound, gram / bound.square()
    for i, (a, b, c) in enumerate(COEFFICIENTS):
        gram = x @ x.mT if i else gram
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x * (norm / size)


class _Stack:
    """Matrices that are made orthogonal together: with zeros around them they have one shape."""

    def __init__(self, matrices: Sequence[torch.Tensor]):
        self.shapes = [tuple(sorted(m.shape)) for m in matrices]
        rows, columns = (max(shape[i] for shape in self.shapes) for i in range(2))
        device = matrices[0].device
        # A GPU's matrix units have bfloat16; the iteration mends what rounding does.
        kind = torch.bfloat16 if device.type == "cuda" else matrices[0].dtype
        self.values = torch.zeros((len(matrices), rows, columns), dtype=kind, device=device)
        sizes = [(SIZE * max(shape) ** 0.5, LEAST * m.numel() ** 0.5)
                 for shape, m in zip(self.shapes, matrices, strict=True)]  # fmt: skip
        self.sizes, self.least = torch.tensor(sizes, device=device).view(-1, 2, 1, 1).unbind(1)
        self.least = self.least.to(kind)

    def steps(self, directions: Sequence[torch.Tensor], rate: torch.Tensor) -> list[torch.Tensor]:
        """By what to change each matrix, from its (rows, columns) float32 direction."""
        for place, (m, n), direction in zip(self.values, self.shapes, directions, strict=True):
            place[:m, :n].copy_(direction if direction.shape == (m, n) else direction.mT)
        steps = orthogonal(self.values, self.least).float().mul_(self.sizes * rate)
        return [
            step[:m, :n] if direction.shape == (m, n) else step[:m, :n].mT
            for step, (m, n), direction in zip(steps, self.shapes, directions, strict=True)
        ]


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) for weights of layers, Adam for biases and other vectors.

    A matrix moves by its gradient's mean, made orthogonal: as much in the directions in which
    gradients are small as in others. A convolution's weights are a matrix with a row for each
    output. torch.optim.Muon is the same, but cannot be captured with a rate that changes, has no
    convolutions, and makes each matrix orthogonal alone.

    Args:
        parameters: float32, dense, each with a gradient when a step is made.
        rate: a tensor, which a captured step reads. What fits Adam fits here.
        momentum: of the gradients' mean, which looks ahead as Nesterov's does.
        epsilon: what Adam adds to the denominator.
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        rate: torch.Tensor,
        momentum: float,
        epsilon: float,
    ):
        layers = [p for p in parameters if p.dim() > 1]
        others = [p for p in parameters if p.dim() < 2]
        # torch.optim.Optimizer keeps `step` on the device where a group is "fused".
        adam = {"betas": (0.9, 0.999), "eps": epsilon, "fused": True}
        groups = [{"params": layers, "momentum": momentum}, {"params": others, **adam}]
        super().__init__([group for group in groups if group["params"]], {"lr": rate})
        for p in layers:
            self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        for p in others:
            step = torch.zeros((), dtype=torch.float32, device=p.device)
            self.state[p] |= {
                "step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p),
            }  # fmt: skip
        alone = [[i] for i, p in enumerate(layers) if p.numel() > SMALL]
        together = [i for i, p in enumerate(layers) if p.numel() <= SMALL]
        self._stacks = [
            (places, _Stack([self._matrix(layers[i]) for i in places]))
            for places in [*alone, together]
            if places
        ]

    @staticmethod
    def _matrix(tensor: torch.Tensor) -> torch.Tensor:
        """A dense tensor's numbers in the order of its memory, a row for each output."""
        rows = tensor.shape[0]
        return tensor.detach().as_strided(
            (rows, tensor.numel() // rows), (tensor.numel() // rows, 1)
        )

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """See torch.optim.Optimizer. There is no closure."""
        for group in self.param_groups:
            parameters = group["params"]
            gradients = [p.grad for p in parameters]
            if "momentum" in group:
                self._move(group, parameters, gradients)
            else:
                self._adam(group, parameters, gradients)

    def _move(self, group: dict[str, Any], parameters: Any, gradients: Any) -> None:
        """A step of matrices."""
        means = [self.state[p]["momentum_buffer"] for p in parameters]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, means, group["momentum"])
        for places, stack in self._stacks:
            steps = stack.steps([self._matrix(ahead[i]) for i in places], group["lr"])
            for i, step in zip(places, steps, strict=True):
                self._matrix(parameters[i]).sub_(step)

    def _adam(self, group: dict[str, Any], parameters: Any, gradients: Any) -> None:
        """A step of vectors."""
        kept = [self.state[p] for p in parameters]
        beta_1, beta_2 = group["betas"]
        torch_adam(
            parameters, gradients, [k["exp_avg"] for k in kept], [k["exp_avg_sq"] for k in kept],
            [], [k["step"] for k in kept], fused=True, capturable=parameters[0].is_cuda,
            amsgrad=False, beta1=beta_1, beta2=beta_2, lr=group["lr"], weight_decay=0.0,
            eps=group["eps"], maximize=False,
        )  # fmt: skip
