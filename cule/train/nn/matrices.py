"""The places of the matrices of a network's layers in memory."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The place of a matrix in the vector of all parameters, and in the stacks' memory.

    Attributes:
        begin: its first number in the vector.
        rows, columns: its shape there.
        to: its first number in the stacks' memory.
        row, column: how far apart rows and columns are there.
    """

    begin: int
    rows: int
    columns: int
    to: int
    row: int
    column: int
