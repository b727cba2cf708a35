"""`python -m cule.bench`: how many frames a second cule emulates, beside ale-py on the same machine in the same run.

FPS are emulated frames per second over all envs: a step of frameskip 4 is four frames, whether or not they are looked
at. A step counts alike whatever it does, also where it only resets an env; both systems are counted so.

Each case begins with some hundreds of steps that are not timed, after which the envs of a batch are at different points
of their games. Then the systems take turns, in short rounds, and the median round counts. A round is a number of steps
fixed beforehand, so that nothing waits for the GPU before its end; CUDA events time it there, a clock on the CPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ale_py
import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from cule.rom import Game, find_game, games
from cule.vector_env import AtariEnv, find_device

RESULTS = Path("benchmarks/results")
# Steps after which the speed is first estimated.
TRIAL_STEPS = 8


@dataclass(frozen=True)
class Row:
    """One line of the results; the keys are those of every benchmark of the project."""

    commit: str
    date: str
    system: str
    mode: str
    device_name: str
    driver: str | None
    cuda: str | None
    torch: str
    game: str
    rom_md5: str
    num_envs: int
    frameskip: int
    fps: float
    steps_per_second: float
    command: str


class NatureCnn(nn.Module):
    """The network of Mnih et al. (2015), as a policy: (n, 4, 84, 84) uint8 to actions (n,), drawn from its softmax."""

    def __init__(self, num_actions: int):
        super().__init__()
        self.logits = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
            nn.Linear(512, num_actions),
        )  # fmt: skip

    @torch.inference_mode()
    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Actions, (n,) int64."""
        # A race of exponentials; torch.multinomial would wait for the device.
        chances = self.logits(observations.float() / 255.0).softmax(dim=1)
        return (chances / torch.empty_like(chances).exponential_()).argmax(dim=1)


class CuleSystem:
    """cule.AtariEnv, with what chooses its actions on the same device."""

    name = "cule"

    def __init__(self, game: Game, num_envs: int, device: torch.device, options: argparse.Namespace):
        self.device = device
        self.env = AtariEnv(
            game.name, num_envs, device=device, num_threads=options.num_threads, frameskip=options.frameskip
        )
        count = int(self.env.single_action_space.n)
        self.policy = NatureCnn(count).to(device) if options.with_policy else None
        self.actions = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self.generator = torch.Generator(device).manual_seed(0)
        self.observations = self.env.reset(seed=0)[0]

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps, with the policy's actions unless there is none or `random`."""
        count = int(self.env.single_action_space.n)
        for _ in range(steps):
            if self.policy is None or random:
                actions = self.actions.random_(0, count, generator=self.generator)
            else:
                actions = self.policy(self.observations)
            self.observations = self.env.step(actions)[0]

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        if self.device.type != "cuda":
            return clocked(self.play, steps)
        with torch.cuda.device(self.device):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            self.play(steps)
            end.record()
            end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


class AleSystem:
    """ale_py.AtariVectorEnv with the same options; its policy runs where cule's does."""

    name = "ale-py"

    def __init__(self, game: Game, num_envs: int, device: torch.device, options: argparse.Namespace):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.device = device
        self.env = ale_py.AtariVectorEnv(
            game.name, num_envs, num_threads=options.num_threads, frameskip=options.frameskip
        )
        self.policy = NatureCnn(int(self.env.single_action_space.n)).to(device) if options.with_policy else None
        self.generator = np.random.default_rng(0)
        self.observations = self.env.reset(seed=0)[0]

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps, with the policy's actions unless there is none or `random`."""
        count = int(self.env.single_action_space.n)
        for _ in range(steps):
            if self.policy is None or random:
                actions = self.generator.integers(count, size=self.env.num_envs)
            else:
                actions = self.policy(torch.from_numpy(self.observations).to(self.device)).cpu().numpy()
            self.observations = self.env.step(actions)[0]

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        return clocked(self.play, steps)

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


def clocked(play: Callable[[int], None], steps: int) -> float:
    """Seconds on the clock that `play(steps)` takes."""
    begin = time.perf_counter()
    play(steps)
    return time.perf_counter() - begin


def warm_up(system: CuleSystem | AleSystem, steps: int, seconds: float) -> int:
    """Lets the envs spread out, and finds how many steps take about `seconds`."""
    system.play(steps, random=True)
    trial = TRIAL_STEPS
    while (took := system.seconds(trial)) < min(0.1, seconds / 4):
        trial *= 4
    return max(1, round(trial * seconds / took))


