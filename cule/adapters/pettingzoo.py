"""PettingZoo's parallel API, for games of two and four players.

`parallel_env` gives one console, as `pettingzoo.atari` does. `VectorParallelEnv` has the same
methods for many at once, with tensors on a device. PettingZoo's own conversion makes an AEC env of
the first: `pettingzoo.utils.parallel_to_aec(parallel_env("pong_v3"))`.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from cule import arguments
from cule.env.keywords import refuse
from cule.env.rendering import FRAMES_PER_SECOND
from cule.env.settings import OF_IMAGES
from cule.errors import InvalidType, InvalidValue, shown
from cule.facts.pettingzoo_names import PETTINGZOO_NAMES
from cule.vector_env import AtariEnv

AGENTS = ("first_0", "second_0", "third_0", "fourth_0")
_SCREENS = {"rgb_image": (3,), "grayscale_image": (1,)}
_RESERVED = {
    "autoreset_mode": "its user resets it",
    "max_num_frames_per_episode": "max_cycles counts steps",
    "num_envs": "it has one console",
    "output": "it gives arrays",
    "sound_obs": "its observations have no sound",
}
_OF_IMAGES = dict.fromkeys(
    OF_IMAGES, "obs_type 'rgb_image', 'grayscale_image' and 'ram' have no preprocessing"
)
# What PettingZoo's envs do, which have no preprocessing.
_AS_PETTINGZOO: dict[str, Any] = {
    "frameskip": 1,
    "noop_max": 0,
    "use_fire_reset": False,
    "reward_clipping": False,
    "reset_pool_size": 0,
}


def _meaning(name: Any, num_players: int | None, mode: int | None) -> dict[str, Any]:
    """AtariEnv's keywords for a name of PettingZoo's, or a game's.

    Raises:
        TypeError, ValueError: there is no such name, or it is not for so many players.
    """
    if not isinstance(name, str):
        raise InvalidType(f"expected the name of a game, such as 'pong_v3', got {shown(name)}")
    if num_players is not None:
        num_players = arguments.one_of("num_players", num_players, (1, 2, 4))
    if name not in PETTINGZOO_NAMES:
        return {
            "game": name,
            "num_players": 2 if num_players is None else num_players,
            "mode": mode,
        }
    game, modes = PETTINGZOO_NAMES[name]
    players = next(iter(modes)) if num_players is None else num_players
    if mode is None and players not in modes:
        listed = " or ".join(map(str, modes))
        raise InvalidValue(f"expected num_players={listed} for {name!r}, got {shown(num_players)}")
    return {"game": game, "num_players": players, "mode": modes[players] if mode is None else mode}


def _plain_action(agent: str, value: Any) -> int:
    """An agent's action as a plain integer.

    Raises:
        TypeError: it is none.
    """
    number = arguments.on_host(f"the action of {agent}", value)
    if number.ndim or number.dtype.kind not in "iu":
        raise InvalidType(f"expected the action of {agent} to be an integer, got {shown(value)}")
    return int(number)


def parallel_env(
    game: str,
    *,
    num_players: int | None = None,
    mode: int | None = None,
    obs_type: Literal["rgb_image", "grayscale_image", "ram", "image"] = "rgb_image",
    max_cycles: int = 100_000,
    render_mode: Literal["human", "rgb_array"] | None = None,
    device: str = "cpu",
    **options: Any,
) -> AtariParallelEnv:
    """One console as a PettingZoo ParallelEnv, by default without preprocessing, as PettingZoo's.

    Args:
        game: one of PettingZoo's names, such as "pong_v3", with the mode that it has there; or a
            game as AtariEnv's, such as "pong".
        num_players: 2 or 4; None: what the name means, and 2 for a game.
        mode: the game's mode; None: what the name means, or the game's default.
        obs_type: "rgb_image" or "grayscale_image": the whole screen; "ram": the console's 128
            bytes; "image": as AtariEnv's, with its keywords for images.
        max_cycles: steps after which an episode is truncated.
        render_mode: None; "rgb_array": `render` gives the screen; "human": each reset and step
            shows it in a window, which needs `pip install pygame`.
        device: as AtariEnv's, but by default the CPU, where a single console is fastest.
        **options: AtariEnv's other keywords, except autoreset_mode, max_num_frames_per_episode,
            num_envs, output and sound_obs. By default frameskip=1, noop_max=0,
            use_fire_reset=False, reward_clipping=False and reset_pool_size=0.

    Raises:
        TypeError, ValueError: as AtariEnv's, or there is no such name.
    """
    refuse("parallel_env", options, _RESERVED | ({} if obs_type == "image" else _OF_IMAGES))
    chosen = _AS_PETTINGZOO | options | _meaning(game, num_players, mode)
    if chosen["num_players"] == 1:
        raise InvalidValue("expected num_players to be 2 or 4 for parallel_env, got 1")
    name = game if game in PETTINGZOO_NAMES else f"custom_{chosen['game']}"
    return AtariParallelEnv(name, obs_type, max_cycles, render_mode, device, chosen)


class AtariParallelEnv(ParallelEnv):
    """What `parallel_env` returns.

    Attributes:
        atari: the AtariEnv, of one console.
        max_cycles: steps after which an episode is truncated.
        possible_agents: "first_0", "second_0" and so on, one for each player.
        agents: those that still play.
    """

    def __init__(
        self,
        name: str,
        obs_type: str,
        max_cycles: int,
        render_mode: str | None,
        device: str,
        options: dict[str, Any],
    ):
        self.render_mode = arguments.choice(
            "render_mode", render_mode, (None, "human", "rgb_array")
        )
        self._obs_type = arguments.choice("obs_type", obs_type, (*_SCREENS, "ram", "image"))
        self.max_cycles = arguments.integer("max_cycles", max_cycles)
        self.atari = AtariEnv(
            num_envs=1, device=device, output="numpy", autoreset_mode="disabled",
            obs_type="image" if obs_type == "image" else "ram",  # of screens none of them is used
            render_mode="human" if render_mode == "human" else None,
            max_num_frames_per_episode=arguments.MOST, **options,
        )  # fmt: skip
        self.metadata = {
            "name": name,
            "render_modes": ["human", "rgb_array"],
            "render_fps": max(1, FRAMES_PER_SECOND // options["frameskip"]),
            "is_parallelizable": True,
        }
        self.possible_agents = list(AGENTS[: self.atari.num_players])
        self.agents: list[str] = []
        self._steps = 0
        space = self.atari.single_observation_space
        if obs_type in _SCREENS:
            height, width = self.atari.engine.heights[0], 160
            space = Box(0, 255, (height, width, *_SCREENS[obs_type]), np.uint8)
        count = len(self.atari.action_meanings)
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: Discrete(count) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> gymnasium.Space:
        """The agent's observations, the same as the others'."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space:
        """The numbers of the agent's actions; `atari.action_meanings` names them."""
        return self.action_spaces[agent]

    def _observe(self, observations: np.ndarray) -> np.ndarray:
        if self._obs_type == "rgb_image":
            return self.atari.get_screen_rgb()[0]
        if self._obs_type == "grayscale_image":
            return self.atari.get_screen_grayscale()[0][..., None]
        return observations[0]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Starts an episode.

        Args:
            seed: of sticky actions and no-ops; with it the console is turned on anew.
            options: not read, as in PettingZoo's Atari envs.

        Returns:
            Each agent's observation, and an info of its own, with its lives.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            TypeError, ValueError: `seed` is not an integer of at least 0.
        """
        observations, infos = self.atari.reset(seed=seed)
        self.agents, self._steps = list(self.possible_agents), 0
        seen = self._observe(observations)
        return dict.fromkeys(self.agents, seen), self._infos(infos)

    def _infos(self, infos: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        lives = zip(self.possible_agents, infos["lives"][0].tolist(), strict=True)
        return {agent: {"lives": left} for agent, left in lives if agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, np.ndarray],
        dict[str, int],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Plays a step. An agent without an action plays its first one, as in PettingZoo.

        An agent whose player is out ends before the others.

        Args:
            actions: an action for each agent that still plays.

        Returns:
            For each agent that still played: observations, rewards, whether it ended, whether the
            episode was cut off, infos with `lives`.

        Raises:
            gymnasium.error.ResetNeeded: no agent plays.
            TypeError, ValueError: `actions` names an agent that does not play, or an action that
                there is not.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded("expected reset() before step(), as no agent plays")
        if not isinstance(actions, dict) or not actions.keys() <= set(self.agents):
            raise InvalidValue(
                f"expected actions by the names of agents that play ({', '.join(self.agents)}), "
                f"got {shown(actions)}"
            )
        chosen = [[_plain_action(agent, actions.get(agent, 0)) for agent in self.possible_agents]]
        observations, rewards, terminated, _, infos = self.atari.step(chosen)
        self._steps += 1
        cut_off, over = self._steps >= self.max_cycles, bool(terminated[0])
        seen, played = self._observe(observations), self.agents
        said = self._infos(infos)
        earned = dict(zip(self.possible_agents, rewards[0].tolist(), strict=True))
        ends = {agent: over or said[agent]["lives"] < 0 for agent in played}
        self.agents = [agent for agent in played if not (ends[agent] or cut_off)]
        return (
            dict.fromkeys(played, seen),
            {agent: earned[agent] for agent in played},
            ends,
            dict.fromkeys(played, cut_off),
            said,
        )

    def render(self) -> np.ndarray | None:
        """The screen, (height, 160, 3) uint8, with render_mode "rgb_array"; else None."""
        return self.atari.get_screen_rgb()[0] if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Frees the console."""
        self.atari.close()


