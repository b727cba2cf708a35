"""The search for the fastest settings, on functions that saturate: against whole grids."""

from __future__ import annotations

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from cule.train.tune.search import FINALISTS, Search, Trial, climbed
from cule.train.tune.space import reserves_for_nothing
from examples.ppo import ppo

SPACE = {
    "num_envs": [2**i for i in range(7, 15)],
    "learner_chunk": [2**i for i in range(12, 18)],
    "lag": [0, 1],
    "multiprocessors": [0, 32, 64, 96],
}


@st.composite
def machines(draw):
    """A machine's throughput: it saturates with envs and chunks, and may lack memory for both."""
    half = {
        name: draw(st.floats(SPACE[name][0] / 100, SPACE[name][-1] * 2))
        for name in ("num_envs", "learner_chunk")
    }
    shape = draw(st.sampled_from([
        lambda x: x / (1 + x), lambda x: 1 - math.exp(-x), lambda x: min(x, 1.0), math.tanh,
    ]))  # fmt: skip
    share = st.floats(0.1, 1.0)
    factor = {
        (lag, count): draw(share) for lag in SPACE["lag"] for count in SPACE["multiprocessors"]
    }
    limit = draw(st.integers(8, 15))

    def fps(num_envs, learner_chunk, lag, multiprocessors):
        if num_envs >= 2**limit:
            raise MemoryError
        if lag == 0 and multiprocessors == 96:
            raise ValueError("expected a lag")
        parts = {"num_envs": num_envs, "learner_chunk": learner_chunk}
        rates = [shape(value / half[name]) for name, value in parts.items()]
        return 1e6 * math.prod(rates) * factor[lag, multiprocessors]

    return fps


class Machine:
    """Measures a function of settings, and counts."""

    def __init__(self, fps):
        self.fps, self.measured = fps, 0

    def __call__(self, settings, times):
        self.measured += 1
        try:
            return Trial(settings, fps=self.fps(**settings))
        except (MemoryError, ValueError) as problem:
            return Trial(settings, problem="no", no_memory=isinstance(problem, MemoryError))


@given(machines(), st.sampled_from(SPACE["num_envs"]))
def test_search_finds_nearly_the_best_of_the_grid_with_few_trials(fps, num_envs):
    machine, grid = Machine(fps), Machine(fps)
    best = Search(SPACE, {"num_envs": num_envs}, machine, lambda: False).run()
    points = itertools.product(*SPACE.values())
    whole = [grid(dict(zip(SPACE, point, strict=True)), 1) for point in points]
    assert best.fps >= 0.95 * max(one.fps for one in whole)
    assert machine.measured < len(whole) / 4


def test_search_stops_in_a_direction_once_it_no_longer_pays():
    space = {"num_envs": [2**i for i in range(20)]}
    machine = Machine(lambda num_envs: min(num_envs, 64))
    search = Search(space, {"num_envs": 16}, machine, lambda: False)
    assert search.run().settings == {"num_envs": 64}
    assert [one.settings["num_envs"] for one in search.trials] == [16, 32, 64, 128, 256]
    # Down, where up does not pay; over what cannot run, but not over the end of memory.

    def fps(num_envs):
        if num_envs > 2**12:
            raise MemoryError
        if num_envs == 2**9:
            raise ValueError
        return 2**20 / num_envs + 1e-3 * num_envs if num_envs >= 2**7 else num_envs

    machine = Machine(fps)
    search = Search(space, {"num_envs": 2**12}, machine, lambda: False)
    assert search.run().settings == {"num_envs": 2**7}
    tried = [one.settings["num_envs"] for one in search.trials]
    assert tried == [2**12, 2**13, 2**11, 2**10, 2**9, 2**8, 2**7, 2**6, 2**5]


def test_search_measures_the_fastest_longer_and_believes_that():
    lengths = {}

    def measure(settings, times):
        lengths.setdefault(settings["model"], []).append(times)
        rates = {"a": (90, 91), "b": (100, 80), "c": (95, 90), "d": (10, 10)}
        return Trial(settings, fps=rates[settings["model"]][times > 1])

    best = Search({"model": ["a", "b", "c", "d"]}, {}, measure, lambda: False).run()
    assert best.settings == {"model": "a"} and best.fps == 91
    assert {name: len(some) for name, some in lengths.items()} == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert FINALISTS == 3


def test_search_ends_with_its_time():
    clock = itertools.count()
    machine = Machine(lambda num_envs: num_envs)
    space = {"num_envs": [2**i for i in range(20)]}
    search = Search(space, {"num_envs": 1}, machine, lambda: next(clock) > 5)
    assert search.run().fps == max(one.fps for one in search.trials)
    assert 3 < machine.measured < 8
    nothing = Search(space, {}, lambda s, t: Trial(s, problem="no"), lambda: False)
    assert nothing.run() is None


def test_pointless_combinations_are_left_out():
    machine = Machine(lambda lag, kind: 1 + lag)
    space = {"lag": [0, 1], "kind": ["a", "b", "c"]}
    search = Search(
        space, {}, machine, lambda: False, lambda p: p["kind"] != "a" and not p["lag"]
    )  # fmt: skip
    assert search.run().settings["lag"] == 1
    tried = [(one.settings["lag"], one.settings["kind"]) for one in search.trials]
    assert tried == [(0, "a"), (1, "a"), (1, "b"), (1, "c")]
    args = ppo.Args(num_threads=1).on(torch.device("cpu"))
    for settings, expected in (
        ({"lag": 0, "multiprocessors": 0}, False), ({"lag": 0, "multiprocessors": 8}, True),
        ({"lag": 1, "multiprocessors": 8}, False), ({"lag": 0, "layout": "apart:8"}, True),
        ({"lag": 1, "layout": "apart:8"}, False), ({"lag": 0, "layout": "staggered:2"}, False),
    ):  # fmt: skip
        assert reserves_for_nothing(ppo.PPO, args, settings, torch.device("cpu")) is expected


def test_more_of_a_number_is_more_only_where_zero_means_nothing_else():
    assert climbed([1, 2, 3]) and climbed((0.5, 1, 2))
    for values in ((0, 1, 2), (1, 2), (True, False, True), ("a", "b", "c"), (None, 1, 2)):
        assert not climbed(values)
