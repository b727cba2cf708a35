"""Learning: gradients of the A2C loss with V-trace, averaged over processes, and the optimizer."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from cule import scope
from cule.train.nn.returns import vtrace
from handwritten.arguments import Args
from handwritten.rollout import Batch, Rollout

METRICS = ("policy_loss", "value_loss", "entropy", "ratio", "grad_norm")


def losses(model: nn.Module, batch: Batch, args: Args) -> torch.Tensor:
    """The loss of a batch and its parts.

    Returns:
        (5,) float32: loss, policy loss, value loss, entropy, mean ratio. All are means over the
        batch's steps; steps that reset an env count as 0.
    """
    steps, width = batch.actions.shape
    log_pi_all, values = model(batch.observations.flatten(0, 1))
    log_pi_all, values = (
        log_pi_all.unflatten(0, (steps + 1, width))[:-1],
        values.unflatten(0, (steps + 1, width)),
    )
    log_pi = log_pi_all.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
    log_ratios = (log_pi - batch.log_mu).detach().masked_fill(~batch.played, -torch.inf)
    corrected = vtrace(
        log_ratios, batch.rewards, batch.discounts, values.detach(),
        rho_bar=args.rho_bar, c_bar=args.c_bar, trace_decay=args.trace_decay,
    )  # fmt: skip
    played = batch.played.float()
    policy_loss = -(corrected.advantages * log_pi * played).mean()
    value_loss = (0.5 * (corrected.targets - values[:-1]).square() * played).mean()
    entropy = -((log_pi_all.exp() * log_pi_all).sum(dim=2) * played).mean()
    loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * entropy
    return torch.stack([loss, policy_loss, value_loss, entropy, log_ratios.exp().mean()])


def make_optimizer(
    parameters: list[nn.Parameter], args: Args, device: torch.device
) -> torch.optim.Optimizer:
    """The optimizer. Its learning rate is a tensor on the device, which a captured step reads."""
    on_gpu = device.type == "cuda"
    rate = torch.tensor(args.learning_rate, dtype=torch.float32, device=device)
    if args.optimizer == "adam":
        return torch.optim.Adam(
            parameters, lr=rate, eps=args.adam_epsilon, fused=True, capturable=on_gpu
        )
    return torch.optim.RMSprop(
        parameters,
        lr=rate,
        alpha=args.rmsprop_decay,
        eps=args.adam_epsilon,
        capturable=on_gpu,
        foreach=on_gpu,
    )


class Learner:
    """Updates a model from a rollout, with one group of envs after the other.

    Args:
        model: the ActorCritic.
        rollout: the steps that were played; the player writes them.
        args: the settings.
        world_size: processes that average their gradients.

    Attributes:
        group: (1,) int64 on the device, the group of envs whose turn it is.
        end: (1,) int64 on the device, the position at which the next update's steps end.
        metrics: (5,) float64 on the device, sums over updates of METRICS.
    """

    def __init__(self, model: nn.Module, rollout: Rollout, args: Args, world_size: int):
        self.model, self.rollout, self.args, self.world_size = model, rollout, args, world_size
        device = rollout.position.device
        self.parameters = list(model.parameters())
        self.optimizer = make_optimizer(self.parameters, args, device)
        self.losses = torch.compile(losses) if args.compile else losses
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=args.bf16)
        # One flat gradient: one all-reduce, one norm. The parameters' gradients are views of it.
        self.gradient = torch.zeros(sum(p.numel() for p in self.parameters), device=device)
        parts = self.gradient.split([p.numel() for p in self.parameters])
        # They have the parameters' memory format, as fused optimizers need.
        self.gradients = [
            part.as_strided(p.shape, p.stride())
            for part, p in zip(parts, self.parameters, strict=True)
        ]
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        self.group = torch.zeros(1, dtype=torch.int64, device=device)
        self.end = rollout.position.clone()
        self.metrics = torch.zeros(len(METRICS), dtype=torch.float64, device=device)
        self.group_size = rollout.num_envs // args.num_batches
        envs_at_once = max(1, args.learner_chunk // (args.n_steps + 1))
        self.chunks = torch.arange(self.group_size, device=device).split(envs_at_once)

    def warm_up(self) -> None:
        """Runs a pass, so that what torch compiles on first use is compiled. Learns nothing."""
        self.compute_gradient()
        self.gradient.zero_()
        self.metrics.zero_()
        self.group.zero_()

    def compute_gradient(self) -> None:
        """Computes this process's gradient of the group's loss, and moves on to the next group."""
        self.gradient.zero_()
        for chunk in self.chunks:
            with scope.operation("gathering"):
                batch = self.rollout.batch(self.end, self.group * self.group_size + chunk)
            share = len(chunk) / self.group_size
            with scope.operation("backpropagation"):
                with self.autocast:
                    values = self.losses(self.model, batch, self.args)
                grads = torch.autograd.grad(values[0] * share, self.parameters)
                torch._foreach_add_(self.gradients, grads)
                self.metrics[: len(METRICS) - 1] += values[1:].detach() * share
        self.group.add_(1).remainder_(self.args.num_batches)

    def apply_gradient(self) -> None:
        """Clips the gradient and takes a step of the optimizer."""
        with scope.operation("optimizer"):
            norm = self.gradient.norm()
            self.metrics[-1] += norm
            self.gradient.mul_((self.args.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
            self.optimizer.step()

    def average_gradient(self) -> None:
        """Makes `gradient` the mean over all processes."""
        if self.world_size > 1:
            with scope.operation("reduction"):
                dist.all_reduce(self.gradient)
                self.gradient /= self.world_size

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate of the next steps."""
        self.optimizer.param_groups[0]["lr"].fill_(rate)

    def take_metrics(self) -> torch.Tensor:
        """The sums of METRICS since the last call: (5,) float64."""
        sums = self.metrics.clone()
        self.metrics.zero_()
        return sums

    def state_dict(self) -> dict:
        """Everything that the next updates depend on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "group": self.group,
            "end": self.end,
            "metrics": self.metrics,
        }

    def load_state_dict(self, state: dict) -> None:
        """Restores what state_dict() returned."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("group", "end", "metrics"):
            getattr(self, name).copy_(state[name])
