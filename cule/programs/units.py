"""Numbers with units, for people."""

from __future__ import annotations


def bytes_text(count: int) -> str:
    """A number of bytes: 2.3 MiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
