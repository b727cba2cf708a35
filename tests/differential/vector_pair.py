"""ale_py.AtariVectorEnv and cule.AtariEnv side by side: the same seed and actions, all that they
return compared.

With `reset_pool_size=0` every reset is emulated as ale-py does it, so that whole runs agree,
episode after episode.
"""

from __future__ import annotations

from typing import Any

import ale_py
import numpy as np

import cule

SEED = 7
HOLD = 0.6  # probability that an env repeats its last action, so that the games make progress

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


class Pair:
    """The same envs of ale-py and of cule. `options` are keywords that both know."""

    def __init__(self, game: str, num_envs: int = 2, device: str = "cpu", **options: Any):
        self.num_envs = num_envs
        self.continuous = options.get("continuous", False)
        self.life_loss_info = options.get("life_loss_info", False)
        self.same_step = options.get("autoreset_mode") == "SameStep"
        self.ale = ale_py.AtariVectorEnv(game, num_envs, num_threads=1, **options)
        self.cule = cule.AtariEnv(
            game,
            num_envs,
            device=device,
            num_threads=1,
            reset_pool_size=0,
            output="numpy",
            **options,
        )
        assert self.cule.single_action_space == self.ale.single_action_space
        assert self.cule.single_observation_space == self.ale.single_observation_space
        assert self.cule.metadata["autoreset_mode"] == self.ale.metadata["autoreset_mode"]
        self.endings = 0
        self.rewards: set[int] = set()

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Resets both. Raises AssertionError if observations or infos differ."""
        theirs, their_info = self.ale.reset(seed=seed, options=options)
        ours, our_info = self.cule.reset(seed=seed, options=options)
        same("observation", ours, theirs)
        self._compare_infos(our_info, their_info)
        self.frames = our_info["episode_frame_number"]

    def step(self, actions: np.ndarray) -> None:
        """Plays one step on both. Raises AssertionError if anything that is returned differs."""
        theirs, ours = self.ale.step(actions), self.cule.step(actions)
        for name, a, b in zip(
            ("observation", "reward", "terminated", "truncated"), ours, theirs, strict=False
        ):
            same(name, a, b)
        self._compare_infos(ours[4], theirs[4])
        done = ours[2] | ours[3]
        self.endings += int(done.sum())
        self.rewards |= set(ours[1].tolist())
        if self.same_step:
            self._compare_final_observations(ours, theirs, done)
        self.frames = ours[4]["episode_frame_number"]

    def _compare_final_observations(
        self, ours: tuple[Any, ...], theirs: tuple[Any, ...], done: np.ndarray
    ) -> None:
        info, their_info = ours[4], theirs[4]
        assert ("final_obs" in their_info) == done.any()
        # On a GPU they are always there, as whether any is due is not known without waiting.
        assert (
            "final_obs" in info
            if self.cule.device.type == "cuda"
            else ("final_obs" in info) == done.any()
        )
        if not done.any():
            return
        same("_final_obs", info["_final_obs"], done)
        # If a lost life reports a termination and nothing is reset, ale-py does not write this
        # memory.
        fresh = (
            done & (info["episode_frame_number"] <= self.frames) if self.life_loss_info else done
        )
        same("final_obs", info["final_obs"][fresh], their_info["final_obs"][fresh])
        on = done & ~fresh
        same("final_obs of an episode that goes on", info["final_obs"][on], ours[0][on])

    @staticmethod
    def _compare_infos(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
        assert (
            {"env_id", "lives", "frame_number", "episode_frame_number"} <= set(theirs) <= set(ours)
        )
        for key in set(theirs) - {"final_obs"}:
            same(key, ours[key], theirs[key])
        assert not ours["fault"].any(), "fault"

    def actions(self, rng: np.random.Generator) -> np.ndarray:
        """Random actions of every env."""
        if not self.continuous:
            return rng.integers(self.cule.single_action_space.n, size=self.num_envs)
        low, high = self.cule.single_action_space.low, self.cule.single_action_space.high
        return rng.uniform(low, high, size=(self.num_envs, 3)).astype(np.float32)

    def play(self, steps: int, seed: int = SEED) -> Pair:
        """Resets, plays and compares; each action is held for a few steps."""
        rng = np.random.default_rng(seed)
        self.reset(seed=seed)
        actions = self.actions(rng)
        for step in range(steps):
            change = rng.random(self.num_envs) >= HOLD
            actions[change] = self.actions(rng)[change]
            try:
                self.step(actions)
            except AssertionError as problem:
                raise AssertionError(f"step {step}: {problem}") from problem
        return self


def same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raises AssertionError unless values and dtypes are equal."""
    assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype} for {theirs.dtype}"
    np.testing.assert_array_equal(ours, theirs, name)
