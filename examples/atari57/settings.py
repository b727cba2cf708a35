"""The suite's settings: of each algorithm one for all games, and what a protocol prescribes.

Frames are emulated frames, four in a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cule import train
from cule.device import find_device
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
# What search.py compares: an algorithm, and what differs from its defaults. 57 games in 1.5 hours
# of a GPU are 95 seconds for the 200 million frames of a game. On an H100 nearly half of that goes
# into playing, so that each step can be learned from once or twice, and by few updates: they are
# from many steps (large), or the envs play more at once. Those with 256 envs are slower, and say
# what more updates would bring. docs/atari57.md has what came out.
_STEPS: Mapping[str, Any] = {"num_envs": 4096, "num_steps": 16, "minibatch_size": 2048}
_LARGE: Mapping[str, Any] = {"minibatch_size": 4096}
_GROUPS: Mapping[str, Any] = {"num_envs": 4096, "num_batches": 16, "overlap": True}
_FOUR: Mapping[str, Any] = {"num_batches": 64, "updates_at_once": 4}
_FEW: Mapping[str, Any] = {**_GROUPS, **_FOUR}
_TWICE: Mapping[str, Any] = {"update_epochs": 2}
_BOLD: Mapping[str, Any] = {"learning_rate": 1e-3, "clip_coef": 0.2}
_MORE: Mapping[str, Any] = {"num_envs": 8192}
_SMALL: Mapping[str, Any] = {**_GROUPS, **_MORE, "num_batches": 128, "updates_at_once": 8}
_FAST: Mapping[str, Any] = {**_SMALL, "learning_rate": 1e-3}
_EARLY: Mapping[str, Any] = {**_FAST, "warmup_steps": 50}
_SHORT: Mapping[str, Any] = {**_FAST, "num_batches": 64, "num_steps": 10}
_MUON: Mapping[str, Any] = {**_FAST, "optimizer": "muon"}
_SCALED: Mapping[str, Any] = {**_MUON, "warmup_steps": 50, "scale_ent": True, "ent_coef": 0.02}
_MOST: Mapping[str, Any] = {
    **_FAST, "num_envs": 16384, "num_steps": 10, "updates_at_once": 16,
}  # fmt: skip
_BESIDE: Mapping[str, Any] = {**_STEPS, **_MORE, **_TWICE, **_BOLD, "num_steps": 8, "lag": 1}
CANDIDATES: dict[str, tuple[AlgorithmName, Mapping[str, Any]]] = {
    "vtrace-4096": ("a2c_vtrace", _GROUPS),
    "vtrace-4096x2": ("a2c_vtrace", {**_GROUPS, "updates_at_once": 2}),
    "vtrace-4096-small": ("a2c_vtrace", _FEW),
    "vtrace-4096-anneal": ("a2c_vtrace", {**_FEW, "learning_rate": 1e-3, "anneal_ent": True}),
    "vtrace-8192-small": ("a2c_vtrace", _SMALL),
    "vtrace-8192-rate-0.001": ("a2c_vtrace", _FAST),
    "vtrace-8192-rate-0.002": ("a2c_vtrace", {**_SMALL, "learning_rate": 2e-3}),
    "vtrace-8192-entropy-0.003": ("a2c_vtrace", {**_SMALL, "ent_coef": 0.003}),
    "vtrace-8192-entropy-0.02": ("a2c_vtrace", {**_FAST, "ent_coef": 0.02}),
    "vtrace-8192-anneal": ("a2c_vtrace", {**_FAST, "anneal_ent": True}),
    "vtrace-8192-anneal-0.02": ("a2c_vtrace", {**_FAST, "anneal_ent": True, "ent_coef": 0.02}),
    "vtrace-8192-lambda-0.95": ("a2c_vtrace", {**_FAST, "trace_decay": 0.95}),
    "vtrace-8192-root": ("a2c_vtrace", {**_FAST, "rewards": "root"}),
    "vtrace-8192-norm": ("a2c_vtrace", {**_FAST, "model": "nature-norm"}),
    "vtrace-8192-impala": ("a2c_vtrace", {**_FAST, "model": "impala"}),
    "vtrace-8192-steps-16": ("a2c_vtrace", {**_FAST, "num_steps": 16}),
    "vtrace-8192-steps-10": ("a2c_vtrace", _SHORT),
    "vtrace-8192-muon": ("a2c_vtrace", _MUON),
    "vtrace-8192-muon-0.002": ("a2c_vtrace", {**_MUON, "learning_rate": 2e-3}),
    "vtrace-8192-muon-anneal": ("a2c_vtrace", {**_MUON, "anneal_ent": True}),
    "vtrace-8192-muon-large": ("a2c_vtrace", {**_MUON, **_FOUR}),
    "vtrace-8192-muon-large-0.002": ("a2c_vtrace", {
        **_MUON, **_FOUR, "learning_rate": 2e-3, "anneal_ent": True,
    }),
    "vtrace-8192-scaled": ("a2c_vtrace", _SCALED),
    "vtrace-8192-scaled-rate-0.0005": ("a2c_vtrace", {**_SCALED, "learning_rate": 5e-4}),
    "vtrace-8192-scaled-entropy-0.01": ("a2c_vtrace", {**_SCALED, "ent_coef": 0.01}),
    "vtrace-8192-scaled-entropy-0.05": ("a2c_vtrace", {**_SCALED, "ent_coef": 0.05}),
    "vtrace-8192-scaled-steps-16": ("a2c_vtrace", {**_SCALED, "num_steps": 16}),
    "vtrace-8192-scaled-large": ("a2c_vtrace", {**_SCALED, **_FOUR, "learning_rate": 1.4e-3}),
    "vtrace-12288-scaled": ("a2c_vtrace", {
        **_SCALED, "num_envs": 12288, "num_batches": 96, "num_steps": 16, "updates_at_once": 6,
        "learning_rate": 1.4e-3,
    }),
    "vtrace-8192-often": ("a2c_vtrace", {**_FAST, "num_steps": 16, "updates_at_once": 12}),
    "vtrace-8192-early": ("a2c_vtrace", _EARLY),
    "vtrace-8192-early-rate-0.002": ("a2c_vtrace", {**_EARLY, "learning_rate": 2e-3}),
    "vtrace-8192-early-steps-40": ("a2c_vtrace", {**_EARLY, "num_batches": 256, "num_steps": 40}),
    "vtrace-8192-short-often": ("a2c_vtrace", {**_SHORT, "updates_at_once": 12}),
    "vtrace-16384": ("a2c_vtrace", _MOST),
    "vtrace-16384-large": ("a2c_vtrace", {**_MOST, "num_steps": 20, "updates_at_once": 8}),
    "vtrace-16384-small": ("a2c_vtrace", {**_MOST, "num_batches": 256, "updates_at_once": 32}),
    "vtrace-16384-root": ("a2c_vtrace", {**_MOST, "rewards": "root"}),
    "vtrace-8192": ("a2c_vtrace", {**_FEW, **_MORE, "learning_rate": 1e-3}),
    "ppo-4096": ("ppo", {**_STEPS, **_TWICE}),
    "ppo-4096-large": ("ppo", {**_STEPS, **_LARGE, **_TWICE}),
    "ppo-8192": ("ppo", {
        **_STEPS, **_MORE, **_TWICE, "minibatch_size": 8192, "learning_rate": 1e-3,
    }),
    "ppo-8192-short": ("ppo", {**_BESIDE, "lag": 0}),
    "ppo-8192-beside": ("ppo", _BESIDE),
    "ppo-8192-beside-large": ("ppo", {**_BESIDE, **_LARGE}),
    "ppo-8192-beside-once": ("ppo", {**_BESIDE, "update_epochs": 1}),
    "ppo-8192-beside-anneal": ("ppo", {**_BESIDE, "anneal_ent": True}),
    "ppo-8192-once": ("ppo", {**_STEPS, **_MORE, **_LARGE, **_BOLD, "update_epochs": 1}),
    "ppo-256": ("ppo", {}),
    "pqn-4096": ("pqn", {**_STEPS, "lag": 1}),
    "pqn-4096-large": ("pqn", {**_STEPS, **_LARGE, "learning_rate": 1e-3, "lag": 1}),
    "pqn-256": ("pqn", {}),
}  # fmt: skip

# A training takes a minute or two, of which a checkpoint would take more than a second: there is
# only that of the end, or of a stop. A hundred lines of the log are enough.
SPARSE: Mapping[str, Any] = {"checkpoint_every": 0, "log_every": 400}

# The candidate whose settings the suite uses on a GPU. A CPU plays too slowly for so many envs.
CHOSEN = {"a2c_vtrace": "vtrace-8192-scaled", "ppo": "ppo-8192-short", "pqn": "pqn-256"}


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
    algorithm: AlgorithmName, device: str | None, candidate: str | None = None
) -> tuple[AlgorithmName, Mapping[str, Any]]:
    """What is trained: an algorithm, and what is added to its settings, in every game alike.

    Args:
        algorithm: which; on a GPU with the settings of CHOSEN.
        device: where.
        candidate: one of CANDIDATES, which is then trained instead, on any device.

    Raises:
        ValueError: there is no such device or candidate.
    """
    if candidate is None and find_device(device).type == "cuda":
        candidate = CHOSEN[algorithm]
    if candidate is None:
        return algorithm, {}
    if candidate not in CANDIDATES:
        raise InvalidValue(f"expected a candidate of {', '.join(CANDIDATES)}, got {candidate}")
    algorithm, settings = CANDIDATES[candidate]
    return algorithm, {**settings, **SPARSE}


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
        "life_loss_ends": how.life_loss_ends, "eval_episodes": 0, "tensorboard": False,
        "plot": False,
    }  # fmt: skip
    return ALGORITHMS[algorithm][1](**{**usual, **SETTINGS[algorithm], **more})
