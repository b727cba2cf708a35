"""Envs with several players: each has actions and rewards, and the first one's are the score."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import nn
from training_runs import assert_same, state_after

import cule
from cule import train
from cule.errors import Refusal
from cule.train.distributed.decoupled import FarEnvs, facts_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.collector import Collector
from cule.train.envs.own_envs import num_actions_in
from cule.train.nn.models import sample
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
ENVS, PLAYERS, STEPS = 4, 3, 8
# The batches that `prepare` and losses got since they were last looked at, with their names.
SEEN: list[tuple[str, dict[str, torch.Tensor]]] = []


class Sums:
    """A player's reward is its action times its number plus one, in episodes of five steps.

    Observations are the number of the step and of the env.
    """

    def __init__(self, num_envs: int, **changes: Any):
        self.num_envs, self.num_players = num_envs, PLAYERS
        self.single_action_space: Any = MultiDiscrete([2] * PLAYERS)
        vars(self).update(changes)

    def reset(self, *, seed):
        self.steps = 0
        return self._observations(), {}

    def _observations(self):
        return torch.arange(self.num_envs).unsqueeze(1) + float(self.num_envs * self.steps)

    def step(self, actions):
        assert actions.shape == (self.num_envs, PLAYERS) and actions.dtype == torch.int64
        rewards = actions.float() * torch.arange(1, PLAYERS + 1)
        self.steps += 1
        over = torch.full((self.num_envs,), self.steps % 6 == 5)
        if self.steps % 6 == 0:
            rewards = torch.zeros_like(rewards)
        return self._observations(), rewards, over, torch.zeros_like(over), {}

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]

    def close(self):
        pass


class Team(train.Algorithm[train.Args]):
    """A player presses its button where the number of the step and env has its bit."""

    made = functools.partial(Sums)

    @classmethod
    def environment(cls, args, num_envs, device):
        return cls.made(num_envs)

    def networks(self, num_actions):
        assert num_actions == 2
        return {"net": nn.Linear(1, PLAYERS)}

    def act(self, nets, observations):
        bits = observations.long() >> torch.arange(PLAYERS)
        return {"actions": bits % 2}

    def learning(self):
        return train.Learning(steps=STEPS, minibatch=8, epochs=2)

    def prepare(self, nets, batch):
        SEEN.append(("prepare", {"actions": batch.actions.clone(), "rewards": batch.rewards}))
        return {"twice": 2 * batch.rewards, "sum": batch.rewards.sum(2)}

    def loss(self, nets, batch):
        parts = ("observations", "actions", "rewards", "twice", "sum", "played")
        SEEN.append(("loss", {name: getattr(batch, name).clone() for name in parts}))
        return {"loss": (nets.net(batch.observations / 100) - batch.rewards).square().mean()}


def trainer_of(kind, **changes):
    args = train.Args(device="cpu", num_envs=ENVS, num_threads=1, **changes).on(CPU)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU))
    SEEN.clear()
    return trainer


def wanted_rewards(actions, played):
    return actions * torch.arange(1, PLAYERS + 1) * played.unsqueeze(-1)


def test_each_player_has_actions_rewards_and_what_is_prepared():
    trainer, losses = trainer_of(Team), 0
    for _ in range(6):
        trainer.iterate()
    for name, batch in SEEN:
        if name == "prepare":
            assert batch["actions"].shape == batch["rewards"].shape == (STEPS, ENVS, PLAYERS)
            continue
        bits = batch["observations"].long() >> torch.arange(PLAYERS)
        assert batch["actions"].dtype == torch.int64 and torch.equal(batch["actions"], bits % 2)
        assert torch.equal(batch["rewards"], wanted_rewards(bits % 2, batch["played"]))
        assert torch.equal(batch["twice"], 2 * batch["rewards"])
        assert torch.equal(batch["sum"], batch["rewards"].sum(1))
        losses += 1
    assert losses == 6 * 2 * ENVS * STEPS // 8
    trainer.close()


def test_the_score_is_the_first_players():
    trainer = trainer_of(Team)
    while trainer.steps < 24:
        trainer.iterate()
    total, episodes, rewards, running = trainer.collector.episodes.take_scores().tolist()
    numbers = torch.arange(ENVS * 24).view(24, ENVS)
    played = torch.arange(24) % 6 != 5
    assert total + running == rewards == float((numbers[played] % 2).sum())
    assert episodes == 4 * ENVS
    trainer.close()


class Remembered(Team):
    """Of n steps each player has a sum of rewards."""

    def learning(self):
        return train.Learning(replay=train.Replay(20 * ENVS, 16, n_step=2), every=4)

    def loss(self, nets, batch):
        parts = ("observations", "rewards", "played")
        SEEN.append(("loss", {name: getattr(batch, name).clone() for name in parts}))
        return {"loss": (nets.net(batch.observations / 100) - batch.rewards).square().mean()}

    prepare = train.Algorithm.prepare


def test_rewards_of_several_steps_are_each_players_sum():
    trainer, batches = trainer_of(Remembered, gamma=0.5), 0
    for _ in range(12):
        trainer.iterate()
    for _, batch in SEEN:
        number = batch["observations"].long()
        step = number // ENVS
        bits = (number >> torch.arange(PLAYERS)) % 2
        then = ((number + ENVS) >> torch.arange(PLAYERS)) % 2
        # The step after an episode's last, the sixth, is not played, and rewards nobody.
        going = step % 6 < 4
        worth = torch.arange(1, PLAYERS + 1)
        wanted = bits * worth * (step % 6 < 5) + 0.5 * then * worth * going
        played = batch["played"]
        torch.testing.assert_close(batch["rewards"][played], wanted[played])
        batches += 1
    assert batches > 5
    trainer.close()


class Pong(train.Algorithm[train.Args]):
    """Both players of cule's pong, by a network of little use."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return cule.AtariEnv(
            "pong", num_envs, device, num_players=2, stack_num=1, output="torch_shared",
            num_threads=1, reset_pool_size=1, max_num_frames_per_episode=80,
        )  # fmt: skip

    def networks(self, num_actions):
        assert num_actions == 6
        return {"net": nn.Sequential(nn.Flatten(), nn.Linear(4 * 84 * 84, num_actions))}

    def act(self, nets, observations):
        log_pi = nets.net(observations.float() / 255).log_softmax(dim=1)
        return {"actions": torch.stack([sample(log_pi), sample(log_pi)], dim=1)}

    def learning(self):
        return train.Learning(steps=8)

    def loss(self, nets, batch):
        log_pi = nets.net(batch.observations[:-1].flatten(0, 1).float() / 255).log_softmax(dim=1)
        chosen = log_pi.gather(1, batch.actions.flatten(0, 1))
        return {"loss": -(chosen * batch.rewards.flatten(0, 1)).mean() + log_pi.square().mean()}


