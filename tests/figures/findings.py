"""The figures of docs/findings.md."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator

from benchmarks.studies import algorithms, frameworks, tables
from tests.figures.pages import Said, said
from tests.figures.results import ROOT, Source, source

PAGE = ROOT / "docs" / "findings.md"
DAY = "2026-11-29"
FRAMEWORKS = source(
    "PPO by several libraries", DAY, "4f556a3 2bd8d9b",
    lambda row: row["commit"].startswith("4f556a3") or row["case"] == "RLlib, compiled",
    mode="study-frameworks",
)  # fmt: skip
ALGORITHMS = source("algorithms", DAY, "2bd8d9b", mode="study-algorithms")
SIMULATORS = source("simulators", DAY, "4f556a3", mode="study-simulators")
SCALE_UP = source("self-play in many processes", DAY, "3497748", mode="study-scale-up")
ON_A_GPU = f"{DAY}-h200"
FRAMEWORKS_ON_A_GPU = source(
    "PPO by several libraries, on a GPU", ON_A_GPU, "4222fc1", mode="study-frameworks"
)  # fmt: skip
ALGORITHMS_ON_A_GPU = source(
    "algorithms, on a GPU", (ON_A_GPU, "2026-11-30-h200"), "7fffd3e 74bdfd1 ba66ef9",
    mode="study-algorithms",
)  # fmt: skip
SIMULATORS_ON_A_GPU = source(
    "simulators, learning on a GPU", ON_A_GPU, "7fffd3e", mode="study-simulators"
)  # fmt: skip
SCALE_UP_ON_A_GPU = source(
    "self-play in many processes, on a GPU", ON_A_GPU, "7fffd3e", mode="study-scale-up"
)  # fmt: skip
SOURCES = (
    FRAMEWORKS, FRAMEWORKS_ON_A_GPU, ALGORITHMS, ALGORITHMS_ON_A_GPU, SIMULATORS,
    SIMULATORS_ON_A_GPU, SCALE_UP, SCALE_UP_ON_A_GPU,
)  # fmt: skip


# Of studies whose cases were recorded in another order.
ORDERS = {"frameworks": list(frameworks.CASES), "algorithms": list(algorithms.CASES)}


def shown(study: str, rows: Source) -> str:
    """The tables of a study; its libraries in their order."""
    found = rows.rows
    if study in ORDERS:
        found = sorted(found, key=lambda row: ORDERS[study].index(row["case"]))
    return f"\n{tables.tables(study, found)}\n"


WRITTEN = {
    rows.title: functools.partial(shown, study, rows)
    for study, rows in (
        ("frameworks", FRAMEWORKS), ("frameworks", FRAMEWORKS_ON_A_GPU),
        ("algorithms", ALGORITHMS), ("algorithms", ALGORITHMS_ON_A_GPU),
        ("simulators", SIMULATORS), ("simulators", SIMULATORS_ON_A_GPU),
        ("scale-up", SCALE_UP), ("scale-up", SCALE_UP_ON_A_GPU),
    )
}  # fmt: skip
PYTHON, BACKEND = "python", "backend"
# The paper's task has a simulation of its own.
PAPERS_TASK = "Walker2d-v5"
NUMBERS = "2021"
GIVEN: dict[str, str] = {"16 envs are few for a GPU": "an option of the rows"}


def by_case(rows: Source) -> dict[str, tables.Row]:
    """The middle try of each case."""
    return {row["case"]: row for row in tables.middle_tries(rows.rows)}


def of_libraries() -> Iterator[Said]:
    rows = by_case(FRAMEWORKS)
    eager, compiled = rows["rl_games, eager"], rows["rl_games, compiled"]
    faster = [
        tables.unrecorded(rows[f"{name}, eager"]) / tables.unrecorded(rows[f"{name}, compiled"])
        for name in ("cule.train", "rl_games")
    ]
    yield said(
        "compiling makes an iteration of cule.train {:.2f} times as fast, of rl_games {:.2f} times",
        *faster,
    )
    calls = [tables.transitions(row, PYTHON, BACKEND, "inference") for row in (compiled, eager)]
    yield said(
        "rl_games goes from Python to the backend {:.0f} times in inference instead of {:.0f}, and "
        "Python's share falls from {:.1%} to {:.1%}",
        *calls, *(tables.share(row, level=PYTHON) for row in (eager, compiled)),
    )  # fmt: skip
    assert calls[0] < calls[1]
    all_calls = {
        name: tables.transitions(row, PYTHON, BACKEND)
        for name, row in rows.items() if row["way"] == "eager"
    }  # fmt: skip
    assert max(all_calls, key=all_calls.__getitem__) == "cule.train, eager"
    yield said(
        "up to {:.1f} times as many transitions for the same iteration. cule.train has most, "
        "{:,.0f} of them in inference",
        max(all_calls.values()) / min(all_calls.values()),
        tables.transitions(rows["cule.train, eager"], PYTHON, BACKEND, "inference"),
    )
    yield said(
        "RLlib goes from Python to the backend {:,.0f} times in it, rl_games {:,.0f} times",
        *(tables.transitions(rows[f"{name}, eager"], PYTHON, BACKEND, "backpropagation")
          for name in ("RLlib", "rl_games")),
    )  # fmt: skip
    same = [rows[f"RLlib, {way}"]["transitions"] for way in ("eager", "compiled")]
    assert same[0] == same[1], "the options for torch.compile changed something"


def of_libraries_on_a_gpu() -> Iterator[Said]:
    """Inference and backpropagation; the simulator is the same kernel in all of them."""
    rows = by_case(FRAMEWORKS_ON_A_GPU)
    parts = ("inference", "backpropagation")

    def share_of_kernels(row: tables.Row) -> float:
        both = sum(tables.share(row, part) for part in parts)
        return sum(tables.gpu_share(row, part) for part in parts) / both

    def calls_to_kernels(row: tables.Row) -> float:
        calls = sum(tables.share(row, part, "cuda_api") for part in parts)
        return calls / sum(tables.gpu_share(row, part) for part in parts)

    peers = [rows[f"{name}, eager"] for name in ("CleanRL", "stable-baselines3", "TorchRL")]
    graphs, eager = (rows[f"cule.train, {way}"] for way in ("CUDA graphs", "eager"))
    little, long = (
        [share_of_kernels(row) for row in peers],
        [calls_to_kernels(row) for row in peers],
    )
    yield said(
        "kernels run in {:.0%} to {:.0%} of the time of inference and backpropagation, and calls "
        "of CUDA take {:.1f} to {:.1f} times as long as they",
        min(little), max(little), min(long), max(long),
    )  # fmt: skip
    yield said(
        "In cule.train kernels run in {:.0%} of it with CUDA graphs, and in {:.0%} without",
        share_of_kernels(graphs),
        share_of_kernels(eager),
    )
    uses = [row["gpu_use"][0] for row in (*peers, graphs)]
    yield said(
        "kernels ran in {:.0f}%, {:.0f}% and {:.0f}% of the time, where nvidia-smi said {:.0f}%, "
        "{:.0f}% and {:.0f}%; of cule.train with graphs in {:.1f}%, where it said {:.0f}%",
        *(use["kernels"] for use in uses[:3]), *(use["nvml"] for use in uses[:3]),
        uses[3]["kernels"], uses[3]["nvml"],
    )  # fmt: skip


def of_processes_on_a_gpu() -> Iterator[Said]:
    rows = by_case(SCALE_UP_ON_A_GPU)
    each = [rows[name] for name in ("1 worker", "2 workers", "4 workers")]
    uses = [row["gpu_use"][0] for row in each]
    yield said(
        "an iteration takes {:.2f} s with one worker and {:.2f} s with four, kernels run in "
        "{:.0f}%, {:.0f}% and {:.0f}% of the time with one, two and four, and nvidia-smi says "
        "{:.0f}%, {:.0f}% and {:.0f}%",
        *(tables.unrecorded(row) / 1e3 for row in (each[0], each[2])),
        *(use["kernels"] for use in uses), *(use["nvml"] for use in uses),
    )  # fmt: skip
    assert all(use["nvml"] < use["kernels"] for use in uses)


def of_papers_task(rows: Source) -> list[tables.Row]:
    """stable-baselines3's five algorithms on it."""
    found = {row["case"]: row for row in by_case(rows).values() if row["task"] == PAPERS_TASK}
    return [
        found[f"stable-baselines3, {name}"] for name in ("A2C", "PPO", "SAC", "TD3", "DDPG")
    ]  # fmt: skip


