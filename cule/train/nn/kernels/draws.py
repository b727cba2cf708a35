"""Random numbers by seed, env and step; their oracle and description is cule/train/nn/draws.py."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from cule.train.nn.kernels import Kind

BLOCK = 256
KINDS: tuple[Kind, ...] = ("uniform", "exponential", "integers")


@triton.jit
def _draw(
    step, results, seed, first, number, stop, envs, each, kind: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A lane is four numbers of an env."""
    across = (each + 3) // 4
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    env, block = at // across, at % across
    zero = tl.zeros([BLOCK], tl.uint32)
    now = zero + tl.load(step).to(tl.uint32)
    # Sums, as a number that is 1 is a constant, which has no type to convert.
    key, below = tl.zeros([BLOCK], tl.int64) + seed, tl.zeros([BLOCK], tl.uint64) + stop
    some = tl.philox(
        key, block.to(tl.uint32), now, (env + first).to(tl.uint32), (zero + number).to(tl.uint32)
    )
    for lane in tl.static_range(4):
        word = some[lane]
        column = block * 4 + lane
        there = (env < envs) & (column < each)
        place = results + env * each + column
        if kind == 2:
            tl.store(place, ((word.to(tl.uint64) * below) >> 32).to(tl.int64), there)
        else:
            unit = ((word >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07
            tl.store(place, -tl.log(unit) if kind == 1 else unit, there)


def draw(
    kind: Kind, seed: int, first: int, step: torch.Tensor, number: int, shape: tuple[int, int],
    stop: int,
) -> torch.Tensor:  # fmt: skip
    """The numbers of a draw: (envs, each), float32, or int64 for integers."""
    envs, each = shape
    dtype = torch.int64 if kind == "integers" else torch.float32
    results = torch.empty(shape, dtype=dtype, device=step.device)
    grid = (triton.cdiv(envs * triton.cdiv(each, 4), BLOCK),)
    _draw[grid](
        step, results, seed, first, number, stop, envs, each, KINDS.index(kind), BLOCK,
        num_warps=4,
    )  # fmt: skip
    return results
