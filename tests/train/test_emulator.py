"""Both emulators give the same through the same interface."""

from __future__ import annotations

import pytest
import torch

import cule
from cule.train.envs.emulator import make_env

CPU = torch.device("cpu")


def test_ale_env_gives_what_cule_gives():
    """Compared with cule without a reset pool, where both are exact, over ends of lives and of
    episodes."""
    ale = make_env(
        "ale-py", "ALE/Seaquest-v5", 3, CPU, life_loss_ends=True, max_frames=600, num_threads=1
    )
    ours = cule.AtariEnv(
        "seaquest", 3, device="cpu", stack_num=1, life_loss_info=True,
        max_num_frames_per_episode=600, num_threads=1,
        reset_pool_size=0,
    )  # fmt: skip
    frames, infos = ale.reset(seed=5)
    wanted, wanted_infos = ours.reset(seed=5)
    assert torch.equal(frames, wanted)
    generator = torch.Generator().manual_seed(0)
    ends = points = games = 0
    for _ in range(400):
        actions = torch.randint(18, (3,), generator=generator)
        *outputs, infos = ale.step(actions)
        *wanted, wanted_infos = ours.step(actions)
        for output, want in zip(outputs, wanted, strict=True):
            assert torch.equal(output, want) and output.dtype == want.dtype
        for name in ("raw_reward", "new_game"):
            assert torch.equal(infos[name], wanted_infos[name])
        ends += int((outputs[2] | outputs[3]).sum())
        points += int((infos["raw_reward"] > 1).sum())
        games += int(infos["new_game"].sum())
    assert ends > 5 and points > 3 and 0 < games < ends
    ale.close()


def test_make_env_refuses_what_there_is_not():
    with pytest.raises(
        ValueError, match="expected emulator to be one of cule, ale-py, got 'stella'"
    ):
        make_env("stella", "pong", 1, CPU)
    with pytest.raises(ValueError, match="closest: 'pong'"):
        make_env("ale-py", "pnog", 1, CPU)
