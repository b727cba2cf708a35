"""A2C that computes the same for an env, whoever plays it and whatever plays beside it.

Four envs at a time go through the network, so that its sums are the same for any number of them.
"""

from __future__ import annotations

import sys

import torch

import cule
from cule import train
from examples.a2c_vtrace.train import A2C, Args


class Hashed(A2C):
    """A2C with actions drawn by a hash of the observation, and envs without a pool of states.

    Env i then depends on the seed plus i alone, in whatever process it is.
    """

    @classmethod
    def environment(cls, args, num_envs, device):
        return cule.AtariEnv(
            "breakout", num_envs, device=device, stack_num=1, life_loss_info=True, num_threads=1,
            max_num_frames_per_episode=150, reset_pool_size=0,
        )  # fmt: skip

    def act(self, nets, observations):
        log_pi = torch.cat([nets.net(some)[0] for some in observations.split(4)])
        hashed = observations.flatten(1).long().sum(1) * 7919 % 1009
        below = log_pi.exp().double().cumsum(1) < (hashed.double() / 1009).unsqueeze(1)
        actions = below.sum(1).clamp(max=self.num_actions - 1)
        return {"actions": actions, "log_mu": log_pi.gather(1, actions.unsqueeze(1)).squeeze(1)}


if __name__ == "__main__":
    sys.exit(train.main(Hashed, Args))
