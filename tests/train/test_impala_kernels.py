"""The IMPALA ResNet's kernels beside torch's functions, on a GPU, or interpreted on a CPU.

Of small whole numbers every sum is exact, in any order, and many are equal: so that results are
torch's bit for bit, and a pooling has to choose as torch does.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("triton")

from cule.train.nn import kernels, layers, models
from cule.train.nn.frame_ring import FrameRing
from cule.train.nn.kernels import impala
from cule.train.nn.kernels.frames import Stacks
from cule.train.nn.value_networks import SpectralConv, ValueNetwork
from cule.train.plan.program import Recurrent

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
pytestmark = pytest.mark.gpu if ON_GPU else []
LAST = torch.channels_last
# Triton's interpreter cannot multiply matrices of bfloat16.
NO_HALF = pytest.mark.skipif(not ON_GPU, reason="bfloat16 needs a GPU")
DTYPES = [torch.float32, pytest.param(torch.bfloat16, marks=NO_HALF)]


@pytest.fixture(autouse=True)
def exactly(monkeypatch):
    """Products of float32 are exact, and there are several programs and tiles of few pixels."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    few = {key: block._replace(parts=2) for key, block in impala.BLOCKS.items()}
    monkeypatch.setattr(impala, "BLOCKS", few)


def whole(made, shape, dtype=torch.float32, zeros=0.5):
    """Numbers -1, 0 and 1, as many of them 0 as said, in channels_last."""
    numbers = torch.randint(0, 2, shape, generator=made) * 2 - 1
    numbers *= torch.rand(shape, generator=made) >= zeros
    numbers = numbers.to(DEVICE, dtype)
    return numbers.to(memory_format=LAST) if len(shape) == 4 else numbers


def parameters(made, inputs, outputs, zeros):
    """A convolution's weight and bias, float32."""
    given = whole(made, (outputs, inputs, 3, 3), zeros=zeros), whole(made, (outputs,))
    return [one.requires_grad_() for one in given]


def gradients_of(result, leaves, made):
    """The result and its gradients, where the result's are whole numbers."""
    grad = whole(made, result.shape, zeros=0.8).to(result)
    found = torch.autograd.grad(result, leaves, grad)
    assert [one.dtype for one in found] == [leaf.dtype for leaf in leaves]
    return [one.detach() for one in (result, *found)]


def exact_of(function, leaves, made):
    """What torch has for gradients_of: computed in float64 by the CPU, which is exact."""
    leaves = [leaf.detach().cpu() for leaf in leaves]
    leaves = [one.double().requires_grad_() if one.is_floating_point() else one for one in leaves]
    return gradients_of(function(*leaves), [one for one in leaves if one.requires_grad], made)


def plain_residual(pictures, weight, bias, second, second_bias):
    inner = functional.conv2d(pictures.relu(), weight, bias, padding=1).relu()
    return pictures + functional.conv2d(inner, second, second_bias, padding=1)


def plain_pooled(pictures, weight, bias):
    if pictures.dtype == torch.uint8:
        pictures = pictures.to(weight.dtype)
        pictures = (pictures - pictures.mean(dim=(1, 2, 3), keepdim=True).round()) / 256
    return functional.max_pool2d(functional.conv2d(pictures, weight, bias, padding=1), 3, 2, 1)


def all_equal(some, others):
    for one, other in zip(some, others, strict=True):
        assert one.shape == other.shape and torch.equal(one, other)


def all_exact(ours, exact):
    """That kernels' numbers are these of float64, which are whole or by 256, none of them rounded.

    All pictures and gradients of pictures and weights are in channels_last.
    """
    assert all(one.is_contiguous(memory_format=LAST) for one in ours if one.dim() == 4)
    all_equal([one.cpu().double() for one in ours], exact)


