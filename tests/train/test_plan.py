"""What plans find: lengths of rings, branches, copies, merged evaluations; and what they refuse."""

from __future__ import annotations

import re

import pytest
import torch

from cule import train
from cule.train.distributed.process_group import ProcessGroup
from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program
from cule.train.plan.stores import Ring
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C
from examples.a2c_vtrace.train import Args as A2CArgs
from examples.dqn.dqn import DQN
from examples.dqn.dqn import Args as DQNArgs
from examples.ppo.ppo import PPO
from examples.ppo.ppo import Args as PPOArgs
from examples.reinforce.reinforce import Args as ReinforceArgs
from examples.reinforce.reinforce import Reinforce

CPU = torch.device("cpu")
TINY = {"device": "cpu", "width": 0.1, "num_threads": 1, "num_envs": 8}


def trainer_of(algorithm, settings, passes=None, **changes):
    args = settings(**{**TINY, **changes}).on(CPU)
    args.check(1)
    return Trainer(algorithm, args, ProcessGroup(0, 1, CPU), passes)


def plan_of(algorithm, settings, **changes):
    return trainer_of(algorithm, settings, **changes).plan


def length(plan, name):
    return next(how.length for r, how in plan.memory.allocations.items() if r.name == name)


def streams(plan):
    return {o.name: group.stream for group in plan.groups for o in group.operations}


V20 = {"num_batches": 4, "num_steps": 20}


@pytest.mark.parametrize(
    "algorithm, settings, changes, slots",
    [
        (A2C, A2CArgs, V20, 24),
        (A2C, A2CArgs, V20 | {"lag": 1}, 25),
        (PPO, PPOArgs, {"num_steps": 32, "minibatch_size": 64}, 36),
        (PPO, PPOArgs, {"num_steps": 32, "minibatch_size": 64, "lag": 1}, 36 + 32),
        (DQN, DQNArgs, {"memory": 800, "first_update": 80}, 100 + 1),
        (DQN, DQNArgs, {"memory": 800, "first_update": 80, "lag": 1}, 100 + 2),
    ],
)
def test_each_frame_is_kept_once_and_no_longer_than_it_is_read(algorithm, settings, changes, slots):
    plan = plan_of(algorithm, settings, **changes)
    assert length(plan, "observations") == slots
    assert plan.seconds < 1


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("algorithm, settings, changes", [
    (A2C, A2CArgs, {"num_batches": 2, "num_steps": 4}),
    (PPO, PPOArgs, {"num_steps": 4, "minibatch_size": 16}),
    (DQN, DQNArgs, {"memory": 800, "first_update": 80}),
])  # fmt: skip
def test_learning_is_a_branch_where_acting_does_not_wait_for_it(algorithm, settings, changes, lag):
    """Nothing but the program's dependences says so."""
    plan = plan_of(algorithm, settings, lag=lag, **changes)
    on = streams(plan)
    assert on["act"] == on["emulate"] == 0
    assert (on["gradient"] == on["update"] == 1) if lag else on["gradient"] == 0
    assert any(name.startswith("hand over") for name in on) == bool(lag)


def test_values_are_actings_own_where_the_weights_are_the_same():
    for lag in (0, 1):
        plan = plan_of(PPO, PPOArgs, num_steps=8, minibatch_size=16, lag=lag)
        merged = "evaluate values: 8 of 9 are act's own" in plan.notes
        assert merged == (lag == 0)


def test_one_line_of_reinforce_makes_two_plans():
    whole = plan_of(Reinforce, ReinforceArgs, num_steps=64)
    steps = plan_of(Reinforce, ReinforceArgs, num_steps=64, n_step=4)
    assert length(whole, "observations") == 64 + 4 and length(steps, "observations") == 2 * 4 + 4
    peak = [
        plan.memory.ring_bytes + sum(o.work.bytes for o in plan.program.operations if o.work)
        for plan in (whole, steps)
    ]
    assert peak[0] > 3 * peak[1]


