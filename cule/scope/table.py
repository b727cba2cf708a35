"""A recording as text: where the milliseconds of an iteration go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cule.scope.analysis import Analysed
from cule.scope.bias import LEAST_ITERATIONS, change, iteration_times
from cule.scope.breakdown import GpuTime, Row, Transitions
from cule.scope.depths import GpuUse
from cule.scope.events import LEVELS, RESOURCES
from cule.scope.memory import MemoryUse
from cule.scope.overlaps import Overlap
from cule.scope.recording import Recording

_RESOURCE_TITLES = {"cpu": "CPU", "gpu": "GPU", "both": "both", "none": "none"}
_LEVEL_TITLES = {
    "python": "Python", "simulator": "simulator", "backend": "backend", "cuda_api": "CUDA API",
    "waiting": "waiting",
}  # fmt: skip


def columns(head: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table as text: the first `left` columns are flush left, the others right."""
    rows = [list(head), *map(list, lines)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    made = []
    for row in rows:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        made.append("  ".join(cells).rstrip())
    return "\n".join(made)


def _number(value: float, digits: int = 3) -> str:
    return f"{value:,.{digits}f}" if value else "."


def _title(phase: str, operation: str) -> str:
    return f"{phase} / {operation}" if phase else operation


def breakdown_table(rows: Sequence[Row], iterations: int) -> str:
    """Operations with their milliseconds an iteration, by resource and by level of the CPU's part.

    Args:
        rows: of one process and lane.
        iterations: by how many to divide.
    """
    count = max(iterations, 1)
    total = sum(row.seconds for row in rows)
    by_operation: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_operation[row.phase, row.operation].append(row)
    # Most programs wait for no other process.
    shown = [one for one in LEVELS if one != "waiting" or any(row.level == one for row in rows)]
    lines = []
    for (phase, operation), some in sorted(
        by_operation.items(), key=lambda one: -sum(row.seconds for row in one[1])
    ):
        spent = sum(row.seconds for row in some)
        name = _title(phase, operation)
        resources = [
            sum(r.seconds for r in some if r.resource == resource) for resource in RESOURCES
        ]
        levels = [sum(r.seconds for r in some if r.level == level) for level in shown]
        hidden = sum(row.hidden_seconds for row in some)
        lines.append([
            name, f"{some[0].calls / count:,.4g}", _number(1e3 * spent / count),
            f"{100 * spent / total:.1f}%" if total else ".",
            *(_number(1e3 * part / count) for part in (*resources, *levels, hidden)),
        ])  # fmt: skip
    blank = [""] * (len(RESOURCES) + len(shown) + 1)
    lines.append(["sum", "", _number(1e3 * total / count), "", *blank])
    head = ["operation", "calls", "ms", "share"]
    head += [_RESOURCE_TITLES[one] for one in RESOURCES] + [_LEVEL_TITLES[one] for one in shown]
    return columns([*head, "hidden"], lines)


def transitions_table(found: Sequence[Transitions], iterations: int) -> str:
    """Transitions an iteration, by operation."""
    count = max(iterations, 1)
    pairs = sorted({(one.source, one.target) for one in found}, key=str)
    by_operation: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for one in found:
        by_operation[one.operation][one.source, one.target] += one.count
    head = ["transitions"] + [f"{_LEVEL_TITLES[a]} to {_LEVEL_TITLES[b]}" for a, b in pairs]
    lines = [
        [name, *(_number(counts[pair] / count, 1) for pair in pairs)]
        for name, counts in by_operation.items()
    ]
    return columns(head, lines)


def gpu_table(found: Sequence[GpuTime], iterations: int) -> str:
    """The GPU's milliseconds an iteration, by operation."""
    count = max(iterations, 1)
    lines = [
        [one.operation, str(one.device), _number(1e3 * one.seconds / count),
         _number(1e3 * one.alone_seconds / count), _number(one.kernels / count, 1)]
        for one in sorted(found, key=lambda one: -one.seconds)
    ]  # fmt: skip
    return columns(["work on the GPU", "GPU", "ms", "alone", "kernels"], lines)


def _mebibytes(value: float) -> str:
    return _number(value / 2**20)


def memory_sentence(use: MemoryUse, iterations: int) -> str:
    """Says when most memory of a device was in use."""
    when = (
        f"in iteration {use.iteration} of {iterations}"
        if use.iteration
        else "outside of iterations"
    )
    last = _title(use.phase, use.operation)
    sentence = f"Memory of {use.device}: the most was {_mebibytes(use.peak)} MiB, {when}, in {last}"
    before = f"{_mebibytes(use.before)} MiB of it were there before the recording"
    return f"{sentence}; {before}." if use.before else f"{sentence}."


def memory_table(use: MemoryUse, iterations: int) -> str:
    """The memory that operations took, in MiB."""
    count = max(iterations, 1)
    lines = [
        [_title(one.phase, one.operation), _mebibytes(one.taken / count), _mebibytes(one.most),
         _mebibytes(one.at_peak), _mebibytes(one.kept)]
        for one in use.operations
    ]  # fmt: skip
    head = ["memory, MiB", "taken an iteration", "most at once", "at the peak", "kept at the end"]
    return columns(head, lines)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}%"


