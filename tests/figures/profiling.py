"""The figures of docs/profiling.md."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from tests.figures.pages import Said, said
from tests.figures.results import ROOT, Source, source

PAGE = ROOT / "docs" / "profiling.md"
EXAMPLE = source("the slow and the fast training, three tries", "2026-11-28", "6a95d1f",
                 mode="profile")  # fmt: skip
BIAS = source(
    "bias of A2C with V-trace", "2026-11-25-h100", "25db372 aa9a58d 79bbfee 0a3d278 a03fa19",
    lambda row: "--num-batches 4" in row["command"] and "emulator cule" in row["command"],
    mode="profiling-bias",
)  # fmt: skip
BIAS_OF_OPERATIONS = source(
    "bias of each operation", ("2026-11-29-h200", "2026-11-30-h200"), "74bdfd1 ba66ef9",
    mode="profiling-bias",
)  # fmt: skip
# The commits at which costs were fitted to the time of each operation.
FITTED_BY_OPERATION = ("ba66ef9",)
PLANTED = source(
    "a program whose times are known", "2026-11-29", "e426046", mode="profiling-planted"
)  # fmt: skip
PLANTED_ON_A_GPU = source(
    "a program whose times are known, on a GPU", "2026-11-30-h200", "ba66ef9",
    mode="profiling-planted",
)  # fmt: skip
SOURCES = (EXAMPLE, BIAS, BIAS_OF_OPERATIONS, PLANTED, PLANTED_ON_A_GPU)
NUMBERS = "16 20 40 69 2021"
GIVEN = {
    "a sixth of a second": "nvidia-smi's",
    "are 100%": "by definition",
    "with 95% confidence": "CONFIDENCE of cule/scope/bias.py",
    "16 calls, too": "by definition",
    "costs several times what a": "no measurement",
    "take 10% of an iteration": "LEAST_PART",
    "has grown by 64 MB": "PART_BYTES of cule/scope/parts.py",
}


# Operations that take a smaller part of an iteration are left out of the table.
LEAST_PART = 0.1


def setting_of(row: Mapping[str, Any]) -> str:
    """The algorithm and the emulator of a row."""
    words = row["command"]
    algorithm = next(
        name
        for option, name in (
            ("examples.ppo", "PPO"), ("examples.dqn", "DQN"), ("--num-batches 4", "A2C+V-trace"),
            ("--num-batches 1", "A2C"),
        )
        if option in words
    )  # fmt: skip
    if "--emulator ale-py" in words:
        return f"{algorithm}, ale-py"
    return f"{algorithm}, cule, {'eager' if '--no-cuda-graphs' in words else 'graphs'}"


def percents(bias: Mapping[str, Any]) -> str:
    """A bias and its interval."""
    low, high = bias["bias_interval"]
    return f"{100 * bias['bias']:+.1f}% ({100 * low:+.0f} to {100 * high:+.0f})"


def bias_of_operations() -> str:
    """A line for each setting."""
    lines = [
        "| setting | costs by | ms an iteration | recording adds | bias | bias of operations |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in sorted(BIAS_OF_OPERATIONS.rows, key=setting_of):
        whole = statistics.median(row["uninstrumented_milliseconds"])
        shares = {
            name: statistics.median(one["uninstrumented_milliseconds"]) / whole
            for name, one in row["operations"].items()
        }
        long = sorted(
            (name for name in shares if shares[name] >= LEAST_PART), key=lambda name: -shares[name]
        )
        each = ", ".join(f"{name} {percents(row['operations'][name])}" for name in long)
        fit = "operation" if row["commit"][:7] in FITTED_BY_OPERATION else "iteration"
        cells = [
            setting_of(row), fit, f"{whole:.1f}", f"{row['inflation']:.0%}", percents(row), each,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n"


def planted(source: Source) -> str:
    """A line for each operation."""
    lines = [
        "| program | whose time | operation | planted ms | recorded | corrected | off by us |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in source.rows:
        on_gpu = any(cell["where"] == "GPU" for cell in row["cells"])
        program = ("graphs" if row["graphs"] else "eager") if on_gpu else "no GPU"
        for cell in row["cells"]:
            middle = [
                f"{statistics.median(cell[kind]):.3f}"
                for kind in ("planted", "recorded", "corrected")
            ]
            off = [
                1e3 * (found - truth)
                for truth, found in zip(cell["planted"], cell["corrected"], strict=True)
            ]
            cells = [program, cell["where"], cell["operation"], *middle]
            lines.append(f"| {' | '.join(cells)} | {min(off):+.0f} to {max(off):+.0f} |")
    return "\n" + "\n".join(lines) + "\n"


WRITTEN = {
    BIAS_OF_OPERATIONS.title: bias_of_operations,
    **{one.title: functools.partial(planted, one) for one in (PLANTED, PLANTED_ON_A_GPU)},
}


def figures() -> Iterator[Said]:
    pairs = list(zip(EXAMPLE.rows[::2], EXAMPLE.rows[1::2], strict=True))
    assert all(
        "slow.py" in slow["command"] and "fast.py" in fast["command"] for slow, fast in pairs
    )
    slow, fast = sorted(pairs, key=lambda one: one[0]["iteration_milliseconds"])[len(pairs) // 2]
    milliseconds = [row["iteration_milliseconds"] for row in (slow, fast)]
    yield said("It takes {:.0f} ms a step.", milliseconds[0])
    share = slow["operations"]["simulation"]["milliseconds"] / milliseconds[0]
    yield said("Simulation is {:.0%} of the time", share)
    yield said("A step takes {:.0%} of the time.", milliseconds[1] / milliseconds[0])
    python = slow["operations"]["inference"]
    assert python["transitions"] == 560
    tries = BIAS.where(lambda row: "--no-cuda-graphs" in row["command"])
    (graphs,) = BIAS.where(lambda row: "--no-cuda-graphs" not in row["command"])
    first, third, second, fourth = (
        next(row for row in tries if row["commit"].startswith(commit))
        for commit in ("25db372", "79bbfee", "0a3d278", "a03fa19")
    )
    inflation = [row["inflation"] for row in tries]
    assert len(tries) == 4
    yield said(
        "was {:+.1%}, {:+.1%}, {:+.1%} and {:+.1%} off, where recording itself made it {:.0%} to "
        "{:.0%} longer. As CUDA graphs its bias was {:+.1%}.",
        *(row["bias"] for row in (first, third, second, fourth)), min(inflation), max(inflation),
        graphs["bias"],
    )  # fmt: skip