def check_exact(kernel, plain, given, made):
    """That a kernel of pictures and of what follows them is exact, and so are its gradients."""
    state = made.get_state()
    result = kernel(*given)
    assert result.dtype == given[0].dtype and result.is_contiguous(memory_format=LAST)
    ours = gradients_of(result, given, made)
    made.set_state(state)
    theirs = exact_of(plain, given, made)
    assert max(float(one.abs().max()) for one in theirs[:2]) <= 256  # exact in bfloat16
    all_exact(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(2, 16, 5, 7), (5, 16, 1, 1), (1, 32, 11, 11), (3, 64, 2, 1), (4, 32, 8, 3)]
)
def test_residual_layer_is_exact(shape, dtype):
    made = torch.Generator().manual_seed(shape[2])
    pictures = whole(made, shape, dtype).requires_grad_()
    given = [*parameters(made, shape[1], shape[1], 0.9), *parameters(made, shape[1], shape[1], 0.9)]
    check_exact(impala.residual, plain_residual, [pictures, *given], made)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "channels, shape",
    [((16, 32), (2, 5, 8)), ((32, 32), (1, 9, 7)), ((64, 16), (3, 2, 1)), ((16, 64), (5, 1, 3))],
)
def test_convolution_and_pool_of_pictures_are_exact(channels, shape, dtype):
    made = torch.Generator().manual_seed(shape[1])
    pictures = whole(made, (shape[0], channels[0], *shape[1:]), dtype).requires_grad_()
    given = parameters(made, *channels, 0.9)
    kernel = partial(impala.pooled, dtype=dtype)
    check_exact(kernel, plain_pooled, [pictures, *given], made)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outputs, shape", [(16, (2, 7, 12)), (64, (5, 3, 4)), (32, (1, 9, 4))])
def test_convolution_and_pool_of_pixels_are_exact(outputs, shape, dtype):
    """The bias is the only number that is not of the size of pixels by 256."""
    made = torch.Generator().manual_seed(outputs)
    images = torch.randint(0, 256, (shape[0], 4, *shape[1:]), dtype=torch.uint8, generator=made)
    images[0] = 0
    images[0, :2] = 1  # a mean of a half
    images = images.to(DEVICE)
    given = parameters(made, 4, outputs, 0.5)
    state = made.get_state()
    result = impala.pooled(images, *given, dtype)
    ours = gradients_of(result, given, made)
    with torch.no_grad():
        assert torch.equal(impala.pooled(images, *given, dtype), result)
    made.set_state(state)
    theirs = exact_of(plain_pooled, [images, *given], made)
    # Results are rounded to bfloat16, and nothing else.
    theirs[0] = theirs[0].to(dtype).double()
    all_exact(ours, theirs)


def random_layer(made, shape):
    """Pictures, and a convolution's weight and bias, of float32."""
    sizes = shape, (shape[1], shape[1], 3, 3), (shape[1],)
    some = [torch.randn(size, generator=made).to(DEVICE) * 0.3 for size in sizes]
    return [
        (one.to(memory_format=LAST) if one.dim() == 4 else one).requires_grad_() for one in some
    ]


def some_gradients(shape=(2, 16, 6, 5)):
    """A residual layer and a pooling: by kernels, and in float64, with all gradients."""
    made = torch.Generator().manual_seed(5)
    pictures, *given = random_layer(made, shape)
    given += random_layer(made, shape)[1:]
    exact = [one.detach().double().requires_grad_() for one in (pictures, *given)]
    results = impala.pooled(impala.residual(pictures, *given), *given[:2], torch.float32)
    wanted = plain_pooled(plain_residual(*exact), *exact[1:3])
    return [
        [result, *torch.autograd.grad(result.sin().sum(), leaves)]
        for result, leaves in ((results, [pictures, *given]), (wanted, exact))
    ]


