"""The kernels beside torch's functions: on a GPU, or interpreted on a CPU (tests/conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch.nn import functional

pytest.importorskip("triton")

from cule.train.nn import frame_ring, losses, models, returns
from cule.train.nn.frame_ring import FrameRing
from cule.train.nn.kernels import layers, policy
from cule.train.nn.kernels import losses as fused_losses
from cule.train.nn.kernels import returns as fused
from cule.train.nn.kernels.frames import Stacks
from cule.train.plan.program import Recurrent

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.gpu if torch.cuda.is_available() else []


@pytest.fixture(autouse=True)
def oracles_of_torch(monkeypatch):
    """So that what is called by its usual name does not use a kernel."""
    for module in (losses, models, returns, frame_ring):
        monkeypatch.setattr(module.kernels, "serve", lambda tensor: False)


def a_batch(steps, width, seed=0):
    """Rewards, discounts, played and values, with terminations and steps that were not played."""
    made = torch.Generator().manual_seed(seed)
    rewards = torch.randint(-1, 2, (steps, width), generator=made).float()
    discounts = 0.99 * (torch.rand(steps, width, generator=made) > 0.1)
    played = (torch.rand(steps, width, generator=made) > 0.1).float()
    values = torch.randn(steps + 1, width, generator=made)
    return [tensor.to(DEVICE) for tensor in (rewards, discounts, played, values)]


# A kernel's program is 64 envs. Interpreted, each of its steps takes as long as torch for all.
SHAPES = [(1, 1), (5, 3), (9, 70)]
if DEVICE == "cuda":
    SHAPES += [(20, 60), (32, 130)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bars", [(1.0, 1.0, 1.0), (2.0, 0.7, 0.9)])
def test_vtrace(shape, bars):
    rewards, discounts, played, values = a_batch(*shape)
    log_ratios = torch.randn(shape, device=DEVICE).masked_fill(played == 0, -torch.inf)
    names = ("rho_bar", "c_bar", "trace_decay")
    wanted = returns.vtrace(
        log_ratios, rewards, discounts, values, **dict(zip(names, bars, strict=True))
    )
    found = fused.vtrace(log_ratios, rewards, discounts, values, *bars)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["gae", "lambda_returns"])
def test_scans(shape, name):
    batch = a_batch(*shape)
    wanted = getattr(returns, name)(*batch, 0.95)
    found = getattr(fused, name)(*batch, 0.95)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("steps", [None, 1, 3, 100])
def test_discounted_returns(shape, steps):
    batch = a_batch(*shape)
    wanted = returns.discounted_returns(*batch, steps)
    torch.testing.assert_close(
        fused.discounted_returns(*batch, steps), wanted, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 4, 84, 84), (2, 1, 8, 12), (1, 3, 4, 4)])
def test_centred_patches_and_pixels_are_exact(dtype, shape):
    images = torch.randint(0, 256, shape, dtype=torch.uint8).to(DEVICE)
    images[0] = 0
    images[0, :, :, : shape[3] // 2] = 1  # a mean of a half
    found = layers.centred_patches(images, dtype)
    assert found.is_contiguous(memory_format=torch.channels_last)
    mean = images.float().mean(dim=(1, 2, 3), keepdim=True).round()
    centred = (images.float() - mean) / 256
    assert torch.equal(found.float(), functional.pixel_unshuffle(centred, 4))
    found = layers.centred_pixels(images, dtype)
    assert found.dtype == dtype and torch.equal(found.float(), centred.permute(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7, 32, 20, 20), (3, 5, 3, 2), (1, 64, 1, 1)])
def test_bias_relu_and_its_gradient(dtype, shape):
    if dtype is torch.bfloat16 and DEVICE == "cpu":
        pytest.skip("Triton's interpreter rounds to bfloat16 otherwise than a GPU")
    made = torch.Generator().manual_seed(1)
    values = torch.randn(shape, generator=made).to(DEVICE, dtype)
    values = values.to(memory_format=torch.channels_last).requires_grad_()
    bias = torch.randn(shape[1], generator=made).to(DEVICE).requires_grad_()
    weights = torch.randn(shape, generator=made).to(DEVICE, dtype)
    wanted = functional.relu(values + bias.to(dtype).view(1, -1, 1, 1))
    found = layers.bias_relu(values, bias)
    assert found.dtype == dtype and torch.equal(found, wanted)
    assert found.is_contiguous(memory_format=torch.channels_last)
    ours = torch.autograd.grad((found * weights).sum(), (values, bias))
    theirs = torch.autograd.grad((wanted * weights).sum(), (values, bias))
    assert torch.equal(ours[0], theirs[0])
    exact = theirs[0].double().sum(dim=(0, 2, 3))
    torch.testing.assert_close(ours[1].double(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 2])
def test_bias_relu_of_another_memory_format(count, dtype):
    """Convolutions return it for weights of that format, and torch's of float64 do on a GPU."""
    made = torch.Generator().manual_seed(2)
    values = torch.randn(count, 16, 5, 3, generator=made).to(DEVICE, dtype).requires_grad_()
    bias = torch.randn(16, generator=made).to(DEVICE, dtype).requires_grad_()
    weights = torch.randn(values.shape, generator=made).to(DEVICE, dtype)
    wanted, found = (values + bias.view(-1, 1, 1)).relu(), layers.bias_relu(values, bias)
    assert torch.equal(found, wanted)
    ours, theirs = (torch.autograd.grad(one, (values, bias), weights) for one in (found, wanted))
    assert torch.equal(ours[0], theirs[0])
    torch.testing.assert_close(ours[1], theirs[1])
    columns = torch.randn(16, 7, generator=made).to(DEVICE, dtype).T
    assert torch.equal(layers.bias_relu(columns, bias), (columns + bias).relu())


