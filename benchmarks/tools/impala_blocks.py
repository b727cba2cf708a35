"""How long the IMPALA ResNet's layers take on a GPU, with their kernels and without.

    python -m benchmarks.tools.impala_blocks --batches 256 1024 4096 --ways torch fused

A line for each batch, way and group of layers: milliseconds forward, and forward and backward, the
TFLOP/s of both, and the group's part of all groups. Everything is bfloat16 under autocast, in
channels_last and in a CUDA graph; times are medians of rounds that the ways take in turns.
`--results` appends a row for each line. With `--tune` it prints, for each kernel of the groups, the
fastest ways to divide its work, for the tables in cule/train/nn/kernels/impala.py.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch._dynamo
from torch import nn

from cule.programs.results import append_row, command_line, commit, machine, now
from cule.train.nn import models
from cule.train.nn.layers import Layers
from cule.train.nn.weights import Weights
from cule.train.plan.graphs import no_garbage_collection, workspaces_of_its_own

# Without the kernels, with them, and without them by torch.compile.
WAYS = ("torch", "fused", "compiled")
GROUPS = ("pool 1", "residual 1", "pool 2", "residual 2", "pool 3", "residual 3", "features")
# What is compiled too often would be left as it is, without an error.
COMPILED = {"recompile_limit": 64, "fail_on_recompile_limit_hit": True}
# Of a group's images, in pixels.
SIDES = 84, 42, 42, 21, 21, 11, 11


def groups_of(width: float) -> dict[str, nn.Module]:
    """The network in groups, and as a whole, with weights as they are in training."""
    net = models.impala_features(width)[0]
    models.to_channels_last(net.cuda())
    Weights([net], torch.device("cuda"), rounded=True)
    parts = [list(net)[first : first + 2] for first in range(0, 12, 2)] + [list(net)[12:]]
    groups = {name: Layers(*part) for name, part in zip(GROUPS, parts, strict=True)}
    return {**groups, "all": net}


def images_of(name: str, group: nn.Module, batch: int) -> torch.Tensor:
    """Random images that a group may get."""
    if name in ("pool 1", "all"):
        return torch.randint(0, 256, (batch, 4, 84, 84), dtype=torch.uint8, device="cuda")
    weight = next(group.parameters())
    side = SIDES[GROUPS.index(name)]
    channels = weight.shape[1] // (side**2 if weight.dim() == 2 else 1)
    images = torch.randn((batch, channels, side, side), device="cuda", dtype=torch.bfloat16)
    return images.to(memory_format=torch.channels_last).requires_grad_()


def operations(group: nn.Module, images: torch.Tensor) -> tuple[int, int]:
    """Floating-point operations forward, and forward and backward."""
    counts: list[tuple[int, int]] = []

    def count(layer: Any, given: Any, result: torch.Tensor) -> None:
        forward = 2 * result.numel() * layer.weight[0].numel()
        of_pixels = given[0].dtype == torch.uint8
        counts.append((forward, forward * (2 if of_pixels else 3)))

    kinds = nn.Conv2d, nn.Linear
    hooks = [m.register_forward_hook(count) for m in group.modules() if isinstance(m, kinds)]
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16), without_any_kernels():
        group(images[:1])
    for hook in hooks:
        hook.remove()
    forward, both = map(sum, zip(*counts, strict=True))
    return forward * len(images), both * len(images)


def without_any_kernels() -> contextlib.AbstractContextManager[Any]:
    """A context in which torch computes everything."""
    return patch("cule.train.nn.kernels.serve", lambda tensor: False)


def context_of(way: str) -> contextlib.AbstractContextManager[Any]:
    """A context in which a group is computed in a way."""
    if way == "fused":
        return contextlib.nullcontext()
    return patch("cule.train.nn.kernels.impala.knows", lambda *args, **more: False)


def works_of(group: nn.Module, images: torch.Tensor) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Functions that compute a group forward, and forward and backward."""
    leaves = [*group.parameters()] + ([images] if images.requires_grad else [])
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        grad = torch.randn_like(group(images))

    def forward() -> None:
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            group(images)

    def both() -> None:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            result = group(images)
        torch.autograd.grad(result, leaves, grad)

    return forward, both


class Captured(NamedTuple):
    """A graph of what a function does, and the function.

    The function holds the tensors that the graph reads. The next capture would give freed ones back
    to the device.
    """

    graph: torch.cuda.CUDAGraph
    work: Callable[[], Any]


def captured(work: Callable[[], Any]) -> Captured:
    """What a function does, captured after it was called a few times on the same stream."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    with (
        no_garbage_collection(), workspaces_of_its_own(),
        torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
    ):  # fmt: skip
        work()
    torch.cuda.synchronize()
    return Captured(graph, work)


def milliseconds(captured: Captured, repeats: int) -> float:
    """Of one replay."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        captured.graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats


Rounds = dict[tuple[str, bool], list[float]]


