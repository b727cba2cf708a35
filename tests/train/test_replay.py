"""Replay memories beside lists of all that was played: n steps, sequences, priorities."""

from __future__ import annotations

import types
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from training_runs import assert_same, state_after

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.sum_tree import FAN, SumTree
from cule.train.trainer import Trainer

CPU = torch.device("cpu")
ENVS = 5
# The batches that losses got since they were last looked at.
BATCHES: list[dict[str, torch.Tensor]] = []


class Numbered:
    """Envs whose observation is the number of the step and the env; episodes end at random.

    Attributes:
        steps: a row (reward, discount, played) for each env of each step so far.
    """

    def __init__(self, num_envs: int):
        self.num_envs, self.single_action_space = num_envs, types.SimpleNamespace(n=2)
        self.steps: list[list[tuple[float, float, bool]]] = []

    def reset(self, *, seed: int):
        self.random = torch.Generator().manual_seed(seed)
        self.resets = torch.zeros(self.num_envs, dtype=torch.bool)
        return self._observations(), {}

    def _observations(self):
        return torch.arange(self.num_envs).unsqueeze(1) + self.num_envs * float(len(self.steps))

    def step(self, actions):
        drawn = torch.rand((3, self.num_envs), generator=self.random)
        rewards = torch.where(self.resets, 0.0, (drawn[0] * 8).floor() - 3)
        terminated = ~self.resets & (drawn[1] < 0.1)
        truncated = ~self.resets & ~terminated & (drawn[2] < 0.1)
        discounts = 0.5 * (~terminated).float()
        self.steps.append(
            list(zip(rewards.tolist(), discounts.tolist(), (~self.resets).tolist(), strict=True))
        )
        self.resets = terminated | truncated
        return self._observations(), rewards, terminated, truncated, {}

    def state_dict(self):
        return {"steps": self.steps, "resets": self.resets, "random": self.random.get_state()}

    def load_state_dict(self, state):
        self.steps, self.resets = list(state["steps"]), state["resets"]
        self.random.set_state(state["random"])

    def close(self):
        pass


class Learns(train.Algorithm[train.Args]):
    """Learns nothing useful; its batches are in BATCHES."""

    replay = train.Replay(200, 16)
    every, times, start, lag = 1, 1, 0, 0

    @classmethod
    def environment(cls, args, num_envs, device):
        return Numbered(num_envs)

    def networks(self, num_actions):
        return {"net": nn.Linear(1, num_actions)}

    def act(self, nets, observations):
        return {"actions": observations[:, 0].long() % 2}

    def schedules(self):
        return {"rising": lambda frames: min(1.0, frames / 1000)}

    def learning(self):
        return train.Learning(
            replay=self.replay, every=self.every, times=self.times, start=self.start, lag=self.lag
        )

    def loss(self, nets, batch):
        parts = ["observations", "actions", "rewards", "discounts", "played"]
        parts += ["next_observations"] if self.replay.sequence is None else []
        parts += ["weights"] if self.replay.prioritized else []
        BATCHES.append({name: getattr(batch, name).clone() for name in parts})
        values = nets.net(batch.observations / 100)
        values = values.mean(-1) if self.replay.sequence is None else values.mean((0, 2))
        given = {"loss": values.square().mean()}
        if self.replay.prioritized is not None:
            given["priorities"] = (7 * values.detach()).sin().abs()
        return given


def trainer_of(replay: train.Replay, **more: int) -> Trainer:
    kind = type("Learns", (Learns,), {"replay": replay, **more})
    args = train.Args(device="cpu", num_envs=ENVS, num_threads=1, gamma=0.5).on(CPU)
    trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU))
    BATCHES.clear()
    return trainer


def batches_of(trainer: Trainer, iterations: int) -> Iterator[tuple[int, dict]]:
    """The steps played, and the batch, of each update."""
    for _ in range(iterations):
        trainer.iterate()
        played = trainer.steps - trainer.algorithm.lag * trainer.algorithm.every
        for batch in BATCHES:
            yield played, batch
        BATCHES.clear()