@pytest.mark.parametrize("rows", [1, 5, 100])
@pytest.mark.parametrize("width", [2, 6, 18])
def test_policy_terms_and_their_gradient(rows, width):
    made = torch.Generator().manual_seed(rows)
    logits = torch.randn(rows, width, generator=made).to(DEVICE).requires_grad_()
    actions = torch.randint(0, width, (rows,), generator=made).to(DEVICE)
    weights = torch.randn(2, rows, generator=made).to(DEVICE)
    results = []
    for function in (policy.terms, models.policy_terms):
        chosen, entropy = function(logits.log_softmax(1), actions)
        (gradient,) = torch.autograd.grad(
            (weights[0] * chosen + weights[1] * entropy).sum(), logits
        )
        results.append((chosen, entropy, gradient))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 5, 100])
@pytest.mark.parametrize("width", [2, 6, 18])
def test_policy_and_value_and_their_gradient(rows, width, dtype):
    made = torch.Generator().manual_seed(rows)
    outputs = (3 * torch.randn(rows, width + 1, generator=made)).to(DEVICE, dtype).requires_grad_()
    weights = torch.randn(rows, width + 1, generator=made).to(DEVICE)
    results = []
    for function in (policy.policy_and_value, models.policy_and_value):
        log_pi, values = function(outputs)
        loss = (weights[:, :-1] * log_pi).sum() + (weights[:, -1] * values).sum()
        results.append((log_pi, values, torch.autograd.grad(loss, outputs)[0]))
    exact = torch.equal(results[0][1], results[1][1])
    assert exact and results[0][2].dtype == dtype
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.01, "atol": 0.01}
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **near)


@pytest.mark.parametrize("rows", [1, 5, 100])
@pytest.mark.parametrize("width", [2, 6, 18])
def test_sampled_actions_are_those_that_torch_samples(rows, width, monkeypatch):
    made = torch.Generator().manual_seed(rows)
    log_pi = torch.randn(rows, width, generator=made).to(DEVICE).log_softmax(1)
    log_pi[0, 0] = -torch.inf
    results = []
    for served in (False, True):
        monkeypatch.setattr(models.kernels, "serve", lambda tensor, served=served: served)
        random = torch.Generator(DEVICE).manual_seed(width)
        results.append(models.sample_with_log(log_pi, random))
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bars", [(1.0, 1.0, 1.0), (2.0, 0.7, 0.9)])
@pytest.mark.parametrize("ent_coef", [0.02, torch.tensor(0.02)])
@pytest.mark.parametrize("scale_ent", [False, True])
def test_vtrace_loss_and_its_gradient(shape, bars, ent_coef, scale_ent):
    rewards, discounts, played, values = a_batch(*shape)
    made = torch.Generator().manual_seed(3)
    log_pi, log_mu, entropy = torch.randn(3, *shape, generator=made).to(DEVICE)
    log_mu[0, 0] = -200.0 if not played[0, 0] else log_mu[0, 0]  # a ratio that overflows
    differentiable = [tensor.requires_grad_() for tensor in (log_pi, entropy, values)]
    others = (log_mu, rewards, discounts, played.bool())
    coefs = dict(zip(("rho_bar", "c_bar", "trace_decay"), bars, strict=True))
    coefs["scale_ent"] = scale_ent
    ent_coef = ent_coef.to(DEVICE) if isinstance(ent_coef, torch.Tensor) else ent_coef
    wanted = losses.vtrace_loss(*differentiable, *others, vf_coef=0.4, ent_coef=ent_coef, **coefs)
    found = fused_losses.vtrace_loss(*differentiable, *others, 0.4, ent_coef, *bars, scale_ent)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(3 * result[0], differentiable) for result in (found, wanted)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [1, 30, 5000])
