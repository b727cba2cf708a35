"""Publishes a trained policy: a folder with its weights, what it is, its score, a curve and a film.

    python -m cule.train.publish runs/pong
    python -m cule.train.publish runs/pong --push OWNER/NAME

The folder has no code. `cule.train.load` reads it, and runs none. Before it is written, a policy of
cule's own networks is made of what will be in it, and has to give the same numbers, bit for bit, as
the run's newest checkpoint. The score is that of `python -m cule.train.evaluate`, for each
protocol; without it, that of the training's last evaluation.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import nn

from cule.disk.files import content_of, replacing
from cule.errors import InvalidValue
from cule.train import watch
from cule.train.algorithm import Algorithm, overrides_environment
from cule.train.checks import wanted_package
from cule.train.command import run_program
from cule.train.evaluate.policies import digest_of, full_actions_of, load_policy
from cule.train.evaluate.policy import Policy
from cule.train.import_path import find
from cule.train.logs.pictures import plot
from cule.train.published.agent import SHAPE, policy_of_network
from cule.train.published.card import CARD, CURVE, FILM, card_of, result_of
from cule.train.published.config import (
    CONFIG,
    FORMAT,
    OBSERVATIONS,
    OUTPUTS,
    OWN,
    WEIGHTS,
    Config,
    description_of,
    read_config,
)  # fmt: skip
from cule.train.published.loading import check_hub_id, load
from cule.train.published.weights import content_of_weights, library
from cule.wrappers.video_file import video_library

CPU = torch.device("cpu")
FILES = (CONFIG, WEIGHTS, CARD, CURVE, FILM)
MOST_BYTES_OF_FILM = 1 << 30
# What policies are compared on, and in how many steps, in which memories change.
ROWS, STEPS = 8, 3


@dataclass
class Args:
    """Publishes a trained policy as a folder, and on the Hugging Face Hub."""

    run: tyro.conf.Positional[Path]
    """the run folder that training wrote"""
    output: Path | None = None
    """the folder to write; by default `published` in the run's"""
    video: bool = True
    """with a film of an episode"""
    film: Path | None = None
    """the film, an .mp4; by default the first minute of an episode is filmed"""
    film_frames: int = 3_600
    """the film's most frames; 3,600 are a minute"""
    push: str | None = None
    """OWNER/NAME: create this model on the Hub, or a new version of it, as the user who is logged
    in there (hf auth login)"""
    private: bool = False
    """with push: a model that is created is private"""
    program: tuple[str, ...] = ()
    """modules or scripts that have the algorithm's code, as evaluate has it"""


def _observations() -> list[torch.Tensor]:
    """What policies are compared on."""
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randint, 0, 256, dtype=torch.uint8, generator=generator)
    return [draw((ROWS, *SHAPE)) for _ in range(STEPS)]


@torch.no_grad()
def _scores(policy: Policy) -> torch.Tensor:
    """What a policy says in some steps."""
    episodes = policy.begin(ROWS, CPU)
    return torch.stack([episodes.scores(seen) for seen in _observations()])


def _network_of(policy: Policy) -> tuple[str, nn.Module]:
    """The one network that a policy calls, and its name.

    Raises:
        ValueError: it calls none, or several.
    """
    called: dict[str, nn.Module] = {}
    names = {net: name for name, net in policy.nets.items()}

    def note(net: nn.Module, *_: Any) -> None:
        called[names[net]] = net

    hooks = [net.register_forward_hook(note) for net in names]
    try:
        _scores(policy)
    finally:
        for hook in hooks:
            hook.remove()
    if len(called) != 1:
        raise InvalidValue(
            "expected an algorithm whose scores call one network, which is what is published, got "
            f"{', '.join(called) or 'none'}"
        )
    return next(iter(called.items()))


def _outputs_of(policy: Policy, net: nn.Module, num_actions: int) -> str:
    """What a policy's network returns: one of OUTPUTS, from which its scores follow exactly.

    Raises:
        ValueError: they follow from none.
    """
    wanted = _scores(policy)
    for kind in OUTPUTS:
        try:
            given = _scores(policy_of_network(net, kind, num_actions, CPU, bf16=False))
        except (AttributeError, IndexError, TypeError, ValueError):  # it returns something else
            continue
        if torch.equal(given, wanted):
            return kind
    raise InvalidValue(
        f"expected an algorithm whose scores are its network's {' or '.join(OUTPUTS[:-1])}, or the "
        f"best of its {OUTPUTS[-1]}, got others: a published policy has no code of its own"
    )


def _described(state: dict[str, Any], net: nn.Module, outputs: str, content: bytes) -> Config:
    """What is published, as data."""
    trained = state["args"]
    values: dict[str, Any] = {
        "format": FORMAT, "game": trained["game"], "observations": OBSERVATIONS,
        "full_action_space": full_actions_of(state), "num_actions": state["num_actions"],
        **description_of(net), "outputs": outputs,
        "channels_last": trained.get("channels_last", False), "bf16": trained.get("bf16", False),
        "sha256": hashlib.sha256(content).hexdigest(), "algorithm": state["algorithm"],
        "frames": state["frames"], "seed": trained["seed"], "commit": None,
    }  # fmt: skip
    return Config(**values)


