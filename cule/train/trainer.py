"""One process's envs, networks, learner and plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cule.engine import fewest_multiprocessors
from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm, Nets
from cule.train.dealing import Dealt
from cule.train.devices import choose_algorithms, multiprocessors_of
from cule.train.distributed.asynchrony import Staleness, check_lag
from cule.train.distributed.connections import Connections
from cule.train.distributed.decoupled import FarEnvs, Messages, facts_of
from cule.train.distributed.gpu_lock import trainings_at_once
from cule.train.distributed.process_group import ProcessGroup
from cule.train.distributed.reduction import reduction_of
from cule.train.distributed.sm_autotuner import SmAutotuner, Way
from cule.train.distributed.sm_partition import Partition, in_words, split
from cule.train.envs.collector import Collector, make_envs
from cule.train.envs.emulator import FRAMESKIP
from cule.train.layout import Layout
from cule.train.learning import Learning
from cule.train.lowering.attributes import Attributes
from cule.train.lowering.lower import lower
from cule.train.lowering.making import make_algorithm
from cule.train.lowering.method_checks import check_learning
from cule.train.lowering.networks import Optimizers, by_name, load_optimizer, make_networks
from cule.train.lowering.sandbox import Sandbox
from cule.train.lowering.settings_read import Make
from cule.train.plan import annotate
from cule.train.plan.memory import GIB
from cule.train.plan.passes import Passes
from cule.train.plan.plan import Plan
from cule.train.plan.program import Program
from cule.train.schedules import Schedules

# Env i of run `seed` gets seed * SEED_STRIDE + i, so that two runs have different env seeds.
SEED_STRIDE = 1_000_003


class Trainer:
    """One process's envs, networks, learner and plan; `iterate` plays and learns.

    Args:
        make: makes the algorithm from settings and a context, as its class does.
        args: the settings, for this process's device.
        processes: this process among the others.
        passes: which passes the plan makes; None: all.
        latest_start: the most steps before learning, even if the algorithm asks for more; None:
            as the algorithm asks.
        on_algorithm: called with the algorithm, before the envs of the settings are made.
        translated: wait until the game is compiled for a GPU; False: training may begin with steps
            that are interpreted, and changes over in `adapt`. Results are the same.
        dealt: how often envs were dealt anew to another number of processes.

    Attributes:
        algorithm: the algorithm.
        learning: when and from what it learns.
        collector: the envs of this process.
        nets: the networks.
        lowered: the algorithm's program.
        staleness: how much older than the learning networks a policy is that acts elsewhere.
        learner: computes gradients and updates of the main learning.
        learners: those of all learnings, the main one's first.
        plan: executes the program.
        apart: the multiprocessors that act and those that learn; None: both use all.
        sharing: how many trainings of a sweep train on the device at the same time.
        autotuner: chooses the multiprocessors and the order of envs while training; None: they are
            fixed.
        unread: names of settings that the algorithm does not read.

    Raises:
        ValueError: the algorithm, the game or a setting is wrong.
    """

    def __init__(
        self,
        make: Make,
        args: Any,
        processes: ProcessGroup,
        passes: Passes | None = None,
        latest_start: int | None = None,
        on_algorithm: Callable[[Algorithm[Any]], object] = lambda algorithm: None,
        translated: bool = True,
        dealt: Dealt | None = None,
    ):
        self.dealt = dealt or Dealt()
        self.args, self.processes, self.device = args, processes, processes.device
        self.algorithm = algorithm = make_algorithm(make, args, processes)
        on_algorithm(algorithm)
        self.learning = learning = check_learning(algorithm.learning())
        check_lag(processes.layout, learning)
        rows = args.num_envs // len(processes.ranks("learn"))
        self.staleness = Staleness(algorithm, learning, args.max_staleness, rows)
        self.sharing = trainings_at_once() if processes.size == 1 else 1
        self.apart = self._split_multiprocessors()
        number, its = processes.number, processes.envs(args.num_envs)
        env_seed = self._seed + its.start
        self.collector = self._make_collector(learning, its, env_seed)
        self.autotuner = self._make_autotuner()
        torch.manual_seed(self.args.seed)
        choose_algorithms(repeatable=args.deterministic, bounded=args.memory_budget is not None)
        self.nets = make_networks(algorithm, processes)
        optimizers = Optimizers(algorithm, self.nets)
        self.unread = self.nets.unread | optimizers.unread
        saved_elsewhere = [*self.nets.all(), self.collector.env, optimizers.whole]
        self.attributes = Attributes(algorithm, saved_elsewhere)
        self.sandbox = Sandbox(self.attributes, self.nets.all(), self.device)
        reduction = reduction_of(processes, self.nets.weights.gradient, args.reduction)
        self.schedules = Schedules(algorithm)
        self.lowered = lower(
            algorithm, self.nets, self.collector, optimizers, reduction, self.sandbox, latest_start
        )
        self.learner, self.learners = self.lowered.learner, self.lowered.learners
        self.messages = messages = self._make_messages() if processes.decoupled else None
        program = self.lowered.program if messages is None else messages.program
        # Before the first message, which a process that failed would never take.
        with processes.all_or_none():
            self.plan = self._make_plan(program, passes)
        # From here on each process has its own random numbers.
        torch.manual_seed(self._seed + number)
        with annotate.operation("first reset"):
            first = self.collector.reset(env_seed)
        self.plan.begin(
            self.lowered.observation, first if messages is None else messages.first(first)
        )
        if translated:
            with annotate.operation("compile the game"):
                self.collector.wait_until_translated()

    def _make_messages(self) -> Messages | None:
        """Those of a process that acts or learns alone; None: it does both. All have to call it.

        Raises:
            ValueError: there are several learnings.
        """
        if len(self.learners) > 1:
            raise InvalidValue(
                "expected one learning where some processes act and others learn, got "
                f"{len(self.learners)}"
            )
        lowered, processes, envs = self.lowered, self.processes, self.args.num_envs
        connections = Connections(processes)
        if processes.does_both:
            return None
        networks = {lowered.actors[name].name: net for name, net in self.nets.acting.items()}
        return Messages(processes, connections, lowered.program, networks, envs, self.staleness)

    @property
    def _seed(self) -> int:
        """The seed of the first env of all, and of learning in the first process that acts."""
        return self.args.seed * SEED_STRIDE + self.dealt.seed

    def _split_multiprocessors(self) -> tuple[Partition, Partition] | None:
        layout = self.processes.layout
        return None if layout.budget is None else split(self.device, layout.budget)

    @annotate.operation("plan")
    def _make_plan(self, program: Program, passes: Passes | None) -> Plan:
        budget, apart = self.args.memory_budget, self.apart
        sent = 0 if self.messages is None else self.messages.connections.bytes
        return Plan(
            program, self.device, passes=passes,
            fixed=self.nets.bytes + self.collector.bytes + self.lowered.bytes + sent,
            budget=None if budget is None else int(budget * GIB), graphs=self.args.cuda_graphs,
            streams=None if apart is None else (apart[0].stream, apart[1].stream),
            notes=(*self.processes.notes, *in_words(apart, self.processes.layout.budget)),
        )  # fmt: skip

    @annotate.operation("make envs")
    def _make_collector(self, learning: Learning, its: range, seed: int) -> Collector:
        """The envs of this process; of one that only learns, a stand-in for its actors' envs.

        Args:
            learning: when and from what to learn.
            its: the numbers of the envs, over all processes.
            seed: the seed of the first env.
        """
        num_envs, first_env = len(its), its.start
        processes, facts = self.processes, None
        with processes.all_or_none():
            if processes.acts:
                learning.check(num_envs)
                envs = make_envs(
                    self.algorithm, learning, num_envs, self.device, alone=processes.layout.lags,
                    sharing=1 if processes.has_budget else self.sharing,
                )  # fmt: skip
                collector = Collector(
                    envs, self.device, self.args.env_groups, self.args.rewards, seed=seed,
                    first_env=first_env,
                )  # fmt: skip
                facts = facts_of(collector)
        if processes.decoupled:
            facts = processes.broadcast(facts, processes.ranks("act")[0])
        if not processes.acts:
            assert facts is not None, "a process that acts has sent them"
            learning.check(num_envs)
            far = FarEnvs(num_envs, facts, self.device)
            collector = Collector(far, self.device, seed=seed, first_env=first_env)
        collector.first_step = self.dealt.steps
        return collector

    def _make_autotuner(self) -> SmAutotuner | None:
        args, processes = self.args, self.processes
        reserved = getattr(self.collector.env, "multiprocessors", None)
        # Of several processes on a GPU each would take more from the others.
        alone = processes.layout == Layout() and processes.num_devices == processes.size
        if reserved is None or args.multiprocessors or self.own_envs or not alone:
            return None
        all_ = multiprocessors_of(self.device, self.sharing)
        autotuner = SmAutotuner(all_, reserved, fewest_multiprocessors(self.collector.env.num_envs))
        self._emulate(autotuner.way)
        return autotuner

    def _emulate(self, way: Way) -> bool:
        """Emulates in another way from now on; returns whether that is possible."""
        return bool(self.collector.env.reserve(way.multiprocessors, ordered=way.ordered))

    @annotate.operation("warm up")
    def warm_up(self) -> None:
        """Computes actions, a gradient and an update once, and undoes them.

        So kernels are compiled and loaded before the training begins.
        """
        with self.sandbox([one for each in self.learners for one in each.counts]):
            self.plan.warm_up()

    @property
    def steps(self) -> int:
        """Steps that each env has played."""
        return self.dealt.steps + self.plan.steps

    @property
    def own_envs(self) -> bool:
        """Whether the algorithm brings its envs, so that ale-py cannot evaluate it."""
        return self.algorithm.brings_envs

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
        return self.learning.lag

    @property
    def phases(self) -> int:
        """Phases of the main learning so far, since envs were dealt."""
        return self.lowered.learnings[0].made_in(self.plan.steps)

    @property
    def warm_up_frames(self) -> int:
        """Frames in iterations without learning, before the first one with it."""
        return self.lowered.start // self.period * self.period * self.args.num_envs * FRAMESKIP

    @property
    def updates(self) -> int:
        """Updates of the networks so far."""
        if self.processes.learns:
            return self.dealt.updates + self.lowered.updates(self.plan.steps)
        rows = self.args.num_envs // len(self.processes.ranks("learn"))
        return self.dealt.updates + self.phases * self.learning.updates(rows)

    def transitions_since(self, frames: int) -> int:
        """Transitions from which all who learn have learned since so many frames were emulated.

        GMI-DRL's TTOP (Wang et al., 2022) times the seconds. The process has to be one of them.
        """
        steps, count = self.plan.steps, len(self.processes.ranks("learn"))
        before = steps - round((self.frames - frames) / (self.args.num_envs * FRAMESKIP))
        return count * (self.lowered.transitions(steps) - self.lowered.transitions(before))

    @property
    def acting(self) -> Nets:
        """The networks that act: copies, or the trained ones where nothing is handed over."""
        handed = {write.recurrent for o in self.plan.program.operations for write in o.writes}
        nets = {
            name: net if self.lowered.actors[name] in handed else self.nets.trained[name]
            for name, net in self.nets.acting.items()
        }
        return by_name(list(nets), list(nets.values()))

    def iterate(
        self, progress: Callable[[int], object] = lambda frames: None, schedule_frames: int = 0
    ) -> None:
        """Executes an iteration: some steps, and a phase of learning once there is enough.

        Does not wait for the device.

        Args:
            progress: called with the frames so far, after each step on a CPU, else once.
            schedule_frames: the frames that schedules have reached, if these are more.
        """
        acts_at = learns_from = max(self.frames, schedule_frames)
        if not self.lag:
            learns_from += self.plan.program.period * self.args.num_envs * FRAMESKIP
        with annotate.operation("schedules"):
            self.schedules.set(acts_at)
            rate = self.schedules.learning_rate(learns_from)
            if rate is not None:
                for learner in self.learners:
                    learner.set_learning_rate(rate)
        each, dealt = self.args.num_envs * FRAMESKIP, self.dealt.steps
        checks = self.processes.learns and self._check_chunks()
        self.plan.run(progress=lambda steps: progress((dealt + steps) * each), captured=not checks)

    def _check_chunks(self) -> bool:
        """Whether a learning checks in the next iteration that chunks are allowed."""
        checks = False
        for learner, learning in zip(self.learners, self.lowered.learnings, strict=True):
            after = learning.made_in(self.plan.steps + self.period)
            learns = after > learning.made_in(self.plan.steps)
            checks |= learns and learner.checks_in(after)
        return checks

    def adapt(self, seconds: float) -> None:
        """Adapts emulation on a GPU to what is played: its code, multiprocessors and order.

        All processes have to call it while nothing runs on the device. Results do not change.

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

    def settle(self) -> None:
        """Takes all messages that are on their way. All processes have to call it."""
        if self.messages is not None:
            self.messages.settle()

    def state_dict(self) -> dict[str, Any]:
        """The state that the rest of the run depends on: steps, networks, attributes and plan."""
        self.settle()
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
            **self.dealt.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned.

        Raises:
            KeyError, RuntimeError, ValueError: the state is of a run with other settings.
        """
        self.plan.load_state_dict(state["plan"])
        self.attributes.load_state_dict(state["attributes"])

    def take_over(self, state: dict[str, Any]) -> None:
        """Takes networks, optimizers and attributes of another number of processes' process 0.

        Args:
            state: what its state_dict() returned.

        Raises:
            KeyError, RuntimeError, ValueError: the state is of a run with other settings.
        """
        objects = state["plan"]["objects"]
        names = {id(r.object): r.name for r in self.lowered.program.recurrents}
        saved = [objects[names[id(learner)]] for learner in self.learners]
        self.nets.load_state_dict(state["networks"], saved[0]["weights"])
        for learner, its in zip(self.learners, saved, strict=True):
            load_optimizer(learner.optimizer, its["optimizer"])
        self.attributes.load_state_dict(state["attributes"])

    def close(self) -> None:
        """Frees the envs and the captured graphs."""
        self.plan.free_graphs()
        self.collector.close()
