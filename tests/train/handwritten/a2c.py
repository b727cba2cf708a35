"""One process's envs, network, player and learner, and the order in which they work.

Without `overlap`, an iteration plays `steps_per_update` steps. Then it learns from the last
`n_steps` of the next group of envs, or of several groups in turn (`updates_at_once`).

With `overlap`, it learns from the steps before the iteration, on a second stream, while the envs
play. The policy that plays gets the new weights when both are done, so they are one iteration old;
V-trace corrects for that too. Some of the GPU's multiprocessors are then reserved for emulation,
which takes 1.5 times as long when it shares them with learning kernels.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import torch

import cule
from cule import scope
from cule.engine import fewest_multiprocessors
from cule.train.distributed.process_group import World
from cule.train.envs.emulator import FRAMESKIP, make_env
from cule.train.nn.models import ActorCritic
from handwritten.arguments import Args
from handwritten.graphed import Graphed
from handwritten.learner import Learner
from handwritten.player import Player
from handwritten.rollout import Rollout

# Env i of run `seed` gets seed * SEED_STRIDE + i, so that two runs have different env seeds.
SEED_STRIDE = 1_000_003


def make_policy(model: ActorCritic, bf16: bool) -> ActorCritic:
    """A copy of the model to play with; in bfloat16, so that steps need not convert weights."""
    policy = copy.deepcopy(model).requires_grad_(False)
    return policy.to(torch.bfloat16) if bf16 else policy


class Trainer:
    """Plays and learns.

    Args:
        args: the settings, from Args.on() for the world's device.
        world: this process among the others.

    Attributes:
        policy: the network that plays.
        steps: how many steps each env has played.
        updates: how many times the network was updated.

    Raises:
        ValueError: the game or the network does not exist.
    """

    def __init__(self, args: Args, world: World):
        self.args, self.world, self.device = args, world, world.device
        self.num_envs = args.num_envs // world.size
        self.env = make_env(
            args.emulator, args.game, self.num_envs, self.device,
            life_loss_ends=args.life_loss_ends, repeat_action_probability=args.sticky,
            max_frames=args.max_episode_frames, num_threads=args.num_threads,
            multiprocessors=self._multiprocessors(),
        )  # fmt: skip
        torch.manual_seed(args.seed)
        model = ActorCritic(int(self.env.single_action_space.n), args.model, args.width).to(
            self.device
        )
        world.share([parameter.detach() for parameter in model.parameters()])
        if args.channels_last:
            model.to(memory_format=torch.channels_last)
        self.policy = make_policy(model, args.bf16)
        rollout = Rollout(self.num_envs, args.n_steps, args.steps_per_update, self.device)
        acting = torch.compile(self.policy) if args.compile else self.policy
        self.player = Player(self.env, acting, rollout, args.gamma, args.seed)
        self.learner = Learner(model, rollout, args, world.size)
        self.steps = self.updates = 0

        self._learner_stream = (
            torch.cuda.Stream(self.device) if args.overlap and self.device.type == "cuda" else None
        )
        self._play_steps: Callable[[], None] = self._play
        self._compute_gradient, self._apply_gradient = (
            self.learner.compute_gradient,
            self.learner.apply_gradient,
        )
        if args.cuda_graphs:
            self._compute_gradient, self._apply_gradient = map(
                Graphed, (self._compute_gradient, self._apply_gradient)
            )
            # ale-py plays on the host.
            if args.emulator == "cule":
                self._play_steps = Graphed(self._play)

        # From here on each process has its own random numbers.
        torch.manual_seed(args.seed * SEED_STRIDE + world.rank)
        self.player.begin(args.seed * SEED_STRIDE + world.rank * self.num_envs)
        self.player.warm_up()
        self.learner.warm_up()

    def _multiprocessors(self) -> int | None:
        """How many multiprocessors are reserved for emulation; None: none is, as without overlap or
        with more envs than half of them can emulate."""
        if self.device.type != "cuda":
            return None
        if self.args.multiprocessors or not self.args.overlap:
            return self.args.multiprocessors or None
        half = torch.cuda.get_device_properties(self.device).multi_processor_count // 2
        return half if fewest_multiprocessors(self.num_envs) <= half else None

    @property
    def frames(self) -> int:
        """Frames emulated by all processes so far."""
        return self.steps * self.args.num_envs * FRAMESKIP

    @property
    def ready(self) -> bool:
        """Whether enough has been played to learn from."""
        return self.steps >= max(self.args.n_steps, self.args.warmup_steps)

    def iterate(self) -> None:
        """Plays `steps_per_update` steps and, once there are enough, learns. Does not wait for the
        device."""
        if not self.args.overlap:
            self._play_all()
            self.steps += self.args.steps_per_update
            if self.ready:
                self._end_batch_here()
                self._learn()
                self.hand_over()
            return
        ready = self.ready
        if ready:
            self._end_batch_here()
            with self._on_learner_stream():
                self._learn()
        self._play_all()
        self.steps += self.args.steps_per_update
        if ready:
            if self._learner_stream is not None:
                torch.cuda.current_stream(self.device).wait_stream(self._learner_stream)
            self.hand_over()

    @scope.operation("gathering")
    def _end_batch_here(self) -> None:
        self.learner.end.copy_(self.player.rollout.position)

    @scope.operation("playing")
    def _play_all(self) -> None:
        self._play_steps()

    def _play(self) -> None:
        for _ in range(self.args.steps_per_update):
            self.player.step()

    @scope.operation("learning")
    def _learn(self) -> None:
        if self.args.anneal:
            left = max(0.0, 1.0 - self.frames / self.args.total_frames)
            self.learner.set_learning_rate(self.args.learning_rate * left)
        for _ in range(self.args.updates_at_once):
            self._compute_gradient()
            self.learner.average_gradient()
            self._apply_gradient()
            self.updates += 1

    def _on_learner_stream(self) -> contextlib.AbstractContextManager:
        if self._learner_stream is None:
            return contextlib.nullcontext()
        self._learner_stream.wait_stream(torch.cuda.current_stream(self.device))
        return torch.cuda.stream(self._learner_stream)

    @scope.operation("handing over")
    @torch.no_grad()
    def hand_over(self) -> None:
        """Copies the learned weights to the policy that plays."""
        torch._foreach_copy_(list(self.policy.parameters()), self.learner.parameters)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on, except ale-py's envs, which cannot be
        saved."""
        envs = None
        if self.args.emulator == "cule":
            state = self.env.clone_state()
            envs = {"version": state.version, "games": state.games, "tensors": state.tensors}
        return {
            "steps": self.steps,
            "updates": self.updates,
            "learner": self.learner.state_dict(),
            "player": self.player.state_dict(),
            "envs": envs,
            "random": torch.get_rng_state(),
            "cuda_random": torch.cuda.get_rng_state(self.device)
            if self.device.type == "cuda"
            else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict() returned.

        Raises:
            RuntimeError, ValueError: the state is of a run with other settings.
        """
        self.steps, self.updates = state["steps"], state["updates"]
        self.learner.load_state_dict(state["learner"])
        self.player.load_state_dict(state["player"])
        self.env.restore_state(cule.State(**state["envs"]))
        torch.set_rng_state(state["random"].cpu())
        if state["cuda_random"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_random"].cpu(), self.device)
        self.hand_over()

    def close(self) -> None:
        """Frees the envs and the captured graphs.

        The graphs and the trainer refer to each other. Without this, Python's garbage collector
        could free the graphs at any time, even while another trainer captures its own.
        """
        del self._play_steps, self._compute_gradient, self._apply_gradient
        self.env.close()