def test_random_numbers_are_near_those_of_float64_and_the_same_again():
    ours, wanted = some_gradients()
    for one, other in zip(ours, wanted, strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()
    all_equal(ours, some_gradients()[0])


def test_an_image_does_not_depend_on_its_batch():
    made = torch.Generator().manual_seed(6)
    pictures, *given = random_layer(made, (3, 16, 3, 4))
    with torch.no_grad():
        all_images = impala.residual(pictures, *given, *given)
        pooled = impala.pooled(all_images, *given, torch.float32)
        for number in range(3):
            one = impala.residual(pictures[number : number + 1], *given, *given)
            assert torch.equal(one[0], all_images[number])
            one = impala.pooled(one, *given, torch.float32)
            assert torch.equal(one[0], pooled[number])


def test_numbers_that_are_none_do_not_vanish():
    made = torch.Generator().manual_seed(7)
    pictures, *given = random_layer(made, (2, 16, 4, 4))
    with torch.no_grad():
        pictures[0, 3, 1, 1] = torch.nan
        for function, plain in (
            (lambda *g: impala.residual(*g, *given), lambda *g: plain_residual(*g, *given)),
            (lambda *g: impala.pooled(*g, torch.float32), plain_pooled),
        ):
            found, wanted = function(pictures, *given), plain(pictures, *given)
            assert torch.equal(found.isnan(), wanted.isnan()) and 0 < found.isnan().sum() < 500


def test_no_pictures():
    made = torch.Generator().manual_seed(8)
    pictures, *given = random_layer(made, (0, 16, 4, 6))
    result = impala.pooled(impala.residual(pictures, *given, *given), *given, torch.float32)
    assert result.shape == (0, 16, 2, 3)
    if ON_GPU:  # Triton's interpreter does not run kernels without programs
        found = torch.autograd.grad(result.sum(), [pictures, *given])
        assert all((one == 0).all() for one in found)


def small_network(kind=nn.Conv2d, channels=16):
    """A small network of the layers of the IMPALA ResNet."""
    net = layers.Layers(
        layers.PixelConv(4, channels, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1),
        models.Residual(channels, kind),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1),
        models.Residual(2 * channels, kind), nn.ReLU(), nn.Flatten(),
        nn.Linear(2 * channels * 6, 8), nn.ReLU(inplace=True),
    )  # fmt: skip
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.2)
    return net.to(DEVICE, memory_format=LAST)


def both(net, images, monkeypatch):
    """The results of a network and all its gradients, without kernels and with them."""
    results = []
    for served in (False, True):
        monkeypatch.setattr(kernels, "serve", lambda tensor, served=served: served)
        result = net(images)
        found = torch.autograd.grad(result.float().square().sum(), list(net.parameters()))
        results.append([result.detach(), *found])
    return results


@pytest.fixture
def calls(monkeypatch):
    """The names of the kernels' functions that are called."""
    names = []
    for name in ("residual", "pooled"):
        function = getattr(impala, name)

        def counted(*args, name=name, function=function):
            names.append(name)
            return function(*args)

        monkeypatch.setattr(impala, name, counted)
    return names


