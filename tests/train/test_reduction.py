"""Each way to average gradients gives the plain mean, and all processes the same bits."""

from __future__ import annotations

import multiprocessing
import os
import random
import socket

import pytest
import torch
import torch.distributed as dist

from cule.train.distributed.reduction import choose, make_reduction

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
