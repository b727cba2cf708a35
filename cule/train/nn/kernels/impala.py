"""The IMPALA ResNet's layers: a convolution with its pooling, and a residual layer.

Only what the next layer reads is written to memory, and what a gradient needs that cannot be read
from it: of a pooling which of nine numbers was the largest, of a residual layer its inner pictures.
The kernels are in convolutions.py; the gradients of weights are sums of each program's sums, always
in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
import triton
from torch import nn
from torch.autograd.function import once_differentiable

from cule.train.nn.kernels import convolutions, layers

# Channels of pictures that the kernels know. With more, libraries' convolutions are fast.
CHANNELS = (16, 32, 64)
FRAMES = 4
DTYPES = torch.float32, torch.bfloat16
# Of a program that puts gradients back in their places.
PIXELS = 256


class Block(NamedTuple):
    """How a kernel divides its work.

    Attributes:
        lanes: pixels of a program at once.
        span: taps of the 3x3 kernel at once.
        warps: of a program.
        stages: steps of a loop at once, while what the next ones read is on its way.
        parts: of pooling: programs to which the rows of an image are dealt out; of the gradients
            of weights: at most so many programs for each `span` taps.
    """

    lanes: int
    span: int
    warps: int
    stages: int
    parts: int = 1


# By the kernel and the larger number of channels of a layer. There is one stage, as what more of
# them have on its way passes by the first cache, where neighbouring taps find the same numbers.
BLOCKS = {
    ("convolve", 16): Block(128, 2, 4, 1),
    ("convolve", 32): Block(128, 2, 4, 1),
    ("convolve", 64): Block(128, 1, 8, 1),
    ("pool", 16): Block(64, 2, 4, 1, parts=3),
    ("pool", 32): Block(64, 2, 8, 1, parts=3),
    ("pool", 64): Block(64, 1, 8, 1, parts=3),
    ("weights", 16): Block(128, 4, 4, 1, parts=220),
    ("weights", 32): Block(128, 4, 8, 1, parts=88),
    ("weights", 64): Block(64, 2, 8, 1, parts=52),
}
# What is better for some layers: by the kernel, their channels, and a side of their pictures.
BLOCKS_OF: dict[tuple[str, int, int, int], Block] = {
    ("pool", FRAMES, 16, 84): Block(64, 16, 4, 1, parts=3),
    ("pool", FRAMES, 32, 84): Block(64, 16, 8, 1, parts=3),
    ("pool", FRAMES, 64, 84): Block(64, 8, 8, 1, parts=3),
    ("weights", FRAMES, 16, 84): Block(128, 16, 4, 1, parts=528),
    ("weights", FRAMES, 32, 84): Block(128, 16, 8, 1, parts=264),
    ("weights", FRAMES, 64, 84): Block(128, 16, 8, 1, parts=264),
}


class Layer(NamedTuple):
    """A convolution: its pictures' number and sides, channels, and Triton's name of a precision."""

    images: int
    height: int
    width: int
    inputs: int
    outputs: int
    precision: str

    def block(self, kernel: str) -> Block:
        """How a kernel divides its work."""
        own = BLOCKS_OF.get((kernel, self.inputs, self.outputs, self.height))
        block = own or BLOCKS[kernel, max(self.inputs, self.outputs)]
        # Without matrix units, a thread holds more numbers.
        lanes = block.lanes // 2 if self.precision == "ieee" else block.lanes
        # Matrices have at least 16 columns.
        return block._replace(lanes=lanes, span=max(block.span, 16 // self.inputs))

    @property
    def transposed(self) -> Layer:
        """The convolution that the gradient of the pictures is."""
        return self._replace(inputs=self.outputs, outputs=self.inputs)

    @property
    def pixels(self) -> int:
        """Of all pictures."""
        return self.images * self.height * self.width

    @property
    def numbers(self) -> int:
        """Of the weights' and the bias' gradient."""
        return self.outputs * (9 * self.inputs + 1)


def _layer(pictures: torch.Tensor, weight: torch.Tensor) -> Layer:
    """Of pictures (n, h, w, i). Float32 is multiplied as cuDNN is told to."""
    precise = cast(Any, torch.backends.cudnn).conv.fp32_precision != "tf32"
    precision = "ieee" if precise and pictures.dtype == torch.float32 else "tf32"
    images, height, width, inputs = pictures.shape
    return Layer(images, height, width, inputs, weight.shape[0], precision)


def _rows(pictures: torch.Tensor) -> torch.Tensor:
    """Pictures (n, c, h, w) as (n, h, w, c), contiguous: no copy of those in channels_last."""
    return pictures.permute(0, 2, 3, 1).contiguous()


def _convolve(
    layer: Layer, pictures: torch.Tensor, weight: torch.Tensor, *,
    bias: torch.Tensor | None = None, gate: torch.Tensor | None = None,
    skip: torch.Tensor | None = None, relu: bool = False, relu_after: bool = False,
    transposed: bool = False,
) -> torch.Tensor:  # fmt: skip
    """The kernel `convolve`: (n, h, w, i) to (n, h, w, o), transposed the other way round."""
    layer = layer.transposed if transposed else layer
    results = pictures.new_empty((*pictures.shape[:3], layer.outputs))
    block = layer.block("convolve")
    convolutions.convolve[(triton.cdiv(layer.pixels, block.lanes),)](
        pictures, weight, bias, gate, skip, results, layer.pixels, layer.height, layer.width,
        layer.inputs, layer.outputs, block.span, relu, relu_after, transposed, layer.precision,
        block.lanes, num_warps=block.warps, num_stages=block.stages,
    )  # fmt: skip
    return results


def _add_up(
    layer: Layer, sums: torch.Tensor, place: int, pictures: torch.Tensor, gradients: torch.Tensor,
    *, winners: torch.Tensor | None = None, relu: bool = False,
) -> None:  # fmt: skip
    """Programs' sums of the gradients of weights and bias, to sums (programs, convolutions, k).

    Args:
        layer: the convolution.
        sums: float32; of the second dimension, `place` is written.
        place: which of the convolutions it is.
        pictures: (n, h, w, i).
        gradients: (n, h, w, o), or of the windows of a pooling, with `winners`.
        winners: uint8 in the shape of `gradients`.
        relu: the convolution is of the ReLU of the pictures.
    """
    block = layer.block("weights")
    tiles = triton.cdiv(triton.cdiv(layer.pixels, block.lanes), len(sums))
    convolutions.weight_gradients[(len(sums), triton.cdiv(9, block.span))](
        pictures, gradients, winners, sums[:, place], layer.pixels, tiles, sums.stride(0),
        layer.height, layer.width, layer.inputs, layer.outputs, block.span, relu, layer.precision,
        block.lanes, num_warps=block.warps, num_stages=block.stages,
    )  # fmt: skip


def _sums(layer: Layer, kernels: int, device: torch.device) -> torch.Tensor:
    """Memory for _add_up. How many programs there are depends on shapes alone."""
    block = layer.block("weights")
    programs = max(1, min(block.parts, triton.cdiv(layer.pixels, block.lanes)))
    return torch.empty((programs, kernels, layer.numbers), device=device)


def _gradients(
    layer: Layer, sums: torch.Tensor, weight: torch.dtype, bias: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradient of a weight, in channels_last, and of a bias, in their dtypes, from the sums."""
    of_weight, of_bias = sums.split([9 * layer.inputs * layer.outputs, layer.outputs])
    rows = of_weight.view(layer.outputs, 3, 3, layer.inputs)
    return rows.permute(0, 3, 1, 2).to(weight), of_bias.to(bias)


