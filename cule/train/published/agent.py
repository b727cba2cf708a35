"""A policy that plays: from observations to actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from cule.env.keywords import refuse
from cule.errors import InvalidType, InvalidValue, shown
from cule.rom import find_game
from cule.train.evaluate.policy import Episodes, Policy
from cule.train.lowering.method_checks import check_scores
from cule.train.nn.models import sample, to_channels_last
from cule.train.published.config import OBSERVATIONS, OUTPUTS, Config
from cule.vector_env import AtariEnv

SHAPE = (OBSERVATIONS["stack_num"], OBSERVATIONS["img_height"], OBSERVATIONS["img_width"])


def log_probabilities(outputs: Any, kind: str) -> torch.Tensor:
    """The log-probabilities of actions, from what a network returns.

    Args:
        outputs: (n, num_actions), or a tuple with that first.
        kind: one of OUTPUTS. Of values the best action has the probability 1.
    """
    values: torch.Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
    if kind == OUTPUTS[0]:
        return values
    if kind == OUTPUTS[1]:
        return values.log_softmax(dim=1)
    return functional.one_hot(values.argmax(dim=1), values.shape[1]).float().log()


def policy_of_network(
    net: nn.Module, kind: str, num_actions: int, device: torch.device, *, bf16: bool
) -> Policy:
    """The policy of a network.

    Args:
        net: the network, on the device.
        kind: what it returns, one of OUTPUTS.
        num_actions: how many actions there are.
        device: where it computes.
        bf16: whether a GPU computes in bfloat16.
    """
    context = torch.autocast(device.type, torch.bfloat16, enabled=bf16 and device.type == "cuda")

    def scores(observations: torch.Tensor) -> torch.Tensor:
        with context:
            values = log_probabilities(net(observations), kind)
        return check_scores(values, len(observations), num_actions)

    return Policy(scores, {"network": net})


class Agent:
    """A published policy, on a device.

    Call it with observations (n, 4, 84, 84) uint8, tensors or NumPy's arrays: it returns n actions,
    int64, as a tensor on its device, or as an array for an array. A policy with an LSTM remembers
    each env from call to call: then pass `started` (n,) bool, True where an episode begins with
    this observation; in the first call all begin.

    Args:
        config: what it is.
        net: its network, with weights.
        device: where it computes.
        greedy: take the most probable action instead of sampling one.
        seed: of the actions.

    Attributes:
        config: what it is: game, observations, network, training.
        device: where it computes, and where actions are.
    """

    def __init__(
        self, config: Config, net: nn.Module, device: torch.device, *, greedy: bool, seed: int
    ):
        self.config, self.device, self._greedy = config, device, greedy
        self._generator = torch.Generator(device).manual_seed(seed)
        self._net = net.to(device).eval().requires_grad_(False)
        if config.channels_last:
            to_channels_last(self._net)
        self._policy = policy_of_network(
            self._net, config.outputs, config.num_actions, device, bf16=config.bf16
        )
        self._episodes: Episodes | None = None
        self._count = 0

    def __repr__(self) -> str:
        c = self.config
        return f"<{c.algorithm} on {c.game}, {c.frames:,} frames, on {self.device}>"

    def begin(self) -> None:
        """Forgets all episodes: in the next call all begin, and there may be another number."""
        self._episodes = None

    @torch.no_grad()
    def scores(self, observations: Any, started: Any = None) -> torch.Tensor:
        """The log-probabilities (n, num_actions) of the actions for observations.

        Args:
            observations: (n, 4, 84, 84) uint8, a tensor or an array.
            started: (n,) bool: where an episode begins; None: nowhere, but in the first call.

        Raises:
            TypeError, ValueError: they are something else, or of another number of envs than in the
                last call, where the policy remembers these.
        """
        seen = _as_tensor("observations", observations, torch.uint8, SHAPE).to(self.device)
        begun = None
        if started is not None:
            begun = _as_tensor("started", started, torch.bool, ()).to(self.device)
            if len(begun) != len(seen):
                raise InvalidValue(
                    f"expected started of {len(seen)} envs, as observations, got {len(begun)}"
                )
        if self._episodes is None or not self._policy.memories:
            self._episodes, self._count = self._policy.begin(len(seen), self.device), len(seen)
        if len(seen) != self._count:
            raise InvalidValue(
                f"expected observations of {self._count} envs, as before, which the policy "
                f"remembers, got {len(seen)}: begin() forgets them"
            )
        return self._episodes.scores(seen, started=begun)

    def __call__(self, observations: Any, started: Any = None) -> Any:
        """The actions for observations, (n,) int64; see the class, and `scores`."""
        scores = self.scores(observations, started)
        actions = scores.argmax(dim=1) if self._greedy else sample(scores, self._generator)
        return actions.cpu().numpy() if isinstance(observations, np.ndarray) else actions

    def make_env(self, num_envs: int = 1, **options: Any) -> AtariEnv:
        """Envs of its game that show what it sees, and have its actions.

        Args:
            num_envs: how many.
            **options: AtariEnv's other keywords; `device` is the policy's by default.

        Raises:
            TypeError, ValueError: an option is wrong, or is the policy's to choose.
        """
        own: dict[str, Any] = {**OBSERVATIONS, "full_action_space": self.config.full_action_space}
        refuse("make_env", options, dict.fromkeys(own, "the policy was trained with its own"))
        refuse("make_env", options, {"num_players": "the policy plays alone"})
        options = {"device": self.device, **options}
        return AtariEnv(find_game(self.config.game).name, num_envs, **own, **options)


def _as_tensor(name: str, given: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor or an array as a tensor, checked.

    Raises:
        TypeError: it is neither.
        ValueError: it has another type or shape.
    """
    if isinstance(given, np.ndarray) and given.dtype in (np.uint8, np.bool_):
        value = torch.from_numpy(np.ascontiguousarray(given))
    elif isinstance(given, torch.Tensor):
        value = given
    else:
        raise InvalidType(f"expected {name} as a tensor or an array of {dtype}, got {shown(given)}")
    if value.dtype != dtype or value.dim() != 1 + len(shape) or value.shape[1:] != shape:
        raise InvalidValue(
            f"expected {name} of shape {('n', *shape)} and {dtype}, got {tuple(value.shape)} and "
            f"{value.dtype}"
        )
    return value
