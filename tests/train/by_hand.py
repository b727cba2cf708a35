"""A2C with V-trace, PPO and DQN as loops in plain torch: what planned programs have to compute.

Each loop does what is due, in the order in which one would write it down, and keeps whole
observations in a list. Of cule.train it has the envs' single frames, the networks, V-trace, and the
random numbers of acting, which have tests of their own.
"""

from __future__ import annotations

import copy
from collections import deque
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional

from cule.train.envs.emulator import FRAMESKIP, make_env
from cule.train.nn import draws
from cule.train.nn.models import ActorCritic, QNetwork, sample
from cule.train.nn.returns import vtrace
from cule.train.trainer import SEED_STRIDE

CPU = torch.device("cpu")


class Played:
    """Envs, their observations, and the newest steps.

    Args:
        env: single frames, resets in NEXT_STEP mode.
        length: how many of the newest steps are kept.
        gamma: the discount of a step.
        seed: of the run.

    Attributes:
        observations: of now, (num_envs, 4, 84, 84) uint8.
        steps: the newest ones; in each of them tensors by name, with a row for each env.
        count: steps so far.
        scores: the sum and the number of the scores of the episodes that have ended, float64.
        terminations: of episodes or lives so far.
    """

    def __init__(self, env, length, gamma, seed):
        self.env, self.gamma, self.seed = env, gamma, seed
        self.steps, self.count = deque(maxlen=length), 0
        self.observations = torch.zeros(env.num_envs, 4, 84, 84, dtype=torch.uint8)
        self.score = torch.zeros(env.num_envs)
        self.scores, self.terminations = torch.zeros(2, dtype=torch.float64), 0
        self.num_actions = int(env.single_action_space.n)

    def begin(self):
        torch.manual_seed(self.seed * SEED_STRIDE)
        frames, _ = self.env.reset(seed=self.seed * SEED_STRIDE)
        self.observations[:, -1:] = frames

    @torch.no_grad()
    def step(self, act):
        """Plays a step with what `act` makes of observations: actions, and what else is kept."""
        with draws.keyed(self.seed, 0, torch.tensor([self.count])):
            chosen = act(self.observations)
        frames, rewards, terminated, _, infos = self.env.step(chosen["actions"])
        started = infos["new_game"].clone()
        self.terminations += int(terminated.sum())
        self.scores += torch.stack([(self.score * started).sum(), started.sum()])
        self.score = (self.score + infos["raw_reward"]).masked_fill(started, 0)
        self.steps.append({
            **chosen, "observations": self.observations, "rewards": rewards.float(),
            "discounts": self.gamma * (~terminated).float(), "played": ~started,
        })  # fmt: skip
        before = self.observations[:, 1:].masked_fill(started.view(-1, 1, 1, 1), 0)
        self.observations = torch.cat([before, frames], dim=1)
        self.count += 1

    def window(self):
        """The newest steps: tensors (T, num_envs, ...), of observations T + 1."""
        parts = {name: [step[name] for step in self.steps] for name in self.steps[0]}
        parts["observations"].append(self.observations)
        return SimpleNamespace(**{name: torch.stack(values) for name, values in parts.items()})


def envs(game, num_envs, num_threads, life_loss_ends, max_episode_frames):
    return make_env(
        "cule", game, num_envs, CPU, num_threads=num_threads, life_loss_ends=life_loss_ends,
        max_frames=max_episode_frames,
    )  # fmt: skip


def network(make, played, width):
    torch.manual_seed(played.seed)
    return make(played.num_actions, "nature", width).to(memory_format=torch.channels_last)


def policy_of(net):
    """What acts with a network's policy."""

    def act(observations):
        log_pi, _ = net(observations)
        actions = sample(log_pi)
        return {"actions": actions, "log_mu": log_pi.gather(1, actions.unsqueeze(1)).squeeze(1)}

    return act


