"""The oracle of A2C: the steps played reach the loss, and the loss is right."""

from __future__ import annotations

import pytest
import torch
from handwritten import a2c as trainer_module
from handwritten.a2c import Trainer
from handwritten.arguments import Args
from handwritten.learner import Learner, losses
from handwritten.player import Player
from handwritten.rollout import Rollout
from scripted import ScriptedEnv, SignalEnv
from torch import distributed as dist
from torch import multiprocessing

from cule.train.distributed.process_group import World
from cule.train.nn.models import ActorCritic

CPU = torch.device("cpu")


def settings(**changes):
    options = {
        "num_envs": 8, "num_batches": 1, "n_steps": 4, "steps_per_update": 4, "width": 0.1,
        "warmup_steps": 0,
        **changes,
    }  # fmt: skip
    return Args(**options).on(CPU)


def make_rollout(num_envs, n_steps, seed=0):
    """A rollout buffer full of random steps with 3 actions, and with ends of episodes."""
    random = torch.Generator().manual_seed(seed)
    rollout = Rollout(num_envs, n_steps, 1, CPU)

    def draw(low, high):
        return torch.randint(low, high, (num_envs,), generator=random)

    rollout.begin(torch.randint(256, (num_envs, 1, 84, 84), generator=random, dtype=torch.uint8))
    for _ in range(n_steps + 5):
        step = {
            "actions": draw(0, 3), "log_mu": -torch.rand(num_envs, generator=random) * 2,
            "rewards": draw(-1, 2),
            "discounts": 0.9 * (draw(0, 4) > 0), "played": draw(0, 4) > 0,
        }  # fmt: skip
        frames = torch.randint(256, (num_envs, 1, 84, 84), generator=random, dtype=torch.uint8)
        rollout.append(step, frames, draw(0, 4) == 0)
    return rollout


def make_learner(rollout, args, world_size=1, seed=0):
    torch.manual_seed(seed)
    model = ActorCritic(3, "nature", args.width)
    # Away from the initial uniform policy.
    torch.nn.init.normal_(model.heads.weight[:-1], std=0.5)
    learner = Learner(model, rollout, args, world_size)
    learner.end.copy_(rollout.position)
    return learner


def play(script, n_steps):
    """Plays a script, and returns the batch of its last steps and the player."""
    env = ScriptedEnv(script)
    rollout = Rollout(1, n_steps, 1, CPU)
    player = Player(env, ActorCritic(2, "nature", 0.1), rollout, gamma=0.9)
    player.begin(0)
    for _ in script:
        player.step()
    return rollout.batch(rollout.position, torch.zeros(1, dtype=torch.int64)), player


def test_player_termination_cuts_the_bootstrap_and_truncation_does_not():
    terminated = [
        (0, False, False, False),
        (1, True, False, False),
        (0, False, False, True),
        (0, False, False, False),
    ]
    truncated = [
        (0, False, False, False),
        (1, False, True, False),
        (0, False, False, True),
        (0, False, False, False),
    ]
    for script, discount in ((terminated, 0.0), (truncated, 0.9)):
        batch, _ = play(script, 4)
        torch.testing.assert_close(batch.discounts[:, 0], torch.tensor([0.9, discount, 0.9, 0.9]))
        assert batch.played[:, 0].tolist() == [True, True, False, True]
        # The final observation comes after the end; then the new episode's first frame is alone in
        # its stack.
        assert batch.observations[:, 0, :, 0, 0].tolist() == [
            [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 2], [0, 0, 0, 3], [0, 0, 3, 4],
        ]  # fmt: skip


def test_player_lost_life_cuts_the_bootstrap_while_the_game_goes_on():
    batch, player = play(
        [(1, True, False, False), (1, False, False, False), (1, False, False, False)], 3
    )
    torch.testing.assert_close(batch.discounts[:, 0], torch.tensor([0.0, 0.9, 0.9]))
    assert batch.played.all()
    assert batch.observations[-1, 0, :, 0, 0].tolist() == [0, 1, 2, 3]
    assert player.episodes.take_scores().tolist() == [0, 0]


def test_player_adds_up_the_scores_of_whole_episodes_unclipped():
    script = [
        (1, False, False, False),
        (1, True, False, False),
        (0, False, False, True),
        (-1, False, True, False),
        (0, False, False, True),
        (1, False, False, False),
    ]
    _, player = play(script, 2)
    assert player.episodes.take_scores().tolist() == [20 - 10, 2]
    assert player.episodes.take_scores().tolist() == [0, 0]