def measure(group: nn.Module, images: torch.Tensor, given: argparse.Namespace) -> Rounds:
    """The milliseconds of each round by way, forward and forward and backward."""
    graphs: dict[tuple[str, bool], Captured] = {}
    # Anew for each group and batch, as their code is the same.
    torch._dynamo.reset()
    for way in given.ways:
        made = torch.compile(group, dynamic=False) if way == "compiled" else group
        with context_of(way), torch._dynamo.config.patch(COMPILED):
            for backward, work in enumerate(works_of(made, images)):
                graphs[way, bool(backward)] = captured(work)
    rounds: Rounds = {key: [] for key in graphs}
    for _ in range(given.rounds):
        for key, one in graphs.items():
            rounds[key].append(milliseconds(one, given.repeats))
    return rounds


def report(batch: int, given: argparse.Namespace) -> None:
    """Measures a batch; prints its lines, and appends its rows."""
    groups = groups_of(given.width)
    found: dict[str, tuple[Rounds, tuple[int, int]]] = {}
    for name in (*given.groups, "all"):
        images = images_of(name, groups[name], batch)
        found[name] = measure(groups[name], images, given), operations(groups[name], images)
        torch.cuda.empty_cache()
    medians = {
        (name, *key): statistics.median(times)
        for name, (rounds, _) in found.items()
        for key, times in rounds.items()
    }
    for way, (name, (rounds, flops)) in itertools.product(given.ways, found.items()):
        times = [medians[name, way, backward] for backward in (False, True)]
        speeds = [count / time / 1e9 for count, time in zip(flops, times, strict=True)]
        sums = [sum(medians[one, way, b] for one in given.groups) for b in (False, True)]
        parts = [time / total for time, total in zip(times, sums, strict=True)]
        print(
            f"{batch:6} {way:9} {name:11} {times[0]:8.3f} ms {speeds[0]:6.1f} TFLOP/s"
            f" {parts[0]:6.1%}, with backward {times[1]:8.3f} ms {speeds[1]:6.1f} TFLOP/s"
            f" {parts[1]:6.1%}",
            flush=True,
        )
        if given.results is not None:
            append_row(given.results, {
                "commit": commit(), "date": now(), **machine(torch.device("cuda"), 1),
                "system": "cule", "mode": "impala_blocks", "way": way, "group": name,
                "batch": batch, "width": given.width, "forward_ms": times[0], "both_ms": times[1],
                "forward_tflops": speeds[0], "both_tflops": speeds[1],
                "rounds": [rounds[way, backward] for backward in (False, True)],
                "command": command_line(),
            })  # fmt: skip


def candidates(kernel: str, inputs: int) -> Iterator[Any]:
    """Ways to divide a kernel's work."""
    from cule.train.nn.kernels.impala import Block

    lanes = ((64, 4), (64, 8), (128, 4), (128, 8))
    spans = (4, 16) if inputs < 16 else (2, 4, 8) if kernel == "weights" else (1, 2, 4)
    stages = (1,) if kernel == "pool" else (1, 2)
    parts = {"convolve": (1,), "pool": (2, 4), "weights": (88, 220, 528)}[kernel]
    for (lane, warps), span, stage, part in itertools.product(lanes, spans, stages, parts):
        yield Block(lane, span, warps, stage, part)


def tune(batch: int, given: argparse.Namespace) -> None:
    """Prints the fastest candidates for each kernel of the groups, forward and backward."""
    from cule.train.nn.kernels import impala

    def best_of(group: nn.Module, images: torch.Tensor) -> float:
        both = captured(works_of(group, images)[1])
        return min(milliseconds(both, given.repeats) for _ in range(3))

    groups = groups_of(given.width)
    for name in given.groups:
        if name == "features":
            continue
        group, images = groups[name], images_of(name, groups[name], batch)
        print(f"{batch} {name} as it is: {best_of(group, images):.3f} ms", flush=True)
        outputs, inputs = next(group.parameters()).shape[:2]
        keys = [("weights", inputs, outputs), ("convolve", outputs, inputs)]
        keys += [("pool", inputs, outputs)] if name.startswith("pool") else []
        for kernel, i, o in keys:
            if o < 16:  # the first layer's pixels have no gradient
                continue
            times, key = {}, (kernel, i, o, images.shape[2])
            for block in candidates(kernel, i):
                with patch.dict(impala.BLOCKS_OF, {key: block}):
                    try:
                        times[block] = best_of(group, images)
                    except Exception as problem:  # as of too much shared memory
                        print(f"  {key} {tuple(block)}: {type(problem).__name__}", flush=True)
            for block in sorted(times, key=times.__getitem__)[:5]:
                print(f"{batch} {key} {tuple(block)} {times[block]:.3f} ms", flush=True)


def main() -> None:
    """Measures as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tools.impala_blocks", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--batches", nargs="+", type=int, default=[256, 1024, 4096])
    add("--ways", nargs="+", choices=WAYS, default=["torch", "fused"])
    add("--groups", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP",
        help=f"{', '.join(GROUPS)} (all layers are always measured)")  # fmt: skip
    add("--width", type=float, default=1.0, help="multiplies the channels")
    add("--rounds", type=int, default=9)
    add("--repeats", type=int, default=10, help="replays of a round")
    add("--tune", action="store_true", help="try candidates for the tables of kernels instead")
    add("--results", type=Path, help="append rows to this file, as JSON lines")
    given = parser.parse_args()
    for batch in given.batches:
        (tune if given.tune else report)(batch, given)


if __name__ == "__main__":
    main()
