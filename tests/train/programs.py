"""Random programs, and an oracle that executes them in their order and keeps everything."""

from __future__ import annotations

import math
import random

import torch

from cule.train.plan.domain import Domain
from cule.train.plan.index import cases, maximum, minimum
from cule.train.plan.program import Program, calls_in_order

SHAPE = (3,)
PRIME = 10_007
# The programs of `random_program` in which something follows playing, by their seeds: about one in
# fifteen. The tests that need them check that it does.
FOLLOWING = [
    33, 53, 64, 76, 141, 157, 167, 172, 199, 204, 209, 211, 218, 221, 234, 236, 243, 249, 264, 297,
]  # fmt: skip


class Counter:
    """An object that operations change in place."""

    def __init__(self, value=1):
        self.value = torch.full(SHAPE, value, dtype=torch.int64)

    def state_dict(self):
        return {"value": self.value.clone()}

    def load_state_dict(self, state):
        self.value.copy_(state["value"])


def alone(salt, batched):
    """A function of reads of single values; it may get several calls' in a leading dimension."""

    def function(*reads):
        total = torch.tensor(salt)
        for weight, read in enumerate(reads, 2):
            total = total + weight * (read.value if isinstance(read, Counter) else read)
        return total % PRIME if reads else torch.full(SHAPE, salt)

    return function


def windowed(salt):
    def function(*reads):
        total = torch.full(SHAPE, salt, dtype=torch.int64)
        for weight, read in enumerate(reads, 2):
            if isinstance(read, Counter):
                total = total + weight * read.value
            elif isinstance(read, torch.Tensor):
                total = total + weight * read
            else:
                values = read.all()
                places = torch.arange(1, len(values) + 1).unsqueeze(1)
                total = total + weight * (values * places).sum(0)
        return total % PRIME

    return function


def changing(salt):
    """A function that changes an object from what it reads."""

    def function(counter, *reads):
        counter.value.copy_((counter.value * 3 + windowed(salt)(*reads)) % PRIME)
        return ()

    return function


