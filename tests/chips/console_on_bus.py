"""A console with a program in its ROM."""

from types import ModuleType
from typing import Any

CORES = ["static", "dynamic"]


def console_with(chips: ModuleType, program: list[int] | None = None, **options: Any) -> Any:
    """A console with a 4K cartridge that has `program` at $F000, where it starts, and NOPs
    elsewhere."""
    image = bytearray([0xEA] * 4096)
    image[: len(program or [])] = bytes(program or [])
    image[0xFFC:0x1000] = [0x00, 0xF0, 0x00, 0xF0]
    return chips.Console("4K", bytes(image), **options)


def run_to_end_of_program(console: Any, instructions: int, core: str) -> None:
    for _ in range(instructions):
        console.step(core)