def transition(steps, t: int, env: int, n: int) -> tuple[float, float, int]:
    """The rewards' sum, the discounts' product and the next step, by a loop."""
    total, discount = 0.0, 1.0
    for k in range(n):
        if k and not steps[t + k][env][2]:
            return total, discount, t + k
        total += discount * steps[t + k][env][0]
        discount *= steps[t + k][env][1]
    return total, discount, t + n


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("prioritized", [None, train.Prioritized()])
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow), 5])
def test_transitions_of_several_steps_are_those_of_a_loop(n, prioritized, lag):
    replay = train.Replay(40 * ENVS, 16, n_step=n, prioritized=prioritized)
    trainer = trainer_of(replay, every=2, times=2, lag=lag)
    seen = set()
    for played, batch in batches_of(trainer, 100):
        for i in range(16):
            t, env = divmod(int(batch["observations"][i, 0]), ENVS)
            assert max(0, played - 37) <= t <= played - n
            total, discount, following = transition(trainer.collector.env.steps, t, env, n)
            assert batch["rewards"][i] == total and batch["discounts"][i] == discount
            if discount:
                assert batch["next_observations"][i, 0] == following * ENVS + env
            assert batch["played"][i] == trainer.collector.env.steps[t][env][2]
            assert batch["actions"][i] == int(batch["observations"][i, 0]) % 2
            seen.add((t, env, following - t))
    assert {length for *_, length in seen} == set(range(1, n + 1))
    # The newest and the oldest are among those that are sampled.
    assert {t for t, *_ in seen} >= set(range(30, 120))
    trainer.close()


@pytest.mark.parametrize("prioritized", [None, train.Prioritized()])
def test_sequences_are_what_was_played(prioritized):
    replay = train.Replay(40 * ENVS, 8, sequence=6, prioritized=prioritized)
    trainer = trainer_of(replay, every=3)
    for played, batch in batches_of(trainer, 60):
        assert batch["observations"].shape == (7, 8, 1) and batch["rewards"].shape == (6, 8)
        for i in range(8):
            t, env = divmod(int(batch["observations"][0, i, 0]), ENVS)
            assert max(0, played - 37) <= t <= played - 6
            rows = trainer.collector.env.steps[t : t + 6]
            for name, place in (("rewards", 0), ("discounts", 1), ("played", 2)):
                assert batch[name][:, i].tolist() == [row[env][place] for row in rows]
            numbers = [k * ENVS + env for k in range(t, t + 7)]
            assert batch["observations"][:, i, 0].tolist() == numbers
        if prioritized:
            assert batch["weights"].shape == (6, 8) and bool((batch["weights"] <= 1).all())
            assert torch.equal(batch["weights"], batch["weights"][:1].expand(6, 8))
    trainer.close()


class Listed:
    """Priorities in a dict, by step and env: the oracle of those in a tree."""

    def __init__(self, replay: train.Replay, every: int, steps: int):
        self.replay, self.every, self.steps = replay, every, steps
        self.chances: dict[tuple[int, int], float] = {}
        self.highest, self.next = 1.0, 0

    def add(self, played: int, rows) -> None:
        """After so many steps."""
        while self.next <= played - self.replay.span:
            for env, row in enumerate(rows[self.next]):
                if row[2]:
                    self.chances[self.next, env] = self.highest
            self.next += 1
        self.chances = {key: p for key, p in self.chances.items() if key[0] >= played - self.steps}

    def change(self, keys, priorities) -> None:
        rule, new = self.replay.prioritized, {}
        for key, priority in zip(keys, priorities, strict=True):
            value = (float(priority) + rule.epsilon) ** rule.alpha
            new[key] = max(value, new.get(key, 0.0))
        self.chances |= new
        self.highest = max(self.highest, *new.values())


SPANS = [{}, {"n_step": 3}, {"sequence": 4}]
SCHEDULES = [(1, 0, 0), (3, 20, 0), (2, 9, 1), (7, 0, 1)]


