"""DQN: its memory, its targets, and that it learns."""

from __future__ import annotations

import json

import pytest
import torch
from scripted import SignalEnv

from examples.common.presets import filled
from examples.dqn import dqn

CPU = torch.device("cpu")


def settings(**changes):
    options = {
        "device": "cpu",
        "num_envs": 16,
        "memory": 1600,
        "first_update": 160,
        "minibatch": 32,
        "width": 0.1,
        "num_threads": 1,
        "progress": False,
        **changes,
    }
    return filled(dqn.Args(**options), CPU)


@pytest.mark.parametrize("steps", [6, 40])
def test_memory_draws_transitions_as_they_were(steps):
    """Before and after the ring buffer is full, stack, reward and next stack belong together,
    and all are drawn."""
    memory = dqn.Memory(10, 2, CPU)

    def frames(number):
        return (
            torch.tensor([number, 100 + number], dtype=torch.uint8)
            .view(2, 1, 1, 1)
            .expand(2, 1, 84, 84)
        )

    started = {0, 15, 34}
    memory.begin(frames(0))
    for number in range(steps):
        step = {
            "actions": torch.tensor([number % 3] * 2),
            "rewards": torch.tensor([number, 100 + number]),
            "discounts": torch.ones(2),
            "played": torch.tensor([number + 1 not in started] * 2),
        }
        memory.append(step, frames(number + 1), torch.tensor([number + 1 in started] * 2))
    slots, envs = memory.draw(2000)
    before = memory.frames.stacks(slots, envs)[:, :, 0, 0].tolist()
    after = memory.frames.stacks((slots + 1) % memory.length, envs)[:, :, 0, 0].tolist()
    numbers = memory.rewards[slots, envs].long().tolist()

    def stack(number, env):
        begin = max(start for start in started if start <= number)
        return [0 if n < begin else 100 * env + n for n in range(number - 3, number + 1)]

    for i, (number, env) in enumerate(zip(numbers, envs.tolist(), strict=True)):
        number -= 100 * env
        assert before[i] == stack(number, env)
        assert after[i] == stack(number + 1, env)
        assert memory.actions[slots[i], env] == number % 3
    assert {n % 100 for n in numbers} == set(range(max(3, steps - 7), steps))


@pytest.mark.parametrize("double", [False, True])
def test_dqn_targets(monkeypatch, double):
    monkeypatch.setattr(dqn, "make_env", lambda *args, **_: SignalEnv(args[2]))
    learner = dqn.Dqn(settings(double=double), CPU)
    torch.nn.init.normal_(learner.network.values.weight)
    for _ in range(20):
        learner.step()
    slots, envs = learner.memory.draw(100)
    following = learner.memory.frames.stacks((slots + 1) % learner.memory.length, envs)
    target, online = learner.target(following), learner.network(following)
    assert not torch.equal(target.argmax(dim=1), online.argmax(dim=1))
    got = learner.targets(slots, envs)
    ends = 0
    for i in range(100):
        slot, env = slots[i], envs[i]
        best = target[i, online[i].argmax()] if double else target[i].max()
        # Every ninth step resets; the one before it ends an episode.
        terminal = learner.memory.discounts[slot, env] == 0
        ends += int(terminal)
        wanted = learner.memory.rewards[slot, env] + (0 if terminal else 0.99 * best)
        torch.testing.assert_close(got[i], wanted.detach())
    assert ends > 3


def test_dqn_learns_what_pays(monkeypatch):
    monkeypatch.setattr(dqn, "make_env", lambda *args, **_: SignalEnv(args[2]))
    args = settings(
        learning_rate=2e-3,
        gamma=0.5,
        epsilon_frames=16 * 4 * 120,
        minibatch=64,
        target_every=25,
        last_epsilon=0.0,
    )
    learner = dqn.Dqn(args, CPU)
    while learner.updates < 130:
        learner.iterate()
    learner.episodes.take_scores()
    for _ in range(32):
        learner.step()
    total, episodes = learner.episodes.take_scores().tolist()
    # 8 is the most there is; chance gives -2.7.
    assert episodes > 30 and total / episodes > 4


@pytest.mark.parametrize("emulator", ["cule", "ale-py"])
def test_dqn_runs_and_writes_a_row(tmp_path, emulator):
    path = tmp_path / "results.jsonl"
    row = dqn.train(
        settings(num_envs=4, first_update=40, total_frames=320, emulator=emulator, results=path)
    )
    assert json.loads(path.read_text()) == row
    assert (row["system"], row["algorithm"], row["frames"], row["updates"]) == (
        emulator,
        "DQN",
        320,
        11,
    )


@pytest.mark.parametrize("changes, message", [
    ({"memory": 63}, r"at least 4 steps of all envs \(64\), got 63 and 160"),
    ({"target_every": 0}, "target_every to be at least 1, got 0"),
    ({"epsilon_frames": 0}, "epsilon_frames to be at least 1, got 0"),
])  # fmt: skip
def test_dqn_refuses_settings_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        dqn.train(settings(**changes))
