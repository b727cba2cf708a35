"""Limits of processes that share a GPU: set before CUDA begins, checked after it, else a sentence.

Stand-ins take the place of the Multi-Process Service's program and of CUDA's driver.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from test_algorithms import PROGRAMS, TINY
from training_runs import ROOT, one_thread_each, options, processes, saved

from cule import _core
from cule.errors import InvalidValue
from cule.train import trainer
from cule.train.distributed import budgets, placement, slices
from cule.train.distributed.gpu_lock import GPU_LOCKS, environment_with
from cule.train.distributed.process_group import ProcessGroup
from cule.train.instances import Instance
from cule.train.layout import Layout
from tests.support import build, warm

GPU = torch.device("cuda", 0)
VARIABLES = (budgets.PERCENTAGE, budgets.MEMORY)
SERVICE = """#!{python}
import sys
assert sys.stdin.read() == "get_default_active_thread_percentage\\n"
{answer}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    source = Path(__file__).parent / "stand_ins" / "driver.cpp"
    folder = tmp_path_factory.mktemp("driver")
    return build.build("driver", [source], folder, compile_flags=build.SHARED)


@pytest.fixture
def driver(library, tmp_path, monkeypatch):
    """A stand-in for CUDA's driver that nothing has initialized."""
    own = shutil.copy(library, tmp_path / "libcuda.so")
    monkeypatch.setattr(budgets, "DRIVER", str(own))
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        del os.environ[name]  # and afterwards it is as it was
    monkeypatch.setattr(budgets, "_own", {})
    budgets.size_of.cache_clear()
    yield ctypes.CDLL(str(own))
    budgets.size_of.cache_clear()


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Makes a stand-in for the service's program, which answers so."""

    def make(answer='print("100.0")'):
        program = tmp_path / "bin" / budgets.CONTROL
        program.parent.mkdir()
        program.write_text(SERVICE.format(python=sys.executable, answer=answer))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return make


def given_by(driver):
    """The multiprocessors that a process has once CUDA begins."""
    count = ctypes.c_int()
    assert driver.cuInit(0) == 0
    assert driver.cuDeviceGetAttribute(ctypes.byref(count), 16, 0) == 0
    return count.value


@pytest.mark.parametrize(
    "budget, given",
    [(1, 0), (8, 8), (11, 10), (40, 40), (41, 40), (44, 44), (66, 66), (97, 96), (131, 130)],
)
def test_budget_is_what_the_process_gets_or_a_little_less(driver, service, budget, given):
    service()
    budgets.limit(Instance(budget=budget), 0)
    assert given_by(driver) == given and budgets.MEMORY not in os.environ


@pytest.mark.parametrize("every", [2, 20, 98, 100, 108, 114, 132, 148, 198])
def test_no_budget_is_exceeded(every):
    """Multiprocessors come in pairs, to which the driver rounds down."""
    for budget in range(1, every):
        percentage = budgets._percentage(budget, every)
        assert 0 < percentage < 100
        assert every * percentage // 200 * 2 <= budget
        assert percentage == 99 or every * (percentage + 1) // 100 >= budget


def test_memory_is_of_the_gpu_of_the_process(driver, service):
    service()
    budgets.limit(Instance(1, memory=10.5), 1)
    assert os.environ[budgets.MEMORY] == "1=10752M" and budgets.PERCENTAGE not in os.environ


def test_the_same_limits_again_are_no_mistake_after_cuda_has_begun(driver, service):
    service()
    one = Instance(budget=44, memory=2)
    budgets.limit(one, 0)
    assert given_by(driver) == 44
    budgets.limit(one, 0)


def test_what_the_environment_says_later_changes_no_limit(driver, service, monkeypatch):
    service()
    budgets.limit(Instance(budget=44), 0)
    monkeypatch.setenv(budgets.PERCENTAGE, "50")
    with pytest.raises(ValueError, match=r"keep its limits \w+=34, as CUDA has begun, got \w+=50$"):
        budgets.limit(Instance(budget=66), 0)
    monkeypatch.delenv(budgets.PERCENTAGE)
    budgets.limit(Instance(budget=44), 0)
    with pytest.raises(ValueError, match="as CUDA has begun, got none"):
        budgets.no_limit()


def test_limits_are_of_the_layout_or_of_the_environment(driver, service, monkeypatch):
    service()
    monkeypatch.setenv(budgets.PERCENTAGE, "34")
    with pytest.raises(ValueError, match="in the layout or in its environment, got both: CUDA_MPS"):
        budgets.limit(Instance(budget=66), 0)


def test_what_cuda_has_taken_up_cannot_be_limited(driver, service):
    service()
    assert not budgets.cuda_has_begun()
    driver.cuInit(0)
    assert budgets.cuda_has_begun()
    with pytest.raises(ValueError, match="before CUDA begins in its process, got it later"):
        budgets.limit(Instance(budget=44), 0)
    assert budgets.PERCENTAGE not in os.environ


