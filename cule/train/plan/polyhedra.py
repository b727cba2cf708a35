"""Dependences of a program, by isl: which call reads what which other call has written.

A call is a point `operation[t, j]`, an index of a Recurrent a point `recurrent[i]`. Reads and
writes are relations between the two, and everything else follows from them. isl (Verdoolaege,
2010) decides exactly; all numbers except t are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache

try:
    import islpy as isl
except ImportError as problem:
    raise ImportError(
        "cule.train needs islpy: pip install islpy tyro tensorboard matplotlib"
    ) from problem

from cule.errors import InvalidValue
from cule.train.plan.domain import Domain
from cule.train.plan.program import NOTHING, Access, Operation, Program, Recurrent
from cule.train.plan.unknowns import Unknowns

Pair = tuple[Operation, Operation]
# A read of an operation, and the text of its access.
Read = tuple[Operation, str]


# What follows is kept by the text from which it is computed. The same ones come again after each
# pass, and whenever an algorithm is planned again.
remembering = lru_cache(maxsize=10_000)


@remembering
def _parsed(text: str) -> isl.UnionMap:
    """The relation that a text says. isl takes longer to read one than to compute with it."""
    return isl.UnionMap(text)


def _union(maps: Iterable[str]) -> str:
    return "{ " + "; ".join(maps) + " }"


@remembering
def _before(order: str) -> isl.UnionMap:
    """The pairs whose second one has a later place in an order."""
    return _parsed(order).lex_lt_union_map(_parsed(order))


@remembering
def _related(first: str, second: str) -> isl.UnionMap:
    """The pairs that two relations take to the same place."""
    return _parsed(first).apply_range(_parsed(second).reverse())


@remembering
def _readers_before(reads: str, writes: str, name: str) -> isl.UnionMap:
    """From readers of a version to writers of later ones, except a call to itself."""
    later = isl.UnionMap(f"{{ {name}[i] -> {name}[k] : k > i }}")
    pairs = _parsed(reads).apply_range(later).apply_range(_parsed(writes).reverse())
    return pairs.subtract(pairs.domain().identity())


class Polyhedra:
    """The sets and relations of a program.

    Args:
        program: the program.

    Attributes:
        program: as given.
        order: when each call is made in the program's order, `operation[t, j] -> [...]`.
        flow: from each call that writes to the calls that read it.
        anti_dependences: from each call that reads an object's version to those that write later
            versions.
    """

    def __init__(self, program: Program):
        self.program = program
        self._op = {operation: f"o{i}" for i, operation in enumerate(program.operations)}
        self._recurrent = {recurrent: f"r{i}" for i, recurrent in enumerate(program.recurrents)}
        self._of_name = {name: operation for operation, name in self._op.items()}
        order = _union(
            f"{self._op[o]}[t, j] -> [t, {o.place[0]}, j, {o.place[1]}] : {o.domain.isl()}"
            for o in program.operations
        )
        self.order, self.before = _parsed(order), _before(order)
        self.reads: dict[Recurrent, isl.UnionMap] = {}
        self.writes: dict[Recurrent, isl.UnionMap] = {}
        self.flow = isl.UnionMap("{ }")
        self.anti_dependences = isl.UnionMap("{ }")
        for recurrent in program.recurrents:
            reads, writes = self._accesses(recurrent, "reads"), self._accesses(recurrent, "writes")
            self.reads[recurrent], self.writes[recurrent] = _parsed(reads), _parsed(writes)
            self.flow = self.flow.union(_related(writes, reads))
            if recurrent.object is not None:
                name = self._recurrent[recurrent]
                self.anti_dependences = self.anti_dependences.union(
                    _readers_before(reads, writes, name)
                )
        self.dependences = self.flow.union(self.anti_dependences)

    def reads_but(self, recurrent: Recurrent, early: Collection[Read]) -> isl.UnionMap:
        """The reads of a Recurrent without some of them."""
        return _parsed(self._accesses(recurrent, "reads", early))

    def _accesses(self, recurrent: Recurrent, kind: str, without: Collection[Read] = ()) -> str:
        maps = []
        for operation in self.program.operations:
            for access in getattr(operation, kind):
                if access.recurrent is recurrent and (operation, str(access)) not in without:
                    maps.append(self.access_text(operation, access, read=kind == "reads"))
        return _union(maps)

    def access_text(self, operation: Operation, access: Access, *, read: bool) -> str:
        """An access in isl's language, `operation[t, j] -> recurrent[i] : ...`."""
        domain, back = operation.domain, access.recurrent.stack - 1 if read else 0
        unknowns = Unknowns()
        first, stop = access.first.isl(domain, unknowns), access.stop.isl(domain, unknowns)
        conditions = [f"{first} - {back} <= i < {stop}", domain.isl()]
        if access.since is not None:
            conditions.append(f"i >= {access.since}")
        name = self._recurrent[access.recurrent]
        return f"{self._op[operation]}[t, j] -> {name}[i] : {unknowns.where(conditions)}"

    def operation_of(self, name: str) -> Operation:
        """The operation with this name in isl."""
        return self._of_name[name]

    def pairs(self, relation: isl.UnionMap) -> set[Pair]:
        """The pairs of operations of which some calls are related."""
        pairs: set[Pair] = set()

        def add(part: isl.Map) -> None:
            names = (part.get_tuple_name(kind) for kind in (isl.dim_type.in_, isl.dim_type.out))
            first, second = (self._of_name[name] for name in names)
            if not part.is_empty():
                pairs.add((first, second))

        relation.foreach_map(add)
        return pairs

    def same_iteration(self) -> isl.UnionMap:
        """All pairs of calls in the same iteration."""
        return _related(self._iterations(), self._iterations())

    def _iterations(self) -> str:
        period = self.program.period
        return _union(
            f"{self._op[o]}[t, j] -> [floor(t / {period})] : {o.domain.isl()}"
            for o in self.program.operations
        )

    def later_iteration(self) -> isl.UnionMap:
        """Pairs of calls, the second one in a later iteration."""
        return _before(self._iterations())

    def within_iteration(self) -> set[Pair]:
        """The pairs of operations that depend on each other inside an iteration."""
        return self.pairs(self.dependences.intersect(self.same_iteration()))

    def furthest(self, relation: isl.UnionMap, recurrent: Recurrent) -> int | None:
        """The largest k - i of a relation recurrent[i] -> recurrent[k]; None: there is no largest.

        It is 0 for an empty relation.
        """
        if relation.is_empty():
            return 0
        most = 0
        unbounded = False

        def look(part: isl.Map) -> None:
            nonlocal most, unbounded
            value = part.deltas().dim_max_val(0)
            if value.is_int():
                most = max(most, value.to_python())
            else:
                unbounded = True

        relation.foreach_map(look)
        return None if unbounded else most

    def calls_of(self, operations: Iterable[Operation]) -> isl.UnionSet:
        """All calls of some operations."""
        parts = (f"{self._op[o]}[t, j] : {o.domain.isl()}" for o in operations)
        return isl.UnionSet("{ " + "; ".join(parts) + " }")

    def of_other_calls(self, operations: Iterable[Operation]) -> isl.UnionMap:
        """Pairs of calls at the same step with different j, of operations that share a loop."""
        some = list(operations)
        apart = (
            f"{self._op[one]}[t, j] -> {self._op[two]}[t, k] : j != k"
            for one in some
            for two in some
            if one.place[0] == two.place[0]
        )
        return _parsed(_union(apart))

    def steps_apart(self, first: isl.UnionSet, second: isl.UnionSet, steps: int) -> isl.UnionMap:
        """Pairs of calls, the second one at least so many steps later."""
        every = _parsed(_union(f"{name}[t, j] -> [t]" for name in self._of_name))
        later = isl.UnionMap(f"{{ [t] -> [k] : k >= t + {steps} }}")
        pairs = every.apply_range(later).apply_range(every.reverse())
        return pairs.intersect_domain(first).intersect_range(second)

    def read_alike(self, first: Operation, second: Operation) -> bool:
        """Whether two operations with one domain read the same in each call."""
        if len(first.reads) != len(second.reads):
            return False
        other = isl.UnionMap(f"{{ {self._op[second]}[t, j] -> {self._op[first]}[t, j] }}")
        for one, two in zip(first.reads, second.reads, strict=True):
            read, its = (
                isl.UnionMap("{ " + self.access_text(operation, access, read=True) + " }")
                for operation, access in ((first, one), (second, two))
            )
            if one.window != two.window or not other.apply_range(read).is_equal(its):
                return False
        return True

    def last_index(self, operation: Operation, access: Access) -> int | None:
        """The last index that an operation's calls ever read; None: there is none."""
        read = isl.UnionMap("{ " + self.access_text(operation, access, read=True) + " }")
        if read.is_empty():
            return 0
        last = read.range().as_set().dim_max_val(0)
        return int(last.to_python()) if last.is_int() else None

    def accesses_of(
        self, recurrent: Recurrent, operations: Iterable[Operation], kind: str
    ) -> isl.UnionMap:
        """The reads or writes of a Recurrent by some operations."""
        return getattr(self, kind)[recurrent].intersect_domain(self.calls_of(operations))


