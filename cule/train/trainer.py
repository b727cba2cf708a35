"""One process's envs, networks, learner and plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cule.engine import fewest_multiprocessors
from cule.errors import InvalidValue
from cule.train import annotate
from cule.train.algorithm import Algorithm, Nets
from cule.train.devices import compute_deterministically, multiprocessors_of
from cule.train.distributed.decoupled import FarEnvs, Messages, facts_of
from cule.train.distributed.gpu_lock import trainings_at_once
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.reduction import make_reduction
from cule.train.distributed.sm_autotuner import SmAutotuner, Way
from cule.train.distributed.sm_partition import Partition, split
from cule.train.envs.collector import Collector, make_envs
from cule.train.envs.emulator import FRAMESKIP
from cule.train.layout import Layout
from cule.train.learning import Learning
from cule.train.lowering.attributes import Attributes, constant_classes
from cule.train.lowering.declaration import Declaration, fixed_bytes, observation_of
from cule.train.lowering.learner import Learner, by_name
from cule.train.lowering.networks import make_networks
from cule.train.lowering.returned import check_learning, check_schedules, number_of
from cule.train.lowering.trials import Trials, constant
from cule.train.plan.memory import GIB
from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program

# Env i of run `seed` gets seed * SEED_STRIDE + i, so that two runs have different env seeds.
SEED_STRIDE = 1_000_003


def check_lag(layout: Layout, learning: Learning) -> None:
    """Checks that acting does not wait for learning where it goes on beside it.

    Raises:
        ValueError: it does.
    """
    if layout.lags and learning.lag != 1:
        raise InvalidValue(
            f"expected a lag of 1 with the layout {layout}, where acting goes on while others "
            f"learn (--lag 1), got {learning.lag}"
        )


class Trainer:
    """Plays and learns.

    Args:
        algorithm: what to do, with settings for this process's device.
        processes: this process among the others.
        passes: which passes the plan makes; None: all.

    Attributes:
        apart: the multiprocessors that act and those that learn; None: both use all.
        sharing: how many trainings of a sweep are on the device at the same time.
        balance: finds how emulation runs beside learning; None: that is given.
        plan: what is executed.
        nets: the networks.
        iterations: how many there were.

    Raises:
        ValueError: the algorithm, the game or a setting is wrong.
    """

    def __init__(
        self, algorithm: Algorithm[Any], processes: ProcessGroup, passes: Passes | None = None
    ):
        self.algorithm, self.processes = algorithm, processes
        self.args, self.device = algorithm.args, processes.device
        algorithm.device = self.device
        actors, learners = processes.having("act"), processes.having("learn")
        each = self.args.num_envs // len(actors)
        number = actors.index(processes.rank) if processes.acts else len(actors) + processes.rank
        seed = self.args.seed * SEED_STRIDE + number * each
        learning = check_learning(algorithm.learning())
        check_lag(processes.layout, learning)
        self.sharing = trainings_at_once() if processes.size == 1 else 1
        self.apart: tuple[Partition, Partition] | None = None
        if processes.layout.kind == "apart":
            self.apart = split(self.device, processes.layout.multiprocessors)
        self.collector = self._make_collector(learning, each, seed)
        self.collector.first_env = number * each
        self.autotuner = self._make_autotuner()
        algorithm.num_actions = self.collector.num_actions
        torch.manual_seed(self.args.seed)
        if self.args.deterministic:
            compute_deterministically()
        self.nets = make_networks(algorithm, processes)
        nets = self.nets.all()
        others = [*nets, self.collector.env]
        self.attributes = Attributes(algorithm, others)
        self.trials = Trials(self.attributes, nets, self.device)
        self.learner = Learner(algorithm, self.nets.weights, self.trials)
        others.append(self.learner.optimizer)
        if len(learners) > 1:
            self.learner.reduction = make_reduction(
                processes.layout.learners_by_device(processes.size), self.nets.weights.gradient
            )
        if self.learner.reduction is not None:
            # Of zeros. NCCL connects GPUs when they first add up, which would be after the start.
            self.learner.reduction.average(self.nets.weights.gradient)
        self._schedules = check_schedules(algorithm.schedules())
        if self.args.anneal_lr:
            self._schedules.setdefault("learning_rate", self.args.falling("learning_rate"))
        for name in self._schedules:
            setattr(algorithm.now, name, torch.zeros((), device=self.device))
            number_of(name, self._schedules[name], 0)
        self.declaration = Declaration(
            algorithm,
            self.nets,
            self.collector,
            self.learner,
            observation_of(self.collector, compiled=algorithm.args.compile),
        )
        with self.trials(), constant(self.nets.named()), constant_classes(algorithm):
            algorithm.declare(self.declaration)
            program = self.declaration.finish()
        messages = None
        if processes.partners:
            networks = {self.declaration.actors[n].name: net for n, net in self.nets.acting.items()}
            messages = Messages(processes, program, networks, self.collector.num_envs)
            program = messages.program
        # Before the first message, which a process that failed would never take.
        with processes.all_or_none():
            self.plan = self._make_plan(program, passes)
        # From here on each process has its own random numbers.
        torch.manual_seed(self.args.seed * SEED_STRIDE + number)
        first = self.collector.reset(seed)
        self.plan.begin(
            self.declaration.observation, first if messages is None else messages.first(first)
        )

    def _make_plan(self, program: Program, passes: Passes | None) -> Plan:
        budget, apart = self.args.memory_budget, self.apart
        plan = Plan(
            program, self.device, passes=passes, fixed=fixed_bytes(self.nets, self.collector),
            budget=None if budget is None else int(budget * GIB), graphs=self.args.cuda_graphs,
            streams=None if apart is None else (apart[0].stream, apart[1].stream),
        )  # fmt: skip
        if apart is not None:
            plan.notes.append(
                f"{apart[0].multiprocessors} multiprocessors act, {apart[1].multiprocessors} "
                f"others learn; {self.processes.layout.multiprocessors} were asked for"
            )
        return plan

    def _make_collector(self, learning: Learning, num_envs: int, seed: int) -> Collector:
        """The envs of this process, or what stands for those of its actors.

        Args:
            learning: when and from what to learn.
            num_envs: of each process that acts.
            seed: of the envs.
        """
        processes, before, facts = self.processes, self._allocated(), None
        with processes.all_or_none():
            if processes.acts:
                learning.check(num_envs)
                envs = make_envs(
                    self.algorithm, learning, num_envs, self.device, alone=processes.layout.lags,
                    sharing=self.sharing,
                )  # fmt: skip
                collector = Collector(envs, self.device, self.args.env_groups, self.args.rewards)
                collector.bytes = self._allocated() - before
                collector.look(seed)
                facts = facts_of(collector)
        if processes.partners:
            facts = processes.broadcast(facts, processes.having("act")[0])
        if not processes.acts:
            assert facts is not None, "a process that acts has told them"
            num_envs *= len(processes.partners)
            learning.check(num_envs)
            collector = Collector(FarEnvs(num_envs, facts, self.device), self.device)
            collector.look(seed)
        return collector

    def _make_autotuner(self) -> SmAutotuner | None:
        args, processes = self.args, self.processes
        reserved = getattr(self.collector.env, "multiprocessors", None)
        # Of several processes on a GPU each would take more from the others.
        alone = processes.layout.kind == "together" and processes.num_devices == processes.size
        if reserved is None or args.multiprocessors or self.own_envs or not alone:
            return None
        all_ = multiprocessors_of(self.device, self.sharing)
        autotuner = SmAutotuner(all_, reserved, fewest_multiprocessors(self.collector.env.num_envs))
        self._emulate(autotuner.way)
        return autotuner

    def _emulate(self, way: Way) -> bool:
        """Emulates in another way from now on; returns whether that is possible."""
        return bool(self.collector.env.reserve(way.multiprocessors, ordered=way.ordered))

    def warm_up(self) -> None:
        """Computes actions, a gradient and an update once, which changes nothing.

        What is compiled or loaded at the first use is there when the training begins.
        """
        with self.trials([self.learner.turn, self.learner.metrics]):
            for executor in self.plan.executors:
                for operation in executor.group.operations:
                    if operation.name in ("act", "gradient"):
                        executor.try_out(operation)
                    elif operation.name == "update":
                        self.learner.try_step()

    def _allocated(self) -> int:
        """Bytes that torch has allocated on a GPU."""
        on_gpu = self.device.type == "cuda"
        return torch.cuda.memory_allocated(self.device) if on_gpu else 0

    @property
    def steps(self) -> int:
        """Steps that each env has played."""
        return self.plan.steps

    @property
    def own_envs(self) -> bool:
        """Whether the algorithm made its envs itself, so that ale-py cannot evaluate it."""
        return type(self.algorithm).environment is not Algorithm.environment

    @property
    def frames(self) -> int:
        """Frames emulated by all processes so far."""
        return self.steps * self.args.num_envs * FRAMESKIP

    @property
    def period(self) -> int:
        """Steps in an iteration."""
        return self.plan.program.period

    @property
    def lag(self) -> int:
        """The lag of learning, in iterations."""
        return self.algorithm.learning().lag

    @property
    def phases(self) -> int:
        """Phases of learning so far."""
        return self._phases_at(self.steps)

    def _phases_at(self, steps: int) -> int:
        return max(0, (steps - self.declaration.start - 1) // self.period + 1)

    @property
    def warm_up_frames(self) -> int:
        """Frames in iterations without learning, before the first one with it."""
        return self.declaration.start // self.period * self.period * self.args.num_envs * FRAMESKIP

    @property
    def updates(self) -> int:
        """How many times the networks were updated."""
        if self.processes.learns:
            return self.phases * self.declaration.updates
        rows = self.args.num_envs // len(self.processes.having("learn"))
        return self.phases * self.algorithm.learning().updates(rows)

    @property
    def acting(self) -> Nets:
        """The networks that act. Where nothing is handed over, those that learn do."""
        handed = {o.name for o in self.plan.program.operations}
        nets = {
            name: net if f"hand over {name}" in handed else self.nets.trained[name]
            for name, net in self.nets.acting.items()
        }
        return by_name(list(nets), list(nets.values()))

    def iterate(self, tell: Callable[[int], object] = lambda frames: None) -> None:
        """Executes an iteration: some steps, and a phase of learning once there is enough.

        Does not wait for the device.

        Args:
            tell: called with the frames so far, now and then.
        """
        learns_from = self.frames
        if not self.lag:
            learns_from += self.plan.program.period * self.args.num_envs * FRAMESKIP
        with annotate.operation("schedules"):
            for name, value in self._schedules.items():
                if name == "learning_rate":
                    self.learner.set_learning_rate(number_of(name, value, learns_from))
                else:
                    getattr(self.algorithm.now, name).fill_(number_of(name, value, self.frames))
        each, after = self.args.num_envs * FRAMESKIP, self._phases_at(self.steps + self.period)
        learns = self.processes.learns and after > self.phases
        checks = learns and self.learner.checks_in(after)
        self.plan.run(tell=lambda steps: tell(steps * each), captured=not checks)

    def adapt(self, seconds: float) -> None:
        """Lets emulation on a GPU follow what is played: its code, and where it runs.

        All processes have to call it, and nothing may be running on the device. Results do not
        change.

        Args:
            seconds: of training so far.
        """
        seconds = self.processes.max(seconds)
        changed = self.processes.any(self.collector.translate_again(self.steps))
        if self.autotuner is not None:
            if changed:
                self.autotuner.disturbed()
            way = self.autotuner.observe(self.frames, seconds)
            if way is not None and not self._emulate(way):
                self.autotuner.refuse()
            elif way is not None:
                changed = True
        if changed:
            self.plan.free_graphs()

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        precise, networks = self.nets.weights.precise, {}
        # A process that only acts has the networks that act, in its plan.
        if self.processes.learns:
            networks = {name: precise(net) for name, net in self.nets.trained.items()}
            networks |= {name: net.state_dict() for name, (net, _) in self.nets.copies.items()}
        return {
            "steps": self.steps,
            "updates": self.updates,
            "networks": networks,
            "attributes": self.attributes.state_dict(),
            "plan": self.plan.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned.

        Raises:
            KeyError, RuntimeError, ValueError: the state is of a run with other settings.
        """
        self.plan.load_state_dict(state["plan"])
        self.attributes.load_state_dict(state["attributes"])

    def close(self) -> None:
        """Frees the envs and the captured graphs."""
        self.plan.free_graphs()
        self.collector.close()
