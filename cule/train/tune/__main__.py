"""Finds settings with many frames per second, by short trials.

    python -m cule.train.tune examples.ppo.ppo --game pong
    python -m cule.train.tune examples.ppo.ppo --game pong --search num_envs=512,1024,2048 lag=0,1

Other options are the algorithm's. The result is saved, and shown at once the next time; training
programs use it with --tuned.
"""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import tyro
from tqdm import tqdm

from cule.programs.command_line import Parser, exit_status_of, number
from cule.scope.table import columns
from cule.train.command import options_of
from cule.train.distributed.ranks import rank_and_size
from cule.train.import_path import program_in
from cule.train.plan.memory import GIB
from cule.train.tune.cache import Tuned
from cule.train.tune.search import Trial
from cule.train.tune.space import read_space
from cule.train.tune.tuning import tune


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.train.tune", allow_abbrev=False,
        description="Finds the settings of a training with the most frames per second on this "
        "device, by short trials, and keeps them for --tuned. Under torchrun all its processes "
        "search together.",
        epilog="All other options are the training's. Example: python -m cule.train.tune "
        "examples.ppo.ppo --game pong --search num_envs=512,1024,2048 lag=0,1",
    )  # fmt: skip
    parser.add_argument(
        "algorithm", metavar="ALGORITHM",
        help="the training program: its module, such as examples.ppo.ppo, or its script",
    )  # fmt: skip
    parser.add_argument(
        "--search", nargs="+", metavar="SETTING=VALUES",
        help="settings with the candidates to try, separated by commas (default: envs, lag, and "
        "on a GPU layouts and chunks)",
    )  # fmt: skip
    parser.add_argument(
        "--budget-seconds", type=number(float), default=120.0, metavar="S",
        help="about how long to search (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--again", action="store_true", help="search even if the result is known",
    )  # fmt: skip
    return parser


def _cells(trial: Trial, names: Sequence[str], mark: str) -> list[str]:
    values = [str(trial.settings[name]) for name in names]
    if trial.problem:
        return [*values, "failed", "", "", "", trial.problem]
    parts = sorted(trial.milliseconds.items(), key=lambda part: -part[1])[:3]
    spent = ", ".join(f"{name} {ms:,.2f}" for name, ms in parts)
    rates = f"{trial.fps:,.0f}", f"{trial.updates_per_second:,.1f}"
    return [*values, *rates, f"{trial.memory / GIB:.2f}", mark, spent]


def report(tuned: Tuned) -> str:
    """The trials as a table, the fastest first, and how the search went."""
    names = list(tuned.space)
    best = tuned.best.settings
    trials = sorted(tuned.trials, key=lambda trial: (trial.settings != best, -trial.fps))
    lines = [_cells(one, names, "best" if one.settings == best else "") for one in trials]
    numbers = columns(
        [*names, "FPS", "updates/s", "GiB", ""], [line[:-1] for line in lines], left=len(names)
    )
    # Text is flush left.
    ends = ["milliseconds of an iteration, or why it failed", *(line[-1] for line in lines)]
    rows = zip(numbers.split("\n"), ends, strict=True)
    width = max(map(len, numbers.split("\n")))
    return "\n".join(f"{row:<{width}}  {end}".rstrip() for row, end in rows)


def sentence(tuned: Tuned) -> str:
    """How the search went."""
    tried = f"{len(tuned.trials)} of {tuned.combinations} combinations"
    when = "earlier (--again searches again)" if tuned.again else f"in {tuned.seconds:.0f} s"
    cut = "" if tuned.complete else "; the time was over before the search was"
    return f"{tried} were tried {when}, on {tuned.num_devices} x {tuned.device_name}{cut}."


def command_of(algorithm: str, words: Sequence[str], tuned: Tuned) -> str:
    """The command line of a training with the best settings."""
    program = [algorithm] if algorithm.endswith(".py") else ["-m", algorithm]
    several = ["torchrun", "--nproc-per-node", str(tuned.num_devices)]
    start = ["python"] if tuned.num_devices == 1 else several
    return shlex.join([*start, *program, *words, *options_of(dict(tuned.best.settings))])


def run(options: Namespace, words: Sequence[str]) -> None:
    """Searches, and prints the trials and the command line with the best settings.

    Args:
        options: the options of this program.
        words: the options of the training.

    Raises:
        ValueError: an argument is wrong, or no combination has worked.
    """
    make, settings = program_in(options.algorithm)
    args: Any = tyro.cli(settings, args=words, prog="python -m cule.train.tune ALGORITHM")
    space = None if options.search is None else read_space(options.search, settings)
    first = rank_and_size()[0] == 0
    shown = first and args.progress
    with tqdm(unit=" trials", file=sys.stderr, disable=not shown, delay=0.1) as bar:

        def show(trial: Trial) -> None:
            tried = " ".join(options_of(dict(trial.settings)))
            bar.set_postfix_str(f"{tried}: {trial.problem or f'{trial.fps:,.0f} FPS'}")
            bar.update()

        tuned = tune(
            make,
            args,
            space,
            budget_seconds=options.budget_seconds,
            again=options.again,
            on_trial=show,
        )
    if first:
        command = command_of(options.algorithm, words, tuned)
        sys.stdout.write(f"{report(tuned)}\n{sentence(tuned)}\nTo train with it, --tuned, or:\n")
        sys.stdout.write(f"{command}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Searches; returns the exit status."""
    return exit_status_of("tune", lambda: run(*make_parser().parse_known_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