def test_explain_tells_tensors_order_and_changes():
    told = plan_of(PPO, PPOArgs, num_steps=8, minibatch_size=16).explain()
    row = next(line for line in told.splitlines() if line.startswith("observations"))
    assert re.search(r"12 steps +\d+\.\d KiB +\[t\] act; \[t - 7 \+ j\] evaluate values; \[t", row)
    assert (
        "[t - 7:t + 2] gradient" in " ".join(told.split())
        and max(map(len, told.splitlines())) <= 100
    )
    assert "An iteration is 8 steps:" in told
    assert "gradient (learn): every 8 steps, 12 times; 16 of 16 samples at once need" in told
    assert "hand over net is left out: its readers read net" in told
    assert re.search(r"Planned in \d+ ms\.", told)
    beside = plan_of(A2C, A2CArgs, num_batches=2, num_steps=4, lag=1).explain()
    assert "on stream 1, beside 2" in beside and "on stream 0, after 1" in beside


# Within a budget ----------------------------------------------------------------------------------

GIB = 2**30


def weights(trainer):
    return [p.detach().clone() for p in trainer.nets.trained["net"].parameters()]


def needs(trainer, *, least=False):
    """Bytes that operations need while they run."""
    works = [o.work for o in trainer.plan.program.operations if o.work is not None]
    return sum(work.least_bytes if least else work.bytes for work in works)


def trained(updates, passes=None, **changes):
    trainer = trainer_of(PPO, PPOArgs, passes, num_steps=16, minibatch_size=32, **changes)
    while trainer.updates < updates:
        trainer.iterate()
    return trainer


@pytest.mark.parametrize("lag", [0, 1])
def test_frames_on_the_host_give_the_same_numbers(lag):
    free = trained(24, lag=lag)
    memory = free.plan.memory
    # All of the gradient at once fits beside everything except the frames.
    frames = next(how.bytes for r, how in memory.allocations.items() if r.name == "observations")
    needed = memory.fixed + memory.ring_bytes + needs(free)
    budget = needed - frames * 0.6 if not lag else needed - frames * 0.4
    tight = trained(24, lag=lag, memory_budget=budget / GIB)
    kept = next(how for r, how in tight.plan.memory.allocations.items() if r.name == "observations")
    told = tight.plan.memory.notes
    if not kept.host:  # smaller chunks were enough
        assert any("samples at once" in line for line in told)
        return
    assert any("kept on the host" in line for line in told)
    assert 4 <= kept.near < kept.length
    if tight.learner.work.at_once == tight.learner.work.samples:
        for mine, its in zip(weights(tight), weights(free), strict=True):
            assert torch.equal(mine, its)


@pytest.mark.parametrize("ahead", [False, True])
def test_frames_on_the_host_are_what_learning_reads(ahead):
    """Where chunks do not change the sums: with the smallest chunks in both."""
    free = trained(0)
    memory = free.plan.memory
    frames = next(how.bytes for r, how in memory.allocations.items() if r.name == "observations")
    least = memory.fixed + memory.ring_bytes - frames + needs(free, least=True)
    tight = trained(24, Passes(ahead=ahead), memory_budget=(least + 15 * frames / 20) / GIB)
    kept = next(how for r, how in tight.plan.memory.allocations.items() if r.name == "observations")
    assert kept.host and kept.near == 4
    work = tight.learner.work
    at_once = work.at_once
    assert at_once < 32 and work.ahead is ahead
    assert 4 * 84 * 84 < work.gathered < 5 * 84 * 84
    assert ("reads the next samples from the host" in tight.plan.explain()) is ahead
    memory = tight.plan.memory
    assert memory.fixed + memory.ring_bytes + needs(tight) <= memory.budget
    other = trained(24, learner_chunk=at_once)
    for mine, its in zip(weights(tight), weights(other), strict=True):
        assert torch.equal(mine, its)
    assert "on the host" in tight.plan.explain()


def test_chunks_change_numbers_only_by_rounding():
    whole, parts = trained(1), trained(1, learner_chunk=7)
    assert parts.learner.work.at_once == 7
    assert whole.nets.weights.gradient.norm() > 0
    torch.testing.assert_close(
        parts.nets.weights.gradient, whole.nets.weights.gradient, rtol=1e-4, atol=1e-6
    )