def bounded(program: Program) -> Program:
    """The program with the most indices that each window can have.

    Raises:
        ValueError: a window grows with time.
    """

    def measured(operation: Operation, access: Access) -> Access:
        return replace(access, most=most_indices(access, operation.domain, operation.name))

    return program.with_operations(
        replace(o, reads=tuple(measured(o, access) for access in o.reads))
        if any(access.length() is None for access in o.reads)
        else o
        for o in program.operations
    )


def most_indices(access: Access, domain: Domain, reader: str) -> int:
    """The most indices that a window has.

    Args:
        access: the window.
        domain: of the operation that reads it.
        reader: the operation's name, for messages.

    Raises:
        ValueError: it grows with time.
    """
    length = access.length()
    if length is not None:
        return length
    unknowns = Unknowns()
    first, stop = access.first.isl(domain, unknowns), access.stop.isl(domain, unknowns)
    wanted = unknowns.where([f"n = {stop} - {first}", domain.isl()])
    lengths = isl.Set(f"{{ [n] : exists (t, j : {wanted}) }}")
    if lengths.is_empty():
        return 1  # it is never called
    most = lengths.dim_max_val(0)
    if not most.is_int():
        raise InvalidValue(
            f"expected windows of {access.recurrent.name} with a greatest length, such as "
            f"x[maximum(t - 99, 0):t + 1], but what {reader} reads, {access}, grows with "
            "time"
        )
    return max(1, int(most.to_python()))


