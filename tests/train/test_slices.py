"""MIG slices: found through a stand-in for NVML, counted as GPUs are, and one for each process."""

from __future__ import annotations

import os
import re
import sys
from types import SimpleNamespace

import pytest
import torch
from stand_ins.nvml import nvml_of
from test_decoupled import launched
from training_runs import assert_same, one_thread_each, saved

from cule import _core
from cule.train.distributed import connections, placement, slices
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.reduction import strategy_of
from cule.train.layout import Layout
from cule.train.sweep.jobs import only_gpus
from cule.train.sweep.sweep import devices_of
from tests.support import warm

GPU = torch.device("cuda", 0)
DIVIDED = {"GPU-a": ["MIG-a0", "MIG-a1"], "GPU-old": None, "GPU-b": ["MIG-b0"], "GPU-c": []}


@pytest.fixture
def machine(monkeypatch):
    """Makes this a machine with some GPUs, of which the environment may name a few."""

    def make(gpus=DIVIDED, visible=None, **options):
        monkeypatch.setitem(sys.modules, "pynvml", nvml_of(gpus, **options))
        monkeypatch.setenv(slices.VISIBLE, visible or "")
        if visible is None:
            del os.environ[slices.VISIBLE]  # and afterwards it is as it was

    monkeypatch.setattr(slices, "_taken", None)
    monkeypatch.setattr(slices, "cuda_has_begun", lambda: False)
    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    return make


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, ["MIG-a0", "MIG-a1", "GPU-old", "MIG-b0"]),
        ("2, 0", ["MIG-b0", "MIG-a0", "MIG-a1"]),
        ("GPU-b,GPU-old", ["MIG-b0", "GPU-old"]),
        ("MIG-a1,MIG-b0", ["MIG-a1", "MIG-b0"]),
        ("0,7,2", ["MIG-a0", "MIG-a1"]),
        ("GPU-,0", []),
        ("1", []),
        ("", []),
        ("3", []),
    ],
)
def test_slices_are_those_that_the_process_may_see(machine, visible, found):
    machine(visible=visible)
    assert slices.slices() == found
    assert sys.modules["pynvml"].open == 0


def test_nothing_is_divided_without_slices_or_nvml(machine, monkeypatch):
    for gpus, options in (
        ({"GPU-a": None}, {}), ({}, {}), (DIVIDED, {"driver": False}), (DIVIDED, {"lost": "GPU-b"}),
    ):  # fmt: skip
        machine(gpus, **options)
        assert slices.slices() == [] and slices.take(3) == ""
        assert sys.modules["pynvml"].open == 0
    monkeypatch.setitem(sys.modules, "pynvml", None)  # an import fails
    assert slices.slices() == []
    assert slices.VISIBLE not in os.environ


def test_a_process_sees_only_its_slice_and_keeps_it(machine):
    machine()
    assert slices.take(2) == "GPU-old" == os.environ[slices.VISIBLE]
    # Of a training after it in the same process, too, though no slice is seen any more.
    assert slices.divided() and slices.slices() == []
    assert slices.take(2) == "GPU-old"
    with pytest.raises(ValueError, match="to keep its MIG slice 2, as CUDA has begun, got 1"):
        slices.take(1)


def test_slices_that_cannot_be_taken(machine, monkeypatch):
    machine()
    with pytest.raises(ValueError, match="of one of 4 MIG slices, counted from 0, got 4"):
        slices.take(4)
    monkeypatch.setattr(slices, "cuda_has_begun", lambda: True)
    told = "its MIG slice before CUDA begins in it, got it later"
    with pytest.raises(ValueError, match=told):
        slices.take(1)
    machine(visible="1,0")  # the first is a whole GPU, of which CUDA shows nothing beside slices
    with pytest.raises(ValueError, match=told):
        slices.take(0)
    assert os.environ[slices.VISIBLE] == "1,0"


@pytest.mark.parametrize(("visible", "name"), [("MIG-b0", "MIG-b0"), (None, "MIG-a0")])
def test_the_slice_that_cuda_shows_can_be_taken_after_cuda_has_begun(
    machine, monkeypatch, visible, name
):
    """A container or a job often has one slice, and a notebook may have asked torch for it."""
    machine(visible=visible)
    monkeypatch.setattr(slices, "cuda_has_begun", lambda: True)
    assert slices.take(0) == name == os.environ[slices.VISIBLE]
    with pytest.raises(ValueError, match="to keep its MIG slice 0, as CUDA has begun, got 1"):
        slices.take(1)


@pytest.mark.parametrize(
    ("text", "rank", "size", "device", "name"),
    [
        ("2act@1+learn@0+both@3", 2, 4, "cuda", "MIG-a1"),
        ("2act@1+learn@0+both@3", 1, 4, None, "MIG-b0"),
        ("2both", 3, 4, "cuda", "MIG-a1"),
        ("together", 0, 1, "cuda:3", "MIG-b0"),
        ("together", 0, 1, None, "MIG-a0"),
    ],
)
def test_layouts_count_slices_as_gpus(machine, monkeypatch, text, rank, size, device, name):
    machine()
    seen = []
    monkeypatch.setattr(
        placement, "choose_device",
        lambda chosen: seen.append((chosen, os.environ[slices.VISIBLE])) or torch.device(chosen),
    )  # fmt: skip
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    place = placement.choose_place(Layout.parse(text), rank, size, device)
    assert (place.device, place.mig_slice, place.notes) == (GPU, name, (f"computes on {name}",))
    assert seen == [("cuda:0", name)]