def depths_table(found: Sequence[GpuUse]) -> str:
    """How much of each GPU is used, in three depths."""
    lines = [
        [one.gpu, ", ".join(one.processes), _percent(one.nvml), _percent(one.kernels),
         _percent(one.multiprocessors), _percent(one.issue_slots)]
        for one in found
    ]  # fmt: skip
    head = ["GPU use", "processes", "nvidia-smi", "kernels ran", "multiprocessors", "issue slots"]
    return columns(head, lines, left=2)


def overlaps_sentences(found: Sequence[Overlap], iterations: int) -> list[str]:
    """Sentences about operations whose work ran side by side."""
    count = max(iterations, 1)
    made = []
    for one in found:
        slowed = (
            "no kernel of it ran alone, so that --alone is needed to tell how much it was slowed"
            if one.slowed_by is None
            else f"its kernels took {100 * one.slowed_by:+.0f}% of their time alone"
        )
        made.append(
            f"{one.operation}: {1e3 * one.seconds / count:.3f} ms beside {', '.join(one.beside)}; "
            f"{slowed}"
        )
    return made


def _heading(one: Analysed) -> str:
    process = one.process
    iterations = process.iterations
    per = (
        f", {iterations} iterations of {1e3 * one.seconds / iterations:.3f} ms"
        if iterations
        else ""
    )
    taken = round(one.recorded_seconds - one.seconds, 9)
    corrected = f"; {1e3 * taken:.1f} ms of book-keeping were taken out" if taken else ""
    above = f" (started by {process.parent})" if process.parent else ""
    paused = sum(end - start for start, end in process.pauses) / 1e9
    pauses = f"; {len(process.pauses)} pauses of {paused:.1f} s to write it are left out"
    return f"{process.name}{above}: {one.seconds:.3f} s{per}{corrected}{pauses if paused else ''}"


def _off(found: tuple[float, float, float] | None) -> str:
    """How far the table is off from iterations that were not recorded."""
    if found is None:
        return (
            f"how far the table is off is not known, as that takes {LEAST_ITERATIONS} iterations "
            "before it and in it"
        )
    middle, least, most = found
    if least <= 0 <= most:
        return (
            f"the table is {middle:+.1f}% off, which may be chance ({least:+.1f}% to {most:+.1f}%)"
        )
    return f"the table is {middle:+.1f}% off ({least:+.1f}% to {most:+.1f}%)"


def reference_sentence(one: Analysed) -> str | None:
    """A sentence about the time of iterations before the recording; None: they were not timed."""
    found = one.process.about.get("reference")
    if not found or not one.process.iterations:
        return None
    off = _off(change(found.get("times", ()), iteration_times(one.process)))
    operations = ", ".join(f"{name} {ms:.3f} ms" for name, ms in found["operations"].items())
    return (
        f"The {found['iterations']} iterations before it, which were not recorded, took "
        f"{found['iteration']:.3f} ms each: {off}. Their outer operations, by the GPU's clock "
        f"where there is one: {operations or 'none'}."
    )


def processes_table(recording: Recording) -> str:
    """The tree of processes, with the time of each one's main thread by level.

    A process is below the one that started it.
    """
    depths: dict[str, int] = {}
    lines = []
    for one in recording.processes:
        process = one.process
        depth = depths[process.name] = depths.get(process.parent or "", -1) + 1
        spent: dict[str, float] = defaultdict(float)
        for (_, _, level), nanoseconds in one.cells[0].nanoseconds.items():
            spent[level] += float(nanoseconds) / 1e9
        begun = (process.start - recording.processes[0].process.start) / 1e9
        lines.append([
            "  " * depth + process.name, f"{begun:.3f}", f"{one.seconds:.3f}",
            *(_number(spent[level]) for level in LEVELS),
        ])  # fmt: skip
    head = ["process", "from", "seconds", *(_LEVEL_TITLES[level] for level in LEVELS)]
    return columns(head, lines)


def report(recording: Recording, use: Sequence[GpuUse], overlaps: Sequence[Overlap]) -> str:
    """The whole report.

    Args:
        recording: the recording.
        use: how much of each GPU was used.
        overlaps: the overlaps of all its processes.
    """
    rows, transitions, gpu = recording.breakdown(), recording.transitions(), recording.gpu()
    parts = [processes_table(recording)] if len(recording.processes) > 1 else []
    for one in recording.processes:
        count = one.process.iterations
        parts.append(_heading(one))
        if sentence := reference_sentence(one):
            parts.append(sentence)
        parts.append("Milliseconds an iteration, by what works and by where the CPU is:")
        for lane in one.lanes:
            name = lane.name
            if name != one.process.name:
                parts.append(f"{name}:")
            parts.append(breakdown_table([row for row in rows if row.process == name], count))
            if of_lane := [row for row in transitions if row.process == name]:
                parts.append(transitions_table(of_lane, count))
            if on_gpu := [row for row in gpu if row.process == name]:
                parts.append(gpu_table(on_gpu, count))
        parts += overlaps_sentences([o for o in overlaps if o.process == one.process.name], count)
        for memory in one.memory:
            parts += [memory_sentence(memory, count), memory_table(memory, count)]
    if use:
        parts.append(depths_table(use))
    parts += [f"Note: {problem}" for problem in recording.problems]
    return "\n\n".join(parts)
