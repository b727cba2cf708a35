"""Mixed precision: weights that are rounded once are those that autocast rounds each time."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import nn

from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import ActorCritic, QNetwork
from cule.train.nn.weights import Weights, copy_weights
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C
from examples.a2c_vtrace.train import Args as A2CArgs
from examples.ppo.ppo import PPO
from examples.ppo.ppo import Args as PPOArgs

CPU = torch.device("cpu")


def make_nets() -> list[nn.Module]:
    """Two networks with all kinds of layers, in channels_last, whose outputs are not small."""
    torch.manual_seed(0)
    nets = [ActorCritic(6, "nature", width=0.25), QNetwork(4, "nature", 0.25, layer_norm=True)]
    for parameter in nets[0].heads.parameters():
        nn.init.normal_(parameter)
    return [net.to(memory_format=torch.channels_last) for net in nets]


def losses(nets: list[nn.Module], images: torch.Tensor) -> list[torch.Tensor]:
    """What both networks say under autocast, and a loss of it."""
    with torch.autocast("cpu", torch.bfloat16):
        log_pi, values = nets[0](images)
        q = nets[1](images)
    return [log_pi, values, q, log_pi[:, 1].mean() + values.square().mean() + q.std()]


def test_rounded_weights_compute_what_autocast_does():
    images = torch.randint(0, 256, (5, 4, 84, 84), dtype=torch.uint8)
    nets = make_nets()
    plain = Weights(copies := copy.deepcopy(nets), CPU, rounded=False)
    rounded = Weights(nets, CPU, rounded=True)
    kinds = {p.dtype for p in rounded.used}
    assert kinds == {torch.float32, torch.bfloat16}
    assert {p.dtype for p in rounded.parameters} == {torch.float32}
    wanted, found = losses(copies, images), losses(nets, images)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32 and torch.equal(one, other)
    for weights, loss in ((plain, wanted[-1]), (rounded, found[-1])):
        for add in (False, True):
            gradients = torch.autograd.grad(
                loss, weights.used, allow_unused=True, retain_graph=True
            )
            weights.set_gradient(gradients, add=add)
    for one, other in zip(rounded.gradients, plain.gradients, strict=True):
        assert one.abs().sum() > 0 and torch.equal(one, other)


def test_an_update_changes_the_precise_weights_and_rounds_them():
    nets = make_nets()
    weights = Weights(nets, CPU, rounded=True)
    before = [p.detach().clone() for p in weights.parameters]
    optimizer = torch.optim.Adam(weights.parameters, lr=1e-5)
    weights.gradient.fill_(0.5)
    optimizer.step()
    weights.round()
    for used, precise, old in zip(weights.used, weights.parameters, before, strict=True):
        assert not torch.equal(precise, old)
        assert torch.equal(used.detach(), precise.detach().to(used.dtype))
    state = weights.precise(nets[0])
    again = ActorCritic(6, "nature", width=0.25)
    again.load_state_dict(state)
    for mine, its in zip(again.parameters(), weights.parameters, strict=False):
        assert torch.equal(mine, its)


def test_copies_of_networks_in_two_dtypes():
    nets = make_nets()
    Weights(nets, CPU, rounded=True)
    target = copy.deepcopy(nets[1])
    for parameter in target.parameters():
        nn.init.zeros_(parameter)
    copy_weights(nets[1], target)
    for mine, its in zip(target.parameters(), nets[1].parameters(), strict=True):
        assert mine.dtype == its.dtype and torch.equal(mine, its)


@pytest.mark.parametrize(
    "algorithm, args",
    [
        (A2C, A2CArgs(num_envs=6, num_batches=3, num_steps=3, warmup_steps=4, width=0.25)),
        (A2C, A2CArgs(num_envs=6, num_batches=3, num_steps=3, warmup_steps=4, width=0.25, lag=1)),
        (PPO, PPOArgs(num_envs=4, num_steps=4, minibatch_size=8, width=0.25)),
    ],
)
def test_training_in_bfloat16_resumes_exactly(algorithm, args):
    args = dataclasses.replace(args.on(CPU), bf16=True)
    one, other = (Trainer(algorithm, args, ProcessGroup(0, 1, CPU)) for _ in range(2))
    for _ in range(6):
        one.iterate()
    state, random = copy.deepcopy(one.state_dict()), torch.get_rng_state()
    one.iterate()
    other.load_state_dict(state)
    torch.set_rng_state(random)
    other.iterate()
    assert one.updates > 1
    for mine, its in zip(one.nets.weights.parameters, other.nets.weights.parameters, strict=True):
        assert torch.equal(mine, its)
    for trainer in (one, other):
        trainer.close()


def test_in_bfloat16_ppo_has_its_values_from_acting():
    args = PPOArgs(num_envs=4, num_steps=4, minibatch_size=8, width=0.25).on(CPU)
    trainer = Trainer(PPO, dataclasses.replace(args, bf16=True), ProcessGroup(0, 1, CPU))
    text = trainer.plan.explain()
    assert "hand over net is left out" in text
    assert "(kept)" in text
    trainer.close()
