"""What the paper's tables and figures are made of: engines, loads, settings, games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cule.errors import InvalidValue

Values = Mapping[str, Any]

# What emulates: ale-py (the paper's OpenAI Gym), the CPU build of cule's core, cule on a GPU. What
# the second has over the first is the code's, what the third has over the second the GPU's.
ENGINES = ("ale-py", "cule-cpu", "cule")
# Load conditions, by the modes of cule.bench. The paper calls them emulation only, inference only
# and training.
LOADS = ("end-to-end", "with-policy", "training")
LOAD_NAMES = dict(zip(LOADS, ("emulation only", "inference only", "training"), strict=True))

# Test scores of table 3.
GOALS = {"assault": 800, "asterix": 1000, "ms_pacman": 1500, "pong": 18}
A2C: Values = {"num_batches": 1, "num_steps": 5, "steps_per_update": 5}
VTRACE5: Values = {"num_batches": 5, "num_steps": 5, "steps_per_update": 1}
VTRACE20: Values = {"num_batches": 20, "num_steps": 20, "steps_per_update": 1}
THRICE: Values = {**VTRACE20, "updates_at_once": 3}
# The settings that a column of table 3 leaves out, and that rows of old programs lack.
PLAIN: Values = {
    "updates_at_once": 1, "lag": 0, "learning_rate": 6.5e-4, "optimizer": "adam",
    "anneal_lr": False, "layout": "together", "env_device": None, "model": "nature", "bf16": True,
    "compile": False, "cuda_graphs": True, "warmup_steps": 300, "num_gpus": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of table 3: settings of A2C+V-trace, which figure 5 draws as a line.

    Attributes:
        name: what it is called on the command line.
        title: above the column.
        engine: one of ENGINES.
        num_envs: on each GPU.
        settings: of the training, where they are not PLAIN.
        several: it is for all GPUs together, not for one.
    """

    name: str
    title: str
    engine: str
    num_envs: int
    settings: Values
    several: bool = False


COLUMNS = (
    Column("ale", "ale-py, 120 envs, 1 batch", "ale-py", 120, A2C),
    Column("ale-5", "ale-py, 120, 5", "ale-py", 120, VTRACE5),
    Column("ale-20", "ale-py, 120, 20", "ale-py", 120, VTRACE20),
    Column("ale-1200", "ale-py, 1,200, 20", "ale-py", 1200, VTRACE20),
    Column("a2c", "cule, 1,200 envs, 1 batch", "cule", 1200, A2C),
    Column("vtrace5", "cule, 1,200, 5", "cule", 1200, VTRACE5),
    Column("vtrace20", "cule, 1,200, 20", "cule", 1200, VTRACE20),
    Column("gpus", "cule, {gpus} GPUs, 1,200 on each, 20", "cule", 1200, VTRACE20, True),
    # The paper has no such columns: what else is fast.
    Column("thrice", "cule, 1,200, 20, `--updates-at-once 3`", "cule", 1200, THRICE),
    Column("fastest", "and `--lag 1`", "cule", 1200, {**THRICE, "lag": 1}),
)
TRAIN = "examples.a2c_vtrace.train"
# Table 4's programs, and the settings of each.
PROGRAMS: dict[str, tuple[str, Values]] = {
    "DQN": ("examples.dqn.dqn", {}),
    "A2C": (TRAIN, {**A2C, "warmup_steps": 20}),
    "PPO": ("examples.ppo.ppo", {}),
}
# Only what is measured is done.
QUIET: Values = {"progress": False, "plot": False, "logger": "none", "checkpoint_every": 0}


@dataclass(frozen=True)
class Case:
    """Something to measure.

    Attributes:
        name: names it, and a training's folder.
        wanted: what each of its rows has, of the values of `rows.facts`.
        module: the training's program; None: cule.bench or steps.py measures it.
        options: settings of the program that measures it.
        gpus: how many it needs at the same time.
    """

    name: str
    wanted: Sequence[Values]
    module: str | None = None
    options: Values = field(default_factory=lambda: MappingProxyType({}))
    gpus: int = 1


