"""How emulation runs beside learning: with FPS that a test makes up."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
import torch

from cule.engine import fewest_multiprocessors
from cule.train.devices import multiprocessors_of
from cule.train.distributed.sm_autotuner import EIGHTHS, SmAutotuner, Way
from cule.train.envs import collector

ALL = 132
NUMBERS = [ALL * eighths // 8 for eighths in EIGHTHS]
LINE = 0.65  # seconds between two lines of the log


def by_number(fps):
    """FPS of a way by its number of multiprocessors alone."""
    return lambda way, now: fps(way.multiprocessors)


def follow(autotuner, fps, seconds, begin=0.0, noise=0.0):
    """Lets a training go on; returns (seconds, way) of each change. `fps` is of (way, seconds)."""
    generator = random.Random(1)
    frames, now, changes = 0, begin, []
    while now < begin + seconds:
        rate = fps(autotuner.way, now) * (1 + generator.uniform(-noise, noise))
        frames, now = frames + int(rate * LINE), now + LINE
        way = autotuner.observe(frames, now)
        if way is not None:
            assert way == autotuner.way
            changes.append((now, way))
    return changes


@pytest.mark.parametrize(
    "fps, best",
    [
        (by_number(lambda n: 1e6 + 1e4 * n), Way(NUMBERS[-1], ordered=True)),
        (by_number(lambda n: 3e6 - 1e4 * n), Way(NUMBERS[0], ordered=True)),
        (by_number(lambda n: 1e6 - 100 * (n - 82) ** 2), Way(82, ordered=True)),
        (by_number(lambda n: 1e6 - 100 * (n - 49) ** 2), Way(49, ordered=True)),
        (by_number(lambda n: 1e6), Way(66, ordered=True)),
        (by_number(lambda n: 1e6 + 20 * n), Way(66, ordered=True)),
        (by_number(lambda n: 1e6 - 1e4 * (n == 82)), Way(66, ordered=True)),
        (lambda way, now: 1e6 + 5e4 * (not way.ordered), Way(66, ordered=False)),
        (
            lambda way, now: 1e6 - 100 * (way.multiprocessors - 49) ** 2 + 2e5 * (not way.ordered),
            Way(49, ordered=False),
        ),
    ],
    ids=["emulation", "learning", "82", "49", "the same", "hardly faster", "all but 82",
         "at random", "49, at random"],
)  # fmt: skip
def test_the_fastest_way_is_found_within_seconds(fps, best):
    autotuner = SmAutotuner(ALL, 66, 16)
    assert autotuner.way == (66, True)
    changes = follow(autotuner, fps, 35)
    assert autotuner.way == best
    assert 0 < len(changes) <= 14
    assert all(way.multiprocessors in NUMBERS for _, way in changes)
    assert changes[0][0] >= 5, "the first seconds are left alone"


def test_noise_moves_it_little():
    autotuner = SmAutotuner(ALL, 66, 16)
    follow(autotuner, by_number(lambda n: 1e6 - 100 * (n - 82) ** 2), 35, noise=0.004)
    assert autotuner.way == (82, True)


def test_it_is_found_again_as_games_go_on():
    autotuner = SmAutotuner(ALL, 66, 16)
    follow(autotuner, by_number(lambda n: 3e6 - 1e4 * n), 35)
    assert autotuner.way == (NUMBERS[0], True)
    changes = follow(autotuner, by_number(lambda n: 1e6 + 1e4 * n), 1000, begin=35)
    assert autotuner.way == (NUMBERS[-1], True)
    # Each time it takes some seconds, and there are as many seconds between as there were before.
    assert len(changes) <= 5 + 6 * 5
    assert sum(1 for seconds, _ in changes if seconds > 600) <= 6


@pytest.mark.parametrize("faster", [-0.03, 0.03])
def test_games_that_get_slower_or_faster_meanwhile_do_not_mislead_it(faster):
    """FPS change by 3% a second; the first way is the fastest, by 2%."""
    autotuner = SmAutotuner(ALL, 66, 16)
    follow(
        autotuner,
        lambda way, now: 2e6 * (1 + faster) ** now * (1 if way == (66, True) else 0.98),
        35,
    )
    assert autotuner.way == (66, True)


def test_it_gets_past_a_number_that_is_slower_than_those_beside_it():
    """As in Road Runner, where 66 multiprocessors were best, 82 worst, and 99 between."""
    autotuner = SmAutotuner(ALL, 66, 16)
    follow(autotuner, by_number(lambda n: 1e6 + 1e4 * n), 35)
    assert autotuner.way == (NUMBERS[-1], True)
    slow_82 = by_number(lambda n: 2e6 - 1e4 * abs(n - 66) - 5e5 * (n == 82))
    follow(autotuner, slow_82, 60, begin=35)
    assert autotuner.way == (66, True)


def test_a_number_that_is_impossible_is_left_out():
    autotuner, refused = SmAutotuner(ALL, 66, 16), []
    frames, now = 0, 0.0
    while now < 60:
        rate = 1e6 + 1e4 * autotuner.way.multiprocessors
        frames, now = frames + int(rate * LINE), now + LINE
        way = autotuner.observe(frames, now)
        if way is not None and way.multiprocessors > 82:
            autotuner.refuse()
            refused.append(way)
    assert autotuner.way == (82, True)
    assert refused == [(99, True)], "it is asked for once"


def test_other_code_begins_the_measurement_anew():
    autotuner = SmAutotuner(ALL, 66, 16)
    frames, now = 0, 0.0
    # It was half as fast before the new code came, when 66 had been measured and 49 was tried.
    while autotuner.way.multiprocessors == 66:
        frames, now = frames + int(1e6 * LINE), now + LINE
        autotuner.observe(frames, now)
    autotuner.disturbed()
    changes = follow(autotuner, by_number(lambda n: 3e6 - 1e4 * n), 35, begin=now)
    assert changes[0][1] == (66, True), "it goes back to the way that it had kept"
    assert autotuner.way == (NUMBERS[0], True)
    assert len(changes) <= 11


def test_too_few_multiprocessors_for_all_envs_are_not_tried():
    autotuner = SmAutotuner(ALL, 66, 60)
    changes = follow(autotuner, by_number(lambda n: 3e6 - 1e4 * n), 35)
    assert autotuner.way == (66, True)
    assert {way for _, way in changes} == {(66, True), (82, True), (66, False)}


@pytest.mark.parametrize("sharing, first", [(1, 66), (2, 33), (3, 22), (4, 16), (5, None)])
def test_trainings_that_share_a_gpu_leave_the_others_theirs(sharing, first, monkeypatch):
    """Of 132 multiprocessors, 16 of which 8,192 envs need."""
    gpu, envs = torch.device("cuda"), 8192
    has = SimpleNamespace(multi_processor_count=ALL)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: has)
    reserved = collector._reserved(gpu, 0, envs, beside=True, alone=False, sharing=sharing)
    assert reserved == first
    assert collector._reserved(gpu, 50, envs, beside=True, alone=False, sharing=sharing) == 50
    if first is not None:
        autotuner = SmAutotuner(
            multiprocessors_of(gpu, sharing), first, fewest_multiprocessors(envs)
        )
        changes = follow(autotuner, by_number(lambda n: 1e6 + 1e4 * n), 100)
        assert 0 < first < autotuner.way.multiprocessors < ALL // sharing
        assert all(way.multiprocessors >= 16 for _, way in changes)
