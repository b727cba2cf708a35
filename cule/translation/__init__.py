"""Translates a game's frequent code into C++, which is compiled into the game's own kernel.

The C++ uses the macros of csrc/execution/block.h. design/translation.md explains why and how.

- executed.py: what a game executes, found by playing it
- blocks.py: its basic blocks
- source.py: the blocks as C++, and the kernel around them
- kernel_files.py: kernels on disk
- kernel.py: `translate`, which compiles a kernel or takes it from the disk
"""

from cule.translation.blocks import Block, blocks_of, longest_block, most_frequent, stays_decimal
from cule.translation.executed import profile, runs_in_ram
from cule.translation.kernel import (
    compile_into,
    compiler_options,
    translate,
    translate_again,
)
from cule.translation.kernel_files import Translation
from cule.translation.source import kernel_source, marked_ops, source_of

__all__ = [
    "Block", "Translation", "blocks_of", "compile_into", "compiler_options", "kernel_source",
    "longest_block", "marked_ops", "most_frequent", "profile", "runs_in_ram", "source_of",
    "stays_decimal", "translate", "translate_again",
]  # fmt: skip
