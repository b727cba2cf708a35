"""PPO (Schulman et al., 2017) that plays both players of a game, and learns from both.

    python -m examples.self_play.train --game pong --mirror

Each console has two players, with actions and rewards of their own (`num_players=2` of AtariEnv).
With `--learners one` a network plays both sides, and each step of a console is a row of each player
for the same loss. With `--learners two` each side has a network, an optimizer and a loss, and what
one learns changes what the other one meets.

Both players see the same screen, so a network has to be told which of them it is: the uppermost row
of the second player's observations is white. That works in any game. With `--mirror` the second
player also sees the screen mirrored, in games whose screen looks from the right as it does from the
left. Then a network that plays both sides learns one of them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

import cule
from cule import train
from cule.errors import InvalidValue
from cule.train.envs.emulator import FRAMESKIP
from cule.train.nn.losses import clipped_loss
from cule.train.nn.models import ActorCritic, policy_terms, sample_with_log
from cule.train.nn.returns import explained_variance, gae
from examples.ppo import ppo

PLAYERS = ("first", "second")
WHITE = 255


@dataclass
class Args(ppo.Args):
    """Trains PPO by self-play. Frames are emulated frames, four in a step of both players."""

    folder: Path = Path("runs/self_play")
    """where the log, the checkpoints and the plot go"""
    game_mode: int | None = None
    """the game's mode, one of those for two players; by default the first of them"""
    learners: Literal["one", "two"] = "one"
    """one: a network plays both sides; two: each side has a network and an optimizer"""
    mirror: bool = False
    """mirror what the second player sees, for games that look alike from both sides"""
    keep_checkpoints: bool = True
    """keep all checkpoints, whose policies examples.self_play.elo compares"""
    eval_episodes: int = 0
    """0: there is no evaluation, as ale-py has no second player"""

    def check(self, world_size: int) -> None:
        """Checks the numbers."""
        super().check(world_size)
        for name, only in (("emulator", "cule"), ("lag", 0), ("eval_episodes", 0)):
            if getattr(self, name) != only:
                raise InvalidValue(
                    f"expected {name} to be {only} in self-play, got {getattr(self, name)}"
                )
        if self.model == "lstm":
            raise InvalidValue("expected a model without a memory in self-play, got lstm")


def make_env(
    args: Args, num_envs: int, device: torch.device, *, stack_num: int = 1
) -> cule.AtariEnv:
    """The envs, with actions and rewards (num_envs, 2).

    Args:
        args: the settings, of which those of a game are read.
        num_envs: how many consoles there are.
        device: where they are.
        stack_num: frames of an observation; a training stacks them itself.

    Raises:
        ValueError: there is no such game or mode for two players, or an option is for one.
    """
    return cule.AtariEnv(
        args.game, num_envs, device, num_players=len(PLAYERS), mode=args.game_mode,
        stack_num=stack_num, frameskip=FRAMESKIP, output="torch_shared",
        repeat_action_probability=args.sticky,
        full_action_space=args.full_action_space, life_loss_info=args.life_loss_ends,
        max_num_frames_per_episode=args.max_episode_frames,
        num_threads=args.num_threads,
    )  # fmt: skip


def of_players(part: torch.Tensor, players: Sequence[int]) -> torch.Tensor:
    """Rows of some players, one player's after the other's: (B, 2) or (B,) to (B * players,)."""
    if part.dim() == 1:
        return part.repeat(len(players))
    return part[:, players[0] : players[-1] + 1].T.flatten()