@pytest.mark.parametrize("kind", [nn.Conv2d, SpectralConv])
def test_network_with_kernels_is_the_network_without(kind, monkeypatch, calls):
    torch.manual_seed(1)
    images = torch.randint(0, 256, (2, 4, 8, 12), dtype=torch.uint8).to(DEVICE)
    for one, other in zip(*both(small_network(kind), images, monkeypatch), strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()
    assert calls == ["pooled", "residual", "pooled", "residual"]


def test_frames_are_read_where_they_are(monkeypatch, calls):
    monkeypatch.setattr(kernels, "serve", lambda tensor: True)
    shape = Recurrent(
        "frames", (3, 8, 12), torch.uint8, initial=0, stack=4, deferred=True, store=FrameRing
    )
    ring = FrameRing(shape, 6, torch.device(DEVICE), host=False)
    for step in range(6):
        frames = torch.randint(0, 256, (3, 1, 8, 12), dtype=torch.uint8, device=DEVICE)
        started = torch.tensor([step == 2, False, step == 5], device=DEVICE)
        ring.write(torch.tensor([step], device=DEVICE), (frames, started))
    stacks = ring.read(torch.tensor([4, 5], device=DEVICE)).flatten(0, 1)
    net = layers.Layers(*list(small_network())[:2])
    with torch.no_grad():
        result = net(stacks)
        assert isinstance(stacks, Stacks) and stacks.held is None and calls == ["pooled"]
        assert torch.equal(net(stacks.clone()), result)


class Doubled(nn.Conv2d):
    """A convolution of which no kernel knows."""

    def _conv_forward(self, values, weight, bias):
        return super()._conv_forward(values, 2 * weight, bias)


DECLINED = {
    "few channels": lambda: small_network(channels=4),
    "not a power of two": lambda: small_network(channels=24),
    "another kind": lambda: small_network(Doubled)[2],
    "the other memory format": lambda: small_network()[2].to(memory_format=torch.contiguous_format),
    "float64": lambda: small_network()[2].double(),
    "stride": lambda: layers.Layers(nn.Conv2d(16, 16, 3, 2, 1), nn.MaxPool2d(3, 2, 1)),
    "width of images": lambda: layers.Layers(
        layers.PixelConv(4, 16, 3, padding=1), nn.MaxPool2d(3, 2, 1)
    ),
    "no bias": lambda: layers.Layers(
        nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.MaxPool2d(3, 2, 1)
    ),
    "frames of float32": lambda: layers.Layers(nn.Conv2d(4, 16, 3, 1, 1), nn.MaxPool2d(3, 2, 1)),
    "another pool": lambda: layers.Layers(nn.Conv2d(16, 16, 3, padding=1), nn.MaxPool2d(2)),
}


@pytest.mark.parametrize("name", list(DECLINED))
def test_other_layers_are_left_to_torch(name, monkeypatch, calls):
    torch.manual_seed(2)
    net = DECLINED[name]().to(DEVICE)
    if "memory" not in name:
        net = net.to(memory_format=LAST)
    weight = next(net.parameters())
    if isinstance(net, layers.Layers) and isinstance(net[0], layers.PixelConv):
        size = 1, 4, 8, 10 if name == "width of images" else 12
        images = torch.randint(0, 256, size, dtype=torch.uint8).to(DEVICE)
    else:
        images = torch.randn(1, weight.shape[1], 8, 12).to(weight).to(memory_format=LAST)
    for one, other in zip(*both(net, images, monkeypatch), strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()
    assert not calls


WHOLE = {
    "actor-critic": lambda: models.impala_features(1.0)[0],
    "with spectral norm": lambda: ValueNetwork(6, "impala", spectral_norm=True).trunk,
}


def whole_network(name):
    torch.manual_seed(3)
    return WHOLE[name]().to(DEVICE, memory_format=LAST)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WHOLE))
def test_whole_network_with_kernels_is_the_one_without(name, monkeypatch, calls):
    images = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8).to(DEVICE)
    for one, other in zip(*both(whole_network(name), images, monkeypatch), strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()
    assert calls == 3 * ["pooled", "residual", "residual"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(WHOLE))
@pytest.mark.parametrize("count", [1, 257])
def test_whole_network_in_bfloat16(name, count, monkeypatch, calls):
    """As near to float32 as torch is, in a graph the same bits."""
    net = whole_network(name)
    images = torch.randint(0, 256, (count, 4, 84, 84), dtype=torch.uint8, device="cuda")
    # All on the stream of the capture, with results that keep no nodes of autograd: a backward pass
    # waits for the streams on which its nodes were made, also those of parameters.
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        exact = both(net, images, monkeypatch)[0]
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            plain, ours = both(net, images, monkeypatch)
            again = both(net, images, monkeypatch)[1]
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                captured = both(net, images, monkeypatch)[1]
        for one in captured:
            one.zero_()
        graph.replay()
    torch.cuda.synchronize()
    all_equal(ours, again)
    all_equal(ours, captured)
    for one, other, wanted in zip(ours, plain, exact, strict=True):
        assert (one - wanted).norm() <= 1.5 * (other - wanted).norm() + 0.002 * wanted.norm()
