"""The settings of papers and libraries, as AtariEnv's keywords.

`cule.AtariEnv("pong", 64, **cule.presets.DQN_2015)`. All presets have the same keywords, so that
they are easy to compare; other keywords have AtariEnv's defaults. A preset cannot be changed:
`cule.presets.DQN_2015 | {"frameskip": 3}` makes a new one.

`noop_max` is one more than the highest number of no-ops, as in AtariEnv. The DQN paper may start
with other numbers of no-ops; `episode_start` says what is pressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# The keywords that are the same in all presets.
_DQN_OBSERVATION = {
    "img_height": 84,
    "img_width": 84,
    "grayscale": True,
    "stack_num": 4,
    "maxpool": True,
}

DQN_2015: Mapping[str, Any] = MappingProxyType(
    _DQN_OBSERVATION
    | {
        "frameskip": 4,
        "noop_max": 31,
        "episode_start": "ale",
        "use_fire_reset": False,
        "life_loss_info": True,
        "reward_clipping": True,
        "repeat_action_probability": 0.0,
        "full_action_space": False,
        "max_num_frames_per_episode": 18_000,
    }
)
"""DQN: Mnih et al., "Human-level control through deep reinforcement learning", Nature 518 (2015),
Methods and Extended Data Table 1. A lost life ends an episode in training only (evaluate with `|
{"life_loss_info": False}`), up to 30 no-ops, and 5 minutes at most, which is the paper's limit in
evaluation."""

MACHADO_2017: Mapping[str, Any] = MappingProxyType(
    _DQN_OBSERVATION
    | {
        "frameskip": 5,
        "noop_max": 0,
        "episode_start": "ale",
        "use_fire_reset": False,
        "life_loss_info": False,
        "reward_clipping": True,
        "repeat_action_probability": 0.25,
        "full_action_space": True,
        "max_num_frames_per_episode": 108_000,
    }
)
"""Machado et al., "Revisiting the Arcade Learning Environment: Evaluation Protocols and Open
Problems for General Agents", arXiv 1709.06009 (2017), JAIR 61 (2018). Sticky actions in place of
no-ops, all actions, and only the end of a game ends an episode. `frameskip` is that of the paper's
experiments. The limit of 30 minutes is that of ale-py's ids "ALE/Pong-v5" and of Dopamine, which
follow the paper."""

DOPAMINE: Mapping[str, Any] = MappingProxyType(
    dict(MACHADO_2017)
    | {
        "frameskip": 4,
        "full_action_space": False,
    }
)
"""Dopamine: Castro et al., "Dopamine: A Research Framework for Deep Reinforcement Learning", arXiv
1812.06110 (2018), and dopamine/discrete_domains/atari_lib.py. MACHADO_2017 with 4 frames a step and
the game's own actions."""

BASELINES: Mapping[str, Any] = MappingProxyType(
    _DQN_OBSERVATION
    | {
        "frameskip": 4,
        "noop_max": 31,
        "episode_start": "baselines",
        "use_fire_reset": True,
        "life_loss_info": True,
        "reward_clipping": True,
        "repeat_action_probability": 0.0,
        "full_action_space": False,
        "max_num_frames_per_episode": 400_000,
    }
)
"""OpenAI baselines: `make_atari` and `wrap_deepmind(frame_stack=True)` of
baselines/common/atari_wrappers.py, around gym's "PongNoFrameskip-v4", whose limit is 400,000
frames. A lost life reports an end; then a step of no-ops, one of FIRE and one of the third action
are played, and the next life of the same game begins with a fresh stack. An explicit `reset` always
starts a new game."""

ENVPOOL: Mapping[str, Any] = MappingProxyType(
    _DQN_OBSERVATION
    | {
        "frameskip": 4,
        "noop_max": 30,
        "episode_start": "envpool",
        "use_fire_reset": True,
        "life_loss_info": False,
        "reward_clipping": False,
        "repeat_action_probability": 0.0,
        "full_action_space": False,
        "max_num_frames_per_episode": 108_000,
    }
)
"""EnvPool: the defaults of its Atari envs, https://envpool.readthedocs.io/en/latest/env/atari.html
(27,000 steps of 4 frames). `| {"life_loss_info": True}` is its `episodic_life=True`."""
