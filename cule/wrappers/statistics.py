"""Returns and lengths of episodes, kept on the device: nothing here waits for a GPU."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.vector import AutoresetMode, VectorEnv

from cule.arguments import integer
from cule.env.guard import outside_inference_mode
from cule.errors import InvalidValue
from cule.wrappers.base import AtariWrapper


class EpisodeStatistics(AtariWrapper):
    """Adds what gymnasium's RecordEpisodeStatistics adds to the info, as tensors on the device.

    `info["episode"]` holds `r`, (num_envs,) float32, the sum of an episode's unclipped rewards, and
    `l`, (num_envs,) int64, the number of its steps. `info["_episode"]`, (num_envs,) bool, says
    whose episode ended in this step; `r` and `l` of the others are 0. Unlike gymnasium's, the
    entries are there in every step.

    An episode ends where the env's info says `game_over`. So with `life_loss_info` it is a whole
    game, as the game goes on after a lost life. With `episodic_life` it is one life, as the env
    then starts a new game.

    Args:
        env: an AtariEnv whose output is tensors, or a wrapper of one.
        buffer_length: the means are over this many of the latest episodes, and at least num_envs.

    Raises:
        TypeError: it is another env, or `buffer_length` is not an integer.
        ValueError: `buffer_length` is below 1, or the env has output="numpy" or several players.
    """

    @outside_inference_mode
    def __init__(self, env: VectorEnv, buffer_length: int = 100):
        super().__init__(env)
        base = self.atari
        if base.output == "numpy":
            raise InvalidValue(
                "expected an env with output='torch', got output='numpy': "
                "use gymnasium.wrappers.vector.RecordEpisodeStatistics for it"
            )
        if base.num_players > 1:
            raise InvalidValue(
                "expected an env with num_players=1 in EpisodeStatistics, as an episode of several "
                f"players has several returns, got {base.num_players}"
            )
        self._same_step = base.autoreset_mode == AutoresetMode.SAME_STEP
        options = base.engine.options
        # Whether a lost life is followed by a step that plays no action, as the end of a game is.
        self._starts_lives = bool(options.life_loss_info and options.episode_start)
        self._size = max(integer("buffer_length", buffer_length), base.num_envs)

        def zeros(count: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(count, dtype=dtype, device=base.device)

        self._returns, self._lengths = (zeros(base.num_envs) for _ in range(2))
        self._waited = zeros(base.num_envs, torch.bool)
        # The last place takes the values of envs whose episode goes on.
        self._last_returns, self._last_lengths = (
            zeros(self._size + 1, torch.float32) for _ in range(2)
        )
        self._places = torch.arange(self._size, device=base.device)
        self._count = zeros(1)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the env, and forgets the unfinished episodes of the envs that are reset."""
        observations, info = self.env.reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        chosen = slice(None) if mask is None else torch.as_tensor(mask, device=self._count.device)
        for tensor in (self._returns, self._lengths, self._waited):
            tensor[chosen] = 0
        return observations, info

    def step(
        self, actions: Any, player_b_actions: Any = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env, with the second player's actions if given; see the class for the info."""
        observations, rewards, terminated, truncated, info = super().step(actions, player_b_actions)
        over = info["game_over"]
        # The step after an episode only resets the env, or does nothing if autoreset is disabled.
        ended = over.clone() if self._same_step else over & ~self._waited
        self._returns += info["raw_reward"]
        self._lengths += 1 if self._same_step else ~self._waited
        info["episode"] = {
            "r": torch.where(ended, self._returns, 0).float(),
            "l": torch.where(ended, self._lengths, 0),
        }
        info["_episode"] = ended
        self._remember(ended)
        self._returns.masked_fill_(ended, 0)
        self._lengths.masked_fill_(ended, 0)
        # A game may also end while the start of its next life is played: then the next has begun.
        waits = over & ~info["new_game"]
        self._waited.copy_(waits | terminated | truncated if self._starts_lives else waits)
        return observations, rewards, terminated, truncated, info

    def _remember(self, ended: torch.Tensor) -> None:
        order = ended.cumsum(0) - 1
        places = torch.where(ended, (self._count + order) % self._size, self._size)
        self._last_returns[places] = self._returns.float()
        self._last_lengths[places] = self._lengths.float()
        self._count += ended.sum()

    def _mean(self, values: torch.Tensor) -> torch.Tensor:
        filled = self._places < self._count
        return torch.where(filled, values[: self._size], 0).sum() / filled.sum()

    @property
    def episode_count(self) -> torch.Tensor:
        """() int64: how many episodes have ended."""
        return self._count[0]

    @property
    def mean_return(self) -> torch.Tensor:
        """() float32: the mean return of the latest episodes; NaN if there is none."""
        return self._mean(self._last_returns)

    @property
    def mean_length(self) -> torch.Tensor:
        """() float32: the mean number of steps of the latest episodes; NaN if there is none."""
        return self._mean(self._last_lengths)
