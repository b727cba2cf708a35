"""Tables that resize pictures exactly as OpenCV's `cv2.resize` does with `cv2.INTER_AREA`.

For each output line, a table lists the source lines that it covers and the share of each. OpenCV
computes the shares in double precision and keeps them in single precision
(modules/imgproc/src/resize.cpp describes the method; the code here is ours). There are two other
cases. If both scales are whole numbers, OpenCV averages in integers. If one axis grows, it
interpolates linearly along both, with integer weights. The scale is 1 / (target / source) in
doubles, so that a ratio such as 210 to 1 may not come out as a whole number, and is then rounded as
in the first case.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from cule.errors import InvalidValue

COPY, AREA, AREA_INTEGER, LINEAR = 0, 1, 2, 3
# The largest height and width of an observation: on a GPU the tables' indices have 15 bits.
LARGEST = 4096
# The sum of LINEAR's two weights.
_WHOLE = 2048
# A share of a source line this small is left out.
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Tables:
    """The tables for one picture height.

    Attributes:
        kind: COPY, AREA, AREA_INTEGER or LINEAR.
        rows: (height, 3) int32: first source row, number of rows, index of the first weight.
        columns: (width, 3) int32, likewise.
        weights: float32; LINEAR: whole numbers from 0 to 2048.
        scale: AREA_INTEGER: one over the source pixels per output pixel.
    """

    kind: int
    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    scale: float


def _scale(source: int, target: int) -> float:
    """Source lines per target line, with OpenCV's rounding."""
    return 1 / (target / source)


def _is_whole(scale: float) -> bool:
    """Whether OpenCV treats a scale as a whole number."""
    return abs(scale - round(scale)) < sys.float_info.epsilon


def _shares(source: int, target: int, weights: list[float]) -> np.ndarray:
    """The spans of one axis; appends their weights."""
    scale = _scale(source, target)
    spans = np.zeros((target, 3), dtype=np.int32)
    for i in range(target):
        begin, end = i * scale, i * scale + scale
        width = min(scale, source - begin)
        last = min(math.floor(end), source - 1)
        first = min(math.ceil(begin), last)
        lines = []
        if first - begin > _NEGLIGIBLE:
            lines.append((first - 1, (first - begin) / width))
        lines += [(line, 1.0 / width) for line in range(first, last)]
        if end - last > _NEGLIGIBLE:
            lines.append((last, min(end - last, 1.0, width) / width))
        spans[i] = lines[0][0], len(lines), len(weights)
        weights.extend(share for _, share in lines)
    return spans


def _neighbours(source: int, target: int, weights: list[float]) -> np.ndarray:
    """The spans of one axis for LINEAR: the lines around a position. Appends their weights."""
    spans = np.zeros((target, 3), dtype=np.int32)
    grow, scale = target / source, _scale(source, target)
    for i in range(target):
        first = math.floor(i * scale)
        beyond = np.float32((i + 1) - (first + 1) * grow)
        share = np.float32(beyond - np.floor(beyond)) if beyond > 0 else np.float32(0)
        if first >= source - 1:
            first, share = source - 1, np.float32(0)
        pair = [
            float(np.rint(part * np.float32(_WHOLE))) for part in (np.float32(1) - share, share)
        ][: source - first]
        spans[i] = first, len(pair), len(weights)
        weights.extend(pair)
    return spans


def make_tables(source_height: int, source_width: int, height: int, width: int) -> Tables:
    """Tables for resizing (source_height, source_width) pictures to (height, width).

    Raises:
        ValueError: if an axis is longer than LARGEST.
    """
    if (height, width) == (source_height, source_width):
        empty = np.zeros((1, 3), dtype=np.int32)
        return Tables(COPY, empty, empty, np.zeros(1, np.float32), 1.0)
    if height > LARGEST or width > LARGEST:
        raise InvalidValue(
            f"expected observations of at most {LARGEST} x {LARGEST} pixels, got "
            f"img_height={height}, img_width={width}"
        )
    weights: list[float] = []
    if height > source_height or width > source_width:
        rows = _neighbours(source_height, height, weights)
        columns = _neighbours(source_width, width, weights)
        return Tables(LINEAR, rows, columns, np.array(weights, dtype=np.float32), 1.0)
    scales = _scale(source_height, height), _scale(source_width, width)
    if all(map(_is_whole, scales)):
        rows_each, columns_each = map(round, scales)
        rows = np.stack(
            [np.arange(height) * rows_each, np.full(height, rows_each), np.zeros(height)], 1
        )
        columns = np.stack(
            [np.arange(width) * columns_each, np.full(width, columns_each), np.zeros(width)], 1
        )
        scale = float(np.float32(1.0) / np.float32(rows_each * columns_each))
        return Tables(
            AREA_INTEGER,
            rows.astype(np.int32),
            columns.astype(np.int32),
            np.zeros(1, np.float32),
            scale,
        )
    rows = _shares(source_height, height, weights)
    columns = _shares(source_width, width, weights)
    return Tables(AREA, rows, columns, np.array(weights, dtype=np.float32), 1.0)