def calls_before(domain, t):
    """How many calls an operation has had before step t, as an index."""
    return (((t - 1 - domain.start + domain.every) // domain.every) * domain.times).at_least(0)


class Draft:
    """A random program under construction.

    Args:
        seed: of the choices.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.program = Program(period=self.random.randint(1, 6))
        self.logs = {}
        # (recurrent, the operation that writes it, the index it writes minus t), over steps
        self.steps = []
        # (recurrent, the operation)
        self.updates = []
        self.copy = None

    def domain(self):
        r = self.random
        if r.random() < 0.5:
            return {}
        every = r.choice([1, 2, 3, self.program.period])
        return {"every": every, "times": r.randint(1, 3), "start": r.randint(0, 2 * every)}

    def reads(self, single):
        """Some legal reads for an operation at step t."""
        r, t, found = self.random, self.program.t, []
        for recurrent, _, ahead in r.sample(self.steps, min(len(self.steps), r.randint(0, 2))):
            newest = t + ahead - r.randint(0, 2)
            length = 1 if single else r.randint(1, 7)
            if r.random() < 0.15:  # the same indices for ever
                newest = minimum(newest, r.choice([r.randint(0, 9), t % r.randint(1, 5)]))
            if r.random() < 0.3:
                found.append(self.changing_read(recurrent, newest, length))
                continue
            found.append(
                recurrent[newest] if length == 1 else recurrent[newest - length + 1 : newest + 1]
            )
        for recurrent, writer in r.sample(self.updates, min(len(self.updates), r.randint(0, 1))):
            back, length = r.randint(1, 3), 1 if single else r.randint(1, 4)
            stop = calls_before(writer.domain, t) - back + 1
            found.append(recurrent[stop - 1] if length == 1 else recurrent[stop - length : stop])
        return found

    def condition(self):
        """A condition on the step."""
        r, t = self.random, self.program.t
        one, two = t % r.randint(2, 5) == r.randint(0, 2), t > r.randint(0, 30)
        return r.choice([one, ~one, two, one & ~two, one | two])

    def changing_read(self, recurrent, newest, length):
        """A read whose place, or whose length, depends on the time in other ways than by a sum."""
        r, t = self.random, self.program.t
        back = cases((self.condition(), r.randint(0, 3)), minimum(t % 4, r.randint(0, 3)))
        if length == 1:
            return recurrent[newest - back]
        kind = r.choice(["first", "stop", "both"])
        first = newest - length - (back if kind != "stop" else 0)
        stop = newest + 1 - (minimum(back, length) if kind != "first" else 0)
        return recurrent[first : maximum(stop, first + 1)]

    def branching(self, number):
        """Two operations that write one tensor, each at the steps at which the other does not."""
        p, condition = self.program, self.condition()
        recurrent = p.recurrent(f"x{number}", SHAPE, torch.int64, initial=number)
        for name, when in ((f"one{number}", condition), (f"two{number}", ~condition)):
            made = p.operation(
                name, windowed(len(name)), role="learn", reads=self.reads(False),
                writes=[recurrent[p.t]], when=when,
            )  # fmt: skip
        self.steps.append((recurrent, made, 0))

    def value(self, number):
        """An operation that writes a value."""
        r, p = self.random, self.program
        domain, single = self.domain(), r.random() < 0.5
        recurrent = p.recurrent(
            f"x{number}", SHAPE, torch.int64, initial=r.randint(0, 99),
            over="update" if domain else "step",
        )  # fmt: skip
        reads = self.reads(single)
        if self.copy is not None and r.random() < 0.5:
            reads.append(self.copy[1][calls_before(self.copy[2], p.t)])
        ahead = r.randint(0, 1)
        write = recurrent[p.u] if domain else recurrent[p.t + ahead]
        if r.random() < 0.3:  # its own past
            reads.append(write.recurrent[write.first - r.randint(1, 3)])
        function = alone(number, True) if single else windowed(number)
        made = p.operation(
            f"value{number}", function, role=r.choice(["act", "learn", "simulate"]), reads=reads,
            writes=[write], batched=single, **domain,
        )  # fmt: skip
        if domain:
            self.updates.append((recurrent, made))
        else:
            self.steps.append((recurrent, made, ahead))

    def changing(self):
        """An operation that changes an object; a later one, still to be declared, copies it."""
        p, r = self.program, self.random
        start = r.randint(0, p.period)
        counter, copied = p.object("net", Counter()), p.object("acting", Counter())
        p.operation(
            "change", changing(5), role="learn", every=p.period, start=start,
            reads=[counter[p.u], *self.reads(False)], writes=[counter[p.u + 1]],
        )  # fmt: skip
        # Between a change and the next one.
        later = start + r.choice([0, p.period - 1, r.randint(0, p.period - 1)])
        self.copy = counter, copied, Domain(p.period, 1, later)

    def copying(self):
        p, (counter, copied, domain) = self.program, self.copy

        def copy(source, target):
            target.value.copy_(source.value)
            return ()

        p.operation(
            "hand over", copy, role="copy", every=p.period, start=domain.start,
            reads=[counter[p.u + 1], copied[p.u]], writes=[copied[p.u + 1]], copies=p.t,
        )  # fmt: skip

    def tell(self, number):
        p, log = self.program, []
        self.logs[f"tell{number}"] = log
        reads = self.reads(False)

        def function(*reads):
            log.append(windowed(0)(*reads).tolist())
            return ()

        when = self.condition() if self.random.random() < 0.3 else None
        p.operation(
            f"tell{number}", function, role="effect", reads=reads, when=when, **self.domain()
        )


def random_program(seed):
    """A program, and the logs of its operations that tell."""
    draft = Draft(seed)
    r = draft.random
    early = r.random() < 0.5
    if early:
        draft.changing()
    for number in range(r.randint(1, 5)):
        draft.value(number)
    if r.random() < 0.4:
        draft.branching(9)
    if not early and r.random() < 0.5:
        draft.changing()
    for number in range(r.randint(1, 2)):
        draft.tell(number)
    if draft.copy is not None:
        draft.copying()
    return draft.program, draft.logs


def oracle(program, steps):
    """Executes a program in its order, and keeps everything."""
    values = {}

    class All:
        def __init__(self, some):
            self.some = some

        def all(self):
            return torch.stack(self.some)

        def __len__(self):
            return len(self.some)

    def value(recurrent, i):
        kept = values.get((recurrent, i))
        if kept is None:
            return torch.as_tensor(recurrent.initial).expand(SHAPE)
        return kept

    for operation, t, j in calls_in_order(program.operations, 0, steps):
        read = []
        for access in operation.reads:
            first = access.first.at(operation.domain, t, j)
            stop = access.stop.at(operation.domain, t, j)
            if access.recurrent.object is not None:
                read.append(access.recurrent.object)
            elif access.window:
                read.append(All([value(access.recurrent, i) for i in range(first, stop)]))
            else:
                read.append(value(access.recurrent, first))
        result = operation.function(*read)
        results = result if isinstance(result, tuple) else (result,)
        for access, made in zip(operation.returned, results, strict=True):
            index = access.first.at(operation.domain, t, j)
            assert (access.recurrent, index) not in values
            values[access.recurrent, index] = made.clone()


def run_interleaved(plan, choose, iterations):
    """Executes iterations of a plan with groups side by side, as streams could.

    Args:
        plan: that has not run yet, or goes on.
        choose: gets a number, and returns which of this many groups goes on.
        iterations: how many.
    """
    for _ in range(iterations):
        done, running, waiting, time = set(), {}, list(plan.executors), {}
        while waiting or running:
            for executor in list(waiting):
                group = executor.group
                before = {e.group for e in plan.executors[: plan.executors.index(executor)]}
                same = {other for other in before if other.stream == group.stream}
                if (same | set(group.after)) <= done:
                    waiting.remove(executor)
                    running[group] = executor, list(executor.steps(plan.iteration))
                    time[group] = 0
            ready = [g for g in running if may_go_on(plan, running[g][0], running, time, done)]
            group = ready[choose(len(ready))]
            executor, left = running[group]
            if not left:
                del running[group]
                done.add(group)
                continue
            time[group] += left[0].t
            executor.make(left.pop(0))
        plan.iteration += 1


def next_time(executor, running, time, done, iteration):
    """When a group's next step is; after all others if it has none left."""
    group = executor.group
    if group in done:
        return math.inf
    left = running[group][1] if group in running else executor.steps(iteration)
    return time.get(group, 0) + left[0].t if left else math.inf


def may_go_on(plan, executor, running, time, done):
    """Whether a group's next step may be made, if it follows another or another follows it."""

    def when(other):
        return next_time(other, running, time, done, plan.iteration)

    group, mine = executor.group, when(executor)
    for other in plan.executors if mine < math.inf else []:
        if other.group is group.follows and when(other) <= mine:
            return False
        if other.group.follows is group and when(other) <= mine - other.group.lead:
            return False
    return True
