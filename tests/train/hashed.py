"""A2C whose actions depend on nothing but what is seen: not on who acts beside it.

Four envs at a time go through the network, so that its sums are the same for any number of them.
"""

from __future__ import annotations

import sys

import torch

from cule import train
from examples.a2c_vtrace.train import A2C, Args


class Hashed(A2C):
    """A2C with actions drawn by a hash of the observation."""

    def act(self, nets, observations):
        log_pi = torch.cat([nets.net(some)[0] for some in observations.split(4)])
        hashed = observations.flatten(1).long().sum(1) * 7919 % 1009
        below = log_pi.exp().double().cumsum(1) < (hashed.double() / 1009).unsqueeze(1)
        actions = below.sum(1).clamp(max=self.num_actions - 1)
        return {"actions": actions, "log_mu": log_pi.gather(1, actions.unsqueeze(1)).squeeze(1)}


if __name__ == "__main__":
    sys.exit(train.main(Hashed, Args))
