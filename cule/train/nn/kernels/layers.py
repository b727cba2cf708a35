"""The first layer's pixels, and a layer's bias and ReLU, in one pass each."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from cule.train.nn.kernels.frames import Stacks, begin_of, layout_of, newest_of

# Words of four pixels, and elements, of a program at once.
WORDS, BLOCK = 1024, 4096
# Elements of a tile of rows, and the most programs, of the backward pass of a bias.
TILE, MOST_PROGRAMS = 8192, 264


@triton.jit
def _image(
    words, age, slots, envs, place, slot_row, slot_column, env_row, env_column, columns, length,
    word_slot, word_env, age_slot, depth: tl.constexpr, size: tl.constexpr, ring: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The slot, the env and the age of an image, and the mean of its bytes as an integer.

    A word is four pixels.
    """
    if ring:
        slot, env, before = newest_of(
            place, age, slots, envs, slot_row, slot_column, env_row, env_column, columns, age_slot
        )
    else:
        # A tensor of images is a ring of `depth` slots, of which an image has all.
        slot, env, before = depth - 1, place.to(tl.int64), depth - 1
    # Two sums of 16 bits in each number.
    total = tl.zeros([BLOCK], tl.int32)
    for frame in range(depth):
        begin = begin_of(frame, slot, env, before, length, word_slot, word_env, depth)
        for first in range(0, size, BLOCK):
            at = first + tl.arange(0, BLOCK)
            word = tl.load(words + begin + at, at < size, 0)
            total += (word & 0x00FF00FF) + ((word >> 8) & 0x00FF00FF)
    mean = (tl.sum(total & 0xFFFF) + tl.sum((total >> 16) & 0xFFFF)).to(tl.float32)
    mean = mean / (4 * size * depth)
    # To the nearest integer, half to even, as torch.round.
    low = tl.floor(mean)
    over = mean - low
    odd = low - 2 * tl.floor(low / 2)
    return slot, env, before, tl.where((over > 0.5) | ((over == 0.5) & (odd == 1)), low + 1, low)


@triton.jit
def _begin_of_own(
    own, slot, env, before, length, word_slot, word_env, depth: tl.constexpr, BLOCK: tl.constexpr
):
    """Where the frame with the number `own` begins, of each lane's."""
    begin = tl.zeros([BLOCK], tl.int64)
    for one in tl.static_range(depth):
        its = begin_of(one, slot, env, before, length, word_slot, word_env, depth)
        begin = tl.where(own == one, its, begin)
    return begin