def of_algorithms() -> Iterator[Said]:
    rows, with_gpu = of_papers_task(ALGORITHMS), of_papers_task(ALGORITHMS_ON_A_GPU)
    yield said(
        "On the CPU, Python alone is {:.0%} of A2C on Walker2d",
        tables.share(rows[0], level=PYTHON),
    )
    kernels = [tables.gpu_share(row) for row in with_gpu]
    yield said(
        "kernels run in {:.0%} to {:.0%} of the time on Walker2d", min(kernels), max(kernels)
    )  # fmt: skip
    of_cule = [
        tables.gpu_share(row)
        for row in by_case(ALGORITHMS_ON_A_GPU).values() if row["system"] == "cule.train"
    ]  # fmt: skip
    *in_pong, on_pendulum = sorted(of_cule, reverse=True)
    yield said(
        "In cule.train they run in {:.0%} or more with Pong, and in {:.0%} with SAC",
        min(in_pong), on_pendulum,
    )  # fmt: skip
    for some, form in (
        (rows, "A2C and PPO {:.1%} and {:.1%}, SAC, TD3 and DDPG at most {:.1%}, which is {:.0f} "
         "times less"),
        (with_gpu, "With a GPU they are {:.1%} and {:.1%}, and at most {:.1%}, {:.1f} times less"),
    ):  # fmt: skip
        simulation = [tables.share(row, "simulation") for row in some]
        off = max(simulation[2:])
        yield said(form, *simulation[:2], off, min(simulation[:2]) / off)


def of_simulators() -> Iterator[Said]:
    for rows, form in (
        (SIMULATORS, "it is {:.1%} with cule, {:.1%} with ale-py, and {:.1%} with MuJoCo"),
        (SIMULATORS_ON_A_GPU,
         "it is {:.0%} with cule on the CPU, {:.0%} with ale-py and {:.0%} with MuJoCo"),
    ):  # fmt: skip
        yield said(
            form,
            *(tables.share(by_case(rows)[name], "simulation")
              for name in ("cule", "ale-py", "MuJoCo")),
        )  # fmt: skip
    small, gpu = (by_case(SIMULATORS_ON_A_GPU)[name] for name in ("cule", "cule on the GPU"))
    yield said(
        "An iteration takes {:.0f} ms with cule on one thread of the CPU and {:.0f} on the GPU",
        tables.unrecorded(small),
        tables.unrecorded(gpu),
    )


def figures() -> Iterator[Said]:
    yield from of_libraries()
    yield from of_libraries_on_a_gpu()
    yield from of_processes_on_a_gpu()
    yield from of_algorithms()
    yield from of_simulators()
    row = by_case(SCALE_UP)["4 workers"]
    waits = [
        one["waiting"] / one["seconds"] for one in row["processes"] if "worker" in one["process"]
    ]
    assert len(waits) == 4
    yield said("of four workers each waits about {:.0%} of the time", statistics.median(waits))
