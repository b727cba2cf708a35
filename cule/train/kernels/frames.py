"""Frames of a ring: stacks read, and a new frame added, in one pass each.

A ring is that of cule/train/plan/stores.py, whose FrameRing says what its parts are.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _stacks(
    words, age, slots, envs, stacks, slot_row, slot_column, env_row, env_column,
    columns, length, word_slot, word_env, age_slot, size, depth: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is a frame of a stack."""
    place, frame = tl.program_id(0), tl.program_id(1)
    row, column = place // columns, place % columns
    slot = tl.load(slots + row * slot_row + column * slot_column)
    env = tl.load(envs + row * env_row + column * env_column)
    back = depth - 1 - frame
    source = (slot - back + depth * length) % length
    source = tl.where(back > tl.load(age + slot * age_slot + env), length, source)
    begin = source * word_slot + env * word_env
    end = (place.to(tl.int64) * depth + frame) * size
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        word = tl.load(words + begin + at, at < size)
        tl.store(stacks + end + at, word, at < size)


def stacks(
    words: torch.Tensor, age: torch.Tensor, slots: torch.Tensor, envs: torch.Tensor, depth: int
) -> torch.Tensor:
    """The stacks whose newest frames are in `slots` of `envs`, newest last.

    Args:
        words: (length + 1, num_envs, size) int64, contiguous in its last dimension.
        age: (length, num_envs) int64, likewise.
        slots: (r,) or (r, c) int64.
        envs: the same shape.
        depth: frames of a stack.

    Returns:
        (*slots.shape, depth, size) int64.
    """
    length, size = len(age), words.shape[2]
    made = words.new_empty((*slots.shape, depth, size))
    if slots.dim() == 1:
        slots, envs = slots.unsqueeze(1), envs.unsqueeze(1)
    _stacks[(slots.numel(), depth)](
        words, age, slots, envs, made, *slots.stride(), *envs.stride(),
        slots.shape[1], length, *words.stride()[:2], age.stride(0), size, depth, BLOCK,
    )  # fmt: skip
    return made


@triton.jit
def _add(
    words, age, slots, frames, started, length, word_slot, word_env, age_slot, size,
    oldest: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is an env."""
    env = tl.program_id(0)
    slot = tl.load(slots)
    before = tl.load(age + (slot - 1 + length) % length * age_slot + env)
    now = tl.where(tl.load(started + env) != 0, 0, tl.minimum(before + 1, oldest))
    tl.store(age + slot * age_slot + env, now)
    begin, source = slot * word_slot + env * word_env, env.to(tl.int64) * size
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(words + begin + at, tl.load(frames + source + at, at < size), at < size)


def add(
    words: torch.Tensor, age: torch.Tensor, slots: torch.Tensor, frames: torch.Tensor,
    started: torch.Tensor, oldest: int,
) -> None:  # fmt: skip
    """Puts the next frame of every env into a slot.

    Args:
        words: (length + 1, num_envs, size) int64, contiguous in its last dimension.
        age: (length, num_envs) int64, likewise.
        slots: (1,) int64, the slot after the last written one.
        frames: (num_envs, size) int64.
        started: (num_envs,) bool: the frame is the first of an episode.
        oldest: the most that `age` counts.
    """
    num_envs, size = words.shape[1:]
    _add[(num_envs,)](
        words, age, slots, frames, started.view(torch.uint8), len(age),
        *words.stride()[:2], age.stride(0), size, oldest, BLOCK,
    )  # fmt: skip
