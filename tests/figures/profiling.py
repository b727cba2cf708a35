"""The figures of docs/profiling.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures.pages import Said, said
from tests.figures.results import ROOT, source

PAGE = ROOT / "docs" / "profiling.md"
EXAMPLE = source("the slow and the fast training, three tries", "2026-11-28", "6a95d1f",
                 mode="profile")  # fmt: skip
BIAS = source(
    "bias of A2C with V-trace", "2026-11-25-h100", "25db372 aa9a58d 79bbfee 0a3d278 a03fa19",
    lambda row: "--num-batches 4" in row["command"] and "emulator cule" in row["command"],
    mode="profiling-bias",
)  # fmt: skip
SOURCES = (EXAMPLE, BIAS)
NUMBERS = "16 20 40 69 2021"
GIVEN = {
    "a sixth of a second": "nvidia-smi's",
    "are 100%": "by definition",
    "with 95% confidence": "CONFIDENCE of cule/scope/bias.py",
    "16 calls, too": "by definition",
    "costs several times what a": "no measurement",
    "has grown by 64 MB": "PART_BYTES of cule/scope/parts.py",
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
