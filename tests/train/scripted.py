"""Environments without an emulator, for tests of what learns from them."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium.spaces import Discrete


class ScriptedEnv:
    """Plays a script of one env, once: rows (reward, terminated, truncated, reset), in NEXT_STEP
    mode. The frame after row k is filled with k + 1, and the first frame with 0."""

    def __init__(self, script):
        self.script, self.num_envs, self.device = script, 1, torch.device("cpu")
        self.single_action_space = Discrete(2)
        self.row = 0

    def _out(self, reward, reset):
        frames = torch.full((1, 1, 84, 84), self.row, dtype=torch.uint8)
        infos = {
            "raw_reward": torch.tensor([10 * reward]),
            "new_game": torch.tensor([reset]),
        }
        return frames, infos

    def reset(self, *, seed):
        return self._out(0, True)

    def step(self, actions):
        reward, terminated, truncated, reset = self.script[self.row]
        self.row += 1
        frames, infos = self._out(reward, reset)
        return (
            frames,
            torch.tensor([reward]),
            torch.tensor([terminated]),
            torch.tensor([truncated]),
            infos,
        )

    def close(self):
        pass


class SignalEnv:
    """In each frame one third is bright: it says which of three actions earns a point.

    Episodes have 8 steps.
    """

    def __init__(self, num_envs):
        self.num_envs, self.device = num_envs, torch.device("cpu")
        self.single_action_space = Discrete(3)

    def _frames(self):
        self.signal = torch.from_numpy(self.random.integers(3, size=self.num_envs))
        frames = torch.zeros(self.num_envs, 1, 84, 84, dtype=torch.uint8)
        for env, third in enumerate(self.signal.tolist()):
            frames[env, 0, :, 28 * third : 28 * third + 28] = 255
        return frames

    def reset(self, *, seed):
        self.random = np.random.default_rng(seed)
        self.frame = torch.full((self.num_envs,), 0, dtype=torch.int32)
        return self._frames(), {}

    def step(self, actions):
        resets = self.frame == 4 * 8
        rewards = torch.where(resets, 0, (actions == self.signal).long() * 2 - 1)
        self.frame = torch.where(resets, 0, self.frame + 4).int()
        terminated = self.frame == 4 * 8
        infos = {"raw_reward": rewards, "new_game": resets}
        return self._frames(), rewards, terminated, torch.zeros_like(terminated), infos

    def close(self):
        pass
