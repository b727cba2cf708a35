"""`python -m cule.scope machine`: what is measured, what is kept, and what is not believed."""

from __future__ import annotations

import dataclasses
import json
import math
import os

import pytest
import torch

from cule.devices.host_memory import host_memory
from cule.scope import machine, measures
from cule.scope.__main__ import main
from cule.scope.machine import GATHER, Copy, Key, Launch, Machine, Rate, Threads
from cule.scope.measures import ROW, Timer

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


# Measuring ----------------------------------------------------------------------------------------


class Fake:
    """A timer for which everything takes a millisecond; it notes torch's threads meanwhile."""

    def __init__(self):
        self.threads = []

    def on_cpu(self, function):
        function()
        self.threads.append(torch.get_num_threads())
        return 1e-3

    on_device = on_cpu


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(measures, "SIZES", (2**12, 2**14))
    monkeypatch.setattr(measures, "usable_cpus", lambda: 3)


def test_figures_are_work_by_time(small):
    fake = Fake()
    found = measures.measure(CPU, fake)
    assert found.launches == [Launch("operator", 1, 1000.0)]
    assert found.copies == [
        Copy(what, size, pytest.approx(size / 1e6))
        for what in (GATHER, "inside the device")
        for size in (2**12, 2**14)
    ]
    tflops = pytest.approx(2 * 512**3 / 1e9)
    assert found.rates == [Rate(name, 512, tflops) for name in ("float32", "bfloat16", "float16")]
    assert found.by_threads == [
        Threads(count, pytest.approx(2**14 / 1e6), tflops, 1000.0) for count in (1, 2, 3)
    ]
    assert found.cpus == 3 and found.key == machine.key_of(CPU)
    assert fake.threads[-9:] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert found.threads == torch.get_num_threads() == fake.threads[0]


def test_torch_has_its_threads_again_after_an_error(small, monkeypatch):
    def fail(function):
        raise MemoryError

    before, timer = torch.get_num_threads(), Fake()
    timer.on_cpu = fail
    with pytest.raises(MemoryError):
        measures._by_threads(timer)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("cpus", "numbers"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])],
)
def test_numbers_of_threads(cpus, numbers):
    assert measures._numbers_of_threads(cpus) == numbers


def test_copies_are_of_as_many_bytes_as_they_say():
    source, to = (torch.full((8,), value, dtype=torch.uint8) for value in (7, 1))
    measures._of_memory(to, source)(5)()
    assert to.tolist() == [7] * 5 + [1] * 3


