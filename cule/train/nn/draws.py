"""Random numbers of acting: by seed, env and step, wherever and with whatever an env acts.

They are Philox4x32-10's (Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3"). The
key is the run's seed. The counter is which four numbers of a draw, the step, the env, and which
draw of the step, from 1 on; the emulator's own numbers, by the same algorithm, have 0 there. So an
env's numbers do not depend on the envs beside it, on parts that act one after the other, or on
processes, and a run that is resumed needs no state of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from cule.errors import InvalidValue
from cule.train.nn import kernels

# Multipliers and what is added to the key, of Philox4x32; a word of 32 bits.
FACTORS, BUMPS, ROUNDS, WORD = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10, 0xFFFFFFFF


@dataclass
class _Key:
    """The key of the numbers that are drawn.

    Attributes:
        seed: of the run, below 2**63.
        first: the number of the first env, over all processes.
        step: (1,) int64 on the device.
        count: draws of this step so far.
    """

    seed: int
    first: int
    step: torch.Tensor
    count: int = 0


_current: _Key | None = None
_offset = 0  # of a part of the envs


@contextmanager
def part(first: int) -> Iterator[None]:
    """In a `with` block, the envs that act are those from this one of the process on."""
    global _offset
    before, _offset = _offset, first
    try:
        yield
    finally:
        _offset = before


@contextmanager
def keyed(seed: int, first: int, step: torch.Tensor) -> Iterator[None]:
    """In a `with` block, draws are those of these envs at this step.

    Args:
        seed: of the run, below 2**63.
        first: the number of the process's first env, over all processes.
        step: (1,) int64 on the device.
    """
    global _current
    before, _current = _current, _Key(seed, first + _offset, step)
    try:
        yield
    finally:
        _current = before


def words(
    seed: int, first: int, step: torch.Tensor, number: int, shape: tuple[int, int]
) -> torch.Tensor:
    """Numbers of 32 bits: (envs, each) int64, for envs from `first` on, of one draw of a step."""
    envs, each = shape
    device = step.device
    blocks = torch.arange(-(-each // 4), device=device)
    c0, c1 = blocks.expand(envs, -1), step.expand(envs, len(blocks))
    c2 = torch.arange(first, first + envs, device=device).unsqueeze(1).expand_as(c0)
    c3 = torch.full_like(c2, number)
    k0, k1 = seed & WORD, seed >> 32
    for _ in range(ROUNDS):
        # Products wrap at 64 bits, of which all are kept.
        low, high = FACTORS[0] * c0, FACTORS[1] * c2
        c0, c2 = ((high >> 32) & WORD) ^ c1 ^ k0, ((low >> 32) & WORD) ^ c3 ^ k1
        c1, c3 = high & WORD, low & WORD
        k0, k1 = (k0 + BUMPS[0]) & WORD, (k1 + BUMPS[1]) & WORD
    return torch.stack([c0, c1, c2, c3], dim=-1).flatten(1)[:, :each]


def _units(words: torch.Tensor) -> torch.Tensor:
    """Numbers of 32 bits as float32 between 0 and 1, neither of which occurs."""
    return ((words >> 9).float() + 0.5) * 2.0**-23


def _drawn(key: _Key, kind: kernels.Kind, shape: tuple[int, int], stop: int = 0) -> torch.Tensor:
    """The next draw of a step."""
    key.count += 1
    if kernels.serve(key.step):
        from cule.train.nn.kernels import draws as fused

        return fused.draw(kind, key.seed, key.first, key.step, key.count, shape, stop)
    drawn = words(key.seed, key.first, key.step, key.count, shape)
    if kind == "integers":
        return (drawn * stop) >> 32
    return _units(drawn) if kind == "uniform" else -_units(drawn).log()


def exponential(like: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """Exponential variables of rate 1: (envs, each) float32, as `like`.

    Args:
        like: (envs, each) float32.
        generator: draws them, in place of the seed, env and step.
    """
    if _current is None or generator is not None:
        return torch.empty_like(like).exponential_(generator=generator)
    return _drawn(_current, "exponential", (like.shape[0], like.shape[1]))


def uniform(like: torch.Tensor) -> torch.Tensor:
    """Numbers between 0 and 1 for each env of `like` (envs, ...): (envs,) float32."""
    if _current is None:
        return torch.rand(len(like), device=like.device)
    return _drawn(_current, "uniform", (len(like), 1))[:, 0]


def uniforms(like: torch.Tensor) -> torch.Tensor:
    """Several numbers between 0 and 1 for each env, as `like`: (envs, each) float32."""
    if _current is None:
        return torch.rand_like(like)
    return _drawn(_current, "uniform", (like.shape[0], like.shape[1]))


def normal(like: torch.Tensor) -> torch.Tensor:
    """Normal variables of mean 0 and deviation 1, as `like`: (envs,) or (envs, each) float32.

    By Box and Muller (1958), of two other draws.

    Raises:
        ValueError: `like` has another shape.
    """
    if like.dim() not in (1, 2):
        raise InvalidValue(
            f"expected a tensor like (envs,) or (envs, each) for normal(), got {tuple(like.shape)}"
        )
    if _current is None:
        return torch.randn_like(like)
    shape = (like.shape[0], like.shape[1] if like.dim() > 1 else 1)
    radius = (2 * _drawn(_current, "exponential", shape)).sqrt()
    return (radius * (2 * math.pi * _drawn(_current, "uniform", shape)).cos()).view(like.shape)


def integers(like: torch.Tensor, stop: int) -> torch.Tensor:
    """Whole numbers from 0 to stop - 1 for each env of `like` (envs, ...): (envs,) int64.

    Args:
        like: (envs, ...).
        stop: at most 2**31; how often each number comes differs by at most one in 2**32 draws.
    """
    if _current is None:
        return torch.randint(stop, (len(like),), device=like.device)
    return _drawn(_current, "integers", (len(like), 1), stop)[:, 0]
