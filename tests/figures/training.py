"""The figures of docs/training.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.figures import pong
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Row, Source, source

PAGE = ROOT / "docs" / "training.md"
TUNE = source(
    "tune beside a grid", ("2026-11-25-h100", "2026-11-26-h200", "2026-11-27-h200"),
    "79bbfee 9f36657 791e2c7 7022be2 6b8f61e 1f5449c", mode="tune-against-grid",
)  # fmt: skip
GROUPS = source("groups of CPU envs", "2026-11-30-h200", "941b99f", mode="cpu-envs")
FEW = source("groups of few CPU envs", "2026-11-30-h200", "786f4fb", mode="cpu-envs")
ALE_PY = source(
    "ale-py under the same learner", "2026-11-30-h200", "6726326", mode="cpu-envs", system="ale-py"
)
BATCHES = source(
    "batches of CPU envs", "2026-11-30-h200", "a9b94e9", mode="with-training", num_envs=64
)
PROCESSES = source("processes on a GPU", "2026-11-25-h100", "affda42", mode="instances")


def whole(row: Row) -> bool:
    return row["frames"] > 200e6


ONE_AND_FOUR = source("200 million frames", "2026-11-26-h200", "806d891", whole, mode="training")
OF_ALGORITHMS = (pong.SHORTEST, pong.VTRACE, pong.PPO, pong.PQN, pong.DQN)
PATCHED = source(
    "an agent in a modified game", "2026-11-30-h200", "a275f9b", mode="evaluation"
)  # fmt: skip
SOURCES = (
    *OF_ALGORITHMS,
    pong.ON_FOUR,
    TUNE,
    GROUPS,
    FEW,
    ALE_PY,
    BATCHES,
    PROCESSES,
    ONE_AND_FOUR,
    PATCHED,
)
NUMBERS = "0 1 2 4 8 16 18 20 21 32 64 66 80 81 120 128 129 1,200 2016 2024"
GIVEN = {
    "(9.1 MiB, not 57.3)": "of the two plans above",
    "(159.4 MiB, not 2.3 GiB)": "of the two plans above",
    "(15.6 MiB in place of 9.1)": "of a plan, by test_explained.py",
    "| double DQN, `--double": "no measurement",
    "200 million frames of Pong": "a setting",
}


def of_algorithms() -> Iterator[Said]:
    names = (
        "A2C+V-trace, Muon, a short training with a falling rate",
        "A2C+V-trace, `--lag 1 --updates-at-once 3`", "PPO", "PQN",
        "double DQN, `--double --lag 1`, three at once",
    )  # fmt: skip
    for name, rows in zip(names, OF_ALGORITHMS, strict=True):
        (envs,) = set(rows.values("num_envs"))
        form = ".0f" if rows is pong.DQN else ".1f"
        yield table_line(
            f"{name} | {{:,}} | {{}} | {{}} | {{}}", envs,
            pong.by_seed(rows, "seconds_to_score", form),
            pong.by_seed(rows, "frames_to_score", ".1f", per=1e6), pong.seconds_more(rows),
        )  # fmt: skip


def of_tune() -> Iterator[Said]:
    shares = sorted(row["share"] for row in TUNE.rows)
    assert shares.count(1) == len(shares) - 1 == 8
    tune, grid, sizes = (TUNE.values(f"{key}") for key in
                         ("tune_seconds", "grid_seconds", "combinations"))  # fmt: skip
    assert {row["algorithm"] for row in TUNE.rows} == {"a2c"}
    assert {row["num_gpus"] for row in TUNE.rows} == {1, 2, 4}
    yield said("with full grids of {} to {} combinations", min(sizes), max(sizes))
    yield said("in eight of nine cases, and {:.2%} of its speed", shares[0])
    yield said(
        "it took {:.0f} to {:.0f} s, in which a first start and compiling are included, and the "
        "grids, measured after it, {:.0f} to {:.0f} s",
        min(tune), max(tune), min(grid), max(grid),
    )  # fmt: skip


def of_groups() -> Iterator[Said]:
    assert {row["game"] for row in GROUPS.rows} == {"pong"}
    assert all("--threads 16" in row["command"] for row in (*GROUPS.rows, *FEW.rows))
    for envs in (64, 512, 2048, 8192):
        for what, name in (("serving", "acting"), ("ppo", "acting and learning")):
            rows = FEW if (envs, what) == (64, "ppo") else GROUPS
            one = [rows.one(num_envs=envs, what=what, env_groups=n)["fps"] for n in (1, 2, 4)]
            cells = [fps / 1e3 for fps in one]
            yield table_line(f"{{:,}} | {name} | {{:.0f}} | {{:.0f}} | {{:.0f}}", envs, *cells)
    few, more = ALE_PY.rows
    yield said(
        "ale-py under the same learner makes {:.0f} thousand with {} envs and {:.0f} with {}",
        few["fps"] / 1e3, few["num_envs"], more["fps"] / 1e3, more["num_envs"],
    )  # fmt: skip
    for system, name in (
        ("cule", "cule"), ("EnvPool", "EnvPool"), ("ale-py", "ale-py, all envs at once"),
    ):  # fmt: skip
        cells = [BATCHES.one(system=system, env_groups=n)["fps"] / 1e3 for n in (1, 2, 4)]
        yield table_line(f"{name} | {{:.0f}} | {{:.0f}} | {{:.0f}}", *cells)


def slower() -> list[float]:
    """How many times slower two processes on a GPU are than one with as many envs."""
    cases: dict[tuple, dict[int, float]] = {}
    for row in PROCESSES.rows:
        case = tuple(row[key] for key in ("game", "what", "num_envs", "lag"))
        cases.setdefault(case, {})[row["each"]] = row["fps"]
    return [fps[1] / fps[2] for fps in cases.values() if {1, 2} <= set(fps)]


def of_layouts() -> Iterator[Said]:
    yield said(
        "in {} cases two were {:.2f} to {:.2f} times slower",
        len(slower()), min(slower()), max(slower()),
    )  # fmt: skip
    four, one = (ONE_AND_FOUR.one(num_gpus=gpus)["seconds"] for gpus in (4, 1))
    yield said("200 million frames of Pong took {:.1f} s, on one {:.1f} s.", four, one)
    shortest: list[Source] = [pong.SHORTEST, pong.ON_FOUR]
    yield said(
        "takes {:.1f} s on one GPU and {:.1f} on four",
        *(sorted(rows.values("seconds"))[1] for rows in shortest),
    )


def of_patches() -> Iterator[Said]:
    scores = {" ".join(row["patches"]): row["score"] for row in PATCHED.rows}
    yield said(
        "scored {:.1f} in {} episodes, {:.1f} with `up_drift`, {:.1f} with `left_drift` (the ball "
        "drifts), and {:.1f} with `parallel_enemy`",
        scores[""], PATCHED.rows[0]["episodes"],
        *(scores[name] for name in ("up_drift", "left_drift", "parallel_enemy")),
    )  # fmt: skip


def figures() -> Iterator[Said]:
    yield from of_algorithms()
    yield from of_tune()
    yield from of_groups()
    yield from of_layouts()
    yield from of_patches()