def test_rows_come_in_no_order_and_each_once(device):
    place = torch.device(device)
    far = host_memory((16, ROW // 8), torch.int64, place)
    far.copy_(torch.arange(16, device=place).unsqueeze(1).expand_as(far))
    near = torch.full((16 * ROW,), 255, dtype=torch.uint8, device=place)
    gather = measures._gathers(far, near)
    gather(3 * ROW)()
    rows = near.view(torch.int64).view(16, -1)
    assert (rows == rows[:, :1]).all() and (rows[3:] == -1).all() and (rows[:3] >= 0).all()
    gather(16 * ROW)()
    order = rows[:, 0].tolist()
    assert sorted(order) == [*range(16)] and order != sorted(order)


@pytest.mark.parametrize(
    ("each", "calls", "rounds"),
    [(10, 200, 7), (20_000, 100, 7), (3_000_000, 1, 7), (200_000_000, 1, 2), (10**10, 1, 1)],
)
def test_rounds_are_short_and_the_fastest_counts(monkeypatch, each, calls, rounds):
    asked, slower = [], [5, 4, 2, 3, 2, 3, 4]

    def measure(function, count):
        asked.append(count)
        # The first two are no rounds.
        return each * (slower[len(asked) - 3] if len(asked) > 2 else 1)

    monkeypatch.setattr(measures, "nanoseconds_of", measure)
    for time in (Timer(CPU).on_cpu, Timer(CPU).on_device):
        asked.clear()
        assert time(lambda: None) == pytest.approx(each * min(slower[:rounds]) / 1e9)
        assert asked == [1, 1] + [calls] * rounds


# Keeping ------------------------------------------------------------------------------------------


def planted(**changes):
    return dataclasses.replace(
        Machine(
            key=machine.key_of(CPU), date="2026-11-29T01:02:03+00:00", cpus=2, threads=1,
            launches=[Launch("operator", 1, 3.0), Launch("CUDA graph", 64, 5.0, 120.0)],
            copies=[
                Copy(GATHER, 2**20, 20.0), Copy(GATHER, 2**12, 0.25), Copy("other", 2**14, 9.0)
            ],
            rates=[Rate("float32", 512, 0.05), Rate("bfloat16", 4096, 790.0)],
            by_threads=[Threads(1, 5.0, 0.05, 300.0), Threads(2, 7.5, 0.1, 100.0)],
        ),
        **changes,
    )  # fmt: skip


def test_what_is_kept_is_read_again():
    assert machine.load(CPU) is None
    machine.save(planted())
    assert machine.load(CPU) == planted()
    machine.save(planted(cpus=3))
    assert machine.load(CPU) == planted(cpus=3)


DAMAGES = {
    "a string for a number": lambda kept: kept["copies"][0].update(gb_per_s="20"),
    "a negative number": lambda kept: kept["copies"][0].update(gb_per_s=-20.0),
    "zero": lambda kept: kept["copies"][0].update(gb_per_s=0.0),
    "no number": lambda kept: kept["copies"][0].update(gb_per_s=math.nan),
    "infinity": lambda kept: kept["rates"][0].update(tflops=math.inf),
    "a flag": lambda kept: kept["by_threads"][0].update(threads=True),
    "too large a number": lambda kept: kept["copies"][0].update(gb_per_s=10**400),
    "a fraction of a byte": lambda kept: kept["copies"][0].update(bytes=1.5),
    "a number for a name": lambda kept: kept["copies"][0].update(what=3),
    "a list for a row": lambda kept: kept["copies"].append([1]),
    "a row for the list": lambda kept: kept.update(copies={}, rates=3),
    "no rates": lambda kept: kept.pop("rates"),
    "more than there is": lambda kept: kept.update(more=1),
    "more than a row has": lambda kept: kept["rates"][0].update(more=1),
    "no date": lambda kept: kept.update(date="\x1b[2J"),
    "another machine": lambda kept: kept["key"].update(cpu_name="other"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_counts_as_none(damage):
    machine.save(planted())
    path = planted().key.path
    kept = json.loads(path.read_text())
    DAMAGES[damage](kept)
    path.write_text(json.dumps(kept))
    assert machine.load(CPU) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, "\xff"])
def test_a_file_that_has_no_measurement_counts_as_none(text):
    machine.save(planted())
    planted().key.path.write_text(text, encoding="latin-1")
    assert machine.load(CPU) is None


def test_a_fifo_is_not_waited_for():
    path = planted().key.path
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert machine.load(CPU) is None
    machine.save(planted())
    assert machine.load(CPU) == planted()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_read_and_is_replaced():
    machine.save(planted())
    path = planted().key.path
    os.chown(path, 12345, -1)
    assert machine.load(CPU) is None
    machine.save(planted())
    assert machine.load(CPU) == planted() and path.stat().st_uid == os.geteuid()


def test_where_nothing_can_be_kept_there_is_a_warning(cache):
    cache.write_text("no folder")
    with pytest.warns(UserWarning, match="the measurement of the machine is not kept: "):
        machine.save(planted())


def test_machines_and_versions_have_files_of_their_own():
    key = Key("GPU", "CPU", "2.11")
    others = [dataclasses.replace(key, **{name: "x"}) for name in dataclasses.asdict(key)]
    assert len({one.path for one in (key, *others)}) == 4


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, 2**12), (2**12, 2**12), (2**20 - 1, 2**12), (2**20, 2**20), (2**40, 2**20)],
)
def test_bandwidth_is_of_the_largest_copy_of_no_more_bytes(count, size):
    assert planted().gather(count).bytes == size
    assert planted(copies=[]).gather(count) is None


