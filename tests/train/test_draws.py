"""Random numbers of acting: by seed, env and step, in torch and by a kernel."""

from __future__ import annotations

import pytest
import torch

from cule.train.nn import draws, kernels
from cule.train.nn.models import sample

CHANCES = torch.rand(7, 5, generator=torch.Generator().manual_seed(0)).log_softmax(1)
STEP = torch.tensor([12])


def act(rows=slice(None), seed=3, first=0, step=STEP):
    """What an algorithm may draw in a step, for some envs: actions, chances and other actions."""
    some = CHANCES[rows]
    with draws.keyed(seed, first, step):
        return sample(some), draws.uniform(some), draws.integers(some, 1000)


def test_words_are_philoxs():
    """A known answer of the authors' library, Random123: key and counter are 0."""
    found = draws.words(0, 0, torch.tensor([0]), 0, (1, 4))
    assert found.tolist() == [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]]


def test_an_envs_numbers_do_not_depend_on_the_others():
    whole = act()
    for rows in (slice(0, 2), slice(2, 3), slice(3, 7)):
        with draws.part(rows.start):
            parts = act(rows)
        elsewhere = act(rows, first=rows.start)
        for part, other, all_ in zip(parts, elsewhere, whole, strict=True):
            assert torch.equal(part, all_[rows]) and torch.equal(other, part)


def test_numbers_differ_by_seed_env_step_and_draw():
    with draws.keyed(3, 0, STEP):
        drawn = [draws.integers(CHANCES, 2**31) for _ in range(2)]
    drawn += [act(seed=4)[2], act(first=7)[2], act(step=STEP + 1)[2]]
    numbers = torch.cat(drawn)
    assert len(numbers.unique()) == len(numbers)


def test_numbers_are_distributed_as_they_should_be():
    many = torch.empty(100_000, 2)
    with draws.keyed(1, 0, STEP):
        clocks, units = draws.exponential(many), draws.uniform(many)
        whole = draws.integers(many, 7)
    assert units.min() > 0 and units.max() < 1
    # Five standard deviations of each mean.
    assert abs(units.mean() - 0.5) < 5 * (1 / 12 / 1e5) ** 0.5
    assert abs(clocks.mean() - 1) < 5 * (1 / 2e5) ** 0.5
    assert abs(clocks.square().mean() - 2) < 5 * (20 / 2e5) ** 0.5
    counts = torch.bincount(whole, minlength=7)
    assert len(counts) == 7 and (counts - 1e5 / 7).abs().max() < 5 * (1e5 / 7) ** 0.5


def test_several_numbers_of_an_env_are_its_own():
    with draws.keyed(3, 0, STEP):
        whole = draws.uniforms(torch.empty(5, 9))
        again = draws.uniforms(torch.empty(5, 9))
    with draws.keyed(3, 2, STEP):
        part = draws.uniforms(torch.empty(2, 9))
    assert torch.equal(part, whole[2:4]) and whole.shape == (5, 9)
    assert len(torch.cat([whole, again]).unique()) == 90
    assert whole.min() > 0 and whole.max() < 1
    torch.manual_seed(0)
    without = draws.uniforms(torch.empty(5, 9))
    torch.manual_seed(0)
    assert torch.equal(without, torch.rand(5, 9))


def test_without_a_key_torchs_generator_draws():
    torch.manual_seed(0)
    first = draws.uniform(CHANCES), draws.integers(CHANCES, 9), draws.exponential(CHANCES)
    torch.manual_seed(0)
    wanted = torch.rand(7), torch.randint(9, (7,)), torch.empty(7, 5).exponential_()
    for found, other in zip(first, wanted, strict=True):
        assert torch.equal(found, other)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (300, 18)])
@pytest.mark.parametrize("seed", [0, 3, 2**62 + 1])
def test_a_kernel_draws_the_same(shape, seed, monkeypatch):
    pytest.importorskip("triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    like, step = torch.empty(shape, device=device), torch.tensor([2**31 + 5], device=device)
    results = []
    for served in (False, True):
        monkeypatch.setattr(kernels, "serve", lambda tensor, served=served: served)
        with draws.keyed(seed, 70_000, step):
            results.append(
                [draws.integers(like, 2**31), draws.uniform(like), draws.exponential(like)]
            )
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
    torch.testing.assert_close(results[0][2], results[1][2], rtol=1e-6, atol=1e-7)
