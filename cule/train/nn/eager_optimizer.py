"""torch's optimizers without the import of torch's compiler."""

from __future__ import annotations

import inspect

import torch

Optimizer = torch.optim.Optimizer


class EagerOptimizer(Optimizer):
    """An optimizer that does not import torch._dynamo where nothing is compiled.

    torch's methods import it when they are first called, to say that they are not to be compiled;
    that takes one to two seconds of each start. These are the same methods without that.
    """

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    state_dict = inspect.unwrap(Optimizer.state_dict)
    load_state_dict = inspect.unwrap(Optimizer.load_state_dict)


class Adam(EagerOptimizer, torch.optim.Adam):
    """torch's Adam, which is not differentiable."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class RMSprop(EagerOptimizer, torch.optim.RMSprop):
    """torch's RMSprop, which is not differentiable."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.RMSprop.step))