def measure(
    game: Game, num_envs: int, device: torch.device, options: argparse.Namespace, bar: tqdm
) -> dict[str, float]:
    """The FPS of each system, by its name: the median of rounds that the systems take in turns."""
    kinds = [CuleSystem, AleSystem] if options.against_ale else [CuleSystem]
    bar.set_description(f"{game.name} x {num_envs}")
    systems: list[CuleSystem | AleSystem] = []
    try:
        for kind in kinds:
            systems.append(kind(game, num_envs, device, options))
        round_seconds = options.seconds / options.rounds
        steps = [warm_up(system, options.warmup_steps, round_seconds) for system in systems]
        rounds: dict[str, list[float]] = {system.name: [] for system in systems}
        for _ in range(options.rounds):
            for system, count in zip(systems, steps, strict=True):
                rounds[system.name].append(count * num_envs * options.frameskip / system.seconds(count))
            bar.update()
    finally:
        for system in systems:
            system.close()
    return {name: statistics.median(fps) for name, fps in rounds.items()}


# What was measured, and on what ----------------------------------------------------------------------------------


def output_of(*command: str, folder: Path | None = None) -> str:
    """What a command prints, stripped; empty where there is no such command or it fails."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=30)
        return done.stdout.strip()
    return ""


def commit() -> str:
    """The commit of the source tree that cule runs from, marked where files differ from it; else cule's version."""
    folder = Path(__file__).resolve().parent
    if output_of("git", "ls-files", "--error-unmatch", "__init__.py", folder=folder):
        changed = output_of("git", "status", "--porcelain", "--untracked-files=no", "--", ".", "../csrc", folder=folder)
        return output_of("git", "rev-parse", "--short=12", "HEAD", folder=folder) + ("-dirty" if changed else "")
    from cule import __version__

    return f"v{__version__}"


def cpu_name() -> str:
    """The processor's name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine(device: torch.device, threads: int) -> dict[str, str | None]:
    """The keys of a row that tell the machine."""
    if device.type == "cpu":
        plural = "s" if threads > 1 else ""
        return {"device_name": f"{cpu_name()}, {threads} thread{plural}", "driver": None, "cuda": None}
    driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0]
    return {"device_name": torch.cuda.get_device_name(device), "driver": driver or None, "cuda": torch.version.cuda}


def command_of(game: Game, num_envs: int, device: torch.device, options: argparse.Namespace) -> str:
    """A command that measures this case again, every default spelt out."""
    parts = ["python", "-m", "cule.bench", game.name, "--num-envs", num_envs, "--device", device]
    for name in ("frameskip", "num_threads", "seconds", "rounds", "warmup_steps"):
        parts += [f"--{name.replace('_', '-')}", getattr(options, name)]
    parts.append("--against-ale" if options.against_ale else "--no-against-ale")
    if options.with_policy:
        parts.append("--with-policy")
    return shlex.join(map(str, parts))


def rows_of(
    cases: Iterator[tuple[Game, int, dict[str, float]]], device: torch.device, options: argparse.Namespace
) -> Iterator[Row]:
    """A row for each system of each case, as they come."""
    of_run: dict[str, Any] = {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "mode": "with-policy" if options.with_policy else "end-to-end",
        "torch": torch.__version__,
        "frameskip": options.frameskip,
    }
    on_device, on_cpu = machine(device, options.num_threads), machine(torch.device("cpu"), options.num_threads)
    for game, num_envs, speeds in cases:
        of_case = {"game": game.name, "rom_md5": game.md5, "num_envs": num_envs}
        command = command_of(game, num_envs, device, options)
        for system, fps in speeds.items():
            where = on_cpu if system == AleSystem.name and not options.with_policy else on_device
            rates = {"fps": round(fps, 1), "steps_per_second": round(fps / options.frameskip, 1)}
            yield Row(system=system, command=command, **of_run, **where, **of_case, **rates)


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text: a line for each case, then the medians over games."""
    cases: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        cases.setdefault((row.game, row.num_envs), {})[row.system] = row
    with_ale = any(AleSystem.name in case for case in cases.values())
    lines = [f"{'game':<20}{'envs':>8}{'cule FPS':>14}{'steps/s':>12}"]
    if with_ale:
        lines[0] += f"{'ale-py FPS':>14}{'ratio':>8}"

    def line(name: str, num_envs: int, cule_fps: float, steps: float, ale_fps: float, ratio: float) -> str:
        text = f"{name:<20}{num_envs:>8}{cule_fps:>14,.0f}{steps:>12,.0f}"
        return text + (f"{ale_fps:>14,.0f}{ratio:>8.2f}" if with_ale else "")

    numbers: dict[int, list[tuple[float, ...]]] = {}
    for (name, num_envs), case in cases.items():
        ours = case[CuleSystem.name]
        ale_fps = case[AleSystem.name].fps if with_ale else float("nan")
        values = (ours.fps, ours.steps_per_second, ale_fps, ours.fps / ale_fps)
        numbers.setdefault(num_envs, []).append(values)
        lines.append(line(name, num_envs, *values))
    for num_envs, of_games in numbers.items():
        if len(of_games) > 1:
            lines.append(line("median", num_envs, *map(statistics.median, zip(*of_games, strict=True))))
    return "\n".join(lines)


