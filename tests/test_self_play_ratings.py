"""Elo's ratings: a closed form for two, planted ratings, and policies that nobody has beaten."""

from __future__ import annotations

import math

import numpy as np
import pytest

from examples.self_play import ratings

RANDOM = np.random.default_rng(0)


def elo_of(share: float) -> float:
    """The difference of two ratings, from the share of points that one wins against the other."""
    return 400 * math.log10(share / (1 - share))


def chance(difference: float) -> float:
    return 1 / (1 + 10 ** (-difference / 400))


@pytest.mark.parametrize(("won", "lost"), [(30, 10), (5, 5), (1, 99), (17.5, 2.5)])
def test_two_have_the_rating_of_their_share(won, lost):
    fitted = ratings.fit(np.array([[0, won], [lost, 0]]), anchor=1)
    games = won + lost
    assert fitted.elo == pytest.approx([elo_of(won / games), 0], abs=1e-6)
    # The inverse of the information, n p (1 - p), of the difference of two strengths.
    error = 400 / math.log(10) / math.sqrt(games * (won / games) * (lost / games))
    assert fitted.errors == pytest.approx([error, 0], rel=1e-6)
    assert not fitted.bounded


@pytest.mark.parametrize("anchor", [0, 3])
def test_planted_ratings_are_found(anchor):
    """Exactly, where points are the chances times the games; else within four standard errors."""
    planted = np.array([0.0, 120.0, -250.0, 400.0, 10.0])
    chances = np.vectorize(chance)(planted[:, None] - planted[None, :])
    games = np.array(RANDOM.integers(50, 200, (5, 5)))
    games = np.triu(games, 1) + np.triu(games, 1).T
    exact = ratings.fit(games * chances, anchor)
    assert exact.elo == pytest.approx(planted - planted[anchor], abs=1e-6)
    inside, count = 0, 0
    for _ in range(40):
        won = np.triu(RANDOM.binomial(games, chances), 1)
        points = won + np.tril(games - won.T, -1)
        found = ratings.fit(points, anchor)
        off = np.abs(found.elo - (planted - planted[anchor]))
        assert (off <= 4 * found.errors).all() and found.errors[anchor] == 0
        inside += int((off[found.errors > 0] < found.errors[found.errors > 0]).sum())
        count += 4
    # A standard error holds two of three.
    assert 0.5 < inside / count < 0.85


def test_the_likelihood_is_at_its_greatest():
    points = RANDOM.integers(1, 20, (4, 4)).astype(float)
    np.fill_diagonal(points, 0)
    found = ratings.fit(points)
    strengths, games = found.elo / ratings.SCALE, points + points.T
    best = ratings._likelihood(games, points.sum(1), strengths)
    for i in range(1, 4):
        for by in (-1e-3, 1e-3):
            moved = strengths.copy()
            moved[i] += by
            assert ratings._likelihood(games, points.sum(1), moved) < best


def test_who_has_won_all_games_has_a_finite_rating():
    """As if it had drawn one more game: the closed form of two has it."""
    fitted = ratings.fit(np.array([[0, 20], [0, 0]]), anchor=1)
    assert fitted.bounded
    assert fitted.elo[0] == pytest.approx(elo_of(20.5 / 21), abs=1e-6)
    assert math.isfinite(fitted.errors[0]) and fitted.errors[0] > 100


def test_a_group_that_has_won_all_games_is_bounded_too():
    points = np.array([[0, 6, 9, 9], [3, 0, 9, 9], [0, 0, 0, 4], [0, 0, 5, 0]])
    fitted = ratings.fit(points, anchor=3)
    assert fitted.bounded and np.isfinite(fitted.elo).all()
    assert fitted.elo[0] > fitted.elo[1] > 300 > fitted.elo[2]


def test_pairs_that_have_not_met_are_rated_over_others():
    a, b = elo_of(0.7), elo_of(0.6)
    fitted = ratings.fit(np.array([[0, 7, 0], [3, 0, 6], [0, 4, 0]]), anchor=2)
    assert fitted.elo == pytest.approx([a + b, b, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("points", "anchor", "message"),
    [
        (np.zeros((1, 1)), 0, "expected points of two policies or more against each other"),
        (np.zeros((2, 3)), 0, r"expected points of two policies .*, got \(2, 3\)"),
        (np.array([[0, -1], [1, 0]]), 0, "expected points of two policies or more"),
        (np.array([[0, math.inf], [1, 0]]), 0, "expected points of two policies or more"),
        (np.array([[0, 1], [1, 0]]), 2, "expected an anchor from 0 to 1, got 2"),
        (np.zeros((2, 2)), 0, "expected policies that have all met, got some that have not"),
    ],
)
def test_what_has_no_ratings_is_refused(points, anchor, message):
    with pytest.raises(ValueError, match=message):
        ratings.fit(points, anchor)