class SelfPlay(train.Algorithm[Args]):
    """Proximal policy optimization for two players."""

    keeps = {"log_mu": (torch.float32, len(PLAYERS)), "values": (torch.float32, len(PLAYERS))}

    @classmethod
    def environment(cls, args, num_envs, device):
        return make_env(args, num_envs, device)

    @property
    def sides(self) -> tuple[tuple[int, ...], ...]:
        """The players that each learner learns for."""
        return ((0, 1),) if self.args.learners == "one" else ((0,), (1,))

    def networks(self, num_actions):
        names = ("net",) if self.args.learners == "one" else PLAYERS
        return {name: ActorCritic(num_actions, self.args.model, self.args.width) for name in names}

    def seen(self, observations: torch.Tensor, player: int) -> torch.Tensor:
        """What a player sees: (n, 4, 84, 84) uint8 of the screen to the same shape."""
        if player == 0:
            return observations
        own = observations.flip(3) if self.args.mirror else observations.clone()
        own[:, :, 0] = WHITE
        return own

    def heads(
        self, nets: Any, observations: torch.Tensor, players: Sequence[int]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The log-probabilities (n, num_actions) and values (n,) of each of some players."""
        seen = [self.seen(observations, player) for player in players]
        if self.args.learners == "two":
            named = [getattr(nets, PLAYERS[player]) for player in players]
            return [net(own) for net, own in zip(named, seen, strict=True)]
        log_pi, values = nets.net(torch.cat(seen))  # a batch with the rows of both
        return [*zip(log_pi.chunk(len(players)), values.chunk(len(players)), strict=True)]

    def act(self, nets, observations):
        both = self.heads(nets, observations, (0, 1))
        # A draw for each player, so that their random numbers differ.
        actions, log_mu = zip(*[sample_with_log(log_pi) for log_pi, _ in both], strict=True)
        values = [values for _, values in both]
        chosen = {"actions": actions, "log_mu": log_mu, "values": values}
        return {name: torch.stack([*parts], dim=1) for name, parts in chosen.items()}

    def learning(self):
        a = self.args
        return train.Learning(
            steps=a.num_steps, epochs=a.update_epochs, minibatch=a.minibatch_size,
            normalize=("advantages",),
        )  # fmt: skip

    def declare(self, declaration):
        declaration.acting(self.act)
        declaration.emulating()
        observation = declaration.observation
        last = {"last": lambda stop: observation[stop : stop + 1]}  # after the last step
        for number, players in enumerate(self.sides):
            declaration.learning(
                self.learning(), last,
                name=PLAYERS[number] if number else "",
                networks=("net",) if self.args.learners == "one" else (PLAYERS[number],),
                prepare=functools.partial(self.advantages_of, players),
                loss=functools.partial(self.loss_of, players),
            )  # fmt: skip

    def advantages_of(self, players: tuple[int, ...], nets: Any, batch: Any) -> Any:
        """The advantages and targets of some players: (steps, num_envs, 2), or of one without 2."""
        played, found = batch.played.float(), []
        for player, (_, last) in zip(
            players, self.heads(nets, batch.last[0], players), strict=True
        ):
            values = torch.cat([batch.values[:, :, player], last.unsqueeze(0)])
            rewards = batch.rewards[:, :, player].contiguous()
            found.append(gae(rewards, batch.discounts, played, values, self.args.gae_lambda))
        several = len(players) > 1
        own = slice(players[0], players[-1] + 1) if several else players[0]
        advantages = torch.stack(found, dim=2) if several else found[0]
        return {"advantages": advantages, "targets": advantages + batch.values[:, :, own]}

    def loss_of(self, players: tuple[int, ...], nets: Any, batch: Any) -> Any:
        """PPO's loss: the mean over the rows of some players."""
        a = self.args
        heads = self.heads(nets, batch.observations, players)
        log_pi_all, values = (torch.cat([*parts]) for parts in zip(*heads, strict=True))
        rows = functools.partial(of_players, players=players)
        log_pi, entropy = policy_terms(log_pi_all, rows(batch.actions))
        ent_coef = self.now.ent_coef if a.anneal_ent else a.ent_coef
        targets = rows(batch.targets)
        parts = clipped_loss(
            log_pi, entropy, values, rows(batch.log_mu), rows(batch.advantages), targets,
            rows(batch.played), clip_coef=a.clip_coef, vf_coef=a.vf_coef, ent_coef=ent_coef,
        )  # fmt: skip
        explained = explained_variance(rows(batch.values), targets)
        return parts._asdict() | {"explained_variance": explained}

    def scores(self, nets, observations):
        return self.heads(nets, observations, (0,))[0][0]  # of the first player

    def schedules(self):
        return {"ent_coef": self.args.falling("ent_coef")} if self.args.anneal_ent else {}

    def norm(self, gradient, gradients):
        return nn.utils.get_total_norm(gradients)


def main() -> int:
    """Runs the training; returns the exit status."""
    return train.main(SelfPlay, Args)


if __name__ == "__main__":
    sys.exit(main())
