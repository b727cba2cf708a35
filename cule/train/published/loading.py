"""Loads published policies, from folders and from the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from cule.devices.device import find_device
from cule.errors import InvalidType, InvalidValue, shown
from cule.train.checks import MAX_SEED, wanted_package
from cule.train.published.agent import Agent
from cule.train.published.config import CONFIG, NETWORKS, OWN, WEIGHTS, Config, read_config
from cule.train.published.weights import load_weights

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
# The only files that are downloaded: numbers, data and text.
DOWNLOADED = (WEIGHTS, CONFIG, "README.md")


def load(
    source: str | Path,
    device: str | torch.device | None = None,
    *,
    greedy: bool = False,
    seed: int = 0,
    network: Callable[[int], nn.Module] | None = None,
) -> Agent:
    """Loads a published policy. No code of the files is run, whoever wrote them.

    Args:
        source: a folder that `python -m cule.train.publish` made, or where there is none, the id of
            a model on the Hugging Face Hub, such as "someone/pong", which is downloaded.
        device: where it computes; None: a GPU if there is one.
        greedy: take the most probable action instead of sampling one.
        seed: of the actions.
        network: makes the network from the number of actions, if it is none of cule's own.

    Returns:
        The policy: call it with observations to get actions.

    Raises:
        TypeError: an argument is of another type.
        ValueError: there is no policy, its files are damaged or have something else, it needs a
            package that is not installed, or a network that was not passed.
    """
    if not isinstance(source, (str, Path)):
        raise InvalidType(f"expected a folder or an id of the Hub, got {shown(source)}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise InvalidValue(f"expected seed to be from 0 to {MAX_SEED}, got {shown(seed)}")
    if not isinstance(greedy, bool):
        raise InvalidType(f"expected greedy to be True or False, got {shown(greedy)}")
    where = find_device(device)
    folder = Path(source)
    if isinstance(source, str) and not folder.exists() and HUB_ID.fullmatch(source):
        folder = _download(source)
    config = read_config(folder)
    net = _network(config, network)
    load_weights(folder / WEIGHTS, config.sha256, net)
    return Agent(config, net, where, greedy=greedy, seed=seed)


def _network(config: Config, network: Callable[[int], nn.Module] | None) -> nn.Module:
    """The network of a policy, without weights or with any.

    Raises:
        TypeError: the user's function does not make one.
        ValueError: there is no function where one is needed, or one where none is.
    """
    if (network is None) == (config.network == OWN):
        own = "a network of its author's own" if network is None else f"an {config.network}"
        known = ", ".join(NETWORKS)
        raise InvalidValue(
            f"expected network=, a function from the number of actions to a network, for all "
            f"policies but those of {known}, got {'none' if network is None else 'one'} for {own}"
        )
    if network is None:
        return config.make_network()
    net = network(config.num_actions)
    if not isinstance(net, nn.Module):
        raise InvalidType(f"expected network to make a torch.nn.Module, got {shown(net)}")
    return net


def _download(name: str) -> Path:
    """The folder of a model that is downloaded from the Hub, or was before.

    Raises:
        ValueError: huggingface_hub is not installed, or it finds no such model.
    """
    with wanted_package("huggingface_hub"):
        from huggingface_hub import snapshot_download
    try:
        return Path(snapshot_download(name, allow_patterns=[*DOWNLOADED]))
    except (OSError, ValueError) as problem:
        raise InvalidValue(
            f"expected a folder or a model on the Hugging Face Hub, got {name}: "
            f"{' '.join(str(problem).split())}"
        ) from problem


def check_hub_id(name: str) -> str:
    """A model's id on the Hub.

    Raises:
        ValueError: it is none.
    """
    if not HUB_ID.fullmatch(name):
        raise InvalidValue(f"expected OWNER/NAME as an id on the Hub, got {shown(name)}")
    return name
