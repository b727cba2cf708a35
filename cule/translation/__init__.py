"""Translating a ROM's frequent code into C++ for one game's kernel (csrc/execution/block.h).

- executed.py: what a game executes, found by playing it
- blocks.py: runs of its instructions
- source.py: these as C++, to be compiled for the device that the envs live on
- kernel.py: `translate`, which compiles, and keeps what it compiled
"""

from cule.translation.blocks import Block, blocks_of, longest_block, most_frequent, stays_decimal
from cule.translation.executed import profile, runs_in_ram
from cule.translation.kernel import Translation, cache_folder, compiler_options, translate
from cule.translation.source import kernel_source, marked_ops, source_of

__all__ = [
    "Block", "Translation", "blocks_of", "cache_folder", "compiler_options", "kernel_source",
    "longest_block", "marked_ops", "most_frequent", "profile", "runs_in_ram", "source_of",
    "stays_decimal", "translate",
]  # fmt: skip