TABLE = """
AMD EPYC, 2 threads; 2 usable CPUs, torch 2.13.0 with 1 host thread

launch      kernels  CPU us  GPU us
operator          1    3.00       .
CUDA graph       64    5.00     120

copy, GB/s                       4.0 KiB  16.0 KiB  1.0 MiB
rows from the host, by a kernel    0.250         .     20.0
other                                  .      9.00        .

matrix product  size  TFLOP/s
float32          512   0.0500
bfloat16        4096      790

host threads  copy GB/s   gain  float32 TFLOP/s   gain  loop us   gain
1                  5.00  1.00x           0.0500  1.00x      300  1.00x
2                  7.50  1.50x            0.100  2.00x      100  3.00x
"""


def test_table_has_units_and_gains():
    key = Key("AMD EPYC, 2 threads", "AMD EPYC", "2.13.0")
    assert machine.table(planted(key=key)) == TABLE.strip()


# The command --------------------------------------------------------------------------------------


def numbers_of(found):
    rows = [*found.launches, *found.copies, *found.rates, *found.by_threads]
    values = [value for row in rows for value in dataclasses.astuple(row)]
    return [value for value in values if not isinstance(value, str) and value is not None]


def test_command_measures_prints_and_keeps(capsys):
    assert main(["machine", "--device", "cpu", "--json"]) == 0
    kept = machine.load(CPU)
    assert json.loads(capsys.readouterr().out) == dataclasses.asdict(kept)
    assert all(math.isfinite(value) and value > 0 for value in numbers_of(kept))
    assert {one.bytes for one in kept.copies} == {*measures.SIZES}


def test_command_prints_the_table(capsys, monkeypatch):
    monkeypatch.setattr("cule.scope.__main__.measure", lambda device: planted())
    assert main(["machine", "--device", "cpu"]) == 0
    assert capsys.readouterr().out == machine.table(planted()) + "\n"
    assert machine.load(CPU) == planted()


def test_a_device_that_there_is_not_is_refused(capsys, cache):
    assert main(["machine", "--device", "tpu"]) == 2
    assert (
        "expected a device such as 'cpu', 'cuda' or 'cuda:1', got 'tpu'" in capsys.readouterr().err
    )
    assert not cache.exists()


# On a GPU -----------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_on_a_gpu_all_figures_are_there():
    device, matmul = torch.device("cuda", torch.cuda.current_device()), torch.backends.cuda.matmul
    before = matmul.fp32_precision
    found = measures.measure(device)
    assert all(math.isfinite(value) and value > 0 for value in numbers_of(found))
    assert [(one.what, one.kernels) for one in found.launches] == [
        ("operator", 1), ("CUDA graph", 1), ("CUDA graph", 64),
    ]  # fmt: skip
    assert all(one.gpu_us is not None for one in found.launches)
    assert len(found.copies) == 6 * len(measures.SIZES)
    assert {one.dtype for one in found.rates} >= {"float32", "float16"}
    assert matmul.fp32_precision == before
    machine.save(found)
    assert machine.load(device) == found and machine.load(CPU) is None


@pytest.mark.gpu
def test_on_a_gpu_tf32_rounds_and_float32_does_not():
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("needs a GPU with TF32")
    device = torch.device("cuda")
    one = torch.full((64, 64), 1 + 2**-20, device=device)
    with measures._rounding(measures.TF32):
        assert torch.mm(one, torch.eye(64, device=device))[0, 0] == 1
    with measures._rounding("float32"):
        assert torch.mm(one, torch.eye(64, device=device))[0, 0] == 1 + 2**-20
