"""3x3 convolutions of small pictures with what is around them, in one pass each.

Lanes of a program are pixels. Under some taps of the kernel at once, `span` of them, the pictures'
numbers are a matrix (lanes, span * channels), whose product with a part of the weights is added up
in float32. Pictures are (n, h, w, c), of float32 or bfloat16. Weights are (o, h, w, i) in memory:
channels_last. A kernel is compiled for a layer, and for batches of any size.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _under_taps(
    pictures, image, y, x, there, first,
    height: tl.constexpr, width: tl.constexpr, inputs: tl.constexpr, span: tl.constexpr,
    relu: tl.constexpr,
):  # fmt: skip
    """What is under taps first to first + span around lanes' pixels, (lanes, span * inputs).

    It is 0 outside of an image, and where there is no such tap.
    """
    k = tl.arange(0, span * inputs)
    tap, c = first + k // inputs, k % inputs
    down, right = tap // 3 - 1, tap % 3 - 1
    row, column = y[:, None] + down[None, :], x[:, None] + right[None, :]
    inside = there[:, None] & (tap < 9)[None, :]
    inside = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    begin = image.to(tl.int64) * (height * width * inputs)
    at = (begin + (y * width + x) * inputs)[:, None] + ((down * width + right) * inputs + c)[
        None, :
    ]
    value = tl.load(pictures + at, inside, 0.0)
    if relu:
        value = tl.maximum(value.to(tl.float32), 0.0, tl.PropagateNan.ALL).to(value.dtype)
    return value


@triton.jit
def _convolved(
    pictures, weights, image, y, x, there, height: tl.constexpr, width: tl.constexpr,
    inputs: tl.constexpr, outputs: tl.constexpr, span: tl.constexpr, relu: tl.constexpr,
    transposed: tl.constexpr, precision: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The convolution at lanes' pixels, (lanes, outputs) float32.

    Transposed, the weights are those of a convolution from `outputs` to `inputs` channels, of which
    this is the gradient.
    """
    total = tl.zeros([LANES, outputs], tl.float32)
    o = tl.arange(0, outputs)
    for first in range(0, 9, span):
        value = _under_taps(pictures, image, y, x, there, first, height, width, inputs, span, relu)
        k = first * inputs + tl.arange(0, span * inputs)
        if transposed:
            place = ((k % inputs) * 9 + 8 - k // inputs)[:, None] * outputs + o[None, :]
        else:
            place = k[:, None] + o[None, :] * (9 * inputs)
        weight = tl.load(weights + place, (k < 9 * inputs)[:, None], 0.0)
        total = tl.dot(value, weight, total, input_precision=precision)
    return total


@triton.jit(do_not_specialize=["count"])
def convolve(
    pictures, weights, bias, gate, skip, results, count,
    height: tl.constexpr, width: tl.constexpr, inputs: tl.constexpr, outputs: tl.constexpr,
    span: tl.constexpr, relu: tl.constexpr, relu_after: tl.constexpr, transposed: tl.constexpr,
    precision: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """A convolution of pictures or of their ReLU, and what follows.

    In this order, of what is not None: the bias is added, what has no positive number in `gate`
    becomes 0, `skip` is added, negative numbers become 0.
    """
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = at < count
    total = _convolved(
        pictures, weights, at // (height * width), at // width % height, at % width, there,
        height, width, inputs, outputs, span, relu, transposed, precision, LANES,
    )  # fmt: skip
    o = tl.arange(0, outputs)
    place = at.to(tl.int64)[:, None] * outputs + o[None, :]
    if bias is not None:
        total += tl.load(bias + o).to(tl.float32)[None, :]
    if gate is not None:
        passes = tl.load(gate + place, there[:, None], 0.0).to(tl.float32) > 0
        total = tl.where(passes, total, 0.0)
    if skip is not None:
        total += tl.load(skip + place, there[:, None], 0.0).to(tl.float32)
    if relu_after:
        total = tl.maximum(total, 0.0, tl.PropagateNan.ALL)
    tl.store(results + place, total.to(results.dtype.element_ty), there[:, None])


@triton.jit
def _larger(best, which, value, its):
    """The larger value, and which it is: the first of equal ones, as torch's pooling has it."""
    better = (value > best) | (value != value)
    return tl.where(better, value, best), tl.where(better, its, which)


@triton.jit
def _row_of_windows(
    pictures, weights, image, y, x, there, height: tl.constexpr, width: tl.constexpr,
    inputs: tl.constexpr, outputs: tl.constexpr, span: tl.constexpr, precision: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """The largest of three neighbouring convolutions around column x of row y, and which it is."""
    best = tl.full([LANES, outputs], -float("inf"), tl.float32)
    which = tl.zeros([LANES, outputs], tl.int32)
    for one in range(3):
        column = x + one - 1
        total = _convolved(
            pictures, weights, image, y, column, there, height, width, inputs, outputs, span,
            False, False, precision, LANES,
        )  # fmt: skip
        inside = (y >= 0) & (y < height) & (column >= 0) & (column < width)
        total = tl.where(inside[:, None], total, -float("inf"))
        best, which = _larger(best, which, total, one)
    return best, which


@triton.jit(do_not_specialize=["count"])
def convolve_and_pool(
    pictures, weights, bias, results, winners, count,
    height: tl.constexpr, width: tl.constexpr, inputs: tl.constexpr, outputs: tl.constexpr,
    span: tl.constexpr, rows: tl.constexpr, precision: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """The largest of 3x3 convolutions at every second pixel, and which of the nine it is.

    A lane is a column of results; a program goes down `rows` rows of it, so that a row that two
    windows share is computed once. A convolution in a column that they share is computed twice.
    """
    high: tl.constexpr = (height + 1) // 2
    across: tl.constexpr = (width + 1) // 2
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = lane < count
    image, column = lane // across, lane % across
    begin = tl.program_id(1) * rows
    o = tl.arange(0, outputs)
    shift = tl.load(bias + o).to(tl.float32)
    y, x = tl.zeros([LANES], tl.int32) + 2 * begin - 1, 2 * column
    above, above_which = _row_of_windows(
        pictures, weights, image, y, x, there, height, width, inputs, outputs, span,
        precision, LANES,
    )  # fmt: skip
    for step in range(rows):
        best, which = above, above_which
        middle, its = _row_of_windows(
            pictures, weights, image, y + 2 * step + 1, x, there, height, width, inputs,
            outputs, span, precision, LANES,
        )  # fmt: skip
        best, which = _larger(best, which, middle, its + 3)
        above, above_which = _row_of_windows(
            pictures, weights, image, y + 2 * step + 2, x, there, height, width, inputs,
            outputs, span, precision, LANES,
        )  # fmt: skip
        best, which = _larger(best, which, above, above_which + 6)
        row = begin + step
        pixel = (image.to(tl.int64) * high + row) * across + column
        place = pixel[:, None] * outputs + o[None, :]
        mask = (there & (row < high))[:, None]
        value = (best + shift[None, :]).to(results.dtype.element_ty)
        tl.store(results + place, value, mask)
        if winners is not None:
            tl.store(winners + place, which.to(tl.uint8), mask)


@triton.jit
def _from_windows(
    gradients, winners, image, y, x, there,
    height: tl.constexpr, width: tl.constexpr, outputs: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Gradients of convolutions at lanes' pixels, (lanes, outputs) float32.

    A pixel of an odd row and column is in four windows, one of an even row and column in one.
    """
    high: tl.constexpr = (height + 1) // 2
    across: tl.constexpr = (width + 1) // 2
    o = tl.arange(0, outputs)
    total = tl.zeros([LANES, outputs], tl.float32)
    for one in tl.static_range(4):
        down, right = one // 2, one % 2
        row, column = (y + down) // 2, (x + right) // 2
        has = there & ((y % 2) >= down) & ((x % 2) >= right) & (row < high) & (column < across)
        pixel = (image.to(tl.int64) * high + row) * across + column
        place = pixel[:, None] * outputs + o[None, :]
        winner = tl.load(winners + place, has[:, None], 9).to(tl.int32)
        gradient = tl.load(gradients + place, has[:, None], 0.0).to(tl.float32)
        own = (y - 2 * row + 1) * 3 + x - 2 * column + 1
        total += tl.where(winner == own[:, None], gradient, 0.0)
    return total


@triton.jit(do_not_specialize=["count"])
def unpool(
    gradients, winners, results, count, height: tl.constexpr, width: tl.constexpr,
    outputs: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """The gradients of convolutions from those of the largest of nine."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = at < count
    total = _from_windows(
        gradients, winners, at // (height * width), at // width % height, at % width, there,
        height, width, outputs, LANES,
    )  # fmt: skip
    place = at.to(tl.int64)[:, None] * outputs + tl.arange(0, outputs)[None, :]
    tl.store(results + place, total.to(results.dtype.element_ty), there[:, None])


@triton.jit(do_not_specialize=["count", "tiles"])
def weight_gradients(
    pictures, gradients, winners, sums, count, tiles, size,
    height: tl.constexpr, width: tl.constexpr, inputs: tl.constexpr, outputs: tl.constexpr,
    span: tl.constexpr, relu: tl.constexpr, precision: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """A program has some tiles of pixels, and `span` taps.

    It writes its sums of the weights' gradient (outputs, 9, inputs), and one of those with the same
    pixels the bias' behind it. Sums of the next program are `size` numbers later.
    """
    first = tl.program_id(1) * span
    k = first * inputs + tl.arange(0, span * inputs)
    o = tl.arange(0, outputs)
    total = tl.zeros([span * inputs, outputs], tl.float32)
    shift = tl.zeros([LANES, outputs], tl.float32)
    for tile in range(tiles):
        at = (tl.program_id(0) * tiles + tile) * LANES + tl.arange(0, LANES)
        there = at < count
        image, y, x = at // (height * width), at // width % height, at % width
        if winners is not None:
            gradient = _from_windows(
                gradients, winners, image, y, x, there, height, width, outputs, LANES
            ).to(gradients.dtype.element_ty)
        else:
            place = at.to(tl.int64)[:, None] * outputs + o[None, :]
            gradient = tl.load(gradients + place, there[:, None], 0.0)
        value = _under_taps(pictures, image, y, x, there, first, height, width, inputs, span, relu)
        shift += gradient.to(tl.float32)
        total = tl.dot(tl.trans(value), gradient, total, input_precision=precision)
    begin = sums + tl.program_id(0).to(tl.int64) * size
    tl.store(begin + k[:, None] + o[None, :] * (9 * inputs), total, (k < 9 * inputs)[:, None])
    if first == 0:
        tl.store(begin + 9 * inputs * outputs + o, tl.sum(shift, 0))