def check(polyhedra: Polyhedra) -> None:
    """Checks that each read of a program has exactly one write, which comes before it.

    Raises:
        ValueError: an index is written twice, read but never written, or read before it is written.
    """
    for recurrent in polyhedra.program.recurrents:
        _check_writes(polyhedra, recurrent)
        _check_reads(polyhedra, recurrent)
    early = polyhedra.dependences.subtract(polyhedra.before)
    for first, second in sorted(polyhedra.pairs(early), key=lambda pair: pair[1].place):
        flows = first, second
        if flows in polyhedra.pairs(polyhedra.flow.subtract(polyhedra.before)):
            raise InvalidValue(
                f"expected {second.name} to read what was computed before, but it reads what "
                f"{first.name} computes only after it"
            )
        raise InvalidValue(
            f"expected {first.name} to read the newest version of what {second.name} changes in "
            f"place, but it reads an older one: let it read a copy"
        )


def _check_writes(polyhedra: Polyhedra, recurrent: Recurrent) -> None:
    writer = polyhedra.writes[recurrent].reverse()
    if writer.is_empty():
        if recurrent.initial is NOTHING:
            names = [o.name for o in polyhedra.program.operations if _reads(o, recurrent)]
            raise InvalidValue(
                f"expected an operation that writes {recurrent.name}, which {', '.join(names)} "
                "reads: it is never written, and has no initial value"
            )
        return
    if not _single(writer, polyhedra):
        raise InvalidValue(f"expected each index of {recurrent.name} to be written once, got more")


def _reads(operation: Operation, recurrent: Recurrent) -> bool:
    return any(access.recurrent is recurrent for access in operation.reads)


def _single(writer: isl.UnionMap, polyhedra: Polyhedra) -> bool:
    """Whether each index has one writer: not two operations, and not two calls of one."""
    clash = writer.reverse().apply_range(writer)
    return bool(clash.subtract(clash.domain().identity()).is_empty())


def _check_reads(polyhedra: Polyhedra, recurrent: Recurrent) -> None:
    written = polyhedra.writes[recurrent].range()
    missing = polyhedra.reads[recurrent].subtract_range(written)
    if missing.is_empty():
        return
    operation = min((first for first, _ in _sources(polyhedra, missing)), key=lambda o: o.place)
    if recurrent.initial is not NOTHING:
        after = _at_or_after_first(written)
        missing = missing.intersect_range(after)
        if missing.is_empty():
            return
        raise InvalidValue(
            f"expected {operation.name} to read indices of {recurrent.name} that are written, "
            "but some are never written"
        )
    raise InvalidValue(
        f"expected {operation.name} to read indices of {recurrent.name} that are written, but it "
        "also reads earlier ones, or some that are never written, and there is no initial value"
    )


def _at_or_after_first(written: isl.UnionSet) -> isl.UnionSet:
    """All indices from the first that is written on; all of them if that is none."""
    if written.is_empty():
        return written
    first = written.as_set()
    least = first.dim_min_val(0).to_python()
    return isl.UnionSet(f"{{ {first.get_tuple_name()}[i] : i >= {least} }}")


def _sources(polyhedra: Polyhedra, relation: isl.UnionMap) -> list[tuple[Operation, str]]:
    sources: list[tuple[Operation, str]] = []

    def add(part: isl.Map) -> None:
        if not part.is_empty():
            name = part.get_tuple_name(isl.dim_type.in_)
            sources.append((polyhedra.operation_of(name), str(part)))

    relation.foreach_map(add)
    return sources
