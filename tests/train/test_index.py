"""Indices: three ways to compute them agree; windows, cases and bounds do what they say."""

from __future__ import annotations

import random

import islpy as isl
import pytest
import torch
from programs import run_interleaved
from walker import Walker

from cule import train
from cule.errors import Refusal
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import sample
from cule.train.plan.domain import Domain
from cule.train.plan.index import Index, J, T, U, cases, constant, maximum, minimum
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program
from cule.train.plan.unknowns import Bound, Unknowns
from cule.train.trainer import Trainer

# What LooksBack has read: how many rewards, and those of the first env.
LOOKED: list[tuple[int, list[float]]] = []


def random_condition(r: random.Random, depth: int, bounds):
    kind = r.choice(["compare", "compare", "compare", "and", "or", "not"])
    if kind == "compare" or depth <= 0:
        first, second = random_index(r, depth - 1, bounds), random_index(r, depth - 1, bounds)
        how = r.choice(["<", "<=", ">", ">=", "==", "!="])
        return {
            "<": first < second, "<=": first <= second, ">": first > second,
            ">=": first >= second, "==": first == second, "!=": first != second,
        }[how]  # fmt: skip
    first = random_condition(r, depth - 1, bounds)
    if kind == "not":
        return ~first
    second = random_condition(r, depth - 1, bounds)
    return first & second if kind == "and" else first | second


def random_index(r: random.Random, depth: int, bounds=()) -> Index:
    if depth <= 0:
        return r.choice([T, J, U, constant(r.randint(-9, 9)), *bounds])
    kind = r.choice(["add", "subtract", "multiply", "divide", "modulo", "min", "max", "case"])
    first = random_index(r, depth - 1, bounds)
    if kind == "multiply":
        return first * r.randint(-3, 3)
    if kind in ("divide", "modulo"):
        divisor = r.randint(1, 7)
        return first // divisor if kind == "divide" else first % divisor
    second = random_index(r, depth - 1, bounds)
    if kind in ("add", "subtract"):
        return first + second if kind == "add" else first - second
    if kind == "case":
        condition = random_condition(r, depth - 1, bounds)
        return cases((condition, first), (second > first, 7), second)
    return minimum(first, second, 30) if kind == "min" else maximum(first, second, -30)


def random_domain(r: random.Random) -> Domain:
    return Domain(r.randint(1, 4), r.randint(1, 3), r.randint(0, 5), r.randint(1, 2))


def by_isl(index: Index, domain: Domain, t: int, j: int) -> list[int]:
    """All values that isl allows at (t, j)."""
    unknowns = Unknowns()
    value = index.isl(domain, unknowns)
    text = unknowns.where([f"n = {value}", f"t = {t}", f"j = {j}"])
    found: list[int] = []
    isl.Set(f"{{ [n] : exists (t, j : {text}) }}").foreach_point(
        lambda point: found.append(point.get_coordinate_val(isl.dim_type.set, 0).to_python())
    )
    return sorted(found)


@pytest.mark.parametrize("seed", range(60))
def test_python_torch_and_isl_compute_the_same(seed):
    r = random.Random(seed)
    index, domain = random_index(r, r.randint(1, 4)), random_domain(r)
    times = [(t, r.randrange(domain.times)) for t in r.sample(range(domain.start, 60), 8)]
    expected = [index.at(domain, t, j) for t, j in times]
    assert [by_isl(index, domain, t, j) for t, j in times] == [[n] for n in expected]
    t, j = torch.tensor(times).T
    found = torch.as_tensor(index.at(domain, t, j)).expand(len(times))
    assert found.tolist() == expected
    moved = index.with_t(T + 3)
    if "u" not in index.text:
        assert [moved.at(domain, t - 3, j) for t, j in times] == expected


@pytest.mark.parametrize("seed", range(20))
def test_isl_allows_every_value_of_a_bound(seed):
    r = random.Random(seed)
    value = torch.zeros(1, dtype=torch.int64)
    bound = Index("bound", (Bound("n", value, 2, 5),))
    index, domain = random_index(r, 3, [bound] * 4), random_domain(r)
    for t in r.sample(range(domain.start, 60), 4):
        allowed = by_isl(index, domain, t, 0)
        for n in range(0, 8):
            value.fill_(n)
            found = index.at(domain, t, 0)
            assert found in allowed
            tensor = torch.as_tensor(index.at(domain, torch.tensor([t]), torch.tensor([0])))
            assert int(tensor) == found


@pytest.mark.parametrize("seed", range(40))
def test_calls_are_those_that_isl_says(seed):
    r = random.Random(seed)
    known = random_condition(r, 3, ())
    domain = Domain(r.randint(1, 3), r.randint(1, 3), r.randint(0, 4), r.randint(1, 2), when=known)
    expected = [(t, j) for t in range(24) for j in domain.calls_at(t)]
    found = []
    isl.Set(f"{{ [t, j] : t < 24 and {domain.isl()} }}").foreach_point(
        lambda point: found.append(
            tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in (0, 1))
        )
    )
    assert sorted(found) == expected