# The command line ------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong."""

    def error(self, message: str) -> Any:
        """Exits with status 2."""
        self.exit(2, f"cule.bench: {message}\n")


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Reads a number of this kind above 0."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 < (value := kind(text)) < float("inf"):
                return value
        what = "a whole number of at least 1" if kind is int else "a number above 0"
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")

    return read


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.bench",
        description="Measures how many Atari frames a second cule emulates, with random actions, observations and all, "
        "and appends the results to a file. FPS are emulated frames per second of all consoles together; a step is "
        "four frames unless --frameskip says otherwise.",
        epilog="Example: python -m cule.bench pong breakout --num-envs 32 256 --device cpu --num-threads 2",
    )
    count, switch = positive(int), argparse.BooleanOptionalAction

    def add(name: str, text: str, **settings: Any) -> None:
        shown = " (default: %(default)s)" if isinstance(settings.get("default"), (int, float)) else ""
        parser.add_argument(name, help=text + shown, **settings)

    add("games", "games such as pong, ms_pacman or ALE/Pong-v5; 'all' for all 104", nargs="+", metavar="GAME")
    add("--num-envs", "consoles at once; each number is a case (default: 32)", nargs="+", type=count, default=[32],
        metavar="N")  # fmt: skip
    add("--device", "cpu, cuda or cuda:1 (default: cuda where there is one, else cpu)", metavar="D")
    add("--seconds", "how long to measure each system in each case", type=positive(float), default=5.0, metavar="S")
    add("--rounds", "rounds that make up these seconds; their median counts", type=count, default=5, metavar="R")
    add("--warmup-steps", "steps before measuring, in which games spread out", type=count, default=300, metavar="N")
    add("--frameskip", "frames in a step", type=count, default=4, metavar="N")
    add("--num-threads", "CPU threads, for cule and for ale-py", type=count, default=2, metavar="T")
    add("--against-ale", "measure ale_py.AtariVectorEnv in turns with cule (default: on the CPU)", action=switch)
    add("--with-policy", "an untrained neural network, the Nature CNN, chooses the actions", action="store_true")
    add("--results", f"where to append the results, as JSON lines (default: {RESULTS}/DATE.jsonl)", type=Path,
        metavar="FILE")  # fmt: skip
    add("--quiet", "no progress bar", action="store_true")
    return parser


def run(options: argparse.Namespace) -> None:
    """What the command line asks for.

    Raises:
        ValueError: if it asks for what there is not.
    """
    device = find_device(options.device)
    chosen = list(games()) if options.games == ["all"] else [find_game(name) for name in options.games]
    if options.against_ale is None:
        options.against_ale = device.type == "cpu"
    torch.set_num_threads(options.num_threads)
    results = options.results or RESULTS / f"{datetime.date.today().isoformat()}.jsonl"
    cases = [(game, num_envs) for game in chosen for num_envs in options.num_envs]
    rows = []
    try:
        results.parent.mkdir(parents=True, exist_ok=True)
        file = results.open("a")
    except OSError as error:
        raise ValueError(f"--results has to name a file that can be written: {results}: {error.strerror}") from error
    with file, tqdm(total=len(cases) * options.rounds, unit="round", disable=options.quiet, file=sys.stderr) as bar:
        measured = ((game, n, measure(game, n, device, options, bar)) for game, n in cases)
        for row in rows_of(measured, device, options):
            file.write(json.dumps(asdict(row)) + "\n")
            file.flush()
            rows.append(row)
    print(table(rows))
    print(f"Appended {len(rows)} rows to {results}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit status."""
    options = make_parser().parse_args(argv)
    try:
        run(options)
    except (ValueError, TypeError, torch.OutOfMemoryError) as error:
        print(f"cule.bench: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
