"""Networks with a memory: what would be learned wrong, or is no memory, is refused."""

from __future__ import annotations

import pytest
import torch
from test_memory import Tracing, carry_of, on_memory_env, trainer_of
from torch import nn

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.memory import Lstm, Memory, carrying
from cule.train.trainer import Trainer
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo

CPU = torch.device("cpu")


@pytest.mark.parametrize("count, calls, told", [
    (1, (1, 1), "for 1 steps of 2 envs, .*, got 2 observations after 1 steps"),
    (1, (2,), "for 1 steps of 2 envs, .*, got 4 observations"),
    (2, (1, 1), "for 1 or 2 steps of 2 envs, .*, got 2 observations after 2 steps"),
    (7, (6, 6), "for 6 or 7 steps of 2 envs, .*, got 12 observations after 7 steps"),
    (7, (7, 1), "got 2 observations after 7 steps"),
    (7, (1, 7), "got 14 observations after 1 steps"),
    (7, (3,), "got 6 observations"),
    (7, (1,) * 8, "got 2 observations after 7 steps"),
])  # fmt: skip
def test_a_step_is_computed_once(count, calls, told):
    """The last of these calls is of what cannot be told from other steps, or are no steps."""
    memory = Lstm(3, 4)
    steps = (count - 1,) if count > 1 else ()
    with carrying(carry_of(memory, torch.zeros(count, 2, dtype=torch.bool), steps=steps)):
        for number in calls[:-1]:
            memory(torch.zeros(2 * number, 3))
        with pytest.raises(Refusal, match=told):
            memory(torch.zeros(2 * calls[-1], 3))


def test_calls_that_are_no_steps_are_refused():
    memory = Lstm(3, 4)
    with pytest.raises(Refusal, match="acts, prepares, evaluates or computes a loss, and not la"):
        memory(torch.zeros(2, 3))
    with carrying(carry_of(memory, torch.zeros(3, 2, dtype=torch.bool))):
        with pytest.raises(Refusal, match=r"for 3 steps of 2 envs, .*, got 3 observations"):
            memory(torch.zeros(3, 3))
        with pytest.raises(Refusal, match="no Lstm in a network that does not act"):
            Lstm(3, 4)(torch.zeros(2, 3))


@pytest.mark.parametrize("returned, got", [
    (lambda outputs, state: (outputs, state.double()), r"torch\.float64"),
    (lambda outputs, state: (outputs, state[:1]), r"\(1, 3\) torch\.float32"),
    (lambda outputs, state: (outputs[:, :1], state), r"\(1, 1, 3\)"),
    (lambda outputs, state: (outputs, None), "None"),
    (lambda outputs, state: outputs, r"got \(1, 2, 3\)"),
    (lambda outputs, state: None, "got None"),
])  # fmt: skip
def test_what_unroll_returns_is_checked(returned, got):
    class Own(Memory):
        def unroll(self, inputs, state, started):
            return returned(inputs, state)

    memory = Own((3,))
    with (
        carrying(carry_of(memory, torch.zeros(1, 2, dtype=torch.bool))),
        pytest.raises(Refusal, match=f"unroll of Own to return .*{got}"),
    ):
        memory(torch.zeros(2, 3))


@pytest.mark.parametrize("make", [
    lambda: Memory(8), lambda: Memory((8.0,)), lambda: Memory((-8,)), lambda: Lstm(8, -1),
    lambda: Lstm("8", 8), lambda: Lstm(8.0, 8),
])  # fmt: skip
def test_sizes_are_whole_numbers_above_0(make):
    with pytest.raises(Refusal, match="whole numbers above 0"):
        make()


def test_a_replay_memory_is_refused():
    args = dqn.Args(device="cpu", num_envs=8, model="lstm", width=0.05, num_threads=1).on(CPU)
    with pytest.raises(Refusal, match="learning without a replay memory with a network that has a"):
        Trainer(dqn.DQN, args, ProcessGroup(0, 1, CPU))


@pytest.mark.parametrize("minibatch", [24, 12])
def test_minibatches_that_are_no_whole_sequences_are_refused(minibatch):
    with pytest.raises(Refusal, match=r"steps \(18\) times a divisor of the envs \(32\)"):
        trainer_of("PPO", minibatch_size=minibatch)


def test_a_copy_of_such_a_network_is_refused():
    class Copied(on_memory_env(a2c.A2C)):
        def networks(self, num_actions):
            return {**super().networks(num_actions), "target": train.Copy(of="net")}

    with pytest.raises(Refusal, match="no copy of a network with a memory"):
        trainer_of("A2C", kind=Copied)


def test_a_memory_of_two_networks_is_refused():
    class Shared(on_memory_env(a2c.A2C)):
        def networks(self, num_actions):
            nets = {**super().networks(num_actions), "other": Tracing(num_actions)}
            nets["net"].features = nn.Sequential(
                *nets["net"].features[:2], nets["other"].features[2]
            )
            return nets

    with pytest.raises(Refusal, match=r"memories of its own, got the one of net features\.2 as"):
        trainer_of("A2C", kind=Shared)


TWICE = {
    "the next observations": lambda net, batch: net(batch.next_observations),
    "all but the first": lambda net, batch: net(batch.observations[1:]),
    "the same again": lambda net, batch: net(batch.observations),
}


@pytest.mark.parametrize("again", TWICE)
def test_a_second_call_in_a_loss_is_refused(again):
    class Again(on_memory_env(ppo.PPO)):
        def loss(self, nets, batch):
            result = super().loss(nets, batch)
            TWICE[again](nets.net, batch)
            return result

    with pytest.raises(Refusal, match="to be called once for each step, for 18 or 19 steps of"):
        trainer_of("PPO", kind=Again)


def test_half_of_the_envs_are_refused():
    class Half(on_memory_env(a2c.A2C)):
        def loss(self, nets, batch):
            half = batch.actions.shape[1] // 2
            nets.net(batch.observations[:, :half].flatten(0, 1))
            return super().loss(nets, batch)

    with pytest.raises(Refusal, match="to be called once for each step"):
        trainer_of("A2C", kind=Half)


def test_a_second_call_in_act_is_refused():
    class Again(on_memory_env(a2c.A2C)):
        def act(self, nets, observations):
            nets.net(torch.zeros_like(observations))
            return super().act(nets, observations)

    with pytest.raises(Refusal, match=r"for 1 steps of 32 envs, .*, got 32 observations after 1"):
        trainer_of("A2C", kind=Again)


def test_compile_is_refused():
    with pytest.raises(Refusal, match="no compile with a network that has a memory"):
        trainer_of("PPO", compile=True)


def test_acting_that_does_not_call_it_is_refused():
    class Blind(on_memory_env(a2c.A2C)):
        def act(self, nets, observations):
            zeros = torch.zeros(len(observations))
            return {"actions": zeros.long(), "log_mu": zeros}

    with pytest.raises(Refusal, match=r"act to call the network with the memory net features\.2"):
        trainer_of("A2C", kind=Blind)