@triton.jit
def _centred_patches(
    words, age, slots, envs, patches, slot_row, slot_column, env_row, env_column,
    columns, length, word_slot, word_env, age_slot, depth: tl.constexpr, height: tl.constexpr,
    width: tl.constexpr, ring: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is an image: the mean of its bytes, then each byte less the mean, over 256."""
    size: tl.constexpr = height * width // 4
    across: tl.constexpr = width // 4
    row: tl.constexpr = width * depth
    place = tl.program_id(0)
    slot, env, before, mean = _image(
        words, age, slots, envs, place, slot_row, slot_column, env_row, env_column, columns,
        length, word_slot, word_env, age_slot, depth, size, ring, BLOCK,
    )  # fmt: skip
    image = place.to(tl.int64) * (4 * size * depth)
    pixel = tl.arange(0, 4)
    # In the order in which they are stored. Stores of eight bytes, scattered over the image, would
    # take twice as long.
    for first in range(0, size * depth, BLOCK):
        at = first + tl.arange(0, BLOCK)
        # Row dy of the own frame's patch at (x, y).
        dy, own, x, y = at % 4, at // 4 % depth, at // (4 * depth) % across, at // row
        begin = _begin_of_own(own, slot, env, before, length, word_slot, word_env, depth, BLOCK)
        word = tl.load(words + begin + (4 * y + dy) * across + x, at < size * depth, 0)
        value = ((word[:, None] >> (8 * pixel)[None, :]) & 255).to(tl.float32)
        value = (value - mean) / 256
        tl.store(
            patches + image + at[:, None] * 4 + pixel[None, :],
            value.to(patches.dtype.element_ty), (at < size * depth)[:, None],
        )  # fmt: skip


@triton.jit
def _centred_pixels(
    words, age, slots, envs, pixels, slot_row, slot_column, env_row, env_column,
    columns, length, word_slot, word_env, age_slot, depth: tl.constexpr, size: tl.constexpr,
    ring: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program is an image, as in _centred_patches; a pixel's numbers are side by side."""
    place = tl.program_id(0)
    slot, env, before, mean = _image(
        words, age, slots, envs, place, slot_row, slot_column, env_row, env_column, columns,
        length, word_slot, word_env, age_slot, depth, size, ring, BLOCK,
    )  # fmt: skip
    image = place.to(tl.int64) * (4 * size * depth)
    for first in range(0, 4 * size * depth, BLOCK):
        at = first + tl.arange(0, BLOCK)
        own, pixel = at % depth, at // depth
        begin = _begin_of_own(own, slot, env, before, length, word_slot, word_env, depth, BLOCK)
        word = tl.load(words + begin + pixel // 4, at < 4 * size * depth, 0)
        value = ((word >> (8 * (pixel % 4))) & 255).to(tl.float32)
        value = ((value - mean) / 256).to(pixels.dtype.element_ty)
        tl.store(pixels + image + at, value, at < 4 * size * depth)


def _source(images: torch.Tensor) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The tensors and the layout from which kernels read images, also the Stacks of a ring."""
    if isinstance(images, Stacks):
        words = images.ring.words.view(torch.int32)
        tensors = words, images.ring.age, images.slots, images.envs
        return tensors, layout_of(*tensors)
    _, depth, height, width = images.shape
    words = images.contiguous().view(torch.int32)
    size = height * width // 4
    return (words,) * 4, (0, 0, 0, 0, 0, depth, size, depth * size, 0)


def centred_patches(images: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Squares of 4x4 pixels as channels, less the mean of their image, divided by 256.

    Args:
        images: (n, c, h, w) uint8, also the Stacks of a ring; h and w are multiples of 4.
        dtype: the dtype of the result: float32 or bfloat16, in which these numbers are exact.

    Returns:
        (n, 16 c, h / 4, w / 4), in the order of pixel_unshuffle and the memory format
        channels_last.
    """
    count, depth, height, width = images.shape
    output = torch.empty(
        (count, height // 4, width // 4, 16 * depth), dtype=dtype, device=images.device
    )
    tensors, layout = _source(images)
    _centred_patches[(count,)](
        *tensors, output, *layout, depth, height, width, isinstance(images, Stacks), WORDS
    )
    return output.permute(0, 3, 1, 2)


def centred_pixels(images: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Pixels less the mean of their image, divided by 256.

    Args:
        images: (n, c, h, w) uint8, also the Stacks of a ring; w is a multiple of 4.
        dtype: as for centred_patches.

    Returns:
        (n, h, w, c).
    """
    count, depth, height, width = images.shape
    output = torch.empty((count, height, width, depth), dtype=dtype, device=images.device)
    tensors, layout = _source(images)
    _centred_pixels[(count,)](
        *tensors, output, *layout, depth, height * width // 4, isinstance(images, Stacks), WORDS
    )
    return output


@triton.jit
def _bias_relu(values, bias, results, size, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    kind = results.dtype.element_ty
    value = tl.load(values + at, at < size).to(tl.float32)
    # The bias is rounded as the values are, and so is the sum.
    shift = tl.load(bias + at % channels, at < size).to(kind).to(tl.float32)
    tl.store(results + at, tl.maximum((value + shift).to(kind).to(tl.float32), 0.0), at < size)


@triton.jit
def _bias_relu_backward(
    gradients, results, passed, sums, rows, channels, tiles: tl.constexpr,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """A program has some tiles of rows. It writes the gradients that pass, and their sums."""
    c = tl.arange(0, CHANNELS)
    total = tl.zeros([ROWS, CHANNELS], tl.float32)
    for tile in range(tiles):
        row = (tl.program_id(0) * tiles + tile) * ROWS + tl.arange(0, ROWS)
        at = row[:, None].to(tl.int64) * channels + c[None, :]
        there = (row[:, None] < rows) & (c[None, :] < channels)
        gradient = tl.load(gradients + at, there, 0.0).to(tl.float32)
        result = tl.load(results + at, there, 0.0).to(tl.float32)
        gradient = tl.where(result > 0, gradient, 0.0)
        tl.store(passed + at, gradient.to(passed.dtype.element_ty), there)
        total += gradient
    tl.store(sums + tl.program_id(0) * channels + c, tl.sum(total, 0), c < channels)


class _BiasRelu(torch.autograd.Function):
    """max(values + bias, 0) of rows of channels."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        # The rows of one image may be a view of another memory format, as reshape makes it.
        values = values.contiguous()
        results = torch.empty_like(values)
        size = values.numel()
        _bias_relu[(triton.cdiv(size, BLOCK),)](values, bias, results, size, values.shape[1], BLOCK)
        ctx.save_for_backward(results)
        ctx.bias_dtype = bias.dtype
        return results

    @staticmethod
    def backward(ctx: Any, gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (results,) = ctx.saved_tensors
        rows, channels = results.shape
        gradients = gradients.contiguous()
        passed = torch.empty_like(results)
        columns = triton.next_power_of_2(channels)
        high = max(1, TILE // columns)
        tiles = triton.cdiv(triton.cdiv(rows, high), MOST_PROGRAMS)
        programs = triton.cdiv(rows, high * tiles)
        sums = torch.empty((programs, channels), dtype=torch.float32, device=results.device)
        _bias_relu_backward[(programs,)](
            gradients, results, passed, sums, rows, channels, tiles, high, columns
        )
        return passed, sums.sum(0).to(ctx.bias_dtype)


def bias_relu(values: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """max(values + bias, 0).

    Args:
        values: (n, c) or (n, c, h, w); no copy is made of those in the memory format channels_last.
            float32 or bfloat16; float64 is left to torch.
        bias: (c,).

    Returns:
        The same shape and dtype, in channels_last. The bias' gradient is summed in float32.
    """
    if values.dtype == torch.float64:
        return (values + bias.view(-1, *(1,) * (values.dim() - 2))).relu()
    if values.dim() == 2:
        return _BiasRelu.apply(values, bias)
    rows = values.permute(0, 2, 3, 1)
    output = _BiasRelu.apply(rows.reshape(-1, rows.shape[-1]), bias)
    return output.view(rows.shape).permute(0, 3, 1, 2)
