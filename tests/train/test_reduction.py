"""Each way to average gradients gives the plain mean, and all processes the same bits."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket

import pytest
import torch
import torch.distributed as dist
from training_runs import assert_same, options, saved

from cule.programs.results import read_rows
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.reduction import choose, make_reduction, strategy_of
from cule.train.layout import Layout
from tests.support import warm

SIZE = 4


@pytest.mark.parametrize(
    ("mapping", "strategy"),
    [
        ([[0, 1, 2]], "multi-process"),
        ([[0], [1], [2]], "multi-ring"),
        ([[0, 1], [2, 3]], "multi-ring"),
        ([[0, 1, 2], [3, 4, 5]], "hierarchical"),
        ([[0, 1], [2]], "hierarchical"),
    ],
)
def test_choice_is_that_of_the_paper(mapping, strategy):
    assert choose(mapping) == strategy


@pytest.mark.parametrize(
    ("layout", "size", "device", "strategy"),
    [
        ("together", 1, "cuda", None),
        ("decoupled:3+1", 4, "cuda", None),
        ("together", 4, "cuda", "multi-ring"),
        ("staggered:2", 2, "cuda", "hierarchical"),
        ("staggered:2", 2, "cpu", "multi-process"),
        ("staggered:2", 4, "cuda", "multi-ring"),
        ("staggered:3", 6, "cuda", "hierarchical"),
    ],
)
def test_layouts_have_the_way_that_suits_them(layout, size, device, strategy):
    processes = ProcessGroup(0, size, torch.device(device), Layout.parse(layout))
    assert strategy_of(processes, None) == strategy


@pytest.mark.parametrize(
    ("layout", "size", "wanted", "told"),
    [
        ("together", 1, "hierarchical", "no reduction where one process learns, got hierarchical"),
        ("decoupled:2+1", 3, "multi-ring", "no reduction where one process learns"),
        ("staggered:3", 6, "multi-ring", "at most as many as there are GPUs, got 3, 3"),
    ],
)
def test_way_that_a_layout_does_not_have_is_refused(layout, size, wanted, told):
    processes = ProcessGroup(0, size, torch.device("cpu"), Layout.parse(layout))
    with pytest.raises(ValueError, match=told):
        strategy_of(processes, wanted)


def test_training_averages_in_the_way_that_is_asked_for(tmp_path):
    """Of two numbers each way makes the same sum."""
    found = {}
    for way in (None, "hierarchical"):
        run = tmp_path / str(way)
        more = {} if way is None else {"reduction": way}
        words = options(run, layout="staggered:2", total_frames=1000, **more)
        for done in warm.run_ranks(2, ["-m", "examples.a2c_vtrace.train", *words]):
            assert done.returncode == 0, done.stderr
        (row,) = read_rows(run / "result.jsonl")
        found[row["reduction"]] = saved(run)["networks"]
    assert list(found) == ["multi-process", "hierarchical"]
    assert_same(found["multi-process"], found["hierarchical"])


def random_mapping(chosen):
    """Some of the processes, on some GPUs."""
    ranks = chosen.sample(range(SIZE), chosen.randint(2, SIZE))
    cuts = sorted(chosen.sample(range(1, len(ranks)), chosen.randint(0, len(ranks) - 1)))
    return [ranks[a:b] for a, b in zip([0, *cuts], [*cuts, len(ranks)], strict=True)]


def cases():
    """Layouts, each with every strategy that it allows."""
    chosen = random.Random(0)
    mappings = [[[0, 1], [2, 3]], [[3], [1], [0], [2]], [[2, 0], [1, 3]]]
    mappings += [random_mapping(chosen) for _ in range(12)]
    for number, mapping in enumerate(mappings):
        each = {len(processes) for processes in mapping}
        rings = len(each) == 1 and each.pop() <= len(mapping)
        for strategy in ("multi-process", "hierarchical", *(["multi-ring"] if rings else [])):
            yield number, mapping, strategy


def gradients(number, whole):
    """A gradient for each process; sums of whole numbers are exact."""
    drawn = torch.Generator().manual_seed(number)
    if whole:
        return torch.randint(-999, 999, (SIZE, 1001), generator=drawn).float()
    return torch.randn(SIZE, 1001, generator=drawn)


def averaged(rank, port, queue):
    """Averages in one of the processes."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=SIZE)
    found = []
    for number, mapping, strategy in cases():
        for whole in (True, False):
            mine = gradients(number, whole)[rank].clone()
            reduction = make_reduction(mapping, mine, strategy)
            assert (reduction is None) == all(rank not in gpu for gpu in mapping)
            if reduction is not None:
                reduction.average(mine)
                reduction.average(mine)  # the mean of equal vectors is the same
            found.append(mine.numpy())
    dist.barrier()
    dist.destroy_process_group()
    queue.put((rank, found))


def test_each_way_is_the_mean():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cule.train", "test_reduction"])
    queue = context.Queue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [context.Process(target=averaged, args=(r, port, queue)) for r in range(SIZE)]
    for process in started:
        process.start()
    results = dict(queue.get(timeout=120) for _ in started)
    for process in started:
        process.join()
        assert process.exitcode == 0
    place = 0
    for number, mapping, strategy in cases():
        ranks = [rank for gpu in mapping for rank in gpu]
        for whole in (True, False):
            found = [torch.from_numpy(results[rank][place]) for rank in ranks]
            place += 1
            wanted = gradients(number, whole)[ranks].mean(dim=0)
            assert all(torch.equal(one, found[0]) for one in found), (mapping, strategy)
            if whole and len(ranks) in (2, 4):
                assert torch.equal(found[0], wanted), (mapping, strategy)
            torch.testing.assert_close(found[0], wanted, atol=1e-4, rtol=1e-6)
