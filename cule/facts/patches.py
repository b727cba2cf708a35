"""A patch: what is to become of one byte of RAM before each frame of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cule.arguments import integer
from cule.errors import InvalidType, InvalidValue, shown

LAST_BYTE, LARGEST = 127, 255
# A condition: the byte that is looked at, and the least and the greatest value that it may have.
When = tuple[int, int, int]


@dataclass(frozen=True)
class Patch:
    """Before each frame of a step, ram[address] = (ram[source] & keep) + value.

    `Patch.hold`, `change`, `copy` and `bits` make the usual ones.

    Args:
        address: the byte that changes, from 0 to 127 (the console's $80 to $FF).
        value: what is added, from -255 to 255; the sum is taken modulo 256.
        keep: the bits of the source that count, from 0 (none) to 255 (all).
        source: the byte that is read; None: the byte at `address` itself.
        when: (address, least, most): only while that byte is in this range; None: always.
        every: only if this divides the number of the episode's frame, from 1 to 255.

    Raises:
        TypeError, ValueError: a number is none, or not in its range.
    """

    address: int
    value: int = 0
    keep: int = 0
    source: int | None = None
    when: When | None = None
    every: int = 1

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "address": integer("a patch's address", self.address, 0, LAST_BYTE),
            "value": integer("a patch's value", self.value, -LARGEST, LARGEST),
            "keep": integer("a patch's keep", self.keep, 0, LARGEST),
            "every": integer("a patch's every", self.every, 1, LARGEST),
        }
        if self.source is not None:
            plain["source"] = integer("a patch's source", self.source, 0, LAST_BYTE)
            if not plain["keep"]:
                raise InvalidValue(
                    "expected keep with a source, as it says which of the source's bits count, got "
                    f"source {self.source} and keep 0"
                )
        if self.when is not None:
            plain["when"] = self._condition(self.when)
        for name, value in plain.items():  # numpy's integers and lists do not go into JSON or sets
            object.__setattr__(self, name, value)

    @staticmethod
    def _condition(when: Any) -> When:
        if not isinstance(when, (tuple, list)) or len(when) != 3:
            raise InvalidType(
                f"expected a patch's when to be (address, least, most), got {shown(when)}"
            )
        address, least, most = when
        address = integer("the address of a patch's when", address, 0, LAST_BYTE)
        least = integer("the least value of a patch's when", least, 0, LARGEST)
        most = integer("the greatest value of a patch's when", most, 0, LARGEST)
        if least > most:
            raise InvalidValue(
                f"expected a patch's when to be (address, least, most) with least <= most, "
                f"got {shown(when)}"
            )
        return address, least, most

    @staticmethod
    def hold(address: int, value: int, *, when: When | None = None, every: int = 1) -> Patch:
        """The byte has this value, from 0 to 255."""
        value = integer("a patch's value", value, 0, LARGEST)
        return Patch(address, value, when=when, every=every)

    @staticmethod
    def change(address: int, by: int, *, when: When | None = None, every: int = 1) -> Patch:
        """The byte grows by `by`, or shrinks by it if that is negative."""
        return Patch(address, by, LARGEST, when=when, every=every)

    @staticmethod
    def copy(
        address: int, source: int, plus: int = 0, *, when: When | None = None, every: int = 1
    ) -> Patch:
        """The byte is that at `source`, plus `plus`."""
        return Patch(address, plus, LARGEST, source, when, every)

    @staticmethod
    def bits(
        address: int, mask: int, value: int, *, when: When | None = None, every: int = 1
    ) -> Patch:
        """The bits of `mask` are those of `value`; the byte's other bits stay."""
        mask = integer("a patch's mask", mask, 0, LARGEST)
        value = integer("a patch's value", value, 0, LARGEST)
        return Patch(address, value & mask, LARGEST - mask, when=when, every=every)

    def encoded(self) -> tuple[int, ...]:
        """The eight bytes of the core's Patch (csrc/kernels/patches.h)."""
        source = self.address if self.source is None else self.source
        tested, least, most = self.when or (self.address, 0, LARGEST)
        value = self.value % (LARGEST + 1)
        return self.address, source, self.keep, value, tested, least, most, self.every


def patch_of(value: Any) -> Patch:
    """A patch, or a mapping of its fields, as JSON has it.

    Raises:
        TypeError, ValueError: it is neither, or a field is wrong.
    """
    if isinstance(value, Patch):
        return value
    fields = Patch.__dataclass_fields__
    if not isinstance(value, Mapping) or "address" not in value or set(value) - set(fields):
        raise InvalidType(
            "expected a patch to be a cule.Patch, the name of a modification or a mapping with "
            f"some of {', '.join(fields)}, got {shown(value)}"
        )
    return Patch(**value)