@pytest.mark.parametrize("kind", [Team, Remembered, Pong])
def test_resume_is_exact(kind):
    make = functools.partial(trainer_of, kind)
    assert_same(state_after(make, 9, 4), state_after(make, 9))


def test_envs_in_flight_play_the_same():
    played = []
    for groups in (1, 2):
        trainer = trainer_of(Pong, env_groups=groups, learning_rate=0.0)
        for _ in range(4):
            trainer.iterate()
        assert (trainer.collector.async_envs is None) == (groups == 1)
        played.append(trainer.collector.env.get_ram())
        trainer.close()
    assert torch.equal(*played)


def test_a_process_that_only_learns_knows_the_players():
    trainer = trainer_of(Team)
    far = Collector(FarEnvs(2 * ENVS, facts_of(trainer.collector), CPU), CPU)
    assert (far.num_envs, far.num_players, far.num_actions) == (2 * ENVS, PLAYERS, 2)
    trainer.close()


def changed(**changes):
    return type("Changed", (Team,), {"made": functools.partial(Sums, **changes)})


class Flat(Team):
    keeps = {"actions": torch.uint8}


class OneEach(Team):
    def act(self, nets, observations):
        return {"actions": super().act(nets, observations)["actions"][:, 0]}


class ForTwo(Team):
    def prepare(self, nets, batch):
        return {"two": batch.rewards[:, :, :2]}


class OneReward(Sums):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, rewards[:, 0], *rest


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (changed(num_players=0), "expected num_players of envs to be a whole number .*, got 0"),
        (changed(num_players=2), "expected envs of 2 players with the same number of actions"),
        (changed(single_action_space=MultiDiscrete([2, 2, 3])), "expected envs of 3 players with"),
        (changed(num_players=1), r"expected envs with a number of actions, .*, got MultiDiscrete"),
        (
            Flat,
            r'expected keeps to have "actions": \(torch.int64, 3\) or none, .*, got torch.uint8',
        ),
        (OneEach, r"expected act to return actions with a value for each of 4 envs, \(4, 3\), got"),
        (ForTwo, r"expected prepare to return two of shape \(8, 4\), .* got \(8, 4, 2\)"),
    ],
)
def test_what_is_not_of_each_player_is_refused(kind, message):
    with pytest.raises(ValueError, match=message) as raised:
        trainer_of(kind)
    assert isinstance(raised.value, Refusal)


def test_rewards_that_are_not_of_each_player_are_refused():
    trainer = trainer_of(type("One", (Team,), {"made": OneReward}))
    with pytest.raises(ValueError, match=r"return rewards as a tensor of shape \(4, 3\), real"):
        trainer.iterate()
    trainer.close()


def test_the_actions_of_a_space():
    assert num_actions_in(Discrete(5), 2) == num_actions_in(MultiDiscrete([5, 5]), 2) == 5
    assert num_actions_in(types.SimpleNamespace(n=3), 4) == 3
    with pytest.raises(ValueError, match="expected envs of 2 players with the same number"):
        num_actions_in(Box(-1, 1, (2,)), 2)
