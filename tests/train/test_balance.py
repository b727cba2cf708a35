"""How many multiprocessors emulate: with FPS that a test makes up."""

from __future__ import annotations

import random

import pytest

from cule.train.balance import EIGHTHS, Balance

ALL = 132
NUMBERS = [ALL * eighths // 8 for eighths in EIGHTHS]
LINE = 0.65  # seconds between two lines of the log


def follow(balance, fps, seconds, begin=0.0, noise=0.0):
    """Lets a training go on; returns (seconds, number) of each change."""
    generator = random.Random(1)
    frames, now, changes = 0, begin, []
    while now < begin + seconds:
        rate = fps(balance.reserved) * (1 + generator.uniform(-noise, noise))
        frames, now = frames + int(rate * LINE), now + LINE
        number = balance.told(frames, now)
        if number is not None:
            assert number == balance.reserved
            changes.append((now, number))
    return changes


@pytest.mark.parametrize(
    "fps, best",
    [
        (lambda n: 1e6 + 1e4 * n, NUMBERS[-1]),
        (lambda n: 3e6 - 1e4 * n, NUMBERS[0]),
        (lambda n: 1e6 - 100 * (n - 82) ** 2, 82),
        (lambda n: 1e6 - 100 * (n - 49) ** 2, 49),
        (lambda n: 1e6, 66),
        (lambda n: 1e6 + 20 * n, 66),
        (lambda n: 1e6 - 1e4 * (n == 82), 66),
    ],
    ids=["emulation", "learning", "82", "49", "the same", "hardly faster", "all but 82"],
)
def test_the_fastest_number_is_found_within_seconds(fps, best):
    balance = Balance(ALL, 66, 16)
    assert balance.reserved == 66
    changes = follow(balance, fps, 25)
    assert balance.reserved == best
    assert 0 < len(changes) <= 10
    assert all(number in NUMBERS for _, number in changes)
    assert changes[0][0] >= 5, "the first seconds are left alone"


def test_noise_moves_it_little():
    balance = Balance(ALL, 66, 16)
    follow(balance, lambda n: 1e6 - 100 * (n - 82) ** 2, 20, noise=0.004)
    assert balance.reserved == 82


def test_it_is_found_again_as_games_go_on():
    balance = Balance(ALL, 66, 16)
    follow(balance, lambda n: 3e6 - 1e4 * n, 25)
    assert balance.reserved == NUMBERS[0]
    changes = follow(balance, lambda n: 1e6 + 1e4 * n, 1000, begin=25)
    assert balance.reserved == NUMBERS[-1]
    # Each time it takes a few seconds, and there are as many seconds between as there were before.
    assert len(changes) <= 10 + 6 * 6
    assert sum(1 for seconds, _ in changes if seconds > 600) <= 6


@pytest.mark.parametrize("faster", [-0.03, 0.03])
def test_games_that_get_slower_or_faster_meanwhile_do_not_mislead_it(faster):
    """FPS change by 3% a second; it is 66 that is fastest, by 2%."""
    balance, frames, now = Balance(ALL, 66, 16), 0, 0.0
    while now < 25:
        rate = 2e6 * (1 + faster) ** now * (1 if balance.reserved == 66 else 0.98)
        frames, now = frames + int(rate * LINE), now + LINE
        balance.told(frames, now)
    assert balance.reserved == 66


def test_it_gets_past_a_number_that_is_slower_than_those_beside_it():
    """As in Road Runner, where 66 multiprocessors were best, 82 worst, and 99 between."""
    balance = Balance(ALL, 66, 16)
    follow(balance, lambda n: 1e6 + 1e4 * n, 25)
    assert balance.reserved == NUMBERS[-1]
    follow(balance, lambda n: 2e6 - 1e4 * abs(n - 66) - 5e5 * (n == 82), 60, begin=25)
    assert balance.reserved == 66


def test_a_number_that_is_impossible_is_left_out():
    balance, refused = Balance(ALL, 66, 16), []
    frames, now = 0, 0.0
    while now < 60:
        frames, now = frames + int((1e6 + 1e4 * balance.reserved) * LINE), now + LINE
        number = balance.told(frames, now)
        if number is not None and number > 82:
            before = balance.reserved
            balance.refuse()
            refused.append(before)
    assert balance.reserved == 82
    assert refused == [99], "it is asked for once"


def test_other_code_begins_the_measurement_anew():
    balance = Balance(ALL, 66, 16)
    frames, now = 0, 0.0
    # It was half as fast before the new code came, when 66 had been measured and 82 was tried.
    while balance.reserved == 66:
        frames, now = frames + int(1e6 * LINE), now + LINE
        balance.told(frames, now)
    balance.disturbed()
    changes = follow(balance, lambda n: 3e6 - 1e4 * n, 25, begin=now)
    assert changes[0][1] == 66, "it goes back to the number that it had kept"
    assert balance.reserved == NUMBERS[0]
    assert len(changes) <= 10


def test_too_few_multiprocessors_for_all_envs_are_not_tried():
    balance = Balance(ALL, 66, 60)
    changes = follow(balance, lambda n: 3e6 - 1e4 * n, 20)
    assert balance.reserved == 66
    assert {number for _, number in changes} == {66, 82}