def test_clipped_loss_and_its_gradient(count):
    made = torch.Generator().manual_seed(count)
    some = 0.3 * torch.randn(6, count, generator=made)
    log_pi, log_mu, entropy, values, advantages, targets = some.to(DEVICE)
    advantages[0] = 0.0
    played = (torch.rand(count, generator=made) > 0.2).to(DEVICE)
    differentiable = [tensor.requires_grad_() for tensor in (log_pi, entropy, values)]
    others = (log_mu, advantages, targets, played)
    coefs = {"clip_coef": 0.1, "vf_coef": 0.4, "ent_coef": torch.tensor(0.02, device=DEVICE)}
    wanted = losses.clipped_loss(*differentiable, *others, **coefs)
    found = fused_losses.clipped_loss(*differentiable, *others, **coefs)
    assert count == 1 or 0 < float(found[5]) < 1
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(3 * result[0], differentiable) for result in (found, wanted)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("length, part", [(1, None), (2, slice(1, 3)), (7, None), (7, slice(1, 3))])
def test_frames_of_a_ring(length, part, monkeypatch):
    """Written and read by kernels, and by torch: the same frames, bit for bit."""
    made = torch.Generator().manual_seed(length)
    shape = Recurrent(
        "frames", (4, 8, 20), torch.uint8, initial=0, stack=4, deferred=True, store=FrameRing
    )
    device = torch.device(DEVICE)
    rings = [FrameRing(shape, length, device, host=False) for _ in range(2)]
    used = [ring.part(part) if part else ring for ring in rings]
    num_envs = part.stop - part.start if part else 4
    envs = torch.tensor([1, 0, num_envs - 1, 1], device=device)
    slots = torch.tensor([[0], [length - 1], [length // 2]], device=device)
    for step in range(9):  # so that the longest ring has gone round
        frames = torch.randint(0, 256, (num_envs, 1, 8, 20), dtype=torch.uint8, generator=made)
        started = torch.rand(num_envs, generator=made) < 0.2
        stacks = []
        for served, ring in zip((False, True), used, strict=True):
            monkeypatch.setattr(frame_ring.kernels, "serve", lambda tensor, served=served: served)
            value = (frames.to(device), started.to(device))
            ring.write(torch.tensor([step % length], device=device), value)
            if step % 4 == 0:
                read = ring.take(slots, envs), ring.read(slots[:, 0])
                stacks.append((*read, ring.take(envs % length, envs)))
        for one, other in zip(*stacks, strict=True) if stacks else ():
            assert type(other) is Stacks
            assert one.shape == other.shape and torch.equal(one, other)
            if step == 8:
                one, other = (each.view(-1, 4, 8, 20).flatten(0, -4) for each in (one, other))
                found = layers.centred_patches(other, torch.float32)
                assert torch.equal(found, layers.centred_patches(one, torch.float32))
                found = layers.centred_pixels(other, torch.float32)
                assert torch.equal(found, layers.centred_pixels(one, torch.float32))
    assert torch.equal(rings[0].words, rings[1].words) and torch.equal(rings[0].age, rings[1].age)


@pytest.fixture(params=["__torch_function__", "__torch_dispatch__"])
def asked_first(request):
    """What of Stacks torch asks first: code before may have switched the first one off."""
    with (
        torch._C.DisableTorchFunctionSubclass()
        if request.param == "__torch_dispatch__"
        else nullcontext()
    ):
        yield


@pytest.mark.usefixtures("asked_first")
def test_stacks_are_put_together_only_if_they_have_to_be(monkeypatch):
    """Views of whole stacks stay in the ring; everything else is what a tensor gives."""
    monkeypatch.setattr(frame_ring.kernels, "serve", lambda tensor: True)
    shape = Recurrent(
        "frames", (5, 84, 84), torch.uint8, initial=0, stack=4, deferred=True, store=FrameRing
    )
    ring = FrameRing(shape, 6, torch.device(DEVICE), host=False)
    for step in range(6):
        frames = torch.randint(0, 256, (5, 1, 84, 84), dtype=torch.uint8, device=DEVICE)
        value = frames, torch.tensor([step == 2, False, False, step == 5, False], device=DEVICE)
        ring.write(torch.tensor([step], device=DEVICE), value)
    stacks = ring.read(torch.tensor([4, 5], device=DEVICE))
    put_together = []
    whole = Stacks.whole
    monkeypatch.setattr(Stacks, "whole", lambda self: put_together.append(1) or whole(self))
    assert stacks.shape == (2, 5, 4, 84, 84) and stacks.dtype == torch.uint8 and len(stacks) == 2
    assert stacks.device == ring.words.device and not stacks.requires_grad
    net = models.ActorCritic(6, width=0.1).to(DEVICE, memory_format=torch.channels_last)
    lazily = [
        net(stacks.flatten(0, 1)), net(stacks[1]), net(stacks[1:].flatten(0, 1)),
        net(stacks[0][1:4]), net(stacks[-1][::2]), net(stacks.view(-1, 4, 84, 84)),
        net(stacks.reshape(10, 4, 84, 84)), net(stacks[0].unflatten(0, (5, 1)).flatten(0, 1)),
    ]  # fmt: skip
    assert not put_together
    plain = stacks.clone()
    assert put_together and type(plain) is torch.Tensor
    eagerly = [
        net(plain.flatten(0, 1)), net(plain[1]), net(plain[1]), net(plain[0][1:4]),
        net(plain[1][::2]), net(plain.flatten(0, 1)), net(plain.flatten(0, 1)), net(plain[0]),
    ]  # fmt: skip
    for one, other in zip(lazily, eagerly, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    for function in (
        lambda s: s[:, 2], lambda s: s[..., :42], lambda s: s[1:], lambda s: s[:1].flatten(0, 1),
        lambda s: s.flatten(), lambda s: s.flatten(1),
        lambda s: s[0, 1], lambda s: s.float() / 255, lambda s: 3 * s, lambda s: s.sum(dim=2),
        lambda s: torch.cat([s, plain]), lambda s: s.view(-1, 4, 84, 84), lambda s: s[1][3],
        lambda s: s.transpose(0, 1), lambda s: torch.stack([s, s]), lambda s: s.unsqueeze(0),
        lambda s: s[-1, -2:], lambda s: s[None], lambda s: s[torch.tensor(1)], lambda s: s[True],
        lambda s: s[0][2], lambda s: s[0][-1][3], lambda s: s[1:1], lambda s: s.view(torch.int32),
        lambda s: s.reshape(-1), lambda s: s.unflatten(1, (5, 1))[:, 2], lambda s: s[0].view(-1),
    ):  # fmt: skip
        assert torch.equal(function(stacks), function(plain))
    assert repr(stacks) == repr(plain)
    for wrong in (lambda s: s[2], lambda s: s.view(-1, 11), lambda s: s[::-1], lambda s: s[-3]):
        for one in (stacks, plain):
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                wrong(one)


@pytest.mark.parametrize("name", ["nature", "nature-norm", "impala"])
def test_network_with_kernels_is_the_network_without(name, monkeypatch):
    """In float32: values, policy and all gradients."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.manual_seed(2)
    net = models.ActorCritic(6, name, width=0.25).to(DEVICE, memory_format=torch.channels_last)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    images = torch.randint(0, 256, (3, 4, 84, 84), dtype=torch.uint8).to(DEVICE)
    actions, results = torch.tensor([0, 5, 2], device=DEVICE), []
    for served in (False, True):
        monkeypatch.setattr(models.kernels, "serve", lambda tensor, served=served: served)
        log_pi, values = net(images)
        chosen, entropy = models.policy_terms(log_pi, actions)
        loss = (chosen * values.detach() + entropy).mean() + values.square().mean()
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        results.append([log_pi, values, chosen, entropy, *gradients])
    for one, other in zip(*results, strict=True):
        assert (one - other).norm() <= 1e-5 * max(1.0, other.norm())


def test_all_kernels_compile_for_a_gpu():
    environment = {name: v for name, v in os.environ.items() if name != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compiled_kernels.py")
    path = str(script.parents[2]), environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    sizes = [int(line.split()[1]) for line in ended.stdout.splitlines()]
    assert len(sizes) > 10 and min(sizes) > 1000