def test_budget_below_the_least_that_works_is_refused_with_the_least():
    with pytest.raises(ValueError, match=r"a memory budget of at least [\d,]+ bytes") as refused:
        trained(0, memory_budget=1e-5)
    least = int(re.search(r"at least ([\d,]+)", str(refused.value))[1].replace(",", ""))
    trained(1, memory_budget=(least + 1) / GIB)
    with pytest.raises(ValueError, match="a memory budget of at least"):
        trained(0, memory_budget=(least - 1000) / GIB)


@pytest.mark.parametrize("store", [None, Ring])
def test_what_is_read_for_ever_is_kept_beside_a_short_ring(store):
    p, told = Program(period=8), []
    t, x, y = p.t, p.recurrent("x", (), initial=0, store=store), p.recurrent("y", ())
    p.operation("act", lambda now: now, role="act", reads=[x[t]], writes=[y[t]])
    p.operation("emulate", lambda y: y + 1, role="simulate", reads=[y[t]], writes=[x[t + 1]])

    def tell(*some):
        told.append([int(one) for one in some])
        return ()

    reads = [x[0], x[t % 4], x[train.minimum(t, 2)]]
    p.operation("tell", tell, role="effect", reads=reads)
    if store is not None:  # one of its own, which may need other indices, too
        with pytest.raises(ValueError, match="windows of x that have an end in the past"):
            Plan(p)
        return
    plan = Plan(p)
    assert length(plan, "x") == 1
    plan.run(3)
    assert told == [[0, step % 4, min(step, 2)] for step in range(24)]
    assert "1 step and the first 4" in plan.explain()


# What is refused ----------------------------------------------------------------------------------


def nothing(*_):
    return ()


def test_program_that_reads_what_is_never_written_is_refused():
    p = Program()
    x, y = p.recurrent("x"), p.recurrent("y", initial=0)
    p.operation("act", nothing, role="act", reads=[x[p.t]], writes=[y[p.t]])
    with pytest.raises(
        ValueError, match="an operation that writes x, which act reads: it is never"
    ):
        Plan(p)


def test_program_that_reads_the_future_is_refused():
    p = Program()
    x, y = p.recurrent("x", initial=0), p.recurrent("y")
    p.operation("act", nothing, role="act", reads=[x[p.t + 1]], writes=[y[p.t]])
    p.operation("emulate", nothing, role="simulate", writes=[x[p.t + 1]])
    with pytest.raises(
        ValueError, match="act to read what was computed before, but it reads what em"
    ):
        Plan(p)


def test_program_that_reads_before_the_beginning_is_refused():
    p = Program()
    x, y = p.recurrent("x"), p.recurrent("y")
    p.operation("emulate", nothing, role="simulate", writes=[x[p.t]])
    p.operation("act", nothing, role="act", reads=[x[p.t - 3]], writes=[y[p.t]])
    with pytest.raises(ValueError, match="act to read indices of x that are written, but it also"):
        Plan(p)


def test_program_with_gaps_that_are_read_is_refused():
    p = Program()
    x, y = p.recurrent("x", initial=0), p.recurrent("y")
    p.operation("sometimes", nothing, role="learn", every=2, writes=[x[p.t]])
    p.operation("act", nothing, role="act", reads=[x[p.t]], writes=[y[p.t]])
    with pytest.raises(ValueError, match="act to read indices of x that are written, but some are"):
        Plan(p)


def test_program_that_writes_twice_is_refused():
    p = Program()
    x = p.recurrent("x")
    p.operation("one", nothing, role="act", writes=[x[p.t]])
    p.operation("two", nothing, role="act", writes=[x[p.t]])
    with pytest.raises(ValueError, match="each index of x to be written once, got more"):
        Plan(p)


def test_program_that_reads_old_weights_without_a_copy_is_refused():
    p = Program()
    net, x = p.object("net", [0], output=True), p.recurrent("x")
    p.operation("learn", nothing, role="learn", reads=[net[p.u]], writes=[net[p.u + 1]])
    p.operation("act", nothing, role="act", reads=[net[p.t]], writes=[x[p.t]])
    with pytest.raises(
        ValueError, match="newest version of what learn changes in place, but it re"
    ):
        Plan(p)


