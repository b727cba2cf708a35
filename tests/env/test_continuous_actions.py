"""Continuous actions at the threshold, where the last bit of a sine decides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cule.facts.actions import ACTIONS, ContinuousActions, action_number


@pytest.mark.parametrize("threshold", [0.5, 0.1])
def test_sticks_at_the_threshold_go_where_numpy_says(threshold: float) -> None:
    """Compares with ale-py's formula (AtariVectorEnv.send), with numpy's float32 sine and
    cosine."""
    random = np.random.default_rng(0)
    angle = random.uniform(-np.pi, np.pi, 200_000).astype(np.float32)
    wave = np.where(random.random(len(angle)) < 0.5, np.cos(angle), np.sin(angle))
    nearly = np.abs(threshold / wave).astype(np.float32)
    radius = np.nextafter(nearly, random.choice([0, 2], len(angle)).astype(np.float32))
    actions = np.stack([radius, angle, random.random(len(angle)).astype(np.float32)], axis=1)[
        radius <= 1
    ]
    assert len(actions) > 100_000
    x, y = actions[:, 0] * np.cos(actions[:, 1]), actions[:, 0] * np.sin(actions[:, 1])
    sides = [(value > threshold).astype(int) - (value < -threshold).astype(int) for value in (x, y)]
    wanted = [
        action_number(h, v, f) for h, v, f in zip(*sides, actions[:, 2] > threshold, strict=True)
    ]
    numbers, strengths = ContinuousActions(threshold, torch.device("cpu")).translate(
        actions, len(actions)
    )
    assert numbers.tolist() == wanted and len(set(wanted)) == len(ACTIONS)
    assert np.array_equal(strengths.numpy(), actions[:, 0])
