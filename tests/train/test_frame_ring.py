"""Stacks gathered from frames stored once are the stacks that the env itself makes."""

from __future__ import annotations

import torch

import cule
from cule.train.envs.emulator import make_env
from cule.train.envs.episodes import Episodes
from cule.train.nn.frame_ring import FrameRing
from cule.train.plan.program import Recurrent


def test_frame_ring_stacks_are_the_envs(device):
    """Compared with an env that stacks frames itself, over ends of games, lost lives, truncations
    and the end of the ring."""
    options = {"max_num_frames_per_episode": 400, "life_loss_info": True, "num_threads": 1}
    stacking = cule.AtariEnv("breakout", 8, device=device, **options)
    single = make_env(
        "cule",
        "breakout",
        8,
        torch.device(device),
        life_loss_ends=True,
        max_frames=400,
        num_threads=1,
    )
    length = 9
    recurrent = Recurrent("observations", (8, 84, 84), torch.uint8, stack=4, store=FrameRing)
    ring = FrameRing(recurrent, length, single.device, host=False)
    envs = torch.arange(8, device=single.device)
    observations, _ = stacking.reset(seed=3)
    frames, _ = single.reset(seed=3)
    ring.begin(frames)
    episodes = Episodes(8, single.device)
    episodes.begin()
    seen = [observations.clone()]
    generator = torch.Generator().manual_seed(0)
    starts = losses = 0
    for step in range(1, 300):
        actions = torch.randint(4, (8,), generator=generator).to(single.device)
        observations = stacking.step(actions)[0]
        frames, rewards, terminated, truncated, infos = single.step(actions)
        done = episodes.done.clone()
        started = episodes.follow(rewards, terminated, truncated, infos)
        starts += int(started.sum())
        losses += int((done & ~started).sum())
        ring.write(torch.tensor([step % length], device=single.device), (frames, started))
        seen = [*seen, observations.clone()][-(length - 3) :]
        slots = torch.arange(step - len(seen) + 1, step + 1, device=single.device) % length
        assert torch.equal(ring.take(slots.unsqueeze(1), envs), torch.stack(seen))
    assert starts > 8 and losses > 8


def test_frame_ring_keeps_each_frame_once():
    recurrent = Recurrent("observations", (3, 84, 84), torch.uint8, stack=4, store=FrameRing)
    ring = FrameRing(recurrent, 10, torch.device("cpu"), host=False)
    assert ring.words.numel() * 8 == (10 + 1) * 3 * 84 * 84
