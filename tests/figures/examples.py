"""What the READMEs of PPO and DQN have in common."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator
from typing import Any

from cule.train import presets
from tests.figures.pages import Said, table_line
from tests.figures.results import Source


def of_presets(settings: Any) -> Iterator[Said]:
    """The table of defaults on a GPU and on a CPU."""
    for field in presets.open_settings(settings):
        cells = [_number(field.metadata[device]) for device in ("cuda", "cpu")]
        yield table_line(f"`--{field.name.replace('_', '-')}` | {{}} | {{}}", *cells)
    assert dataclasses.is_dataclass(settings)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.5f}".rstrip("0")


def thousands(rows: Source, lag: int) -> float:
    """Thousand frames a second, the mean of two rows."""
    fps = rows.values("fps", lag=lag)
    assert len(fps) == 2
    return statistics.mean(fps) / 1e3
