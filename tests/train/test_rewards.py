"""The rewards that are learned from: their sizes, and where they are used."""

from __future__ import annotations

import math

import pytest
import torch
from training_runs import saved, settings, trained

import cule
from cule.train.envs.collector import Collector
from cule.train.nn.rewards import learned_rewards, signed_root

CPU = torch.device("cpu")


def test_signed_root_is_that_of_the_paper():
    rewards = torch.tensor([0, 1, -1, 10, -10, 100, 1000, 50_000], dtype=torch.int32)
    wanted = [
        math.copysign(math.sqrt(abs(r) + 1) - 1, r) + 0.001 * r if r else 0.0
        for r in rewards.tolist()
    ]
    assert signed_root(rewards).tolist() == pytest.approx(wanted, rel=1e-6)


def played(rewards, groups=1):
    """The rewards of 400 random steps in Ms. Pac-Man: to learn from, and as the game gives them."""
    env = cule.AtariEnv("ms_pacman", 4, "cpu", stack_num=1, num_threads=1)
    infos = []
    collector = Collector(env, CPU, groups, rewards)
    follow = collector.episodes.follow

    def watched(*results):
        infos.append(results[3]["raw_reward"].clone())
        return follow(*results)

    collector.episodes.follow = watched
    collector.reset(seed=0)
    generator = torch.Generator().manual_seed(0)
    learned = []
    for _ in range(400):
        actions = torch.randint(env.single_action_space.n, (4,), generator=generator)
        if collector.async_envs is None:
            learned.append(collector.step(actions)[1].clone())
            continue
        for part, envs in enumerate(collector.async_envs.parts):
            collector.async_envs.stage(part, actions[envs])
            collector.async_envs.send(part)
            collector.async_envs.recv(part)
            learned.append(collector.async_envs.results(part)[1].clone())
    env.close()
    return torch.cat(learned), torch.cat(infos)


@pytest.mark.parametrize("groups", [1, 2])
def test_rewards_are_squashed_where_that_is_asked_for(groups):
    clipped, raw = played("clipped", groups)
    assert raw.max() >= 10 and set(clipped.tolist()) == {0.0, 1.0}
    assert torch.equal(clipped.float(), raw.sign().float())
    squashed, same = played("root", groups)
    assert torch.equal(same, raw)
    assert torch.equal(squashed, signed_root(raw)) and squashed.max() > 2


def test_rewards_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="rewards to be one of clipped, root, got 'raw'"):
        learned_rewards("raw")


def test_training_with_squashed_rewards_learns_something_else(tmp_path):
    changes = {"game": "ms_pacman", "max_episode_frames": 4_000, "total_frames": 4_000}
    weights = []
    for kind in ("clipped", "root"):
        args = settings(tmp_path / kind, rewards=kind, **changes)
        row = trained(args)
        assert row["rewards"] == kind
        weights.append(saved(args.folder)["networks"]["net"]["heads.weight"])
    assert not torch.equal(*weights)
