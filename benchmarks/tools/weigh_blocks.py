"""What translated instructions cost, without a GPU: `python benchmarks/tools/weigh_blocks.py pong`.

Compiles a game's kernel with line information, disassembles it with nvdisasm (of CUDA's toolkit),
and weights the machine instructions of each translated instruction by how often the profile saw it.
That overestimates paths that are rarely taken, and ignores lanes that diverge.
"""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import tempfile
from pathlib import Path

from cule import translation
from cule.devices import nvrtc
from cule.rom import find_game
from cule.translation import executed
from cule.translation.source import headers

KERNEL, SOURCE = "play_translated", "translated.cu"


def machine_lines(cubin: bytes, nvdisasm: str) -> collections.Counter[int]:
    """How many of the kernel's machine instructions come from each line of its source; 0: none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "game.cubin")
        path.write_bytes(cubin)
        made = subprocess.run(
            [nvdisasm, "-c", "-gi", path], capture_output=True, text=True, check=True
        )
    counts: collections.Counter[int] = collections.Counter()
    function, line, fresh = "", 0, True
    for text in made.stdout.splitlines():
        if found := re.match(r"\.text\.(\S+):", text.strip()):
            function = found[1]
        elif found := re.match(r'\s*//## File "(.*?)", line (\d+)', text):
            # One such line for each function that was inlined, the innermost first.
            line = 0 if fresh else line
            fresh = False
            if not line and found[1].endswith(SOURCE):
                line = int(found[2])
        elif re.match(r"\s*/\*[0-9a-f]{4,}\*/", text):
            counts[line] += function == KERNEL
            fresh = True
    return counts


def weigh(name: str, architecture: str, nvdisasm: str, most: int) -> None:
    """Prints a game's sums, and its instructions that cost most."""
    game = find_game(name)
    blocks = translation.blocks_of(game)
    source = translation.kernel_source(game, blocks, in_step=True)
    options = [*translation.compiler_options(architecture), "-lineinfo"]
    cubin = nvrtc.compile_cubin(source, headers(), options)
    counts = machine_lines(cubin, nvdisasm)
    profile = translation.profile(game)
    ran = dict(
        zip(profile[:, executed.PC].tolist(), profile[:, executed.COUNT].tolist(), strict=True)
    )
    rows = []
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.match(r"  CULE_(?:DO\(\d+, |BRANCH\()(0x\w+)", line):
            times = ran[int(found[1], 16)] / executed.PROFILE_FRAMES
            rows.append((times * counts[number], times, counts[number], line.strip()))
    cost, ran_in_blocks = sum(row[0] for row in rows), sum(row[1] for row in rows)
    print(
        f"{name}: {sum(counts.values())} machine instructions; of a frame's {ran_in_blocks:.0f} "
        f"instructions in blocks {cost:.0f}, {cost / ran_in_blocks:.1f} each"
    )
    for row in sorted(rows, reverse=True)[:most]:
        print("  {:8.0f} = {:6.1f} * {:3d}  {}".format(*row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="+")
    parser.add_argument("--architecture", default="sm_90", help="(default: sm_90)")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="the program (default: on PATH)")
    parser.add_argument("--most", type=int, default=20, help="instructions to list (default: 20)")
    options = parser.parse_args()
    for name in options.games:
        weigh(name, options.architecture, options.nvdisasm, options.most)


if __name__ == "__main__":
    main()
