"""Numbers for a whole suite: median, mean, interquartile mean, and their confidence intervals.

After "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (Agarwal et al., 2021).
Their library, rliable, needs packages that have nothing to do with these few lines.

Scores are (runs, games) float64, or (..., runs, games) for many suites at once; a run is a seed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Statistic = Callable[[np.ndarray], np.ndarray]
# Draws of an interval: in parts, so that they need little memory.
PARTS, DRAWS = 100, 100


def median(scores: np.ndarray) -> np.ndarray:
    """The median over games of the mean over runs."""
    return np.median(scores.mean(axis=-2), axis=-1)


def mean(scores: np.ndarray) -> np.ndarray:
    """The mean over games and runs."""
    return scores.mean(axis=(-2, -1))


def iqm(scores: np.ndarray) -> np.ndarray:
    """The interquartile mean over all runs of all games: a quarter is cut off at each end."""
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(axis=-1)


STATISTICS: dict[str, Statistic] = {"median": median, "mean": mean, "IQM": iqm}


def interval(scores: np.ndarray, statistic: Statistic, seed: int = 0) -> tuple[float, float] | None:
    """A 95% interval by the stratified bootstrap: in each game its runs are drawn again.

    Args:
        scores: (runs, games) float64.
        statistic: what the interval is of.
        seed: of the draws.

    Returns:
        The percentiles 2.5 and 97.5; None for a single run, which says nothing about others.
    """
    runs, games = scores.shape
    if runs < 2:
        return None
    generator, found = np.random.default_rng(seed), []
    for _ in range(PARTS):
        drawn = generator.integers(runs, size=(DRAWS, runs, games))
        found.append(statistic(scores[drawn, np.arange(games)]))
    low, high = np.percentile(np.concatenate(found), [2.5, 97.5])
    return float(low), float(high)
