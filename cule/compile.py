"""`python -m cule.compile`: compiles games for GPUs ahead of time, for images and clusters."""

from __future__ import annotations

import argparse
import multiprocessing
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import torch

from cule.console import rom_of
from cule.devices import nvrtc
from cule.devices.architecture import architecture_of
from cule.devices.device import usable_cpus
from cule.disk.cache import cache_folder, make_folder
from cule.errors import Failed, InvalidValue, Refusal, sentence_of
from cule.programs.command_line import Parser, number, run_main
from cule.rom import PLAYERS, find_game, list_games
from cule.translation import compile_into
from cule.translation.kernel_files import VARIABLE


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.compile",
        description="Compiles games for GPUs ahead of time. No GPU is needed, but NVIDIA's "
        "run-time compiler (NVRTC). A game has two kernels, for few envs and for many.",
        epilog="Example: python -m cule.compile pong breakout --arch sm_80 sm_90 --folder kernels. "
        f"Envs find the kernels there if the environment has {VARIABLE}=.../kernels, and those in "
        "the user's cache anyway.",
    )
    add = parser.add_argument
    add("games", nargs="+", metavar="GAME", help="games such as pong or ALE/Pong-v5; all: every "
        "game that cule has")  # fmt: skip
    add("--arch", nargs="+", metavar="sm_NN",
        help="architectures of GPUs, such as sm_90 (default: of this machine's GPUs)")  # fmt: skip
    add("--num-players", type=int, choices=PLAYERS, default=1,
        help="for envs with num_players=2 or 4; all then means the games for so many")  # fmt: skip
    add("--sound", action="store_true",
        help="for envs with sound_obs=True, whose kernels are others")  # fmt: skip
    add("--jobs", type=number(int), metavar="N",
        help="how many kernels are compiled at once (default: as many as cores)")  # fmt: skip
    add("--folder", type=Path, metavar="FOLDER",
        help="where the kernels go (default: the user's cache)")  # fmt: skip
    return parser


@dataclass(frozen=True)
class Wanted:
    """A kernel that is asked for.

    Attributes:
        game: the game's name.
        architecture: such as "sm_90".
        in_step: whether it is the kernel for many envs.
        num_players: of an env.
        sound: whether it is for envs with sound.
    """

    game: str
    architecture: str
    in_step: bool
    num_players: int = 1
    sound: bool = False

    def __str__(self) -> str:
        players = f", {self.num_players} players" if self.num_players > 1 else ""
        envs = f"{'many' if self.in_step else 'few'} envs{players}{', sound' if self.sound else ''}"
        return f"{self.game} for {self.architecture}, {envs}"


@dataclass(frozen=True)
class Done:
    """What became of it.

    Attributes:
        bytes: of its file.
        seconds: how long it took.
        was_there: nothing had to be compiled.
    """

    bytes: int
    seconds: float
    was_there: bool


def compile_one(wanted: Wanted, folder: Path) -> Done:
    """Compiles a kernel, unless it is there.

    Raises:
        OSError, RuntimeError, ValueError: it cannot be compiled, or its file cannot be written.
    """
    begun = time.monotonic()
    game = find_game(wanted.game, wanted.num_players)
    path, was_there = compile_into(folder, game, wanted.architecture, wanted.in_step, wanted.sound)
    return Done(path.stat().st_size, time.monotonic() - begun, was_there)


def architectures(asked: Sequence[str] | None) -> list[str]:
    """Those that are asked for, or those of the GPUs.

    Raises:
        OSError: there is no run-time compiler.
        ValueError: the compiler does not know one, or none is asked for and there is no GPU.
    """
    if asked is None:
        count = torch.cuda.device_count()
        asked = [architecture_of(torch.device("cuda", index)) for index in range(count)]
        if not asked:
            raise InvalidValue("expected --arch, such as --arch sm_90, as there is no GPU here")
    known = nvrtc.architectures()
    for architecture in asked:
        # Newer compilers also know names such as sm_90a, which no env asks for.
        if not re.fullmatch(r"sm_\d+", architecture) or architecture not in known:
            raise InvalidValue(
                f"expected --arch to be of {', '.join(known)}, which NVRTC {nvrtc.version()} "
                f"compiles for, got {architecture!r}"
            )
    return list(dict.fromkeys(asked))


def kernels_of(
    names: Sequence[str], architectures: Sequence[str], num_players: int = 1, sound: bool = False
) -> list[Wanted]:
    """All kernels of some games, large games first, as these take longest.

    Args:
        names: the games' names; "all": all of them.
        architectures: such as "sm_90".
        num_players: of an env.
        sound: whether they are for envs with sound.

    Raises:
        ValueError: there is no such game for so many players, or no ROM of it.
    """
    chosen = [
        one for name in names for one in (list_games(num_players) if name == "all" else [name])
    ]
    games = {game.name: game for game in (find_game(name, num_players) for name in chosen)}
    by_size = sorted(games.values(), key=lambda game: -len(rom_of(game)[0]))
    return [
        Wanted(game.name, architecture, in_step, num_players, sound)
        for game in by_size
        for architecture in architectures
        for in_step in (False, True)
    ]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def compiled(
    wanted: Sequence[Wanted], folder: Path, jobs: int
) -> Iterator[tuple[Wanted, Done | BaseException]]:
    """Compiles kernels in several processes; gives each with what became of it, as they end.

    Raises:
        RuntimeError: a process was killed, as by a system that is out of memory.
    """
    processes = ProcessPoolExecutor(
        min(jobs, len(wanted)), multiprocessing.get_context("spawn"),
        _leave_interrupts_to_the_parent,
    )  # fmt: skip
    try:
        coming = {processes.submit(compile_one, one, folder): one for one in wanted}
        for future in as_completed(coming):
            problem = future.exception()
            if isinstance(problem, BrokenProcessPool):
                raise Failed(
                    f"expected {jobs} processes to compile, got one that was killed, as when "
                    "memory runs out: name fewer with --jobs"
                )
            yield coming[future], future.result() if problem is None else problem
        processes.shutdown()
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        # Waits, as a thread that ends beside the interpreter may find its pipe closed.
        processes.shutdown(cancel_futures=True)
        raise


def run(arguments: argparse.Namespace) -> int:
    """Compiles what the command line asks for; returns the exit status.

    Raises:
        OSError: there is no run-time compiler, or the folder cannot be made.
        RuntimeError: a process was killed.
        ValueError: an argument is wrong.
    """
    wanted = kernels_of(
        arguments.games, architectures(arguments.arch), arguments.num_players, arguments.sound
    )
    folder = (arguments.folder or cache_folder()).absolute()
    if arguments.folder is None:
        make_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = arguments.jobs or usable_cpus()
    there = size = failed = 0
    for number_of, (one, done) in enumerate(compiled(wanted, folder, jobs), 1):
        place = f"[{number_of}/{len(wanted)}] {one}"
        if isinstance(done, BaseException):
            if not isinstance(done, (Refusal, OSError)):
                raise done
            failed += 1
            print(f"cule.compile: {one}: {sentence_of(done) or done}", file=sys.stderr)
            continue
        there, size = there + done.was_there, size + done.bytes
        took = "was there" if done.was_there else f"{done.seconds:.1f} s"
        print(f"{place}: {done.bytes / 1e3:.0f} kB, {took}", flush=True)
    made = len(wanted) - there - failed
    print(f"{made} compiled, {there} were there, {failed} failed; {size / 1e6:.1f} MB in {folder}")
    return 1 if failed else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    return run_main(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