class _Residual(torch.autograd.Function):
    """x + conv(relu(conv(relu(x)))) of pictures (n, h, w, c)."""

    @staticmethod
    def forward(
        ctx: Any, pictures: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
        second_weight: torch.Tensor, second_bias: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        layer = _layer(pictures, weight)
        first, second = (_rows(one).to(pictures.dtype) for one in (weight, second_weight))
        inner = _convolve(layer, pictures, first, bias=bias, relu=True, relu_after=True)
        ctx.layer = layer
        ctx.dtypes = (weight.dtype, bias.dtype), (second_weight.dtype, second_bias.dtype)
        ctx.save_for_backward(pictures, inner, first, second)
        return _convolve(layer, inner, second, bias=second_bias, skip=pictures)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pictures, inner, first, second = ctx.saved_tensors
        layer, gradients = ctx.layer, gradients.contiguous()
        of_inner = _convolve(layer, gradients, second, gate=inner, transposed=True)
        of_pictures = _convolve(
            layer, of_inner, first, gate=pictures, skip=gradients, transposed=True
        )
        sums = _sums(layer, 2, pictures.device)
        _add_up(layer, sums, 0, pictures, of_inner, relu=True)
        _add_up(layer, sums, 1, inner, gradients)
        found = zip(sums.sum(0), ctx.dtypes, strict=True)
        return of_pictures, *(one for row, kinds in found for one in _gradients(layer, row, *kinds))


class _Pooled(torch.autograd.Function):
    """The largest of 3x3 neighbouring numbers of a convolution, at every second pixel.

    Of pictures (n, h, w, c). `keep` says whether a gradient will be asked for.
    """

    @staticmethod
    def forward(
        ctx: Any, pictures: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, keep: bool
    ) -> torch.Tensor:  # fmt: skip
        count, height, width, _ = pictures.shape
        layer = _layer(pictures, weight)
        rows = _rows(weight).to(pictures.dtype)
        shape = count, (height + 1) // 2, (width + 1) // 2, layer.outputs
        results = pictures.new_empty(shape)
        winners = torch.empty_like(results, dtype=torch.uint8) if keep else None
        block = layer.block("pool")
        columns, high = count * shape[2], triton.cdiv(shape[1], block.parts)
        convolutions.convolve_and_pool[(triton.cdiv(columns, block.lanes), block.parts)](
            pictures, rows, bias, results, winners, columns, height, width,
            layer.inputs, layer.outputs, block.span, high, layer.precision, block.lanes,
            num_warps=block.warps, num_stages=block.stages,
        )  # fmt: skip
        ctx.layer, ctx.dtypes = layer, (weight.dtype, bias.dtype)
        ctx.save_for_backward(pictures, rows, winners)
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        pictures, weight, winners = ctx.saved_tensors
        layer, gradients = ctx.layer, gradients.contiguous()
        of_pictures = None
        if ctx.needs_input_grad[0]:
            # Each number is read under nine taps, so that it is worth its place in memory.
            shape = layer.images, layer.height, layer.width, layer.outputs
            whole = gradients.new_empty(shape)
            convolutions.unpool[(triton.cdiv(layer.pixels, PIXELS),)](
                gradients, winners, whole, layer.pixels, *shape[1:], PIXELS
            )
            of_pictures = _convolve(layer, whole, weight, transposed=True)
            gradients, winners = whole, None
        sums = _sums(layer, 1, pictures.device)
        _add_up(layer, sums, 0, pictures, gradients, winners=winners)
        return of_pictures, *_gradients(layer, sums.sum(0)[0], *ctx.dtypes), None


def knows(layer: nn.Conv2d, dtype: torch.dtype, *, pixels: bool) -> bool:
    """Whether the kernels compute a convolution in this dtype, of pixels or of pictures.

    It is one of 3x3 taps, with weights in channels_last, which keeps the size of pictures.
    """
    return (
        dtype in DTYPES and layer.weight.is_contiguous(memory_format=torch.channels_last)
        and layer.out_channels in CHANNELS
        and layer.in_channels in ((FRAMES,) if pixels else CHANNELS)
        and layer.kernel_size == (3, 3) and layer.padding == (1, 1) and layer.bias is not None
        and layer.stride == layer.dilation == (1, 1) and layer.groups == 1
        and layer.padding_mode == "zeros"
    )  # fmt: skip


def knows_pool(pool: nn.MaxPool2d) -> bool:
    """Whether it is the pooling that the kernels compute."""
    sizes = pool.kernel_size, pool.stride, pool.padding, pool.dilation
    return sizes == (3, 2, 1, 1) and not pool.ceil_mode and not pool.return_indices


def residual(
    pictures: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
    second_weight: torch.Tensor, second_bias: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Pictures plus two convolutions of them, of ReLUs.

    Args:
        pictures: (n, c, h, w), float32 or bfloat16, in which all is computed.
        weight: (c, c, 3, 3) in channels_last; its gradient has its dtype.
        bias: (c,).
        second_weight: as `weight`.
        second_bias: as `bias`.

    Returns:
        The same shape and dtype, in channels_last. Sums are float32.
    """
    rows = _Residual.apply(_rows(pictures), weight, bias, second_weight, second_bias)
    return rows.permute(0, 3, 1, 2)


def pooled(
    pictures: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """MaxPool2d(3, stride=2, padding=1) of a convolution.

    Args:
        pictures: (n, i, h, w) of `dtype`; or images of 4 channels, uint8, also the Stacks of a
            ring, which are centred and divided by 256, as PixelConv does.
        weight: (o, i, 3, 3) in channels_last; its gradient has its dtype.
        bias: (o,).
        dtype: float32 or bfloat16.

    Returns:
        (n, o, (h + 1) // 2, (w + 1) // 2), in channels_last. Sums are float32.
    """
    given = pictures, weight, bias
    keep = torch.is_grad_enabled() and any(one.requires_grad for one in given)
    pixels = pictures.dtype == torch.uint8
    rows = layers.centred_pixels(pictures, dtype) if pixels else _rows(pictures)
    return _Pooled.apply(rows, weight, bias, keep).permute(0, 3, 1, 2)
