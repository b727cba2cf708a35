"""Episodes finds scores and rewards of envs that end at random, as a loop over the steps does."""

from __future__ import annotations

import pytest
import torch

from cule.train.envs.episodes import Episodes

ENVS, STEPS = 5, 60


@pytest.mark.parametrize("says_so", [True, False])
def test_scores_and_rewards_are_those_of_a_loop(says_so):
    generator = torch.Generator().manual_seed(3)
    episodes = Episodes(ENVS, torch.device("cpu"))
    episodes.begin()
    running = [0.0] * ENVS
    over = [False] * ENVS
    finished, received, found = [], 0.0, []
    for step in range(STEPS):
        ends = torch.rand(ENVS, generator=generator) < 0.15
        rewards = torch.randint(-3, 4, (ENVS,), generator=generator).float()
        for env in range(ENVS):
            if over[env]:
                rewards[env] = 0.0
                finished.append(running[env])
                running[env] = 0.0
            else:
                running[env] += rewards[env].item()
                received += rewards[env].item()
        ends &= ~torch.tensor(over)
        infos = {"raw_reward": rewards} | ({"new_game": torch.tensor(over)} if says_so else {})
        over = ends.tolist()
        if says_so:  # lost lives are reported as ends, too
            ends |= torch.rand(ENVS, generator=generator) < 0.15
        episodes.follow(rewards.sign(), ends, torch.zeros_like(ends), infos)
        if step % 7 == 6:
            found.append(episodes.take_scores().tolist())
            assert found[-1] == [sum(finished), len(finished), received, sum(running)]
            finished, received = [], 0.0
    assert sum(number for _, number, *_ in found) > 10
    assert len({rewards for *_, rewards, _ in found}) > 4