def test_losses_on_policy_are_those_of_a2c():
    """Compares with the textbook's sums, where all ratios are 1 and all steps were played."""
    args = settings(gamma=0.9)
    rollout = make_rollout(8, 4)
    rollout.played.fill_(True)
    learner = make_learner(rollout, args)
    batch = rollout.batch(rollout.position, torch.arange(8))
    log_pi, values = (
        part.unflatten(0, (5, 8)) for part in learner.model(batch.observations.flatten(0, 1))
    )
    batch.log_mu = log_pi[:-1].gather(2, batch.actions.unsqueeze(2)).squeeze(2).detach()
    policy_loss = value_loss = entropy = torch.zeros(())
    for env in range(8):
        target = values[4, env].detach()
        for t in (3, 2, 1, 0):
            target = batch.rewards[t, env] + batch.discounts[t, env] * target
            advantage = target - values[t, env]
            policy_loss = policy_loss - advantage.detach() * log_pi[t, env, batch.actions[t, env]]
            value_loss = value_loss + 0.5 * advantage**2
            entropy = entropy - (log_pi[t, env].exp() * log_pi[t, env]).sum()
    loss = policy_loss + args.value_weight * value_loss - args.entropy_weight * entropy
    got = losses(learner.model, batch, args)
    torch.testing.assert_close(
        got, torch.stack([loss, policy_loss, value_loss, entropy, torch.tensor(32.0)]) / 32
    )
    wanted = torch.autograd.grad(loss / 32, learner.parameters)
    for a, b in zip(torch.autograd.grad(got[0], learner.parameters), wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_losses_leave_out_steps_that_were_not_played():
    args = settings()
    rollout = make_rollout(8, 4)
    learner = make_learner(rollout, args)
    first = losses(learner.model, rollout.batch(rollout.position, torch.arange(8)), args)
    assert not rollout.played.all()
    for name, other in (("actions", 1), ("log_mu", -3.0), ("rewards", 1.0)):
        ring = getattr(rollout, name)
        ring[~rollout.played] = torch.tensor(other, dtype=ring.dtype)
    again = losses(learner.model, rollout.batch(rollout.position, torch.arange(8)), args)
    assert torch.equal(first, again)


def test_learner_gradient_does_not_depend_on_chunks():
    rollout = make_rollout(8, 4)
    gradients = []
    for chunk in (1000, 15, 1):
        learner = make_learner(rollout, settings(learner_chunk=chunk))
        learner.compute_gradient()
        gradients.append(learner.gradient.clone())
    assert gradients[0].norm() > 0.01
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(gradients[2], gradients[0], rtol=1e-4, atol=1e-6)


def test_learner_groups_take_turns():
    """A group's gradient depends on its own envs only."""
    args = settings(num_batches=4)
    changed = make_rollout(8, 4)
    changed.rewards[:, 2:4] += 1
    same = []
    for rollout in (make_rollout(8, 4), changed):
        learner = make_learner(rollout, args)
        same.append([])
        for _ in range(5):
            learner.compute_gradient()
            same[-1].append(learner.gradient.clone())
    assert [torch.equal(a, b) for a, b in zip(*same, strict=True)] == [
        True,
        False,
        True,
        True,
        True,
    ]
    assert torch.equal(same[0][0], same[0][4])


def test_learner_shortens_long_gradients():
    learner = make_learner(make_rollout(8, 4), settings(max_grad_norm=0.01))
    learner.compute_gradient()
    assert learner.gradient.norm() > 0.1
    learner.apply_gradient()
    torch.testing.assert_close(learner.gradient.norm(), torch.tensor(0.01), rtol=1e-3, atol=0)


def average_over_processes(rank, file, queue):
    torch.set_num_threads(1)
    rollout = make_rollout(8, 4)
    mine = slice(4 * rank, 4 * rank + 4)
    half = Rollout(4, 4, 1, CPU)
    half.load_state_dict(
        {name: b if name == "position" else b[:, mine] for name, b in rollout.state_dict().items()}
    )
    learner = make_learner(half, settings(num_envs=8), world_size=2)
    learner.compute_gradient()
    # Not before there is an optimizer: see World.join.
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    learner.average_gradient()
    queue.put(learner.gradient.numpy())
    dist.destroy_process_group()


def test_learner_gradient_of_two_processes_is_that_of_all_envs(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    processes = [
        context.Process(target=average_over_processes, args=(r, tmp_path / "meet", queue))
        for r in range(2)
    ]
    for process in processes:
        process.start()
    gradients = [torch.from_numpy(queue.get()) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    learner = make_learner(make_rollout(8, 4), settings())
    learner.compute_gradient()
    assert torch.equal(*gradients)
    torch.testing.assert_close(gradients[0], learner.gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("overlap", [False, True])
def test_trainer_updates_by_several_groups_at_once(overlap, monkeypatch):
    monkeypatch.setattr(trainer_module, "make_env", lambda *args, **_: SignalEnv(args[2]))
    trainer = Trainer(settings(num_batches=4, updates_at_once=3, overlap=overlap), World(0, 1, CPU))
    groups, take_turns = [], trainer._compute_gradient
    trainer._compute_gradient = lambda: (groups.append(int(trainer.learner.group)), take_turns())
    for _ in range(4):
        trainer.iterate()
    # Overlapped, the first iteration only plays.
    wanted = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3][: 9 if overlap else 12]
    assert groups == wanted and trainer.updates == len(wanted)


@pytest.mark.parametrize("overlap, steps", [(False, 8), (True, 10)])
def test_trainer_learns_nothing_before_the_games_have_spread_out(overlap, steps, monkeypatch):
    monkeypatch.setattr(trainer_module, "make_env", lambda *args, **_: SignalEnv(args[2]))
    trainer = Trainer(
        settings(steps_per_update=2, warmup_steps=7, overlap=overlap), World(0, 1, CPU)
    )
    while trainer.updates == 0:
        trainer.iterate()
    assert trainer.steps == steps


@pytest.mark.parametrize(
    "changes",
    [
        {"num_batches": 1, "n_steps": 2, "steps_per_update": 2},
        {"num_batches": 4, "n_steps": 4, "steps_per_update": 1},
        {"num_batches": 4, "n_steps": 4, "steps_per_update": 1, "overlap": True},
    ],
    ids=["A2C", "A2C+V-trace", "overlap"],
)
def test_trainer_learns_what_pays(changes, monkeypatch):
    monkeypatch.setattr(trainer_module, "make_env", lambda *args, **_: SignalEnv(args[2]))
    args = settings(num_envs=32, learning_rate=3e-3, seed=1, **changes)
    trainer = Trainer(args, World(0, 1, CPU))
    while trainer.steps < 140:
        trainer.iterate()
    trainer.player.episodes.take_scores()
    for _ in range(40 // args.steps_per_update):
        trainer.iterate()
    total, episodes = trainer.player.episodes.take_scores().tolist()
    # 8 is the most there is; chance gives -2.7.
    assert episodes > 30 and total / episodes > 4