def _write(folder: Path, name: str, content: bytes) -> None:
    """Writes a file of the folder.

    Raises:
        ValueError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / name).is_symlink():
            (folder / name).unlink()  # what it leads to is not the folder's
        with replacing(folder / name) as file:
            file.write(content)
    except OSError as problem:
        raise InvalidValue(
            f"expected a folder that can be written, got {folder}: {problem.strerror}"
        ) from problem


def _film(args: Args, trained: dict[str, Any], folder: Path) -> bool:
    """Puts a film into the folder; whether there is one."""
    if not args.video:
        (folder / FILM).unlink(missing_ok=True)
        return False
    if args.film is None:
        wanted = watch.Args(
            args.run, folder / FILM, sticky=trained.get("sticky", 0.0), device="cpu",
            max_frames=args.film_frames, progress=False, program=args.program,
        )  # fmt: skip
        watch.watch(wanted)
    else:
        try:
            film = content_of(args.film, MOST_BYTES_OF_FILM)
        except OSError as problem:
            raise InvalidValue(
                f"expected a film that can be read, got {args.film}: {problem.strerror}"
            ) from problem
        _write(folder, FILM, film)
    return True


def _check_folder(folder: Path) -> None:
    """Checks that a folder has no other files of the names that are written.

    Raises:
        ValueError: it has.
    """
    foreign = [name for name in FILES if os.path.lexists(folder / name)]
    if foreign:
        try:
            read_config(folder)
        except InvalidValue as problem:
            raise InvalidValue(
                f"expected a new folder, or one with a published policy, got {folder}, which has "
                f"{foreign[0]} of something else"
            ) from problem


def _hub(args: Args) -> Any:
    """The Hub's client, if the policy is to be pushed there; None: it is not.

    Raises:
        ValueError: huggingface_hub is not installed, nobody is logged in, or the id is none.
    """
    if args.push is None:
        if args.private:
            raise InvalidValue("expected push with private, got none")
        return None
    check_hub_id(args.push)
    with wanted_package("huggingface_hub"):
        from huggingface_hub import HfApi, get_token
    if get_token() is None:
        raise InvalidValue(
            "expected a user who is logged in to the Hugging Face Hub (hf auth login) with push, "
            "got none"
        )
    return HfApi()


def _push(api: Any, args: Args, folder: Path) -> str:
    """Uploads the folder's files; returns the model's address.

    Raises:
        ValueError: the Hub refuses it.
    """
    try:
        created = api.create_repo(args.push, private=args.private, exist_ok=True)
        api.upload_folder(
            repo_id=args.push, folder_path=folder, allow_patterns=[*FILES],
            commit_message="A policy trained with cule",
        )  # fmt: skip
    except Exception as problem:  # the client's own, or that of the library by which it connects
        raise InvalidValue(
            f"expected the Hugging Face Hub to take {args.push}, got: {type(problem).__name__}: "
            f"{' '.join(str(problem).split())}"
        ) from problem
    return str(created)


def publish(args: Args) -> Path:
    """Writes a policy's folder, and pushes it if that is asked for; returns the folder.

    Raises:
        ImportError: imageio is not installed.
        ValueError: there is no checkpoint, its policy is not published, a file cannot be read or
            written, a package is not installed, or the Hub refuses it.
    """
    library()
    if args.film is not None and (not args.video or args.film.suffix != ".mp4"):
        raise InvalidValue(f"expected an .mp4 as film, and video, got {args.film}")
    if args.video and args.film is None:
        video_library()  # now, and not at the end
    api = _hub(args)
    policy, state = load_policy(args.run, CPU, args.program)
    if overrides_environment(find(state["program"], Algorithm, args.program)):
        raise InvalidValue(
            f"expected a policy of an Atari game, got one of the own envs of {state['program']}"
        )
    name, net = _network_of(policy)
    outputs = _outputs_of(policy, net, state["num_actions"])
    content = content_of_weights(state["trainer"]["networks"][name])
    config = _described(state, net, outputs, content)
    result = result_of(args.run, config)
    config = replace(config, commit=None if result is None else str(result.get("commit")))
    folder = args.output or args.run / "published"
    _check_folder(folder)
    with tempfile.TemporaryDirectory() as first:
        for file, written in ((WEIGHTS, content), (CONFIG, config.as_json())):
            _write(Path(first), file, written)
        _check(policy, config, Path(first))
    _write(folder, WEIGHTS, content)
    _write(folder, CONFIG, config.as_json())
    film = _film(args, state["args"], folder)
    (folder / CURVE).unlink(missing_ok=True)
    curve = plot([args.run], folder / CURVE) > 0
    card = card_of(
        config, args.run, state["args"], digest_of(state), name=args.push or folder.name,
        film=film, curve=curve,
    )  # fmt: skip
    _write(folder, CARD, card.encode())
    sys.stdout.write(f"The policy is in {folder}.\n")
    if api is not None:
        sys.stdout.write(f"It is at {_push(api, args, folder)}.\n")
    return folder


def _check(policy: Policy, config: Config, folder: Path) -> None:
    """Loads what is to be published, if cule has its network, and compares.

    Raises:
        ValueError: the policy is another one.
    """
    if config.network == OWN:
        return
    agent, wanted = load(folder, "cpu"), _scores(policy)
    given = torch.stack([agent.scores(seen) for seen in _observations()])
    assert torch.equal(given, wanted), "its network was compared before"


def main(argv: Sequence[str] | None = None) -> int:
    """Publishes; returns the exit status."""
    return run_program("python -m cule.train.publish", Args, publish, argv)


if __name__ == "__main__":
    sys.exit(main())