@pytest.mark.parametrize(
    ("span", "every", "start", "lag"),
    [
        # By default each span with and without a lag.
        pytest.param(span, *schedule, marks=pytest.mark.slow if (i + k) % 2 else [])
        for i, span in enumerate(SPANS)
        for k, schedule in enumerate(SCHEDULES)
    ],
)
def test_priorities_are_those_of_a_dict(span, every, start, lag):
    rule = train.Prioritized(alpha=0.7, beta="rising", epsilon=0.01)
    replay = train.Replay(30 * ENVS, 16, **span, prioritized=rule)
    trainer = trainer_of(replay, every=every, start=start, lag=lag)
    (priorities,) = [r.object for r in trainer.plan.program.recurrents if r.name == "priorities"]
    listed, updates = Listed(replay, every, 27), 0
    for _ in range(-(-150 // every)):
        trainer.iterate()
        played = trainer.steps - lag * every
        listed.add(played, trainer.collector.env.steps)
        for batch in BATCHES:
            first = batch["observations"][..., 0]
            first = first if replay.sequence is None else first[0]
            keys = [divmod(int(number), ENVS) for number in first]
            chances = [listed.chances[key] for key in keys]
            beta = float(trainer.algorithm.now.rising)
            wanted = torch.tensor([(min(chances) / chance) ** beta for chance in chances])
            weights = batch["weights"] if replay.sequence is None else batch["weights"][0]
            torch.testing.assert_close(weights, wanted)
            listed.change(keys, trainer.learner.priorities.tolist())
            updates += 1
        BATCHES.clear()
        numbers = priorities.tree.values(torch.arange(priorities.slots * ENVS))
        found = {}
        for place in numbers.nonzero().flatten().tolist():
            slot, env = divmod(place, ENVS)
            t = played - 1 - (played - 1 - slot) % priorities.slots
            found[t, env] = float(numbers[place])
        assert found == pytest.approx(listed.chances, rel=1e-12)
    assert updates > 15 and len({*listed.chances.values()}) > 20
    trainer.close()


@pytest.mark.parametrize("size", [1, FAN, FAN + 1, 5000])
def test_tree_draws_by_size_and_keeps_its_sums(size):
    random = torch.Generator().manual_seed(size)
    tree, wanted = SumTree(size, CPU), torch.zeros(size, dtype=torch.float64)
    for _ in range(30):
        places = torch.randint(size, (40,), generator=random)
        values = torch.rand(40, generator=random, dtype=torch.float64)
        values[::5] = 0
        tree.set(places, values)
        wanted[places] = 0
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            wanted[place] = max(float(wanted[place]), value)
        assert torch.equal(tree.values(torch.arange(size)), wanted)
    for below, above in zip(tree.levels, tree.levels[1:], strict=False):
        torch.testing.assert_close(below.view(-1, FAN).sum(1), above[: len(below) // FAN])
    if wanted.sum() == 0:
        return
    shares = torch.linspace(0, 1, 100_001, dtype=torch.float64)[:-1]
    drawn = tree.draw(shares)
    assert bool((wanted[drawn] > 0).all())
    wants = torch.searchsorted(wanted.cumsum(0) / wanted.sum(), shares, right=True)
    assert int((drawn != wants).sum()) <= len(wanted)  # at the very borders of two ranges
    counts = torch.bincount(drawn, minlength=size) / len(shares)
    torch.testing.assert_close(counts, (wanted / wanted.sum()).float(), rtol=0, atol=3e-5)
    last = torch.tensor([1.0], dtype=torch.float64).nextafter(torch.zeros(1, dtype=torch.float64))
    assert tree.draw(last).item() == wanted.nonzero().max()


def test_tree_works_without_looking_at_its_numbers():
    """Fake tensors have no numbers, as while a CUDA graph is captured."""
    with FakeTensorMode():
        tree = SumTree(100_000, CPU)
        tree.set(torch.zeros(32, dtype=torch.int64), torch.zeros(32, dtype=torch.float64))
        assert tree.draw(torch.zeros(16, dtype=torch.float64)).shape == (16,)


@pytest.mark.parametrize("span", [{"n_step": 3}, {"sequence": 4}])
def test_resume_is_exact(span):
    replay = train.Replay(30 * ENVS, 16, **span, prioritized=train.Prioritized(beta="rising"))

    def make():
        return trainer_of(replay, every=2, times=3)

    assert_same(state_after(make, 60, 25), state_after(make, 60))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.Prioritized(alpha=1.5), "expected alpha to be from 0 to 1, got 1.5"),
        (lambda: train.Prioritized(beta=-1.0), "expected beta to be from 0 to 1, got -1"),
        (lambda: train.Prioritized(epsilon=0.0), "expected epsilon to be above 0, got 0.0"),
        (lambda: train.Replay(10, 4, n_step=0), "expected n_step of Replay to be at least 1"),
        (lambda: train.Replay(10, 4, sequence=0), "expected sequence of Replay to be at least 1"),
        (lambda: train.Replay(10, 4, 2, sequence=3), "Replay with n_step or with sequence"),
        (lambda: trainer_of(train.Replay(7 * ENVS, 4, n_step=5)),
         r"to hold 8 steps of each of 5 envs \(40\) or more, got 35"),
        (lambda: trainer_of(train.Replay(9 * ENVS, 4, prioritized=train.Prioritized()), every=6),
         r"to hold 10 steps of each of 5 envs \(50\) or more, got 45"),
        (lambda: trainer_of(train.Replay(90, 4, prioritized=train.Prioritized(beta="raising"))),
         r"beta of Prioritized to be a number or the name of a schedule \(rising\), got 'raising'"),
        (lambda: trainer_of(
            train.Replay(90, 4, prioritized=train.Prioritized()),
            loss=lambda self, nets, batch: {"loss": nets.net(batch.observations).mean()}),
         r'to return "priorities" with a number for each of 2 rows, .*, got None'),
        (lambda: trainer_of(
            train.Replay(90, 4, prioritized=train.Prioritized()),
            loss=lambda self, nets, batch: {
                "loss": nets.net(batch.observations).mean(), "priorities": batch.played}),
         r'to return "priorities" with a number for each of 2 rows, .*, got a tensor'),
        (lambda: trainer_of(
            train.Replay(90, 4),
            loss=lambda self, nets, batch: {
                "loss": nets.net(batch.observations).mean(), "priorities": batch.rewards}),
         "return priorities only with a Replay that is prioritized, got a tensor"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        make()
    assert isinstance(raised.value, Refusal)


class Signed(Learns):
    """Forgets that priorities have no sign; one is infinite."""

    replay = train.Replay(200, 16, prioritized=train.Prioritized())

    def loss(self, nets, batch):
        given = Learns.loss(self, nets, batch)
        signed = 0.5 - given["priorities"]
        signed[0] = torch.inf
        return given | {"priorities": signed}


def test_priorities_below_zero_end_a_training(tmp_path):
    args = train.Args(
        device="cpu", num_envs=ENVS, num_threads=1, folder=tmp_path, total_frames=4000,
        log_every=20, eval_episodes=0, progress=False, plot=False, logger="none",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"priorities that are finite and at least 0, .* others"):
        train.train(Signed, args)
    # Until then others are sampled as ever.
    trainer = trainer_of(Signed.replay, loss=Signed.loss)
    for _ in range(60):
        trainer.iterate()
    (state,) = [r.object for r in trainer.plan.program.recurrents if r.name == "priorities"]
    assert bool(state.tree.levels[-1].isfinite().all()) and bool(state.highest.isfinite())
    assert len({tuple(batch["observations"].flatten().tolist()) for batch in BATCHES[-20:]}) == 20
    trainer.close()


def test_parts_are_not_named_as_the_weights():
    def declare(self, d):
        d.acting(self.act)
        d.emulating()
        rewards = d.stored["rewards"]
        steps = self.replay.steps(d.num_envs)
        d.learning(self.learning(), {"weights": lambda stop: rewards[stop - steps : stop]})

    with pytest.raises(ValueError, match="got weights, which is a part of what is sampled by"):
        trainer_of(train.Replay(200, 16, prioritized=train.Prioritized()), declare=declare)


def test_numbers_of_numpy_are_numbers():
    assert train.Prioritized(alpha=np.float64(0.5)).alpha == 0.5


def test_chunks_give_the_same_priorities():
    replay = train.Replay(200, 16, n_step=2, prioritized=train.Prioritized())
    found = []
    for chunk in (16, 5):
        kind = type("Learns", (Learns,), {"replay": replay, "start": 20})
        args = train.Args(device="cpu", num_envs=ENVS, num_threads=1, learner_chunk=chunk).on(CPU)
        trainer = Trainer(kind, args, ProcessGroup(0, 1, CPU))
        while trainer.steps < 20:
            trainer.iterate()
        found.append(trainer.learner.priorities.clone())
        trainer.close()
    torch.testing.assert_close(*found)
    assert found[0].unique().numel() > 5
