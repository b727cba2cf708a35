"""Checks of Rainbow's settings: of numbers, and of those that have no effect without a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cule.errors import InvalidValue
from cule.train.checks import above, at_least, holds_steps, within
from cule.train.envs.emulator import STACK

if TYPE_CHECKING:
    from examples.rainbow.rainbow import Args

# What an agent is made of; the name of a row says which of them are not as by default.
PARTS = (
    "double", "dueling", "n_step", "prioritized", "quantiles", "munchausen", "noisy", "model",
    "pool", "spectral_norm",
)  # fmt: skip


def parts_named(name: str, args: Args) -> str:
    """An algorithm's name, with the parts that are not as by default: Rainbow, quantiles iqn."""
    other = [part for part in PARTS if getattr(args, part) != getattr(type(args), part)]
    return ", ".join([name, *(f"{part} {getattr(args, part)}" for part in other)])


def check_parts(args: Args) -> None:
    """Checks settings, alone and together.

    Raises:
        ValueError: one is out of its range, or would have no effect.
    """
    _check_numbers(args)
    needs = {
        "prioritized": (args.prioritized, ("alpha", "first_beta")),
        "quantiles c51": (args.quantiles == "c51", ("atoms", "lowest_atom", "highest_atom")),
        "quantiles iqn": (args.quantiles == "iqn", ("taus", "target_taus", "acting_taus")),
        "munchausen": (args.munchausen, ("munchausen_alpha", "temperature", "least_log")),
        "noisy": (args.noisy, ("sigma", "noise_alone_from")),
        "noise_alone_from or without noisy": (
            args.has_epsilon, ("first_epsilon", "last_epsilon", "epsilon_frames"),
        ),
        "model impala": (args.model == "impala", ("pool", "spectral_norm")),
    }  # fmt: skip
    for part, (there, names) in needs.items():
        for name in names:
            if not there and getattr(args, name) != getattr(type(args), name):
                raise InvalidValue(f"expected {name} with {part}, got it without")
    if args.model not in ("nature", "impala"):
        raise InvalidValue(f"expected model to be nature or impala, got {args.model}")
    if args.munchausen and args.double:
        raise InvalidValue("expected munchausen without double, as no action is chosen, got both")
    if args.munchausen and args.quantiles == "c51":
        raise InvalidValue("expected munchausen with quantiles iqn or none, got c51")


def _check_numbers(args: Args) -> None:
    at_least(
        1, args, "steps_per_update", "updates_at_once", "minibatch_size", "target_every", "n_step",
        "taus", "target_taus", "acting_taus", "epsilon_frames",
    )  # fmt: skip
    at_least(2, args, "atoms")
    at_least(0, args, "noise_alone_from", "sigma", "pool")
    within(0, 1, args, "first_epsilon", "last_epsilon", "alpha", "first_beta", "munchausen_alpha")
    above(0, args, "temperature")
    if not args.lowest_atom < args.highest_atom:
        raise InvalidValue(
            f"expected lowest_atom to be below highest_atom, got {args.lowest_atom} and "
            f"{args.highest_atom}"
        )
    holds_steps(STACK, args)
