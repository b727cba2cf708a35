"""What a published policy is, as data: its game, what it sees, its network, its weights' checksum.

It is the file config.json. Nothing in it names code: a network is one of NETWORKS, or the one that
the user passes. Every value is checked by type and range before anything is made of it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import nn

from cule.console import action_numbers
from cule.disk.files import content_of
from cule.errors import InvalidValue, shown
from cule.rom import find_game
from cule.train.checks import MAX_SEED, above, at_least, check_types, within
from cule.train.envs.emulator import FRAMESKIP, STACK
from cule.train.nn.models import MAX_WIDTH, ActorCritic, ModelName, QNetwork

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FORMAT = 1
MOST_BYTES, MOST_CHARACTERS = 1 << 20, 200
# Keywords of AtariEnv: what all trainings see.
OBSERVATIONS: dict[str, Any] = {
    "frameskip": FRAMESKIP, "stack_num": STACK, "img_height": 84, "img_width": 84,
    "grayscale": True,
}  # fmt: skip
OWN = "own"
NETWORKS: dict[str, type[ActorCritic | QNetwork]] = {
    "actor-critic": ActorCritic,
    "q-network": QNetwork,
}
# What a network returns, or the first of several that it returns, for each action.
Outputs = Literal["log-probabilities", "logits", "values"]
OUTPUTS = get_args(Outputs)


@dataclass(frozen=True)
class Config:
    """A published policy.

    Attributes:
        format: the version of this form.
        game: the game's name.
        observations: the keywords of AtariEnv with which it sees the game.
        full_action_space: whether its actions are all 18, or those that matter in the game.
        num_actions: how many they are.
        network: one of NETWORKS; or "own", which the user has to pass.
        model: the network's layers; None: it is the user's own.
        width: what multiplies its channels.
        layer_norm: whether a q-network's layers are normalized.
        outputs: what the network returns for each action. From values the policy takes the best.
        channels_last: whether convolutions have that memory format.
        bf16: whether a GPU computes in bfloat16, as in the training.
        sha256: of the file of weights.
        algorithm: what has trained it.
        frames: how many it was trained on.
        seed: of the training.
        commit: of cule, in the training; None: it is not known.
    """

    format: int
    game: str
    observations: dict[str, Any]
    full_action_space: bool
    num_actions: int
    network: Literal["actor-critic", "q-network", "own"]
    model: ModelName | None
    width: float | None
    layer_norm: bool
    outputs: Outputs
    channels_last: bool
    bf16: bool
    sha256: str
    algorithm: str
    frames: int
    seed: int
    commit: str | None

    def __post_init__(self) -> None:
        """Checks types and ranges.

        Raises:
            ValueError: one is wrong.
        """
        check_types(self)
        if self.format != FORMAT:
            raise InvalidValue(
                f"expected a policy in the form {FORMAT}, got form {self.format}, of another "
                "version of cule"
            )
        game = find_game(self.game)
        offered = action_numbers(game, "full" if self.full_action_space else "minimal")
        if self.num_actions != len(offered):
            raise InvalidValue(
                f"expected a policy for the {len(offered)} actions of {game.name}, got one for "
                f"{self.num_actions}"
            )
        same = {name: (type(value), value) for name, value in self.observations.items()}
        if same != {name: (type(value), value) for name, value in OBSERVATIONS.items()}:
            raise InvalidValue(
                f"expected a policy of observations {OBSERVATIONS}, got {shown(self.observations)}"
            )
        if (self.network == OWN) != (self.model is None) or (self.model is None) != (
            self.width is None
        ):
            raise InvalidValue(
                f"expected a model and a width of all networks but one's own, got {self.network} "
                f"with {self.model} and {self.width}"
            )
        if self.width is not None:
            above(0, self, "width")
            within(0, MAX_WIDTH, self, "width")
        if self.layer_norm and (self.network, self.model) == ("q-network", "impala"):
            raise InvalidValue("expected no layer_norm with the model impala, got it")
        if self.layer_norm and self.network != "q-network":
            raise InvalidValue(f"expected layer_norm with a q-network only, got {self.network}")
        if not self.algorithm.isprintable() or len(self.algorithm) > MOST_CHARACTERS:
            raise InvalidValue(f"expected an algorithm's name, got {shown(self.algorithm)}")
        at_least(0, self, "frames")
        within(0, MAX_SEED, self, "seed")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise InvalidValue(f"expected a SHA-256 in hexadecimal, got {shown(self.sha256)}")

    def as_json(self) -> bytes:
        """The content of config.json."""
        return (json.dumps(dataclasses.asdict(self), indent=2) + "\n").encode()

    def make_network(self) -> nn.Module:
        """The network without weights: its parameters have shapes, and no memory."""
        kind = NETWORKS[self.network]
        more = {"layer_norm": True} if self.layer_norm else {}
        with torch.device("meta"):
            return kind(self.num_actions, self.model or "", self.width or 0.0, **more)


def description_of(net: nn.Module) -> dict[str, Any]:
    """The fields of Config that describe a network: one of NETWORKS, or one's own."""
    for name, kind in NETWORKS.items():
        if type(net) is kind:
            return {"network": name, "layer_norm": False, **net.made_of}
    return {"network": OWN, "model": None, "width": None, "layer_norm": False}


def read_config(folder: Path) -> Config:
    """The content of a folder's config.json.

    Raises:
        ValueError: it cannot be read, or is something else.
    """
    path = folder / CONFIG
    try:
        values = json.loads(content_of(path, MOST_BYTES))
    except OSError as problem:
        raise InvalidValue(
            f"expected a folder with a published policy, got {folder}, whose {CONFIG} cannot be "
            f"read: {problem.strerror}. python -m cule.train.publish makes one of a run's folder"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise InvalidValue(f"expected JSON in {path}, got something else: {problem}") from problem
    names = {field.name for field in dataclasses.fields(Config)}
    found = {*values} if isinstance(values, dict) else set()
    if found != names:
        other = ", ".join(sorted(map(shown, found ^ names)))
        raise InvalidValue(f"expected the fields of a policy in {path}, got others: {other}")
    try:
        return Config(**values)
    except InvalidValue as problem:
        raise InvalidValue(f"{path}: {problem}") from problem
