"""What cule.scope costs while nobody records: an idle annotation, and the light mode.

    python -m benchmarks.tools.scope_costs --results benchmarks/results/DATE.jsonl

An annotation is timed in a loop: idle, in the light mode (in an iteration that it times and in one
that it does not), and recorded. The light mode is also timed in A2C+V-trace, on a GPU with the
settings of its README's fastest row: rounds of iterations with it and without it, in turns. The
median rounds count.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from cule import scope
from cule.devices.device import find_device
from cule.programs.results import PROFILER, append_row, command_line, commit, machine, now
from cule.scope.loops import CALLS, ROUNDS, annotation_cost, nanoseconds_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import A2C, Args


def annotate() -> None:
    """An annotation."""
    with scope.operation("idle"):
        pass


def nothing() -> None:
    """What a call takes by itself."""


def idle_nanoseconds() -> float:
    """Of an annotation while nobody listens."""
    empty = min(nanoseconds_of(nothing, CALLS) for _ in range(ROUNDS))
    return min(nanoseconds_of(annotate, CALLS) for _ in range(ROUNDS)) - empty


def light_nanoseconds(device: torch.device) -> tuple[float, float]:
    """Of an annotation in the light mode, beyond an idle one: not timed, and timed."""
    idle = min(nanoseconds_of(annotate, CALLS) for _ in range(ROUNDS))
    found = []
    for every in (2**30, 1):
        with scope.Light(device, every=every) as light:
            times = []
            for _ in range(ROUNDS):
                with scope.iteration():
                    times.append(nanoseconds_of(annotate, CALLS))
                light.milliseconds()
        found.append(max(0.0, min(times) - idle))
    return found[0], found[1]


def light_share(device: torch.device, args: argparse.Namespace) -> tuple[float, float, float]:
    """Milliseconds of an iteration without and with the light mode, and the share that it adds."""
    settings = Args(
        game="pong", num_envs=args.num_envs, num_batches=args.num_batches, num_steps=20,
        steps_per_update=1, updates_at_once=3 if device.type == "cuda" else 1,
        lag=int(device.type == "cuda"), warmup_steps=20, device=str(device),
    ).on(device)  # fmt: skip
    trainer = Trainer(A2C, settings, ProcessGroup(0, 1, device))

    def round_of(light: bool) -> float:
        timer = scope.Light(device)
        if light:
            timer.__enter__()
        torch.cuda.synchronize() if device.type == "cuda" else None
        begun = time.perf_counter()
        for _ in range(args.iterations):
            with scope.iteration():
                trainer.iterate()
        torch.cuda.synchronize() if device.type == "cuda" else None
        passed = time.perf_counter() - begun
        if light:
            timer.__exit__(None, None, None)
        return 1e3 * passed / args.iterations

    for _ in range(50):
        trainer.iterate()
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(args.rounds):
        for light, rounds in found.items():
            rounds.append(round_of(light))
    trainer.close()
    without, within = (statistics.median(found[light]) for light in (False, True))
    return without, within, within / without - 1


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=None)
    parser.add_argument("--num-envs", type=int, default=1200)
    parser.add_argument("--num-batches", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--loops-only", action="store_true", help="no training")
    parser.add_argument("--results", type=Path, default=None)
    args = parser.parse_args()
    device = find_device(args.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    untimed, timed = light_nanoseconds(device)
    idle, recorded = idle_nanoseconds(), annotation_cost()
    row = {
        "commit": commit(), "date": now(), "system": PROFILER, "mode": "profiling-cost",
        **machine(device, torch.get_num_threads()), "torch": torch.__version__,
        "command": command_line(),
        "idle_annotation_nanoseconds": round(idle, 1),
        "recorded_annotation_nanoseconds": round(idle + recorded, 1),
        "light_annotation_nanoseconds": round(idle + untimed, 1),
        "light_timed_annotation_nanoseconds": round(idle + timed, 1),
    }  # fmt: skip
    print(f"an idle annotation: {idle:.0f} ns; a recorded one: {idle + recorded:.0f} ns")
    print(f"in the light mode: {idle + untimed:.0f} ns, {idle + timed:.0f} ns where it times")
    if not args.loops_only:
        without, within, share = light_share(device, args)
        print(f"light mode: {without:.3f} ms an iteration without, {within:.3f} with: {share:+.2%}")
        row |= {
            "num_envs": args.num_envs, "iteration_milliseconds": round(without, 4),
            "light_milliseconds": round(within, 4), "light_share": round(share, 5),
        }  # fmt: skip
    if args.results is not None:
        append_row(args.results, row)


if __name__ == "__main__":
    main()
