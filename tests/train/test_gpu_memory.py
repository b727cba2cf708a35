"""On a GPU: the memory of captured graphs, and a training's within its budget."""

from __future__ import annotations

import gc

import pytest
import torch

import cule
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.collector import Collector
from cule.train.plan.graphs import CudaStreams
from cule.train.trainer import Trainer
from examples.ppo import ppo

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda", 0)
MIB, GIB = 2**20, 2**30


@pytest.fixture(autouse=True)
def emptied():
    """The bytes that torch has from the GPU, with none to spare."""
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


def doubling(source, target):
    """A function that needs as much memory as `source` has, for a moment."""

    def function():
        target.copy_((source * 2).sum())

    return function


def test_graphs_of_a_stream_share_their_memory(emptied):
    streams, source = CudaStreams(GPU, 1), torch.ones(64 * MIB // 4, device=GPU)
    targets = [torch.zeros((), device=GPU) for _ in range(4)]
    before, size = torch.cuda.memory_reserved(), source.nbytes
    graphs = [streams.capture(doubling(source, target)) for target in targets[:3]]
    assert size <= torch.cuda.memory_reserved() - before < 2 * size
    with streams.on(1):  # those of another stream may run at the same time
        graphs.append(streams.capture(doubling(source, targets[3])))
        graphs[3]()
    assert 2 * size <= torch.cuda.memory_reserved() - before < 3 * size
    for graph in (*graphs[2::-1], *graphs[:3]):
        graph()
    torch.cuda.synchronize()
    assert [target.item() for target in targets] == [2.0 * source.numel()] * 4
    del graph
    graphs.clear()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() - before < size
    # And from nothing again, on a stream whose earlier graphs are gone.
    again = streams.capture(doubling(source, targets[0]))
    targets[0].zero_()
    again()
    assert targets[0].item() == 2.0 * source.numel()


def test_graphs_that_are_made_again_leave_no_workspaces_behind(emptied):
    """cuBLAS has one for each stream, of 32 MB on some GPUs, which torch keeps."""
    streams, matrix = CudaStreams(GPU, 0), torch.ones(512, 512, device=GPU)
    product, found = matrix @ matrix, []  # cuBLAS itself begins before a capture
    for _ in range(4):
        graph = streams.capture(lambda: product.copy_(matrix @ matrix))
        graph()
        torch.cuda.synchronize()
        assert (product == 512).all()
        del graph
        gc.collect()
        found.append(torch.cuda.memory_allocated())
    assert found == found[:1] * 4


@pytest.mark.parametrize("num_envs", [64, 1000])
def test_bytes_of_envs_are_what_torch_has_allocated_for_them(emptied, num_envs):
    before = torch.cuda.memory_allocated()
    env = cule.AtariEnv("pong", num_envs, device="cuda", translate=False, stack_num=1)
    allocated = torch.cuda.memory_allocated() - before
    collector = Collector(env, GPU)
    # torch rounds each tensor up to 512 bytes.
    assert collector.bytes <= allocated < 1.01 * collector.bytes + 512 * len(env.engine.tensors)
    collector.close()


def test_a_training_keeps_to_its_budget_also_while_it_checks_its_chunks(emptied, monkeypatch):
    """The first iterations are without graphs, and so are those of phases 2, 4 and 8."""
    # As train.train has it. To try algorithms takes more memory than the whole budget.
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    budget = 0.25 * GIB
    args = ppo.Args(
        game="pong", device="cuda", num_envs=128, num_steps=64, minibatch_size=4096,
        update_epochs=1, memory_budget=budget / GIB, bf16=False, total_frames=10**9, num_threads=1,
    ).on(GPU)  # fmt: skip
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    one = Trainer(ppo.PPO, args, ProcessGroup(0, 1, GPU))
    work = one.learner.work
    assert work.at_once < work.samples
    for _ in range(9):
        one.iterate()
    torch.cuda.synchronize()
    # Libraries' workspaces are not counted.
    assert torch.cuda.max_memory_allocated() - before < budget + 64 * MIB
    one.close()