def a2c_losses(net, batch, vf_coef, ent_coef):
    """The loss and its parts: means over the steps, where those that reset an env count as 0."""
    steps, envs = batch.actions.shape
    log_pi_all, values = net(batch.observations.flatten(0, 1))
    log_pi_all = log_pi_all.unflatten(0, (steps + 1, envs))[:-1]
    values = values.unflatten(0, (steps + 1, envs))
    log_pi = log_pi_all.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
    log_ratios = (log_pi - batch.log_mu).detach().masked_fill(~batch.played, -torch.inf)
    corrected = vtrace(log_ratios, batch.rewards, batch.discounts, values.detach())
    played = batch.played.float()
    policy_loss = -(corrected.advantages * log_pi * played).mean()
    value_loss = (0.5 * (corrected.targets - values[:-1]).square() * played).mean()
    entropy = -((log_pi_all.exp() * log_pi_all).sum(dim=2) * played).mean()
    loss = policy_loss + vf_coef * value_loss - ent_coef * entropy
    return torch.stack([loss, policy_loss, value_loss, entropy, log_ratios.exp().mean()])


def a2c(
    until, *, game, num_envs, num_threads, seed, life_loss_ends, max_episode_frames, width,
    num_batches, num_steps, steps_per_update, warmup_steps, updates_at_once=1, lag=0,
    learner_chunk=65_536, optimizer="adam", learning_rate=6.5e-4, gamma=0.99, vf_coef=0.5,
    ent_coef=0.01, max_grad_norm=0.5,
):  # fmt: skip
    """A2C with V-trace: groups of envs learn in turn from their last steps.

    With a lag a phase of learning has the steps and the policy of one iteration before.
    """
    env = envs(game, num_envs, num_threads, life_loss_ends, max_episode_frames)
    played = Played(env, num_steps, gamma, seed)
    net = network(ActorCritic, played, width)
    policy, parameters = copy.deepcopy(net), list(net.parameters())
    # The gradients are parts of one vector, which has one norm.
    gradient = torch.zeros(sum(p.numel() for p in parameters))
    for p, part in zip(parameters, gradient.split([p.numel() for p in parameters]), strict=True):
        p.grad = part.as_strided(p.shape, p.stride())
    rate = torch.tensor(learning_rate)
    if optimizer == "adam":
        optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-5, fused=True)
    else:
        optimizer = torch.optim.RMSprop(parameters, lr=rate, alpha=0.99, eps=1e-5, foreach=False)
    metrics, updates, size = torch.zeros(5, dtype=torch.float64), 0, num_envs // num_batches

    def learn():
        window, first = played.window(), updates % num_batches * size
        gradient.zero_()
        for some in torch.arange(first, first + size).split(learner_chunk // (num_steps + 1)):
            batch = SimpleNamespace(**{name: part[:, some] for name, part in vars(window).items()})
            share = len(some) / size
            losses = a2c_losses(net, batch, vf_coef, ent_coef)
            for p, its in zip(
                parameters, torch.autograd.grad(losses[0] * share, parameters), strict=True
            ):
                p.grad += its
            metrics[:-1] += losses[1:].detach().double() * share
        norm = gradient.norm()
        metrics[-1] += norm
        gradient.mul_((max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        optimizer.step()

    played.begin()
    while updates < until:
        learns = lag and played.count >= max(num_steps, warmup_steps)
        if lag and learns:
            for _ in range(updates_at_once):
                learn()
                updates += 1
        for _ in range(steps_per_update):
            played.step(policy_of(policy))
        if not lag and played.count >= max(num_steps, warmup_steps):
            learns = True
            for _ in range(updates_at_once):
                learn()
                updates += 1
        if learns:
            policy.load_state_dict(net.state_dict())
    return SimpleNamespace(net=net, policy=policy, metrics=metrics, updates=updates, played=played)


def gae(rewards, discounts, played, values, gae_lambda):
    """Advantages of steps; 0 for those that reset an env."""
    deltas = rewards + discounts * values[1:] - values[:-1]
    advantage, advantages = torch.zeros_like(values[0]), []
    for step in reversed(range(len(rewards))):
        advantage = (deltas[step] + discounts[step] * gae_lambda * advantage) * played[step]
        advantages.insert(0, advantage)
    return torch.stack(advantages)


def ppo(
    until, *, game, num_envs, num_threads, seed, life_loss_ends, max_episode_frames, width,
    num_steps, update_epochs, minibatch_size, total_frames, learning_rate=2.5e-4, gamma=0.99,
    gae_lambda=0.95, clip_coef=0.1, vf_coef=0.5, ent_coef=0.01, max_grad_norm=0.5,
):  # fmt: skip
    """PPO: epochs of shuffled minibatches of the steps just played."""
    env = envs(game, num_envs, num_threads, life_loss_ends, max_episode_frames)
    played = Played(env, num_steps, gamma, seed)
    net = network(ActorCritic, played, width)
    rate = torch.tensor(learning_rate)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, eps=1e-5, fused=True)
    updates = 0
    played.begin()
    while updates < until:
        for _ in range(num_steps):
            played.step(policy_of(net))
        frames = played.count * num_envs * FRAMESKIP
        rate.fill_(learning_rate * max(1.0 - frames / total_frames, 0.0))
        batch = played.window()
        with torch.no_grad():
            values = torch.stack([net(step)[1] for step in batch.observations])
        kept = batch.played.float()
        advantages = gae(batch.rewards, batch.discounts, kept, values, gae_lambda)
        targets = advantages + values[:-1]
        for _ in range(update_epochs):
            for some in torch.randperm(num_steps * num_envs).split(minibatch_size):
                step, env = some // num_envs, some % num_envs
                log_pi, value = net(batch.observations[step, env])
                advantage, mask = advantages[step, env], kept[step, env]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                chosen = log_pi.gather(1, batch.actions[step, env].unsqueeze(1)).squeeze(1)
                ratio = (chosen - batch.log_mu[step, env]).exp()
                near = ratio.clamp(1 - clip_coef, 1 + clip_coef)
                policy_loss = -(torch.minimum(ratio * advantage, near * advantage) * mask).mean()
                value_loss = (0.5 * (value - targets[step, env]).square() * mask).mean()
                entropy = -((log_pi.exp() * log_pi).sum(dim=1) * mask).mean()
                optimizer.zero_grad()
                (policy_loss + vf_coef * value_loss - ent_coef * entropy).backward()
                nn.utils.clip_grad_norm_(net.parameters(), max_grad_norm)
                optimizer.step()
                updates += 1
    return SimpleNamespace(net=net, updates=updates, played=played)


def dqn(
    until, *, game, num_envs, num_threads, seed, life_loss_ends, max_episode_frames, width,
    memory, first_update, steps_per_update, updates_at_once, minibatch_size, target_every,
    epsilon_frames, double, learning_rate=1e-4, gamma=0.99, first_epsilon=1.0, last_epsilon=0.01,
):  # fmt: skip
    """DQN: every some steps, updates from transitions drawn from the newest ones."""
    env = envs(game, num_envs, num_threads, life_loss_ends, max_episode_frames)
    played = Played(env, memory // num_envs, gamma, seed)
    net = network(QNetwork, played, width)
    target, parameters = copy.deepcopy(net), list(net.parameters())
    rate = torch.tensor(learning_rate)
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-5, fused=True)
    updates = 0

    def act(observations):
        best = net(observations).argmax(dim=1)
        chances, random = draws.uniform(best), draws.integers(best, played.num_actions)
        return {"actions": torch.where(chances < epsilon, random, best)}

    def drawn():
        """A minibatch of transitions; the three oldest frames are only in stacks."""
        age = torch.rand(minibatch_size, dtype=torch.float64) * (len(played.steps) - 3)
        step = len(played.steps) - 1 - age.long()
        env = torch.randint(num_envs, (minibatch_size,))
        window = vars(played.window())
        following = window["observations"][step + 1, env]
        parts = {name: part[step, env] for name, part in window.items()}
        return SimpleNamespace(**parts, next_observations=following)

    def update():
        batch = drawn()
        with torch.no_grad():
            values = target(batch.next_observations)
            chooser = net(batch.next_observations) if double else values
            best = values.gather(1, chooser.argmax(dim=1, keepdim=True)).squeeze(1)
            targets = batch.rewards + batch.discounts * best
        chosen = net(batch.observations).gather(1, batch.actions.unsqueeze(1)).squeeze(1)
        errors = functional.smooth_l1_loss(chosen, targets, reduction="none")
        optimizer.zero_grad()
        (errors * batch.played).mean().backward()
        optimizer.step()

    played.begin()
    while updates < until:
        passed = min(1.0, played.count * num_envs * FRAMESKIP / epsilon_frames)
        epsilon = torch.tensor(first_epsilon + passed * (last_epsilon - first_epsilon))
        for _ in range(steps_per_update):
            played.step(act)
        if played.count * num_envs < first_update:
            continue
        for _ in range(updates_at_once):
            update()
            updates += 1
            if updates % target_every == 0:
                target.load_state_dict(net.state_dict())
    return SimpleNamespace(net=net, target=target, updates=updates, played=played)