@pytest.mark.parametrize(
    ("answer", "one", "number", "told"),
    [
        (None, Instance(budget=8), 0,
         "expected CUDA's Multi-Process Service for instances with a budget or memory of their "
         "own, as python -m cule.train.mps -- torchrun ... starts it, got none: "),
        ('print("Cannot find MPS control daemon process"); sys.exit(1)', Instance(memory=2), 0,
         "starts it, got none: Cannot find MPS control daemon process"),
        ("sys.exit(1)", Instance(budget=8), 0, "got none: nvidia-cuda-mps-control ended with 1"),
        ('print("50.0")', Instance(budget=8), 0,
         "to leave budgets to the layout, got its default_active_thread_percentage 50.0"),
        ('print("100.0")', Instance(budget=132), 0,
         "a budget below the 132 multiprocessors of cuda:0, got 132"),
        ('print("100.0")', Instance(memory=80), 0,
         "a limit of memory below the 80 GiB of cuda:0, got 80"),
        ('print("100.0")', Instance(memory=1000), 0, "the 80 GiB of cuda:0, got 1000"),
        ('print("100.0")', Instance(2, memory=8), 2,
         "expected a GPU that CUDA calls cuda:2, got: cuDeviceGet failed with 101"),
        ('print("100.0")', Instance(2, budget=8), 2,
         "expected a GPU that CUDA calls cuda:2, got: cuDeviceGet failed with 101"),
    ],
)  # fmt: skip
def test_what_cannot_be_limited_is_a_sentence(
    driver, service, monkeypatch, answer, one, number, told
):
    if answer is None:
        monkeypatch.setenv("PATH", "/nowhere")
    else:
        service(answer)
    with pytest.raises(ValueError, match=re.escape(told)):
        budgets.limit(one, number)


@pytest.fixture
def gpu(monkeypatch):
    """A pretended GPU, of which a process may use so many multiprocessors and bytes."""
    has = SimpleNamespace(multi_processor_count=44, free=2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: has)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (has.free, 2**37))
    return has


@pytest.mark.parametrize(
    ("one", "given", "gib", "told"),
    [
        (Instance(budget=44), 132, 1, "process at most 44 multiprocessors of cuda:0, got 132"),
        (Instance(budget=44), 45, 1, "process at most 44 multiprocessors of cuda:0, got 45"),
        (Instance(budget=131), 132, 1, "process at most 131 multiprocessors of cuda:0, got 132"),
        (Instance(memory=2), 132, 79.5, "to give this process at most 2 GiB of cuda:0, got 79.5"),
    ],
)
def test_a_service_that_does_not_limit_is_a_sentence(driver, gpu, one, given, gib, told):
    gpu.multi_processor_count, gpu.free = given, int(gib * 2**30)
    with pytest.raises(RuntimeError, match=re.escape(told)):
        list(budgets.check_limits(one, GPU))


@pytest.fixture
def on_gpus(monkeypatch, gpu):
    """Pretends that the build and the machine have GPUs; returns what was chosen, and when."""
    chosen = []

    def choose(name):
        chosen.append((name, os.environ.get(budgets.PERCENTAGE), os.environ.get(budgets.MEMORY)))
        return torch.device(name)

    monkeypatch.setattr(_core, "has_cuda", lambda: True)
    monkeypatch.setattr(slices, "slices", list)
    monkeypatch.setattr(placement, "choose_device", choose)
    monkeypatch.setattr(placement, "find_device", lambda name: GPU)
    return chosen


def test_each_process_has_its_limits_when_it_chooses_its_device(driver, service, on_gpus):
    service()
    layout = Layout.parse("2act:44:10GiB@1+learn@0")
    assert placement.choose_place(layout, 0, 3, None).notes == ()
    place = placement.choose_place(layout, 1, 3, "cuda")
    assert on_gpus == [("cuda:0", None, None), ("cuda:1", "34", "1=10240M")]
    assert place.notes == (
        "44 multiprocessors for this process; 44 were asked for",
        "1.0 GiB of memory for this process; 10 were asked for",
    )


@pytest.mark.parametrize(
    ("layout", "got"),
    [
        ("together", "none"),
        ("apart:44", "none"),
        ("both:66:10GiB", f"{budgets.PERCENTAGE}=50, {budgets.MEMORY}=0=10240M"),
        ("both:44", f"{budgets.PERCENTAGE}=34"),
    ],
)
def test_a_process_keeps_its_limits_in_the_next_training(driver, service, on_gpus, layout, got):
    service()
    first = Layout.parse("both:44:10GiB")
    placement.choose_place(first, 0, 1, "cuda")
    assert given_by(driver) == 44
    kept = f"{budgets.PERCENTAGE}=34, {budgets.MEMORY}=0=10240M"
    with pytest.raises(
        ValueError, match=f"to keep its limits {kept}, as CUDA has begun, got {got}$"
    ):
        placement.choose_place(Layout.parse(layout), 0, 1, "cuda")
    placement.choose_place(first, 0, 1, "cuda")


