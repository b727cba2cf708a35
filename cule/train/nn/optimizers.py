"""Adam for parameters that are one vector, and Muon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.optim.adam import adam as torch_adam

from cule.train.nn import eager_optimizer, kernels
from cule.train.nn.matrices import Place


def _whole(parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The vector that these tensors fill together; None: they do not fill one."""
    storage = parts[0].untyped_storage()
    alike = all(
        part.untyped_storage().data_ptr() == storage.data_ptr() and part.dtype == parts[0].dtype
        for part in parts
    )
    if not alike or sum(part.numel() * part.itemsize for part in parts) != storage.nbytes():
        return None
    return parts[0].new_empty(0).set_(storage)  # type: ignore[call-overload]


def _part(whole: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The part of a vector at the place that a tensor has in another vector."""
    return whole.as_strided(like.shape, like.stride(), like.storage_offset())


def _vectors(own: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The vectors of which parameters and their gradients are parts in the same order, if any."""
    gradients = [p.grad for p in own if p.grad is not None]
    if len(gradients) < len(own):
        return None
    if any(
        p.storage_offset() != g.storage_offset() or p.stride() != g.stride()
        for p, g in zip(own, gradients, strict=True)
    ):
        return None
    parameters, gradient = _whole([p.detach() for p in own]), _whole(gradients)
    return None if parameters is None or gradient is None else (parameters, gradient)


class _Vectors(NamedTuple):
    """The arguments of kernels/adam.py's `adam`."""

    parameters: torch.Tensor
    gradients: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor
    steps: torch.Tensor


class Adam(eager_optimizer.Adam):
    """torch's Adam. One kernel makes a step of parameters on a GPU that are one vector.

    So are those of Weights. torch's fused kernel gives 65,536 numbers to a block: the 1.7 million
    of the Nature CNN are 30 blocks, which take 75 us where all multiprocessors of an H100 would
    take 15.

    Args:
        parameters: float32.
        rate: a tensor, which a captured step reads.
        epsilon: is added to the denominator.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], rate: torch.Tensor, epsilon: float):
        super().__init__(
            parameters, lr=rate, eps=epsilon, fused=True, capturable=rate.device.type == "cuda"
        )
        self._vectors: _Vectors | None = None
        own = self.param_groups[0]["params"]
        if kernels.serve(own[0]):
            self._vectors = self._vectors_of(own)
            self._adopt()

    @staticmethod
    def _vectors_of(own: Sequence[torch.Tensor]) -> _Vectors | None:
        """The vectors, if there are any."""
        vectors = _vectors(own)
        if vectors is None:
            return None
        parameters, gradient = vectors
        steps = torch.zeros((), dtype=torch.float32, device=parameters.device)
        means = torch.zeros_like(gradient), torch.zeros_like(gradient)
        return _Vectors(parameters, gradient, *means, steps)

    @torch.no_grad()
    def _adopt(self) -> None:
        """Makes torch's state of each parameter a part of the vectors, with its values."""
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
        from cule.train.nn.kernels.adam import adam

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


def orthogonal(
    matrices: torch.Tensor, least: torch.Tensor, out: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Nearly U V^T of each matrix U S V^T: singular values become 0.7 to 1.3, tiny ones less.

    Args:
        matrices: (k, m, n), m at most n, of any size; rows and columns of zeros stay zeros.
        least: (k, 1, 1), norms: the result of a matrix with a smaller norm is smaller. At least
            1e-12, below which squares may be too small for floats.
        out: the memory of the first result, which may be that of `matrices`; None: new memory.

    Returns:
        The matrices (k, m, n), and (k,) their factors: a matrix' norm by the sum of its norm and
        the least one.
    """
    gram = matrices @ matrices.mT
    factors, shares = _bounds(gram, least)
    x, gram = matrices * factors[:, 0], gram * factors[:, 1]
    for i, (a, b, c) in enumerate(COEFFICIENTS):
        gram = x @ x.mT if i else gram
        to = out if i == len(COEFFICIENTS) - 1 else None
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a, out=to)
    return x, shares


def _bounds(gram: torch.Tensor, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The factors of matrices after which no singular value is above 1: see kernels/muon.py."""
    if kernels.serve(gram):
        from cule.train.nn.kernels.muon import bounds

        return bounds(gram, least)
    kind, gram = gram.dtype, gram.to(torch.promote_types(gram.dtype, torch.float32))
    norm = gram.diagonal(dim1=1, dim2=2).sum(1).sqrt().view(-1, 1, 1)
    # First to a norm of at most 1, as the next norm is of fourth powers.
    size = norm + least
    # Its root is at least the largest singular value, and nearer to it than the matrix' norm.
    # Rounding may add a little.
    fourth = (gram / size.square()).norm(dim=(1, 2), keepdim=True)
    factor = (1 / (size * 1.02 * fourth.sqrt().clamp(min=0.05))).to(kind)
    return torch.stack([factor, factor.square()], dim=1), (norm / size).flatten()


class _Stacks:
    """Weights of layers as matrices, and memory in which they are made orthogonal.

    Matrices of a stack are made orthogonal together: with zeros around them they have one shape. A
    matrix with more rows than columns is transposed there.

    Args:
        layers: the weights of layers, dense; a matrix has a row for each output.

    Attributes:
        places: the place of each matrix.
        sizes: the size of each matrix' steps, in the order of the stacks.
    """

    def __init__(self, layers: Sequence[torch.Tensor]):
        device = layers[0].device
        # A GPU's matrix units have bfloat16; the iteration mends what rounding does.
        kind = torch.bfloat16 if device.type == "cuda" else layers[0].dtype
        shapes = [(p.shape[0], p.numel() // p.shape[0]) for p in layers]
        together = [i for i, p in enumerate(layers) if p.numel() <= SMALL]
        alone = [[i] for i, p in enumerate(layers) if p.numel() > SMALL]
        groups = [group for group in (*alone, together) if group]
        self.order = [i for group in groups for i in group]
        high = [[max(side(shapes[i]) for i in group) for side in (min, max)] for group in groups]
        counts = [len(group) * m * n for group, (m, n) in zip(groups, high, strict=True)]
        self.memory = torch.zeros(sum(counts), dtype=kind, device=device)
        self.stacks = [
            part.view(len(group), m, n)
            for part, group, (m, n) in zip(self.memory.split(counts), groups, high, strict=True)
        ]
        self.places = []
        for stack, group in zip(self.stacks, groups, strict=True):
            for inside, i in zip(stack, group, strict=True):
                rows, columns = shapes[i]
                steps = (stack.shape[2], 1) if rows <= columns else (1, stack.shape[2])
                begin, to = int(layers[i].storage_offset()), int(inside.storage_offset())
                self.places.append(Place(begin, rows, columns, to, *steps))
        sizes = [SIZE * max(shapes[i]) ** 0.5 for i in self.order]
        self.sizes = torch.tensor(sizes, device=device)
        self._least = [
            torch.tensor([LEAST * layers[i].numel() ** 0.5 for i in group], device=device)
            .to(kind).view(-1, 1, 1)
            for group in groups
        ]  # fmt: skip

    def inside(self, place: Place) -> torch.Tensor:
        """A matrix in its stack."""
        return self.memory.as_strided(
            (place.rows, place.columns), (place.row, place.column), place.to
        )

    def make_orthogonal(self) -> torch.Tensor:
        """Makes all of them orthogonal in place; returns the size of each step without the rate."""
        shares = [
            orthogonal(stack, least, out=stack)[1]
            for stack, least in zip(self.stacks, self._least, strict=True)
        ]
        return torch.cat(shares) * self.sizes


def _matrix(tensor: torch.Tensor, place: Place) -> torch.Tensor:
    """A dense tensor's numbers in the order of its memory, a row for each output."""
    return tensor.detach().as_strided((place.rows, place.columns), (place.columns, 1))


class Muon(eager_optimizer.EagerOptimizer):
    """Muon (Jordan et al., 2024) for weights of layers, Adam for biases and other vectors.

    A matrix moves by its gradient's mean, made orthogonal: as much in the directions in which
    gradients are small as in others. A convolution's weights are a matrix with a row for each
    output. torch.optim.Muon is the same, but cannot be captured with a rate that changes, has no
    convolutions, and makes each matrix orthogonal alone.

    Args:
        parameters: float32, dense, each with a gradient when a step is made.
        rate: a tensor, which a captured step reads. What fits Adam fits here.
        momentum: the decay of the gradients' mean, which looks ahead as Nesterov's does.
        epsilon: is added to Adam's denominator.
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
        self._stacks = _Stacks(layers) if layers else None
        # The vectors of parameters, gradients and means, and the kernels' table.
        self._vectors: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        vectors = _vectors(parameters) if layers and kernels.serve(layers[0]) else None
        if vectors is not None and self._stacks is not None:
            from cule.train.nn.kernels.muon import table_of

            table = table_of(self._stacks.places, layers[0].device)
            self._vectors = (*vectors, torch.zeros_like(vectors[1]), table)
        for p in layers:
            self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        for p in others:
            step = torch.zeros((), dtype=torch.float32, device=p.device)
            self.state[p] |= {
                "step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p),
            }  # fmt: skip
        self._adopt()

    @torch.no_grad()
    def _adopt(self) -> None:
        """Makes the means of matrices parts of their vector, with their values."""
        if self._vectors is None:
            return
        for p in self.param_groups[0]["params"]:
            part = _part(self._vectors[2], p)
            self.state[p]["momentum_buffer"] = part.copy_(self.state[p]["momentum_buffer"])

    def load_state_dict(self, state_dict: Any) -> None:
        """See torch.optim.Optimizer. Captured steps go on from the new state."""
        super().load_state_dict(state_dict)
        self._adopt()

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """See torch.optim.Optimizer. There is no closure."""
        for group in self.param_groups:
            if "momentum" not in group:
                self._adam(group)
            elif self._vectors is None:
                self._move(group)
            else:
                self._move_vectors(group)

    def _move(self, group: dict[str, Any]) -> None:
        """A step of matrices."""
        stacks, layers = self._stacks, group["params"]
        assert stacks is not None
        gradients = [p.grad for p in layers]
        means = [self.state[p]["momentum_buffer"] for p in layers]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, means, group["momentum"])
        for i, place in zip(stacks.order, stacks.places, strict=True):
            stacks.inside(place).copy_(_matrix(ahead[i], place))
        sizes = stacks.make_orthogonal() * group["lr"]
        for i, place, size in zip(stacks.order, stacks.places, sizes, strict=True):
            _matrix(layers[i], place).sub_(stacks.inside(place).float() * size)

    def _move_vectors(self, group: dict[str, Any]) -> None:
        """The same in a few kernels."""
        from cule.train.nn.kernels import muon

        stacks = self._stacks
        assert stacks is not None and self._vectors is not None
        parameters, gradients, means, table = self._vectors
        muon.directions(gradients, means, stacks.memory, table, group["momentum"])
        sizes = stacks.make_orthogonal()
        muon.move(parameters, stacks.memory, table, sizes, group["lr"])

    def _adam(self, group: dict[str, Any]) -> None:
        """A step of vectors."""
        parameters = group["params"]
        gradients, own = [p.grad for p in parameters], [self.state[p] for p in parameters]
        beta_1, beta_2 = group["betas"]
        torch_adam(
            parameters, gradients, [s["exp_avg"] for s in own], [s["exp_avg_sq"] for s in own],
            [], [s["step"] for s in own], fused=True, capturable=parameters[0].is_cuda,
            amsgrad=False, beta1=beta_1, beta2=beta_2, lr=group["lr"], weight_decay=0.0,
            eps=group["eps"], maximize=False,
        )  # fmt: skip
