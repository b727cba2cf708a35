"""How far a table is off from iterations that were not recorded: with a spread, or not at all."""

from __future__ import annotations

import random
import statistics
import time

import pytest

from cule import scope
from cule.scope.bias import LEAST_ITERATIONS, change, iteration_times
from cule.scope.recording import Recording
from cule.scope.table import reference_sentence


def test_interval_has_the_true_change_as_often_as_it_says():
    """95 of 100, with few iterations, and some of which are much slower."""
    chosen = random.Random(0)

    def times(count, mean):
        return [chosen.gauss(mean, 0.3) for _ in range(count)]

    for counts in ((5, 5), (8, 30), (30, 8), (50, 50)):
        found = [change(times(counts[0], 10.0), times(counts[1], 11.0)) for _ in range(2000)]
        inside = sum(least <= 10.0 <= most for _, least, most in found) / len(found)
        assert 0.93 <= inside <= 0.975, counts
        assert statistics.fmean(middle for middle, _, _ in found) == pytest.approx(10.0, abs=0.2)


def test_interval_of_known_numbers():
    """R: t.test(c(11, 12, 10, 12, 13), c(10, 9, 11, 10, 10)): 0.18 to 3.02."""
    middle, least, most = change([10, 9, 11, 10, 10], [11, 12, 10, 12, 13])
    assert middle == pytest.approx(16.0)
    assert (least, most) == pytest.approx((1.8, 30.2), abs=0.2)
    assert change([2.0] * 5, [3.0] * 6) == (50, 50, 50)


@pytest.mark.parametrize("few", [([], [1.0] * 9), ([1.0] * 4, [1.0] * 9), ([1.0] * 9, [1.0] * 4)])
def test_few_iterations_say_nothing(few):
    assert change(*few) is None


def iterate(count: int, seconds: float) -> None:
    for _ in range(count):
        with scope.iteration(), scope.operation("work"):
            time.sleep(seconds)


def test_each_iteration_is_timed_before_and_in_the_window(tmp_path):
    with scope.record(tmp_path, iterations=(9, 15)) as recording:
        iterate(9, 0.002)
        iterate(7, 0.02)  # a busy computer makes each of them some milliseconds longer
    (one,) = recording.processes
    reference = one.process.about["reference"]
    assert reference["iterations"] == len(reference["times"]) == 8
    assert reference["iteration"] == pytest.approx(statistics.fmean(reference["times"]))
    times = iteration_times(one.process)
    assert len(times) == 6
    assert sum(times) == pytest.approx(1e3 * one.seconds, rel=0.1)
    assert min(reference["times"]) >= 2 and min(times) >= 20
    middle, least, most = change(reference["times"], times)
    assert least <= middle <= most and middle > 50
    sentence = reference_sentence(one)
    assert f"the table is {middle:+.1f}% off ({least:+.1f}% to {most:+.1f}%)." in sentence


@pytest.mark.parametrize(("iterations", "before"), [((2, 9), 1), ((9, 11), 8)])
def test_sentence_says_if_there_are_too_few(iterations, before, tmp_path):
    with scope.record(tmp_path, iterations=iterations) as recording:
        iterate(12, 0.001)
    sentence = reference_sentence(recording.processes[0])
    assert sentence.startswith(f"The {before} iterations before it")
    assert f"is not known, as that takes {LEAST_ITERATIONS} iterations before it and" in sentence


def test_no_iterations_before_it_are_no_sentence(tmp_path):
    with scope.record(tmp_path, iterations=(0, 6)) as recording:
        iterate(6, 0.001)
    assert recording.processes[0].process.about["reference"] is None
    assert reference_sentence(recording.processes[0]) is None


def test_chance_is_said_to_be_chance(tmp_path):
    with scope.record(tmp_path, iterations=(9, 15)) as recording:
        iterate(15, 0.001)
    (one,) = recording.processes
    one.process.about["reference"]["times"] = [0.5, 10, 0.5, 0.5, 10, 0.5, 0.5, 0.5]
    assert "off, which may be chance (-" in reference_sentence(one)


def test_a_recording_of_an_older_cule_has_no_times(tmp_path):
    with scope.record(tmp_path, iterations=(9, 15)):
        iterate(15, 0.001)
    path = tmp_path / "main.process.json"
    text = path.read_text()
    begin = text.index('"times"')
    path.write_text(text[:begin] + text[text.index('"operations"', begin) :])
    assert "is not known" in reference_sentence(Recording(tmp_path).processes[0])
