"""The suite's settings: of each algorithm one for all games, and what a protocol prescribes.

Frames are emulated frames, four in a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cule import train
from cule.devices.device import find_device
from cule.errors import InvalidValue
from examples.a2c_vtrace import train as a2c_vtrace
from examples.ppo import ppo
from examples.pqn import pqn

AlgorithmName = Literal["a2c_vtrace", "ppo", "pqn"]
ProtocolName = Literal["noops", "machado"]

ALGORITHMS: dict[str, tuple[type[train.Algorithm[Any]], type[Any]]] = {
    "a2c_vtrace": (a2c_vtrace.A2C, a2c_vtrace.Args),
    "ppo": (ppo.PPO, ppo.Args),
    "pqn": (pqn.PQN, pqn.Args),
}

DEFAULT: AlgorithmName = "a2c_vtrace"

# What differs from an algorithm's defaults, in every game alike, on any device.
SETTINGS: dict[str, Mapping[str, Any]] = {
    "a2c_vtrace": {"anneal_lr": True},
    "ppo": {},
    "pqn": {},
}

# The games on which settings are compared before the suite is run: with dense and sparse rewards,
# one ball and many enemies, short episodes and long ones.
SEARCH_GAMES = (
    "asterix", "beam_rider", "breakout", "enduro", "ms_pacman", "qbert", "seaquest",
    "space_invaders",
)  # fmt: skip
# What search.py compares: an algorithm, and what differs from its defaults. The first three are the
# suite's. What else was tried, with all settings, is in
# benchmarks/log/2026-11-26.md#what-the-search-of-atari-57-tried-in-full; docs/atari57.md says what
# came of it.
CANDIDATES: dict[str, tuple[AlgorithmName, Mapping[str, Any]]] = {
    "vtrace-8192-scaled": ("a2c_vtrace", {
        "num_envs": 8192, "num_batches": 128, "updates_at_once": 8, "lag": 1,
        "warmup_steps": 50, "optimizer": "muon", "learning_rate": 1e-3, "scale_ent": True,
        "ent_coef": 0.02,
    }),
    "ppo-8192-short": ("ppo", {
        "num_envs": 8192, "num_steps": 8, "minibatch_size": 2048, "update_epochs": 2,
        "learning_rate": 1e-3, "clip_coef": 0.2, "lag": 0,
    }),
    "pqn-256": ("pqn", {}),
    "ppo-256": ("ppo", {}),
}  # fmt: skip

# A training takes a minute or two, of which a checkpoint would take more than a second: there is
# only that of the end, or of a stop. A hundred lines of the log are enough.
SPARSE: Mapping[str, Any] = {"checkpoint_every": 0, "log_every": 400}

# The candidate whose settings the suite uses on a GPU. A CPU plays too slowly for so many envs.
CHOSEN = {"a2c_vtrace": "vtrace-8192-scaled", "ppo": "ppo-8192-short", "pqn": "pqn-256"}


# The candidate of a suite with a budget of time, by the seconds of each training from which on it
# is the one.
BUDGETS: Mapping[float, str] = {0.0: "vtrace-8192-scaled"}
# Emulated frames of a training, if nothing else is asked for.
FRAMES = 200_000_000
# More frames than any training has that ends by its seconds.
ENDLESS = 10**12


def candidate_for(seconds: float) -> str:
    """The candidate of a suite whose agents train for so many seconds each."""
    return BUDGETS[max(least for least in BUDGETS if least <= seconds)]


@dataclass(frozen=True)
class Protocol:
    """How agents are trained and evaluated.

    Attributes:
        title: what reports call it.
        sticky: probability that a frame repeats the last frame's action.
        full_action_space: whether all 18 actions are offered, or those that matter in the game.
        life_loss_ends: whether a lost life ends an episode in training.
        noops: an episode of an evaluation starts with fewer no-ops than this; 0: with none.
    """

    title: str
    sticky: float
    full_action_space: bool
    life_loss_ends: bool
    noops: int


PROTOCOLS = {
    "noops": Protocol("30 no-ops, no sticky actions", 0.0, False, True, 30),
    # "Revisiting the Arcade Learning Environment" (Machado et al., 2018), except that it cuts
    # episodes after 18,000 frames.
    "machado": Protocol("sticky actions, all actions (Machado et al.)", 0.25, True, False, 0),
}


def settings_of(
    algorithm: AlgorithmName | None, device: str | None, candidate: str | None = None,
    seconds: float | None = None,
) -> tuple[AlgorithmName, Mapping[str, Any]]:  # fmt: skip
    """What is trained: an algorithm, and what is added to its settings, in every game alike.

    Args:
        algorithm: which; on a GPU with the settings of CHOSEN. None: what BUDGETS has for
            `seconds`, or a2c_vtrace.
        device: where.
        candidate: one of CANDIDATES, which is then trained instead, on any device.
        seconds: those of a training that ends with them; None: it ends with its frames.

    Raises:
        ValueError: there is no such device or candidate.
    """
    if candidate is None and find_device(device).type == "cuda":
        if algorithm is None and seconds is not None:
            candidate = candidate_for(seconds)
        else:
            candidate = CHOSEN[algorithm or DEFAULT]
    algorithm = algorithm or DEFAULT
    if candidate is None:
        return algorithm, {}
    if candidate not in CANDIDATES:
        raise InvalidValue(f"expected a candidate of {', '.join(CANDIDATES)}, got {candidate}")
    algorithm, settings = CANDIDATES[candidate]
    return algorithm, {**settings, **SPARSE}


def lengths(seconds: float | None, frames: int | None) -> dict[str, Any]:
    """The settings of how long to train: by seconds, by frames, or by both.

    By seconds alone, what changes in the course of a training follows the seconds, and is at its
    end with them; else it follows the frames.

    Args:
        seconds: of the training at most; None: as many as it takes.
        frames: of the training at most; None: those that it has time for, or FRAMES if `seconds` is
            None, too.
    """
    by_seconds = seconds is not None and frames is None
    return {
        "max_seconds": seconds,
        "total_frames": ENDLESS if by_seconds else FRAMES if frames is None else frames,
        "schedule_by": "seconds" if by_seconds else "frames",
    }


def training_settings(algorithm: str, protocol: str, **more: Any) -> Any:
    """The settings of a training of the suite.

    Args:
        algorithm: one of ALGORITHMS.
        protocol: one of PROTOCOLS.
        more: further settings, and others than these: those of the suite or of a candidate, the
            game, the seed, how long to train, the folder.
    """
    how = PROTOCOLS[protocol]
    usual = {
        "sticky": how.sticky, "full_action_space": how.full_action_space,
        "life_loss_ends": how.life_loss_ends, "eval_episodes": 0, "logger": "none",
        "plot": False,
    }  # fmt: skip
    return ALGORITHMS[algorithm][1](**{**usual, **SETTINGS[algorithm], **more})