class VectorParallelEnv:
    """The parallel API's `reset` and `step` for many consoles: its values are tensors on a device.

    Consoles restart as `autoreset_mode` says, so all agents stay in `agents`. One whose player is
    out before the game ends is reported as terminated until then.

    Args:
        game: as parallel_env's.
        num_envs: how many consoles.
        device: as AtariEnv's.
        num_players: as parallel_env's.
        mode: as parallel_env's.
        **options: AtariEnv's other keywords, with its defaults, except output.

    Attributes:
        atari: the AtariEnv.
        possible_agents, agents: "first_0", "second_0" and so on, one for each player.

    Raises:
        TypeError, ValueError: as parallel_env's.
    """

    def __init__(
        self,
        game: str,
        num_envs: int,
        device: str | torch.device | None = None,
        *,
        num_players: int | None = None,
        mode: int | None = None,
        **options: Any,
    ):
        refuse("VectorParallelEnv", options, {"output": "it gives tensors"})
        chosen = _meaning(game, num_players, mode)
        if chosen["num_players"] == 1:
            raise InvalidValue("expected num_players to be 2 or 4 for VectorParallelEnv, got 1")
        self.atari = AtariEnv(num_envs=num_envs, device=device, **chosen, **options)
        self.num_envs, self.device = self.atari.num_envs, self.atari.device
        self.possible_agents = list(AGENTS[: self.atari.num_players])
        self.agents = list(self.possible_agents)
        self._action_spaces = {
            agent: Discrete(len(self.atari.action_meanings)) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> gymnasium.Space:
        """The observations of an agent in one console, the same as the others'."""
        return self.atari.single_observation_space

    def action_space(self, agent: str) -> gymnasium.Space:
        """The numbers of an agent's actions in one console."""
        return self._action_spaces[agent]

    def _split(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """Each agent's column of (num_envs, num_players) values."""
        return dict(zip(self.possible_agents, values.unbind(1), strict=True))

    def _shared(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """The same tensor for each agent."""
        return dict.fromkeys(self.possible_agents, values)

    def reset(
        self, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, torch.Tensor], dict[str, dict[str, Any]]]:
        """Starts episodes, as AtariEnv.reset.

        Returns:
            The observations, the same tensor for each agent, and each agent's info: AtariEnv's,
            with its own `lives`.
        """
        observations, infos = self.atari.reset(seed=seed, options=options)
        return self._shared(observations), self._infos(infos)

    def _infos(self, infos: dict[str, Any]) -> dict[str, dict[str, Any]]:
        own = {name: self._split(infos[name]) for name in ("lives", "raw_reward") if name in infos}
        return {
            agent: infos | {name: columns[agent] for name, columns in own.items()}
            for agent in self.agents
        }

    def step(
        self, actions: dict[str, torch.Tensor]
    ) -> tuple[
        dict[str, torch.Tensor],
        dict[str, torch.Tensor],
        dict[str, torch.Tensor],
        dict[str, torch.Tensor],
        dict[str, dict[str, Any]],
    ]:
        """Plays a step in every console.

        Args:
            actions: each agent's, (num_envs,) integers on the env's device.

        Returns:
            For each agent: observations, rewards (num_envs,) int32, terminations and truncations
            (num_envs,) bool, infos.

        Raises:
            TypeError, ValueError: an agent is missing, or as AtariEnv.step.
        """
        if not isinstance(actions, dict) or actions.keys() != set(self.agents):
            raise InvalidValue(
                f"expected actions by the names of all agents ({', '.join(self.agents)}), got "
                f"{shown(actions)}"
            )
        columns = [
            torch.as_tensor(actions[agent], device=self.device) for agent in self.possible_agents
        ]
        observations, rewards, terminated, truncated, infos = self.atari.step(
            torch.stack(columns, dim=-1)
        )
        ended = terminated[:, None] | (infos["lives"] < 0)
        return (
            self._shared(observations),
            self._split(rewards),
            self._split(ended),
            self._shared(truncated),
            self._infos(infos),
        )

    def close(self) -> None:
        """Frees the consoles."""
        self.atari.close()
