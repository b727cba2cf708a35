"""Random programs: a plan computes what the program's order defines, however it is executed."""

from __future__ import annotations

import functools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import FOLLOWING, oracle, random_program, run_interleaved

from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan

BESIDE = Passes(beside=True)
SWITCHES = st.builds(Passes, *[st.booleans()] * 5)


def told(seed, run):
    """What a program's operations tell, with its period."""
    program, logs = random_program(seed)
    run(program)
    return logs


def given_many(*strategies):
    """Runs a test with some examples, and as a slow one with many."""

    def both(test):
        @pytest.mark.parametrize("examples", [15, pytest.param(200, marks=pytest.mark.slow)])
        @functools.wraps(test)
        def run(examples):
            settings(max_examples=examples, deadline=None)(given(*strategies)(test))()

        del run.__wrapped__  # its arguments are not pytest's
        return run

    return both


@given_many(st.integers(0, 10**9), SWITCHES, st.integers(1, 9), st.booleans())
def test_plan_computes_what_the_programs_order_defines(seed, passes, iterations, swapped):
    wanted = told(seed, lambda program: oracle(program, iterations * program.period))

    def in_order(program):
        plan = Plan(program, passes=passes)
        if swapped:
            with_near(plan)
        plan.run(iterations)

    assert told(seed, in_order) == wanted


def with_near(plan):
    """Moves what can be moved to the host."""
    from cule.train.plan.execution import Executor
    from cule.train.plan.lifetimes import surely_before
    from cule.train.plan.memory import _on_host
    from cule.train.plan.polyhedra import Polyhedra
    from cule.train.plan.storage import Storage

    polyhedra = Polyhedra(plan.program)
    sure = surely_before(polyhedra, plan.groups)
    kept = plan.memory.allocations
    for recurrent in kept:
        kept[recurrent] = _on_host(kept[recurrent], recurrent, polyhedra, plan.groups, sure)
    plan.storage = Storage(kept, plan.device)
    plan.executors = [Executor(g, plan.storage, plan.program.period) for g in plan.groups]


@given_many(st.integers(0, 10**9), SWITCHES, st.integers(0, 10**9))
def test_plan_computes_the_same_with_groups_side_by_side(seed, passes, order):
    """In any order that streams could have: nothing is overwritten while it is still read."""
    wanted = told(seed, lambda program: oracle(program, 6 * program.period))
    chosen = random.Random(order)

    def side_by_side(program):
        run_interleaved(Plan(program, passes=passes), chosen.randrange, 6)

    assert told(seed, side_by_side) == wanted


@pytest.mark.parametrize("seeds", [FOLLOWING[:8], pytest.param(FOLLOWING, marks=pytest.mark.slow)],
                         ids=["some", "many"])  # fmt: skip
def test_plan_computes_the_same_where_a_group_follows_another(seeds):
    """As above, with programs that have one."""
    chosen = random.Random(0)
    for seed in seeds:
        wanted = told(seed, lambda program: oracle(program, 6 * program.period))

        def side_by_side(program):
            plan = Plan(program, passes=BESIDE)
            assert any(group.follows for group in plan.groups)
            run_interleaved(plan, chosen.randrange, 6)

        assert told(seed, side_by_side) == wanted
        assert told(seed, lambda program: Plan(program, passes=BESIDE).run(6)) == wanted


@given_many(st.integers(0, 10**9), st.integers(0, 5), st.integers(1, 5))
def test_plan_goes_on_from_a_saved_state(seed, before, after):
    wanted = told(seed, lambda program: Plan(program).run(before + after))

    def first(program):
        plan = Plan(program)
        plan.run(before)
        saved.append(plan.state_dict())

    saved = []
    begun = told(seed, first)

    def second(program):
        plan = Plan(program)
        plan.load_state_dict(saved[0])
        plan.run(after)

    ended = told(seed, second)
    assert {name: begun[name] + ended[name] for name in wanted} == wanted


def test_random_programs_have_what_the_plans_differ_in():
    """Several streams, calls made as one, copies left out: else the tests above mean little."""
    seen = {"streams": 0, "together": 0, "alias": 0, "pruned": 0, "early": 0}
    for seed in range(40):
        plan = Plan(random_program(seed)[0])
        seen["early"] += any(kept.early.reads for kept in plan.memory.allocations.values())
        seen["streams"] += any(group.stream for group in plan.groups)
        seen["together"] += any(group.together for group in plan.groups)
        seen["alias"] += any("readers read" in line for line in plan.notes)
        seen["pruned"] += any("nobody reads" in line for line in plan.notes)
    assert min(seen.values()) > 3, seen


def test_rings_have_no_slot_too_many():
    """With one slot less something is overwritten too early, in most programs."""
    worse = tried = 0
    for seed in range(24):
        wanted = told(seed, lambda program: oracle(program, 6 * program.period))

        def shorter(program):
            from cule.train.plan.execution import Executor
            from cule.train.plan.storage import Storage

            plan = Plan(program)
            for kept in plan.memory.allocations.values():
                kept.length = max(1, kept.length - 1)
            plan.storage = Storage(plan.memory.allocations, plan.device)
            plan.executors = [Executor(g, plan.storage, program.period) for g in plan.groups]
            plan.run(6)

        tried += 1
        worse += told(seed, shorter) != wanted
    assert worse > tried / 3


@pytest.mark.parametrize("seed", range(5))
def test_planning_takes_less_than_a_second(seed):
    assert Plan(random_program(seed)[0]).seconds < 1


def test_state_of_the_random_numbers_is_part_of_the_plans():
    program, _ = random_program(3)
    plan = Plan(program)
    saved = plan.state_dict()
    drawn = torch.rand(3)
    plan.load_state_dict(saved)
    assert torch.equal(torch.rand(3), drawn)
