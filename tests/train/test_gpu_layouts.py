"""On GPUs: partitions are disjoint, gradients are averaged, every layout goes on exactly."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess

import pytest
import torch
import torch.distributed as dist
from training_runs import ROOT, assert_same, options, processes, saved

from cule.train.distributed.reduction import make_reduction
from cule.train.distributed.sm_partition import split
from cule.train.logs.log import read_log

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = pytest.mark.gpu

GPU = torch.device("cuda", 0)
GPUS = torch.cuda.device_count()


@triton.jit
def look(out):
    """Writes the multiprocessor on which each block runs."""
    block = tl.program_id(0)
    number = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r,r", [block], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out + block, number)


def multiprocessors_used(stream):
    """The numbers (%smid) of the multiprocessors on which a stream's work runs."""
    out = torch.empty(200_000, dtype=torch.int32, device=GPU)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        look[(len(out),)](out)
    stream.synchronize()
    return set(out.tolist())


def test_partitions_are_disjoint_and_of_the_size_reported():
    acting, learning = split(GPU, 50)
    used = [multiprocessors_used(part.stream()) for part in (acting, learning)]
    assert not used[0] & used[1]
    assert [len(some) for some in used] == [acting.multiprocessors, learning.multiprocessors]
    assert acting.multiprocessors >= 50
    every = torch.cuda.get_device_properties(GPU).multi_processor_count
    assert acting.multiprocessors + learning.multiprocessors == every


def test_partition_of_all_multiprocessors_is_refused():
    with pytest.raises(ValueError, match="have to learn, got 9999"):
        split(GPU, 9999)


def averaged(rank, size, port, gpus, strategy, queue):
    """Averages 20 gradients, which change in place, in one of the processes."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(gpus[rank])
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=size)
    mapping = [[r for r in range(size) if gpus[r] == gpu] for gpu in sorted(set(gpus))]
    gradient = torch.zeros(1_000_003, device="cuda")
    reduction = make_reduction(mapping, gradient, strategy)
    good = True
    for number in range(20):
        gradient.copy_(torch.arange(len(gradient), device="cuda") % 100 * (rank + 1 + number))
        reduction.average(gradient)
        mean = sum(r + 1 + number for r in range(size)) / size
        wanted = torch.arange(len(gradient), device="cuda") % 100 * mean
        good = good and torch.equal(gradient, wanted)
    if reduction.captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            reduction.average(gradient)
        gradient.fill_(rank)
        graph.replay()
        good = good and bool((gradient == sum(range(size)) / size).all())
        del graph
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    queue.put(good)


@pytest.mark.parametrize(
    ("gpus", "strategy"),
    [
        ([0, 0], "multi-process"),
        ([0, 0], "hierarchical"),
        ([0, 1], "multi-ring"),
        ([0, 0, 1, 1], "multi-ring"),
        ([0, 0, 1, 1], "hierarchical"),
    ],
)
def test_gradients_are_averaged(gpus, strategy):
    if max(gpus) >= GPUS:
        pytest.skip("needs two GPUs")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        context.Process(target=averaged, args=(rank, len(gpus), port, gpus, strategy, queue))
        for rank in range(len(gpus))
    ]
    for process in started:
        process.start()
    assert all(queue.get(timeout=240) for _ in started)
    for process in started:
        process.join()


@pytest.mark.parametrize(
    ("layout", "count", "gpus"),
    [
        ("apart:64", 1, 1),
        ("staggered:2", 2, 1),
        ("decoupled:1+1", 2, 2),
        ("decoupled:2+2", 4, 4),
        ("2act@0+learn@0", 3, 1),
        ("act@0+learn@0+both@1", 3, 2),
        ("2act@0+learn@1", 3, 2),
    ],
)
def test_layout_goes_on_exactly(layout, count, gpus, tmp_path):
    if gpus > GPUS:
        pytest.skip(f"needs {gpus} GPUs")
    more = {"device": "cuda", "num_envs": 64, "lag": 1, "layout": layout, "resume": True,
            "deterministic": True}  # fmt: skip
    for run, frames in (("parts", 8_000), ("parts", 16_000), ("whole", 16_000)):
        done = subprocess.run(
            [*processes(count), *options(tmp_path / run, total_frames=frames, **more)],
            cwd=ROOT, capture_output=True, text=True, timeout=280,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    for rank in range(count):
        assert_same(saved(tmp_path / "parts", rank), saved(tmp_path / "whole", rank))


@pytest.mark.parametrize(
    ("layout", "count", "gpus"),
    [("2act@0+learn@0", 3, 1), ("decoupled:1+1", 2, 2), ("2act@0+act@1+learn@1", 4, 2)],
)
def test_actors_play_on_within_the_limit(layout, count, gpus, tmp_path):
    if gpus > GPUS:
        pytest.skip(f"needs {gpus} GPUs")
    more = {"device": "cuda", "num_envs": 96, "num_batches": 1, "lag": 1, "layout": layout,
            "max_staleness": 4, "total_frames": 60_000}  # fmt: skip
    done = subprocess.run(
        [*processes(count), *options(tmp_path, **more)],
        cwd=ROOT, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = read_log(tmp_path / "log.jsonl")
    assert len(lines) > 5
    assert all(1 <= line["staleness"] <= line["staleness_max"] <= 4 for line in lines[1:])


# Trials of layouts in turn, as a search makes them; prints what went wrong.
TRIALS = """
import sys
from cule.train.tune import trial
from cule.train.distributed.process_group import ProcessGroup
from examples.a2c_vtrace import train as a2c

processes = ProcessGroup.join("cuda")
args = a2c.Args(num_envs=80, lag=1, device="cuda").on(processes.device)
for layout in ("together", "decoupled:1+1", "together"):
    found = trial.measure(a2c.A2C, args, {"layout": layout}, processes, seconds=0.1)
    if found.problem:
        sys.exit(f"{layout}: {found.problem}")
processes.leave()
"""


def test_a_layout_works_after_another_that_has_the_gpus_in_another_order(tmp_path):
    if GPUS < 2:
        pytest.skip("needs two GPUs")
    script = tmp_path / "trials.py"
    script.write_text(TRIALS)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*processes(2)[:-2], str(script)], cwd=ROOT, capture_output=True, text=True, timeout=280,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
