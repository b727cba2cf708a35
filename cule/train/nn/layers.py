"""Layers of networks on images, of which kernels compute what belongs together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional

from cule.train.nn import kernels


def patches(images: torch.Tensor) -> torch.Tensor:
    """Squares of 4x4 pixels as channels: (n, c, h, w) uint8 to (n, 16 c, h / 4, w / 4).

    The channels are in the order of pixel_unshuffle; the memory format is channels_last.
    """
    if torch.compiler.is_compiling():
        # torch.compile fuses this, but cannot view memory that it lays out itself as words.
        pixels = images.unflatten(3, (-1, 4)).unflatten(2, (-1, 4)).permute(0, 2, 4, 1, 3, 5)
    else:
        # Moves four neighbouring pixels as one 32-bit word.
        words = images.view(torch.int32).unflatten(2, (-1, 4)).permute(0, 2, 4, 1, 3).contiguous()
        pixels = words.view(torch.uint8)
    return pixels.flatten(3).permute(0, 3, 1, 2)


def computed_in(images: torch.Tensor, weight: torch.Tensor) -> torch.dtype:
    """The dtype in which a convolution computes: autocast's, else its weights'."""
    kind = images.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


class ComputedConv(nn.Conv2d):
    """A convolution whose weights are computed from its parameters: in their shape and format."""

    def used_weight(self) -> torch.Tensor:
        """The weights."""
        raise NotImplementedError

    def _conv_forward(
        self, values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        # Layers calls this, too, without the bias that a kernel adds.
        return super()._conv_forward(values, self.used_weight(), bias)


def used_weight(layer: nn.Conv2d) -> torch.Tensor:
    """The weights that a convolution computes with."""
    return layer.used_weight() if isinstance(layer, ComputedConv) else layer.weight


def by_kernels(layer: nn.Module, images: torch.Tensor) -> bool:
    """Whether kernels compute a convolution of 3x3 of images, and what follows it."""
    from cule.train.nn.kernels import impala

    if type(layer) not in (nn.Conv2d, PixelConv) and not isinstance(layer, ComputedConv):
        return False
    layer = cast(nn.Conv2d, layer)
    dtype, pixels = computed_in(images, layer.weight), isinstance(layer, PixelConv)
    # Kernels read four pixels at once.
    shaped = images.dim() == 4 and images.shape[3] % (4 if pixels else 1) == 0
    return (
        shaped and images.shape[1] == layer.in_channels
        and images.dtype == (torch.uint8 if pixels else dtype)
        and impala.knows(layer, dtype, pixels=pixels)
    )  # fmt: skip


def _pooled(layer: nn.Module, pool: nn.Module | None, images: torch.Tensor) -> torch.Tensor | None:
    """A convolution and its pooling by a kernel; None: no kernel computes them."""
    if not isinstance(pool, nn.MaxPool2d) or not by_kernels(layer, images):
        return None
    from cule.train.nn.kernels import impala

    if not impala.knows_pool(pool):
        return None
    layer = cast(nn.Conv2d, layer)
    dtype = computed_in(images, layer.weight)
    return impala.pooled(images, used_weight(layer), cast(torch.Tensor, layer.bias), dtype)


class PixelConv(nn.Conv2d):
    """A first layer: a convolution of bytes, less the mean of their image, divided by 256.

    Subtracting the mean matters, as what all images share would outweigh their differences: in Pong
    a few pixels of the ball matter, on a bright field. A gradient would move all weights of a unit
    together, and within a few hundred updates most units would be dead.

    Integers up to 256 are exact in bfloat16, and so is division by a power of two, so that it does
    not matter whether pixels or weights are divided: torch divides the weights, which are few, and
    a kernel the pixels, which it passes through anyway.

    With stride 4 and a kernel of a multiple of 4, the convolution runs on patches: their pixels
    become channels, and the kernel is `kernel / 4` wide. With four channels a GPU's matrix units
    would be mostly idle; with 64 they are not.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, in_channels, h, w) uint8 to (n, out_channels, h', w')."""
        return self.convolve(images, self.bias)

    def convolve(self, images: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """The same with another bias, or without one."""
        weight, stride = self.weight, cast(Any, self.stride)
        dtype = computed_in(images, weight)
        channels_last = weight.is_contiguous(memory_format=torch.channels_last)
        if stride == (4, 4) and channels_last and kernels.serve(images):
            from cule.train.nn.kernels import layers

            pixels = layers.centred_patches(images, dtype)
            weight = functional.pixel_unshuffle(weight, 4)
            return functional.conv2d(pixels, weight, bias, 1, self.padding)
        weight = weight / 256.0
        if stride == (4, 4):
            images, weight, stride = patches(images), functional.pixel_unshuffle(weight, 4), 1
        pixels = images.to(
            dtype, memory_format=torch.channels_last if channels_last else torch.contiguous_format
        )
        # torch's mean of bytes would first store each of them as a float. Both ways are exact.
        mean = pixels.mean(dim=(1, 2, 3), keepdim=True, dtype=torch.float32).round().to(dtype)
        return functional.conv2d(pixels.sub_(mean), weight, bias, stride, self.padding)


class Layers(nn.Sequential):
    """Layers, one after the other.

    A kernel adds a bias and applies the ReLU that follows; another is a convolution of 3x3 and the
    pooling that follows.
    """

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The output of the last layer."""
        if not kernels.serve(values):
            return super().forward(values)
        from cule.train.nn.kernels import layers

        before: nn.Conv2d | nn.Linear | None = None
        done = False
        for layer, following in pairwise((*self, None)):
            if done:
                done = False
            elif (pooled := _pooled(layer, following, values)) is not None:
                values, done = pooled, True
            elif before is not None:
                values, before = layers.bias_relu(values, cast(torch.Tensor, before.bias)), None
            elif isinstance(layer, PixelConv) and isinstance(following, nn.ReLU):
                values, before = layer.convolve(values, None), layer
            elif isinstance(layer, nn.Conv2d) and isinstance(following, nn.ReLU):
                values, before = layer._conv_forward(values, layer.weight, None), layer
            elif isinstance(layer, nn.Linear) and isinstance(following, nn.ReLU):
                values, before = functional.linear(values, layer.weight), layer
            else:
                values = layer(values)
        return values