def bench_cases(
    engines: Sequence[str], load: str, games: Sequence[str], num_envs: Sequence[int]
) -> list[Case]:
    """Emulation or inference only. The two on the CPU take turns, as cule.bench has it."""
    cases = []
    for count in num_envs:
        for game in games:
            for group in (("cule",), ("ale-py", "cule-cpu")):
                wanted = [
                    {"engine": engine, "mode": load, "game": game, "num_envs": count}
                    for engine in group
                    if engine in engines
                ]
                if wanted:
                    name = f"{load}-{wanted[-1]['engine']}-{game}-{count}"
                    cases.append(Case(name, wanted))
    return cases


def training_case(
    engine: str, module: str, name: str, options: Values, gpus: int = 1, **wanted: Any
) -> Case:
    """A training. Its row has what is `wanted`, and the game, the envs and the seed."""
    known = {name: options[name] for name in ("game", "num_envs", "seed") if name in options}
    settings = {
        **options, **QUIET, "emulator": "ale-py" if engine == "ale-py" else "cule",
        **({"env_device": "cpu"} if engine == "cule-cpu" else {}),
    }  # fmt: skip
    row = {"engine": engine, "mode": "training", **known, **wanted}
    return Case(name, [row], module, settings, gpus)


def column_cases(
    columns: Sequence[Column], games: Sequence[str], seeds: Sequence[int], gpus: Sequence[int]
) -> list[Case]:
    """Trainings of table 3 and figure 5: all games and columns with one seed, then the next.

    Args:
        columns: which.
        games: some of GOALS.
        seeds: which.
        gpus: numbers of GPUs of the column with several.

    Raises:
        ValueError: the paper has no score for a game.
    """
    if unknown := [game for game in games if game not in GOALS]:
        raise InvalidValue(f"expected games to be some of {', '.join(GOALS)}, got {unknown[0]!r}")
    cases = []
    for seed in seeds:
        for column in columns:
            for game in games:
                for count in gpus if column.several else (1,):
                    settings = {**column.settings, "num_envs": column.num_envs * count}
                    options = {
                        "game": game, "seed": seed, "stop_at_score": GOALS[game],
                        "eval_every": 2_000_000 * count, "total_frames": 400_000_000, **settings,
                    }  # fmt: skip
                    wanted = {
                        **PLAIN, **settings, "num_gpus": count, "stop_at_score": GOALS[game],
                        "env_device": "cpu" if column.engine == "cule-cpu" else None,
                    }  # fmt: skip
                    name = f"{column.name}-{game}-{seed}" + (f"-{count}" if count > 1 else "")
                    cases.append(
                        training_case(column.engine, TRAIN, name, options, count, **wanted)
                    )
    return cases


def speed_cases(
    engines: Sequence[str], algorithms: Sequence[str], game: str, num_envs: Sequence[int]
) -> list[Case]:
    """Trainings of table 4 and figure 4, of which only the speed is wanted."""
    cases = []
    for engine in engines:
        for count in num_envs:
            for algorithm in algorithms:
                module, more = PROGRAMS[algorithm]
                options = {"game": game, "num_envs": count, "eval_episodes": 0, **more}
                name = f"{algorithm.lower()}-{engine}-{game}-{count}"
                wanted = {"algorithm": algorithm, "num_gpus": 1, "stop_at_score": None}
                cases.append(training_case(engine, module, name, options, **wanted))
    return cases


def step_cases(engines: Sequence[str], games: Sequence[str], num_envs: int) -> list[Case]:
    """FPS step by step, of figure 3."""
    return [
        Case(f"steps-{engine}-{game}-{num_envs}",
             [{"engine": engine, "mode": "step-by-step", "game": game, "num_envs": num_envs}])
        for game in games
        for engine in engines
        if engine != "ale-py"
    ]  # fmt: skip