def test_limits_of_a_process_are_not_those_of_trainings_that_it_starts(
    driver, service, monkeypatch
):
    service()
    monkeypatch.setenv(budgets.MEMORY, "0=1024M")
    assert environment_with([]).get(budgets.MEMORY) == "0=1024M"
    monkeypatch.delenv(budgets.MEMORY)
    budgets.limit(Instance(budget=44, memory=2), 0)
    assert not {*VARIABLES} & environment_with([]).keys()


@pytest.mark.parametrize(
    ("layout", "name", "chosen"),
    [
        ("both@1", None, "cuda:1"),
        ("both@1", "cuda", "cuda:1"),
        ("both@1", "cuda:0", "cuda:0"),
        ("both", "cuda", "cuda"),
    ],
)
def test_a_single_process_has_the_gpu_of_its_layout(on_gpus, layout, name, chosen):
    placement.choose_place(Layout.parse(layout), 0, 1, name)
    assert [name for name, *_ in on_gpus] == [chosen]


def test_layouts_that_are_searched_keep_the_limits(driver, service, on_gpus):
    service()
    layout = Layout.parse("both:44")
    device = placement.choose_place(layout, 0, 1, "cuda:0").device
    joined = ProcessGroup(0, 1, device, layout)
    assert joined.with_layout(Layout.parse("both:44")) is joined
    with pytest.raises(
        ValueError, match="to stay as they are in the layout both:44, as CUDA has begun, got apart"
    ):
        joined.with_layout(Layout.apart(44))


def test_limits_stay_on_their_gpus(driver, service, on_gpus):
    service()
    layout = Layout.parse("both:10GiB@0+both:10GiB@1")
    device = placement.choose_place(layout, 0, 2, "cuda").device
    joined = ProcessGroup(0, 2, device, layout)
    with pytest.raises(ValueError, match="expected limits of processes to stay as they are in"):
        joined.with_layout(Layout.parse("both:10GiB@1+both:10GiB@0"))
    mixed = ProcessGroup(1, 2, device, Layout.parse("learn:44@0+act@1"))
    assert mixed.with_layout(Layout.parse("learn:44@0+act@0")).device == GPU


@pytest.mark.parametrize(
    ("layout", "sharing"), [("both:44", 1), ("both:10GiB", 3), ("together", 3), ("apart:44", 3)]
)
def test_trainings_of_a_sweep_do_not_divide_a_budget(monkeypatch, tmp_path, layout, sharing):
    """CUDA counts only the multiprocessors of the budget."""
    asked = []

    def make(*args, sharing, **options):
        asked.append(sharing)
        raise InvalidValue("no envs")

    monkeypatch.setattr(trainer, "make_envs", make)
    monkeypatch.setattr(trainer, "split", lambda device, budget: None)
    turns = environment_with([tmp_path / str(number) for number in range(3)])
    monkeypatch.setenv(GPU_LOCKS, turns[GPU_LOCKS])
    cpu = torch.device("cpu")
    algorithm, kind, own = PROGRAMS["A2C+V-trace"]
    args = kind(**{**TINY, **own, "lag": 1}).on(cpu)
    with pytest.raises(ValueError, match="no envs"):
        trainer.Trainer(algorithm, args, ProcessGroup(0, 1, cpu, Layout.parse(layout)))
    assert asked == [sharing]


def test_budgets_are_for_gpus():
    words = ["-m", "examples.a2c_vtrace.train", "--device", "cpu", "--layout", "both:44"]
    done = warm.run(words)
    assert done.returncode == 2
    assert "expected GPUs for instances with a budget or memory of their own, got device cpu" in (
        done.stderr
    )


@pytest.mark.gpu
@pytest.mark.parametrize("layout", ["2both:40:20GiB", "act:40@0+learn:88:20GiB@0"])
def test_processes_of_a_gpu_train_within_their_budgets(tmp_path, layout):
    """With the real service; --explain of a process says what CUDA gives it."""
    words = options(tmp_path / "run", device="cuda", layout=layout, lag=1, total_frames=2000)
    command = [sys.executable, "-m", "cule.train.mps", "--", *processes(2), *words]
    for more in ([], ["--explain"]):
        done = subprocess.run(
            [*command, *more], env=one_thread_each(), cwd=ROOT, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    asked = re.findall(r"(\d+) multiprocessors for this process; (\d+) were asked", done.stdout)
    assert asked and all(int(asked_for) - 8 < int(given) <= int(asked_for)
                         for given, asked_for in asked)  # fmt: skip
    assert saved(tmp_path / "run")["updates"] > 10


@pytest.mark.gpu
def test_a_budget_without_the_service_is_a_sentence(tmp_path):
    words = options(tmp_path, device="cuda", layout="both:40")
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "nobody")}
    done = subprocess.run(
        [sys.executable, "-m", "examples.a2c_vtrace.train", *words], env=environment, cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "starts it, got none" in done.stderr
