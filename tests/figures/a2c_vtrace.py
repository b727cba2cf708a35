"""The figures of the README of A2C with V-trace."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator

from examples.a2c_vtrace.paper import reports, rows
from examples.a2c_vtrace.paper.cases import COLUMNS, PLAIN
from examples.a2c_vtrace.paper.choices import Choice
from tests.figures import pong, readme
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Row, Source, source

PAGE = ROOT / "examples" / "a2c_vtrace" / "README.md"
DAY = "2026-11-22-h200"
H100, H200 = ("2026-11-24-h100", "2026-11-25-h100"), "2026-11-26-h200"
# The file and the commit of the rows of the paper's tables and figures.
PAPER = {
    "figure3": ("2026-11-28-h200", "27dc557"),
    **dict.fromkeys(
        ("table3", "figure4", "figure5", "table4"),
        (("2026-11-28-h200", "2026-11-29-h200"), "27dc557 6bef8d5"),
    ),
    "figure2": (
        ("2026-11-28", "2026-11-27-h200", "2026-11-29-h200", "2026-12-01-h200"),
        "a3cc10c da64b5e 6bef8d5 9c7b173",
    ),
}  # fmt: skip
COLUMN = {column.name: column for column in COLUMNS}


def choice_of(name: str) -> Choice:
    """All of a table or figure of the paper."""
    return Choice(games=reports.REPORTS[name].games, num_envs=reports.REPORTS[name].num_envs)


def rows_of(name: str) -> Source:
    """The rows of a table or figure of the paper."""
    asked = reports.REPORTS[name].cases(choice_of(name))

    def test(row: Row) -> bool:
        found = rows.Row(row, row["file"], rows.facts(row))
        shared = row.get("trainings_on_gpu", 1) > 1
        return not shared and any(
            rows.matches(found, values) for case in asked for values in case.wanted
        )

    title = name.replace("table", "table ").replace("figure", "figure ")
    return source(f"the paper's {title}", *PAPER[name], test)


def shown(name: str) -> str:
    """What `examples.a2c_vtrace.paper --show` prints of a table or figure, without its title."""
    choice, report = choice_of(name), reports.REPORTS[name]
    known = [rows.Row(row, row["file"], rows.facts(row)) for row in OF_PAPER[name].rows]
    found = rows.Found(known, PAPER[name][1].split(), report.cases(choice))
    return f"{report.text(choice, found)}\n\n{found.sources()}\n"


OF_PAPER = {name: rows_of(name) for name in PAPER}
WRITTEN = {name: functools.partial(shown, name) for name in PAPER}
FASTEST = {**PLAIN, **COLUMN["fastest"].settings, "stop_at_score": 18, "game": "pong"}
SEVERAL = source(
    "Pong to 18 points, several GPUs", DAY, "7130a84",
    lambda row: all(
        rows.facts(row).get(key) == value for key, value in FASTEST.items() if key != "num_gpus"
    ) and row["num_envs"] == 1200 * row["num_gpus"] and row.get("trainings_on_gpu", 1) == 1,
    mode="training",
)  # fmt: skip
LONG = source(
    "200 million frames", DAY, "7130a84", lambda row: row["frames"] > 200e6, mode="training"
)
LONG_LATER = source(
    "200 million frames, later", H200, "806d891", lambda row: row["frames"] > 200e6,
    mode="training",
)  # fmt: skip
EVALUATED = source("100 episodes", DAY, "7130a84", mode="evaluation")
LARGE = source("65,540 envs", "2026-11-25-h100", "79bbfee", what="a2c", num_envs=65540, lag=0)
PROFILES = source("milliseconds, use of the GPU", H100, "0fb30bf 12dbb9e 50f2056 eb9c520",
                  mode="profile")  # fmt: skip
OPTIONS = source(
    "options", DAY, "7130a84", lambda row: "updates-at-once 3" in row["command"],
    mode="training", frames_to_score=None,
)  # fmt: skip
EARLIER = source("three seconds, the day before", H200, "6b8f61e", num_envs=2400, num_gpus=1,
                 frames=5568000, mode="training")  # fmt: skip
SOURCES = (
    *OF_PAPER.values(), readme.ONE_THREAD, SEVERAL, pong.VTRACE, pong.SHORTEST,
    pong.SEEDS, pong.LONGER, pong.NEWEST, EARLIER, pong.SHORTER, pong.ON_FOUR, pong.APART, LONG,
    LONG_LATER, EVALUATED,
    LARGE, PROFILES, OPTIONS,
)  # fmt: skip
SETTING = "a setting"
NUMBERS = "0 1 2 3 4 5 14 16 18 20 30 32 57 64 100 120 230 256 300 512 1,024 1,200 2019"
GIVEN = {
    "used twice. `--lag 1` learns": "no measurement",
    "(`--multiprocessors`): half of them": "no measurement",
    "the third has over": "no measurement",
    "table 3 Thousand FPS,": "no measurement",
    "a quarter of these). Asterix": "no measurement",
    "ended after 40 seconds. Each training had 12 CPU": SETTING,
    "Assault, FPS, with 12 CPU": SETTING,
    "Pong, FPS, with 12 CPU": SETTING,
    "Of half as many": "no measurement",
    "a quarter of the": "no measurement",
    "1,200 envs play 200 million frames on a GPU, or 120 envs 20 million frames": SETTING,
    "every 2 million frames (500,000": SETTING,
    "how long 200 million frames take": SETTING,
    "on each GPU. 200 million frames: Where": SETTING,
    "### Several GPUs 200 million frames of Pong": SETTING,
    "18 points with `--updates-at-once": SETTING,
    "2.4 to 9.4 minutes": "stated by the paper",
    "### Pong in three seconds": "2.94 to 2.99",
    "It is not four times as fast": "no figure",
    "The policy after 200 million frames": SETTING,
    "without `--compile`, 200 million frames": SETTING,
}


def of_table3() -> Iterator[Said]:
    yield said(
        "Pong took {:.1f}, {:.1f} and {:.1f} seconds with `--lag 1` on an H100 in an earlier "
        "version, seeds 0, 1 and 2.",
        *pong.VTRACE.values("seconds_to_score"),
    )  # fmt: skip
    assert pong.VTRACE.values("seed") == [0, 1, 2]


def of_shortest() -> Iterator[Said]:
    three = "{:.1f}, {:.1f} and {:.1f}"
    rows = pong.SHORTEST
    yield said(
        f"{{:,}} envs scored {three} on ale-py after {{:.1f}} million frames and {{:.2f}}, "
        "{:.2f} and {:.2f} seconds of training on one H200, seeds 0, 1 and 2. The program took "
        "{:.0f} to {:.0f} seconds to start, and {:.0f} to {:.0f} to evaluate the agent",
        rows.rows[0]["num_envs"], *rows.values("score"), rows.rows[0]["frames"] / 1e6,
        *rows.values("seconds"),
        *(bound(rows.values(key)) for key in ("startup_seconds", "evaluation_seconds")
          for bound in (min, max)),
    )  # fmt: skip
    yield pong.of_other_seeds()
    yield pong.of_longer()
    yield pong.of_newest()
    yield said(f"the scores were {three}", *EARLIER.values("score"))
    yield said(
        f"a training of {{:.1f}} million frames scored {three}",
        pong.SHORTER.rows[0]["frames"] / 1e6, *pong.SHORTER.values("score"),
    )  # fmt: skip
    yield said(
        f"it takes {{:.2f}}, {{:.2f}} and {{:.2f}} seconds ({three} points)",
        *pong.ON_FOUR.values("seconds"), *pong.ON_FOUR.values("score"),
    )  # fmt: skip
    yield said("it is {:.2f} seconds and {:.1f} points", *(
        pong.APART.rows[0][key] for key in ("seconds", "score")))  # fmt: skip


def of_several_gpus() -> Iterator[Said]:
    for gpus in (1, 2, 4):
        long = LONG.one(num_gpus=gpus)
        yield table_line(
            "{} | {:.1f} s | {:.2f} M | {:.1f}", gpus, long["seconds"], long["fps"] / 1e6,
            long["score"],
        )  # fmt: skip
    two, four = (SEVERAL.one(num_gpus=gpus) for gpus in (2, 4))
    yield said(
        "took {:.1f} seconds and {:.0f} million frames on two, and {:.1f} seconds and {:.0f} "
        "million on four",
        *(value for row in (two, four)
          for value in (row["seconds_to_score"], row["frames_to_score"] / 1e6)),
    )  # fmt: skip
    plain, sticky = (EVALUATED.one(sticky=chance) for chance in (0.0, 0.25))
    yield said(
        "scores {:.2f} ± {:.2f} in 100 episodes on ale-py, and {:.2f} ± {:.2f} with sticky actions "
        "({})",
        plain["score"], plain["score_deviation"], sticky["score"], sticky["score_deviation"],
        sticky["sticky"],
    )  # fmt: skip
    one, four = (LONG_LATER.one(num_gpus=gpus)["seconds"] for gpus in (1, 4))
    yield said("200 million frames took {:.1f} s on one GPU and {:.1f} s on four", one, four)


def of_large() -> Iterator[Said]:
    (large,) = LARGE.rows
    yield said(
        "A2C with V-trace and {:,} envs made {:,.0f} thousand FPS", large["num_envs"],
        large["fps"] / 1e3,
    )  # fmt: skip


# Profiles by the lines of the tables that tell of them: what is in the command, and what is not.
NAMED = {
    "A2C, five steps": (
        "0fb30bf 12dbb9e",
        "--num-steps 5 --steps-per-update 5",
        "--no-cuda-graphs",
    ),
    "A2C+V-trace, 4 batches": ("12dbb9e", "--num-batches 4", "--no-cuda-graphs"),
    "A2C+V-trace, 20 batches, `--updates-at-once 3`": (
        "0fb30bf",
        "--updates-at-once 3",
        "--overlap",
    ),
    "and `--lag 1`": ("0fb30bf", "--overlap", "--no-cuda-graphs"),
    "DQN": ("12dbb9e", "examples.dqn.dqn", "--no-cuda-graphs"),
    "PPO, an iteration": ("12dbb9e", "examples.ppo.ppo", "--no-cuda-graphs"),
    "A2C, `--no-cuda-graphs`": ("12dbb9e", "--no-cuda-graphs", "ale-py"),
    "A2C with ale-py": ("50f2056", "--num-steps 5 ", "--no-cuda-graphs"),
    "A2C+V-trace with ale-py": ("50f2056", "--num-batches 4", "--no-cuda-graphs"),
    "DQN with ale-py": ("50f2056", "examples.dqn.dqn", "--no-cuda-graphs"),
    "with kernels": ("eb9c520", "--num-batches 20", "--overlap"),
}
PARTS = {
    "simulation": ("simulation",), "inference": ("inference",), "storage": ("storage",),
    "gathering": ("gathering",),
    "learning": ("backpropagation", "optimizer", "evaluate values"),
}  # fmt: skip


def profile(name: str) -> Row:
    """The recording that a line tells of."""
    commits, has, lacks = NAMED[name]
    (row,) = PROFILES.where(
        lambda row: row["commit"][:7] in commits and has in row["command"]
        and lacks not in row["command"]
    )  # fmt: skip
    return row


def parts(row: Row) -> dict[str, float]:
    """Milliseconds of an iteration by part, and the rest."""
    operations = {name: found["milliseconds"] for name, found in row["operations"].items()}
    found = {
        part: sum(operations.get(name, 0.0) for name in names) for part, names in PARTS.items()
    }
    return found | {"rest": row["iteration_milliseconds"] - sum(found.values())}


def of_milliseconds() -> Iterator[Said]:
    for name in list(NAMED)[:6]:
        row = profile(name)
        digits = 1 if name == "PPO, an iteration" else 2
        cells = [*parts(row).values(), row["iteration_milliseconds"]]
        if digits == 2:
            cells.append(row["reference"]["iteration"])
        form = " | ".join(f"{{:.{digits}f}}" for _ in cells)
        envs = 1200 if row["commit"].startswith("0fb30bf") else 1024
        assert f"--num-envs {envs}" in row["command"]
        yield table_line(f"{name} | {{:,}} | {form}{' |' if digits == 1 else ''}", envs, *cells)
    kernels = profile(list(NAMED)[2])["operations"]["backpropagation"]["kernels"]
    yield said("some {:.0f} small kernels for each update", round(kernels / 3, -1))
    row = profile("with kernels")
    yield said(
        "takes {:.2f} ms: {:.2f} simulation, {:.2f} inference, {:.2f} storage, {:.2f} gathering, "
        "{:.2f} learning",
        row["reference"]["iteration"], *list(parts(row).values())[:5],
    )  # fmt: skip
    alone, beside = (profile(name) for name in list(NAMED)[2:4])
    yield said(
        "simulation's kernels run for {:.2f} ms instead of {:.2f} and backpropagation's for {:.2f} "
        "instead of {:.2f}, so that the iteration gets shorter by {:.1f} ms only",
        *(row["operations"][name]["gpu_work"] for name in ("simulation", "backpropagation")
          for row in (beside, alone)),
        alone["reference"]["iteration"] - beside["reference"]["iteration"],
    )  # fmt: skip
    ale = [profile(name) for name in NAMED if name.endswith("with ale-py")]
    shares = [parts(row)["simulation"] / row["iteration_milliseconds"] for row in ale]
    yield said("is {:.0%} of an iteration of A2C, {:.0%} of A2C+V-trace and {:.0%} of DQN", *shares)


def of_gpu_use() -> Iterator[Said]:
    lines = {
        "A2C": "A2C, five steps", "A2C, `--no-cuda-graphs`": "A2C, `--no-cuda-graphs`",
        "A2C+V-trace, 4 batches": "A2C+V-trace, 4 batches", "DQN": "DQN",
        **{name: name for name in NAMED if name.endswith("with ale-py")},
    }  # fmt: skip
    for label, name in lines.items():
        (use,) = profile(name)["gpu_use"]
        cells = [use[key] for key in ("nvml", "kernels", "multiprocessors", "issue_slots")]
        form = " | ".join("" if cell is None else "{:.0f}%" for cell in cells)
        envs = 128 if "ale-py" in name else 1024
        yield table_line(f"{label} | {{:,}} | {form}", envs, *filter(None, cells))


def of_options() -> Iterator[Said]:
    for label in ("default", "`--no-cuda-graphs`", "`--no-bf16`", "`--compile`", "`--lag 1`",
                  "`--lag 1 --compile`"):  # fmt: skip
        old = label.strip("`").replace("default", "").replace("lag 1", "overlap")
        wanted = set(old.replace("--", "--train.").split())
        others = {f"--train.{name}" for name in ("no-cuda-graphs", "no-bf16", "compile", "overlap")}
        (row,) = (row for row in OPTIONS.rows if others & set(row["command"].split()) == wanted)
        yield table_line(
            f"{label} | {{:.0f}} | {{:.0f}}%", row["fps"] / 1e3, row["gpu_utilization_mean"]
        )


def of_figure2() -> Iterator[Said]:
    (run,) = readme.runs(readme.ONE_THREAD)
    yield said(
        "the CPU build is {:.2f} times as fast as ale-py with one thread each, in the median of {} "
        "games",
        statistics.median(readme.ratios(run).values()), len(readme.ratios(run)),
    )  # fmt: skip


def of_batching() -> Iterator[Said]:
    for label, name in (("vanilla A2C", "a2c"), ("A2C+V-trace, 5 batches", "vtrace5"),
                        ("A2C+V-trace, 20 batches", "vtrace20")):  # fmt: skip
        cells = [
            COLUMN[name].settings[key] for key in ("num_batches", "num_steps", "steps_per_update")
        ]
        yield table_line(f"{label} | {{}} | {{}} | {{}}", *cells)


def figures() -> Iterator[Said]:
    yield from of_batching()
    yield from of_table3()
    yield from of_figure2()
    yield from of_shortest()
    yield from of_several_gpus()
    yield from of_large()
    yield from of_milliseconds()
    yield from of_gpu_use()
    yield from of_options()