def test_a_slice_has_no_budget_and_is_kept_by_a_search(machine, monkeypatch):
    machine()
    monkeypatch.setattr(placement, "choose_device", torch.device)
    with pytest.raises(ValueError, match=r"on a MIG slice, which has both, got layout both:8"):
        placement.choose_place(Layout.parse("both:8"), 0, 1, "cuda:1")
    layout = Layout.parse("act@0+learn@1")
    joined = ProcessGroup(0, 2, GPU, layout, mig_slice=slices.take(1))
    assert joined.with_layout(Layout.parse("learn@1+act@1")).device == GPU
    with pytest.raises(ValueError, match="to keep its MIG slice 1, as CUDA has begun, got 0"):
        joined.with_layout(Layout.parse("act@1+learn@0"))


@pytest.mark.parametrize("text", ["both@0", "together"])
def test_a_single_process_keeps_its_slice_in_a_search(machine, monkeypatch, text):
    machine()
    monkeypatch.setattr(placement, "choose_device", torch.device)
    layout = Layout.parse(text)
    place = placement.choose_place(layout, 0, 1, None)
    joined = ProcessGroup(0, 1, place.device, layout, mig_slice=place.mig_slice)
    for same in (text, "together", "both@0", "apart:8"):
        assert joined.with_layout(Layout.parse(same)).device == GPU
    with pytest.raises(ValueError, match="to keep its MIG slice 0, as CUDA has begun, got 3"):
        joined.with_layout(Layout.parse("both@3"))


def test_a_slice_that_is_asked_for_by_its_number_stays(machine, monkeypatch):
    machine()
    monkeypatch.setattr(placement, "choose_device", torch.device)
    layout = Layout.parse("both@0")
    place = placement.choose_place(layout, 0, 1, "cuda:3")
    joined = ProcessGroup(0, 1, place.device, layout, mig_slice=place.mig_slice)
    assert joined.with_layout(layout).device == GPU and joined.mig_slice == "MIG-b0"


def test_a_sweep_trains_on_slices(machine):
    machine()
    assert devices_of([0, 3], None) == ["cuda:0", "cuda:3"]
    assert devices_of([0, 1, 3, 2], None, each=2) == ["cuda:0,1", "cuda:3,2"]
    assert only_gpus("3,2") == {slices.VISIBLE: "MIG-b0,GPU-old"}
    with pytest.raises(ValueError, match="expected gpus below 4, which are here, got 4"):
        devices_of([4], None)
    machine(visible="2,0")
    assert only_gpus("0,1") == {slices.VISIBLE: "MIG-b0,MIG-a0"}


@pytest.mark.parametrize("name", ["MIG-a0", ""])
def test_slices_are_connected_by_way_of_the_host(monkeypatch, name):
    """NCCL does not connect them, and only processes of one slice share memory.

    That holds for a process with a whole GPU, too, if others have slices.
    """
    whole = SimpleNamespace(uuid="GPU-z")
    monkeypatch.setattr(ProcessGroup, "gather", lambda self, value: [value, "elsewhere"])
    joined = ProcessGroup(
        0, 2, GPU, Layout.parse("both@0+both@1"), mig_slice=name, divided=True
    )  # fmt: skip
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: whole)
    ways = connections.Connections(joined)
    assert ways.share_memory(0) and not ways.share_memory(1)
    box = ways.outbox([((2,), torch.float32)], 1, slots=3)
    assert box.parcels[0].buffer.device.type == "cpu" and ways.bytes == 0
    assert strategy_of(joined, None) == "multi-process"
    with pytest.raises(ValueError, match=re.escape("expected reduction multi-process between MIG")):
        strategy_of(joined, "multi-ring")
    shared = ProcessGroup(0, 2, GPU, Layout.parse("2both@1"), mig_slice="MIG-a1", divided=True)
    assert strategy_of(shared, None) == "hierarchical"


# A process on a CPU that believes to have a slice if it is the second one.
ASK = """
import dataclasses, os
from cule.train.distributed import process_group
from cule.train.layout import Layout
choose = process_group.choose_place
process_group.choose_place = lambda layout, rank, size, device: dataclasses.replace(
    choose(layout, rank, size, device), mig_slice=SLICES[rank]
)
joined = process_group.ProcessGroup.join("cpu", Layout.parse("both@0+both@1"))
print("divided", joined.divided, repr(joined.mig_slice))
joined.leave()
"""


@pytest.mark.parametrize(("names", "divided"), [(["", "MIG-a0"], True), (["", ""], False)])
def test_all_processes_know_whether_one_has_a_slice(tmp_path, names, divided):
    """Machines of which only some have MIG would choose unlike ways, and wait for each other."""
    script = tmp_path / "ask.py"
    script.write_text(f"SLICES = {names}\n{ASK}")
    done = warm.run_ranks(2, [str(script)], env=one_thread_each())
    assert [each.returncode for each in done] == [0, 0], done[0].stderr
    for name, each in zip(names, done, strict=True):
        assert f"divided {divided} {name!r}" in each.stdout


@pytest.mark.gpu
@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize(
    ("layout", "count"), [("act@0+learn@1", 2), ("2act@0+learn@1", 3), ("both@0+both@1", 2)]
)
def test_slices_train_as_processes_that_share_a_gpu(layout, count, graphs, tmp_path):
    """Messages and gradients by way of the host are those through the GPU's memory."""
    found = []
    for program, text in (
        ("tests.train.sliced", layout), ("examples.a2c_vtrace.train", layout.replace("@1", "@0")),
    ):  # fmt: skip
        folder = tmp_path / program
        launched(count, folder, program, layout=text, device="cuda", lag=1, total_frames=2000,
                 deterministic=True, cuda_graphs=graphs)  # fmt: skip
        found.append(saved(folder))
    assert found[0]["updates"] > 10
    assert_same(found[0]["networks"], found[1]["networks"])