def test_program_that_reads_all_history_is_refused():
    p = Program()
    x = p.recurrent("x", initial=0)
    p.operation("emulate", nothing, role="simulate", writes=[x[p.t]])
    p.operation("look", nothing, role="effect", reads=[x[0 * p.t : p.t + 1]])
    with pytest.raises(
        ValueError, match=r"windows of x with a greatest length, .* look reads, x\[0 \* t:t \+ 1\]"
    ):
        Plan(p)


@pytest.mark.parametrize("make, message", [
    (lambda p, x: p.operation("a", nothing, role="act", reads=[x[p.t : p.t - 2]]),
     r"a to read a window of at least one index, got x\[t:t - 2\], which has -2"),
    (lambda p, x: p.operation("a", nothing, role="fly"), "role of a to be one of simulate, act,"),
    (lambda p, x: p.operation("a", nothing, role="act", every=0), "a with every, times and nth of"),
    (lambda p, x: p.operation("a", nothing, role="act", writes=[x[p.t : p.t + 2]]),
     r"a to write single indices, got x\[t:t \+ 2\]"),
    (lambda p, x: x[: p.t], r"a window x\[first:stop\], got"),
    (lambda p, x: p.recurrent("y", over="hour"), 'over to be "step" or "update", got \'hour\''),
])  # fmt: skip
def test_declaration_that_makes_no_sense_is_refused(make, message):
    p = Program()
    with pytest.raises(ValueError, match=message):
        make(p, p.recurrent("x", initial=0))


class Changed(PPO):
    """PPO with one thing wrong."""

    def __init__(self, args, context, **wrong):
        super().__init__(args, context)
        for name, value in wrong.items():
            setattr(self, name, value)


def wrong(**changes):
    own = {"width": 1.0} if "networks" in changes else {}  # which it then does not read
    args = PPOArgs(**{**TINY, **own}, num_steps=8, minibatch_size=16).on(CPU)
    Trainer(lambda args, context: Changed(args, context, **changes), args, ProcessGroup(0, 1, CPU))


@pytest.mark.parametrize("changes, message", [
    ({"loss": lambda nets, batch: {"loss": nets.net(batch.observations)[1]}},
     r"a loss that is a scalar with a gradient, got \(2,\)"),
    ({"loss": lambda nets, batch: {"loss": torch.zeros(())}}, "a loss that is a scalar with a gr"),
    ({"loss": lambda nets, batch: torch.zeros(())}, 'expected loss to return a dict with "loss"'),
    ({"loss": lambda nets, batch: {"loss": batch.advantage.mean()}},
     r"a part of the batch \(actions, .*\), got advantage"),
    ({"networks": lambda n: {"net": torch.nn.Linear(2, 2, device="meta")}},
     "network net on the CPU or on cpu, got one on meta"),
    ({"networks": lambda n: {"target": train.Copy(of="net")}}, "a network that is trained, got no"),
    ({"act": lambda nets, observations: {"actions": torch.zeros(8)}}, "act to return log_mu, got"),
    ({"act": lambda nets, observations: {"actions": torch.zeros(3), "log_mu": torch.zeros(3)}},
     "act to return actions with a value for each of 8 envs"),
    ({"prepare": lambda nets, batch: {"advantages": torch.zeros(3)}}, None),
])  # fmt: skip
def test_algorithm_that_makes_no_sense_is_refused(changes, message):
    """Before the first step."""
    message = message or "prepare to return advantages of shape|a part of the batch"
    with pytest.raises(ValueError, match=message):
        wrong(**changes)


def test_torch_that_is_too_old_is_told():
    from cule.train.main import check_torch

    check_torch("2.11.0+cu130")
    with pytest.raises(
        ImportError, match=r"cule\.train needs torch 2\.11 or newer, and torch 2\.9"
    ):
        check_torch("2.9.1")
