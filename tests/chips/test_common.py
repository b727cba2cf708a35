"""The random generators that the core draws from.

Sources: Random123's published known answers for Philox4x32-10; C++17 [rand.predef] for
std::mt19937; NumPy's MT19937, which init_genrand seeds too; D. Lemire, "Fast Random Integer
Generation in an Interval" (2019), for `below`.
"""

from types import ModuleType

import numpy as np
import pytest
import torch

ALL_ONES = 0xFFFFFFFFFFFFFFFF
KNOWN_ANSWERS = [
    # key, counter (low, high), words
    (0, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (ALL_ONES, (ALL_ONES, ALL_ONES), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        0x299F31D0A4093822,
        (0x85A308D3243F6A88, 0x0370734413198A2E),
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def philox_words(key: list[int], counter: list[int]) -> list[int]:
    """Philox4x32-10, written as in its paper."""
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for i in range(10):
        key0, key1 = (k0 + i * 0x9E3779B9) % 2**32, (k1 + i * 0xBB67AE85) % 2**32
        high0, low0 = divmod(0xD2511F53 * x0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high1 ^ x1 ^ key0, low1, high0 ^ x3 ^ key1, low0
    return [x0, x1, x2, x3]


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN_ANSWERS)
def test_philox_known_answers(
    chips: ModuleType, key: int, counter: tuple[int, int], words: list[int]
) -> None:
    assert chips.philox(key, *counter) == words


def test_philox_draws_by_seed_env_purpose_and_counter(chips: ModuleType) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        seed, env, counter = (
            int(rng.integers(0, 2**bits, dtype=np.uint64)) for bits in (63, 32, 32)
        )
        for purpose in (0, 1):
            expected = philox_words([seed % 2**32, seed >> 32], [purpose, counter, env, 0])
            assert chips.draw(seed, env, purpose, counter) == expected


def test_numbers_of_acting_are_philoxs(chips: ModuleType) -> None:
    """cule.train.nn.draws: the counter is four numbers' place, the step, the env and the draw."""
    draws = pytest.importorskip("cule.train.nn.draws")
    seed, step, first, number = 2**62 + 12_345, 2**31 + 7, 2**20, 9
    found = draws.words(seed, first, torch.tensor([step]), number, (3, 6)).tolist()
    for env, row in enumerate(found):
        for block in range(2):
            counter = block + (step << 32), first + env + (number << 32)
            expected = chips.philox(seed, *counter)
            assert row[4 * block :][:4] == expected[: 6 - 4 * block]


def test_philox_draws_differ_in_every_argument(chips: ModuleType) -> None:
    draws = [
        chips.draw(*arguments)
        for arguments in (
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (1 << 32, 0, 0, 0),
            (0, 1, 0, 0),
            (0, 0, 1, 0),
            (0, 0, 0, 1),
        )
    ]
    assert len({tuple(words) for words in draws}) == 6


@pytest.mark.parametrize(
    ("word", "value"),
    [(0, 0.0), (0xFF, 0.0), (0x100, 2.0**-24), (0x80000000, 0.5), (0xFFFFFFFF, 1 - 2.0**-24)],
)
def test_unit_float_steps(chips: ModuleType, word: int, value: float) -> None:
    assert chips.unit_float(word) == value


def test_below_scales_the_word(chips: ModuleType) -> None:
    rng = np.random.default_rng(2)
    for bound in (1, 2, 3, 18, 75, 1000, 2**31, 2**32 - 1):
        for word in [0, 1, 2**31, 2**32 - 1, *rng.integers(0, 2**32, 100).tolist()]:
            assert chips.below(word, bound) == word * bound // 2**32
        assert chips.below(2**32 - 1, bound) == bound - 1


def test_below_is_uniform(chips: ModuleType) -> None:
    bound, n = 18, 90000
    drawn = [chips.below(chips.draw(7, 3, 1, i)[0], bound) for i in range(n)]
    counts = np.bincount(drawn, minlength=bound)
    assert len(counts) == bound
    # 17 degrees of freedom: beyond 51.0 with probability 1e-5; these draws are always the same
    assert ((counts - n / bound) ** 2 / (n / bound)).sum() < 51.0


SEEDS = [0, 1, 5489, 4753849, 2**31, 2**32 - 1]


def test_mt19937_ten_thousandth_number_is_the_standards(chips: ModuleType) -> None:
    assert chips.mt19937_draws(5489, 10000)[-1] == 4123659995


@pytest.mark.parametrize("seed", SEEDS)
def test_mt19937_matches_numpy(chips: ModuleType, seed: int) -> None:
    expected = np.random.RandomState(seed).randint(0, 2**32, 3000, dtype=np.uint32)
    assert chips.mt19937_draws(seed, 3000).tolist() == expected.tolist()


def test_mt19937_works_on_strided_words(chips: ModuleType) -> None:
    assert (
        chips.mt19937_draws(42, 2000, stride=3).tolist() == chips.mt19937_draws(42, 2000).tolist()
    )


def lemire_below(words: list[int], bound: int, n: int) -> list[int]:
    """Multiplies a word by the bound, and takes the next while the low half is below a limit."""
    stream, drawn = iter(words), []
    while len(drawn) < n:
        high, low = divmod(next(stream) * bound, 2**32)
        if low >= 2**32 % bound:
            drawn.append(high)
    return drawn


BOUNDS = [1, 2, 3, 7, 31, 256, 2**31 + 1, 3 * 2**30, 2**32 - 1]


@pytest.mark.parametrize("bound", BOUNDS)
def test_mt19937_below_multiplies_and_rejects(chips: ModuleType, bound: int) -> None:
    words = np.random.RandomState(11).randint(0, 2**32, 5000, dtype=np.uint32).tolist()
    assert chips.mt19937_draws(11, 1000, bound=bound).tolist() == lemire_below(words, bound, 1000)


@pytest.mark.parametrize("bound", BOUNDS)
def test_mt19937_below_matches_libstdcxx(chips: ModuleType, bound: int) -> None:
    expected = chips.standard_draws(99, 1000, bound)
    if expected is None:
        pytest.skip("built with another standard library, which may draw differently")
    assert chips.mt19937_draws(99, 1000, bound=bound).tolist() == expected.tolist()