def test_the_length_of_a_window_is_known_where_it_is_always_the_same():
    x = Program().recurrent("x")
    constant_ones = [x[T - 3 : T + 1], x[4 * (U // 4) : 4 * (U // 4 + 1)],
                     x[minimum(T, 9) - 4 : minimum(T, 9)]]  # fmt: skip
    assert [access.length() for access in constant_ones] == [4, 4, 4]
    for first, stop in ((0, T), (T % 50, T % 50 + T), (T, T + cases((T == 70, 3), 2)),
                        (minimum(T, 60), T + 1)):  # fmt: skip
        assert x[first:stop].length() is None


def told(make, steps, period=4, **plan):
    """What an operation has read at each step, by a plan."""
    program, log = Program(period=period), []
    make(program, lambda *values: log.append(values) or ())
    made = Plan(program, **plan)
    made.run(steps // period)
    return log


def counting(program, name="x", initial=0):
    """A tensor that is 100 + t at step t."""
    x = program.recurrent(name, (), torch.int64, initial=initial)
    clock = program.object("clock " + name, [99])

    def count(state):
        state[0] += 1
        return torch.tensor(state[0])

    program.operation(
        f"count {name}", count, role="simulate", reads=[clock[program.t]],
        writes=[x[program.t], clock[program.t + 1]],
    )  # fmt: skip
    return x


def values_of(window):
    """The rows before the end; those after it are 0."""
    rows, valid = window.all(), window.valid
    assert not rows[~valid].any() and valid.tolist() == sorted(valid.tolist(), reverse=True)
    return rows[valid].tolist()


@pytest.mark.parametrize("period", [1, 4, 6])
def test_windows_grow_and_shrink_with_time(period):
    """An n-step window up to the end of episodes of 5 steps; and all steps of the episode."""

    def make(program, tell):
        x, t = counting(program), program.t
        end = (t - 6) // 5 * 5 + 5
        program.operation(
            "tell", lambda ahead, all_: tell(values_of(ahead), values_of(all_)), role="effect",
            reads=[x[t - 6 : minimum(t - 6 + 3, end)], x[(t - 6) // 5 * 5 : t - 5]], start=6,
        )  # fmt: skip

    expected = []
    for t in range(6, 48):
        now, end = t - 6, (t - 6) // 5 * 5 + 5
        ahead = [100 + k for k in range(now, min(now + 3, end))]
        expected.append((ahead, [100 + k for k in range((t - 6) // 5 * 5, t - 5)]))
    assert told(make, 48, period) == expected


def test_rings_have_what_windows_can_have_at_most():
    program = Program()
    x, t = counting(program), program.t
    program.operation(
        "tell", lambda *_: (), role="effect", reads=[x[maximum(t - t % 10, 0) : t + 1]]
    )
    plan = Plan(program)
    assert plan.memory.allocations[x].length == 10


@pytest.mark.parametrize("period", [1, 3])
def test_definitions_branch(period):
    """x[0] and x[t + 1], and every fourth value from elsewhere."""

    def make(program, tell):
        t = program.t
        x = program.recurrent("x", (), torch.int64)
        program.operation(
            "begin", lambda: torch.tensor(7), role="simulate", writes=[x[t]], when=t == 0
        )
        program.operation("tell", lambda value: tell(int(value)), role="effect", reads=[x[t]])
        program.operation(
            "double", lambda value: value * 2 % 1009, role="simulate", reads=[x[t]],
            writes=[x[t + 1]], when=t % 4 != 3,
        )  # fmt: skip
        program.operation(
            "again", lambda value: value + 1, role="simulate",
            reads=[x[cases((t < 4, 0), t - 4)]], writes=[x[t + 1]], when=t % 4 == 3,
        )  # fmt: skip

    x = [7]
    for t in range(24):
        x.append(x[0 if t < 4 else t - 4] + 1 if t % 4 == 3 else x[t] * 2 % 1009)
    assert told(make, 24, period) == [(value,) for value in x[:24]]


def test_definitions_that_overlap_or_leave_out_are_refused():
    def program_of(first, second):
        program = Program()
        t = program.t
        x = program.recurrent("x", (), torch.int64)
        for name, when in (("one", first(t)), ("two", second(t))):
            program.operation(
                name, lambda: torch.tensor(1), role="simulate", writes=[x[t]], when=when
            )
        program.operation("tell", lambda _: (), role="effect", reads=[x[t]])
        return program

    Plan(program_of(lambda t: t % 3 == 0, lambda t: t % 3 != 0))
    with pytest.raises(ValueError, match="each index of x to be written once, got more"):
        Plan(program_of(lambda t: t % 3 == 0, lambda t: t % 2 != 0))
    with pytest.raises(ValueError, match="tell to read indices of x that are written, but"):
        Plan(program_of(lambda t: t % 3 == 0, lambda t: t % 3 == 1))


@pytest.mark.parametrize("beside", [False, True])
def test_numbers_known_only_at_run_time(beside):
    """n steps, with n changed between iterations; a value outside counts as the nearer end."""
    value = torch.ones(1, dtype=torch.int64)
    program, log = Program(period=3), []
    x, t = counting(program), program.t
    n = program.bound("n", value, least=1, most=4)
    program.operation(
        "tell", lambda window: log.append(values_of(window)) or (), role="effect",
        reads=[x[t - 8 : t - 8 + n]], start=8,
    )  # fmt: skip
    plan = Plan(program)
    # Of an iteration's three steps all are counted before any is told.
    assert plan.memory.allocations[x].length == 9 + 2
    assert "[t - 8:t - 8 + n] tell" in plan.explain()
    expected, r = [], random.Random(1)
    for iteration in range(12):
        asked = r.choice([0, 1, 2, 3, 4, 9])
        value.fill_(asked)
        if beside:
            run_interleaved(plan, r.randrange, 1)
        else:
            plan.run()
        for step in range(3 * iteration, 3 * iteration + 3):
            if step >= 8:
                count = min(max(asked, 1), 4)
                expected.append([100 + k for k in range(step - 8, step - 8 + count)])
    assert log == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.bound("n", 3, 1, 4), "a tensor of one real number as n, got 3"),
        (lambda p: p.bound("n", torch.zeros(2), 1, 4), "of one real number as n, got tensor"),
        (lambda p: p.bound("n", torch.zeros(1, dtype=torch.int64), 5, 4), "n from 5 to 4"),
        (lambda p: p.bound("n", torch.zeros(1), 1.5, 4), "up to 1,048,576 .*, got 1.5"),
        (lambda p: p.bound("n", torch.zeros(1), 1, 10**12), "whole numbers up to 1,048,576"),
        (lambda p: p.bound("t", torch.zeros(1), 1, 2), "a name of its own for a bound, got 't'"),
        (lambda p: [p.bound("n", torch.zeros(1), 1, 2) for _ in "ab"], "for a bound, got 'n'"),
        (lambda p: p.operation("tell", print, role="effect",
                               when=p.t < p.bound("n", torch.zeros(1, dtype=torch.int64), 1, 4)),
         "tell with a condition of t and j alone"),
        (lambda p: Plan(_growing(p)), "of x with a greatest length, .*, grows with time"),
        (lambda p: p.operation("w", print, role="act", writes=[p.recurrent("y")[
            p.bound("n", torch.zeros(1, dtype=torch.int64), 1, 4)]]),
         "w to write indices that are known when the program is planned, got y"),
    ],
)  # fmt: skip
def test_what_cannot_be_expressed_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        make(Program())
    assert isinstance(raised.value, Refusal)


def _growing(program):
    x = counting(program)
    program.operation("tell", lambda _: (), role="effect", reads=[x[0 : program.t + 1]])
    return program


class LooksBack(Walker):
    """Acts by the rewards of the last n steps of the episode; n is a schedule's."""

    def schedules(self):
        return {"n": lambda frames: 1 + frames / 200}

    def declare(self, d):
        n = d.bound("n", self.now.n, least=1, most=6)
        rewards = d.stored["rewards"][train.maximum(d.t - n, 0) : d.t]
        d.acting(self.act_on, reads=[rewards])
        d.emulating()
        d.learning(self.learning())

    def act_on(self, nets, observations, rewards):
        LOOKED.append((int(rewards.valid.sum()), rewards.all()[:, 0].tolist()))
        return {"actions": sample(nets.net(observations).log_softmax(dim=1))}


def test_an_algorithm_reads_as_many_steps_as_its_schedule_says():
    args = train.Args(device="cpu", num_envs=4, num_threads=1).on(torch.device("cpu"))
    trainer = Trainer(LooksBack, args, ProcessGroup(0, 1, torch.device("cpu")))
    rewards = []
    step = trainer.collector.env.step
    trainer.collector.env.step = lambda actions: rewards.append(step(actions)) or rewards[-1]
    LOOKED.clear()
    counts = []
    while trainer.steps < 120:
        begun, n = trainer.steps, 1 + trainer.frames / 200
        trainer.iterate()
        counts += [min(int(n), 6, t) for t in range(begun, trainer.steps)]
    assert [count for count, _ in LOOKED] == counts and set(counts) == set(range(7))
    for t, (count, found) in enumerate(LOOKED):
        played = [float(one[1][0]) for one in rewards[t - count : t]]
        assert len(found) == 6 and found == played + [0.0] * (6 - count)
    trainer.close()
