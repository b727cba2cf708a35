"""Go-Explore's second phase: learns to score what a demonstration scores, with sticky actions.

    python -m examples.go_explore.robustify --game private_eye \
      --demonstration runs/go_explore/best.json --folder runs/private_eye

The backward algorithm (Salimans and Chen, 2018; Ecoffet et al., 2021): PPO whose episodes begin
near the end of the demonstration. Once enough of them score what the demonstration scores from
there, they begin earlier, until they begin at the start of the game. Some do from the first on, and
some begin at any later place, so that it is not forgotten how to go on from there. An episode that
takes much longer than the demonstration ends without success.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cule
from cule import train
from cule.errors import InvalidValue
from cule.rom import find_game
from cule.train.checks import at_least, within
from examples.go_explore.archive import states_at
from examples.go_explore.demonstration import Demonstration, make_env
from examples.ppo import ppo

# What the clipped rewards of a demonstration sum up to at most. Where each step costs points, as in
# Skiing, values would be hundreds, which are learned slowly, and their gradients would drown those
# of the policy.
MOST_REWARD = 10.0


@dataclass
class Args(ppo.Args):
    """Trains PPO backwards from the end of a demonstration."""

    folder: Path = Path("runs/robustify")
    """where the log, the checkpoints and the plot go"""
    demonstration: Path = Path("runs/go_explore/best.json")
    """what examples.go_explore.explore has written"""
    sticky: float = 0.25
    """probability that a frame repeats the last frame's action"""
    every: int = 4
    """steps of the demonstration between two places where episodes may begin"""
    spread: int = 8
    """places over which the beginnings of episodes are spread"""
    enough: float = 0.2
    """part of the episodes that has to score as much as the demonstration, for the places to move
    back"""
    episodes: int = 200
    """episodes of which that is the part"""
    from_start: float = 0.1
    """part of the episodes that begins at the start of the game"""
    rehearse: float = 0.1
    """part of the episodes that begins at any place from the first of the places on, to the end"""
    tolerance: float = 0.0
    """part of the points of the demonstration that may be missing in an episode that counts as one
    that scores as much"""
    patience: float = 1.5
    """how many times as long as the demonstration an episode may take, and 50 steps more"""
    eval_episodes: int = 0
    """0: python -m cule.train.evaluate plays the game from its start"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        if self.eval_episodes:
            raise InvalidValue(
                f"expected eval_episodes to be 0 with a demonstration, got {self.eval_episodes}"
            )
        at_least(1, self, "every", "spread", "episodes", "patience")
        within(0, 1, self, "enough", "from_start", "rehearse", "tolerance")

    def demonstrated(self) -> Demonstration:
        """The demonstration.

        Raises:
            ValueError: there is none, it has no actions, or is of another game.
        """
        found = Demonstration.load(self.demonstration)
        for name, wanted in (("game", find_game(self.game).name),
                             ("full_action_space", self.full_action_space)):  # fmt: skip
            if getattr(found, name) != wanted:
                raise InvalidValue(
                    f"expected a demonstration with {name} {wanted}, got {self.demonstration} with "
                    f"{getattr(found, name)}"
                )
        if not found.actions:
            raise InvalidValue(f"expected a demonstration with actions, got {self.demonstration}")
        return found


def _env(args: Args, num_envs: int, device: torch.device, sticky: float) -> cule.AtariEnv:
    return make_env(
        args.game, num_envs, device, full_action_space=args.full_action_space,
        num_threads=args.num_threads, stack_num=1, repeat_action_probability=sticky,
        max_num_frames_per_episode=10**9,
    )  # fmt: skip


def wanted(left: torch.Tensor, tolerance: float) -> torch.Tensor:
    """What an episode has to score to succeed, by the place where it begins.

    Args:
        left: (places,), what the demonstration scores from there on; below 0 where points are lost.
        tolerance: which part of these points may be missing, or be lost besides.
    """
    return left - tolerance * left.abs()


class DemonstrationEnvs:
    """Envs whose episodes begin at places of a demonstration, and which say when they succeed.

    Args:
        args: the settings.
        num_envs: how many envs there are.
        device: where they are.

    Raises:
        ValueError: there is no such demonstration.

    Attributes:
        first: the first of the `spread` places at which episodes begin now; 0: the start of the
            game.
        first_on_device: the same as a tensor, () float32.
    """

    def __init__(self, args: Args, num_envs: int, device: torch.device):
        self.args, self.num_envs = args, num_envs
        found = args.demonstrated()
        self._starts, self._left, self._limits, self._scale = self._places(found, device)
        self._env = _env(args, num_envs, device, args.sticky)
        self.single_action_space = self._env.single_action_space
        self._wanted = wanted(self._left, args.tolerance)
        self.first_on_device = torch.zeros((), device=device)
        self.first = max(0, len(self._left) - args.spread)
        self._wins = [0, 0]  # of the episodes since `first` has changed, and how many these are
        zeros = torch.zeros(num_envs, dtype=torch.int64, device=device)
        # Of each env: where its episode began, what `first` was then, its points and steps since
        # then, and whether it is over.
        self._parts = {"place": zeros, "first": zeros.clone(), "points": zeros.clone(),
                       "steps": zeros.clone(), "over": zeros.bool()}  # fmt: skip
        self._begun = 0  # how often episodes have begun, for the random numbers of the next ones

    @property
    def first(self) -> int:
        return self._first

    @first.setter
    def first(self, place: int) -> None:
        self._first = place
        self.first_on_device.fill_(place)

    def _places(
        self, found: Demonstration, device: torch.device
    ) -> tuple[cule.State, torch.Tensor, torch.Tensor, float]:
        """Of each place its state, the points that are left, and the most steps of an episode.

        The last value is what clipped rewards are multiplied by.
        """
        states, points = [], []
        with closing(_env(self.args, 1, device, 0.0)) as env:
            env.reset(seed=0)
            for number, action in enumerate(found.actions):
                if number % self.args.every == 0:
                    states.append(env.clone_state(include_rng=False))
                infos = env.step(torch.full((1,), action, device=device))[-1]
                points.append(int(infos["raw_reward"][0]))
        tensors = {
            name: torch.cat([state.tensors[name] for state in states]) for name in states[0].tensors
        }
        left = np.cumsum(points[::-1])[::-1][:: self.args.every].copy()
        steps = np.arange(len(points), 0, -1)[:: self.args.every]
        return (
            replace(states[0], games=states[0].games * len(states), tensors=tensors),
            torch.from_numpy(left).to(device),
            torch.from_numpy((steps * self.args.patience + 50).astype(np.int64)).to(device),
            MOST_REWARD / max(MOST_REWARD, float(np.abs(np.clip(points, -1, 1)).sum())),
        )

    def _begin(self, who: torch.Tensor) -> None:
        """Begins episodes in some envs, whose numbers these are."""
        generator = np.random.default_rng([self.args.seed, self._begun])
        self._begun += 1
        args, end = self.args, len(self._left)
        places = generator.integers(self.first, min(self.first + args.spread, end), len(who))
        later = generator.integers(self.first, end, len(who))
        drawn = generator.random(len(who))
        places = np.where(drawn < args.from_start + args.rehearse, later, places)
        places[drawn < args.from_start] = 0
        rows = torch.from_numpy(places).to(who.device)
        self._env.restore_state(states_at(self._starts, rows), who)
        parts = self._parts
        parts["place"][who], parts["first"][who] = rows, self.first
        parts["points"][who], parts["steps"][who] = 0, 0

    def _move(self, ended: torch.Tensor) -> None:
        """Counts episodes that have ended, and lets the next ones begin earlier if enough win.

        Those that began before the last move say nothing of where episodes begin now.
        """
        parts, args = self._parts, self.args
        among = (parts["place"] >= self.first) & (parts["place"] < self.first + args.spread)
        counted = ended & among & (parts["first"] == self.first)
        won = counted & (parts["points"] >= self._wanted[parts["place"]])
        more = torch.stack([won.sum(), counted.sum()]).tolist()  # the host waits once
        self._wins = [self._wins[0] + more[0], self._wins[1] + more[1]]
        if self._wins[1] >= args.episodes:
            if self._wins[0] >= args.enough * self._wins[1]:
                self.first = max(0, self.first - max(1, args.spread // 2))
            self._wins = [0, 0]

    def reset(self, *, seed: int) -> tuple[torch.Tensor, dict[str, Any]]:
        """Begins an episode in each env."""
        observations, _ = self._env.reset(seed=seed)
        self._begin(torch.arange(self.num_envs, device=self._env.device))
        self._parts["over"].fill_(False)
        return observations, {}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """Plays a step; an env whose episode was over begins another one instead."""
        parts = self._parts
        observations, _, terminated, _, infos = self._env.step(actions)
        who = parts["over"].nonzero().squeeze(1)
        points, terminated = infos["raw_reward"].clone(), terminated.clone()
        points[who], terminated[who] = 0, False
        parts["points"] += points
        parts["steps"] += 1
        if len(who):
            self._begin(who)
        truncated = (parts["steps"] >= self._limits[parts["place"]]) & ~terminated
        parts["over"] = terminated | truncated
        self._move(parts["over"])
        rewards = points.clamp(-1, 1) * self._scale
        return observations, rewards, terminated, truncated, {"raw_reward": points}

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on exactly."""
        return {
            "states": self._env.clone_state().tensors, "parts": dict(self._parts),
            "first": self.first, "wins": list(self._wins), "begun": self._begun,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what state_dict has returned.

        Raises:
            ValueError: a version of this program returned it that knew other things of episodes.
        """
        if state["parts"].keys() != self._parts.keys():
            raise InvalidValue(
                f"expected a checkpoint with {', '.join(self._parts)} of episodes, got one with "
                f"{', '.join(state['parts'])}"
            )
        games = self._starts.games[:1] * self.num_envs
        tensors = state["states"]
        whole = replace(self._starts, games=games, tensors=tensors, include_rng=True)
        self._env.restore_state(whole)
        self._parts = {name: part.clone() for name, part in state["parts"].items()}
        self.first, self._wins, self._begun = state["first"], state["wins"], state["begun"]

    def close(self) -> None:
        """Frees the envs."""
        self._env.close()


class Robustify(ppo.PPO):
    """PPO whose episodes begin at places of a demonstration."""

    @classmethod
    def environment(cls, args, num_envs, device):
        return DemonstrationEnvs(args, num_envs, device)

    def loss(self, nets, batch):
        parts, envs = super().loss(nets, batch), self.context.envs
        if envs is None:  # a process that only learns
            return parts
        return {**parts, "first": envs.first_on_device}


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(Robustify, Args)


if __name__ == "__main__":
    sys.exit(main())
