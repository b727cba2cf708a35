"""The settings of the trainings in the paper's tables 3 and 4."""

from __future__ import annotations

from typing import Any

Options = dict[str, Any]

# Test scores of table 3.
GOALS = {"pong": 18, "ms_pacman": 1500, "asterix": 1000, "assault": 800}
A2C = {"num_batches": 1, "num_steps": 5, "steps_per_update": 5}
VTRACE20 = {"num_envs": 1200, "num_batches": 20, "num_steps": 20, "steps_per_update": 1}
# Table 3's settings, and the fastest that we know.
SETTINGS: dict[str, Options] = {
    "ale": {"emulator": "ale-py", "num_envs": 120, **A2C},
    "a2c": {"num_envs": 1200, **A2C},
    "vtrace5": {"num_envs": 1200, "num_batches": 5, "num_steps": 5, "steps_per_update": 1},
    "vtrace20": VTRACE20,
    "fastest": {**VTRACE20, "updates_at_once": 3, "overlap": True},
}
# The settings that they leave out.
PLAIN: Options = {
    "emulator": "cule",
    "updates_at_once": 1,
    "overlap": False,
    "learning_rate": 6.5e-4,
    "num_gpus": 1,
}
TRAIN = "examples.a2c_vtrace.train"
# A training that was stopped starts from the beginning.
QUIET_TRAIN = {
    "progress": False,
    "plot": False,
    "tensorboard": False,
    "checkpoint_every": 0,
    "overwrite": True,
}
QUIET_OTHERS = {**QUIET_TRAIN, "eval_episodes": 0}
# Table 4's programs, and the settings of each.
PROGRAMS: dict[str, tuple[str, Options]] = {
    "A2C": (TRAIN, {**A2C, "warmup_steps": 20, "eval_episodes": 0, **QUIET_TRAIN}),
    "PPO": ("examples.ppo.ppo", QUIET_OTHERS),
    "DQN": ("examples.dqn.dqn", QUIET_OTHERS),
}
