"""Games play the same on a GPU however they run there: compiled or interpreted, across a change of
kernels, and on any number of reserved multiprocessors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import cule
from cule import translation


def test_multiprocessors_that_cannot_be_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"expected multiprocessors with device='cuda', got it with device cpu$"
    ):
        cule.AtariEnv("pong", 2, device="cpu", multiprocessors=1, reset_pool_size=1)
    with pytest.raises(TypeError, match=r"expected multiprocessors to be an integer, got 'half'$"):
        cule.AtariEnv("pong", 2, device="cpu", multiprocessors="half", reset_pool_size=1)
    with pytest.raises(ValueError, match=r"expected multiprocessors to be at least 1, got 0$"):
        cule.AtariEnv("pong", 2, device="cpu", multiprocessors=0, reset_pool_size=1)


@pytest.mark.gpu
@pytest.mark.parametrize("asked", [2, 1000])
def test_multiprocessors_that_a_gpu_does_not_have_are_refused(asked: int) -> None:
    wanted = (
        r"from 3 \(each emulates at most 512 of the 1025 envs\) to \d+ \(as many as cuda:0 has\), "
        rf"got {asked}$"
    )
    with pytest.raises(ValueError, match=wanted):
        cule.AtariEnv("pong", 1025, device="cuda", multiprocessors=asked, reset_pool_size=1)


def test_multiprocessors_can_be_reserved_on_a_gpu_only() -> None:
    env = cule.AtariEnv("pong", 2, device="cpu", reset_pool_size=1)
    with pytest.raises(
        ValueError, match=r"expected multiprocessors with device='cuda', got it with device cpu$"
    ):
        env.reserve(2)
    with pytest.raises(TypeError, match=r"expected multiprocessors to be an integer, got 'half'$"):
        env.reserve("half")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected ordered to be True or False, got 'yes'$"):
        env.reserve(2, ordered="yes")  # type: ignore[arg-type]


def assert_play_the_same(plain: cule.AtariEnv, other: cule.AtariEnv, steps: int) -> None:
    assert torch.equal(plain.reset(seed=4)[0], other.reset(seed=4)[0])
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        actions = torch.randint(
            plain.single_action_space.n, (plain.num_envs,), generator=generator
        ).cuda()
        ours, theirs = other.step(actions), plain.step(actions)
        for a, b in zip(ours[:4], theirs[:4], strict=True):
            assert torch.equal(a, b), step
        for name in ("lives", "fault", "episode_frame_number", "raw_reward"):
            assert torch.equal(ours[4][name], theirs[4][name]), (step, name)
        assert torch.equal(other.get_ram(), plain.get_ram()), step


@pytest.mark.gpu
@pytest.mark.parametrize("game", ["pong", "space_invaders", "pitfall2"])
def test_translated_games_play_the_same(game: str) -> None:
    plain, translated = (
        cule.AtariEnv(game, 48, device="cuda", translate=translate, repeat_action_probability=0.25)
        for translate in (False, True)
    )
    assert translated.translated
    assert not plain.translated
    assert_play_the_same(plain, translated, 60)


@pytest.mark.gpu
def test_a_game_translated_again_plays_the_same() -> None:
    plain, translated = (
        cule.AtariEnv("breakout", 128, device="cuda", translate=translate, mode=44)
        for translate in (False, True)
    )
    assert translated.wait_until_translated()
    assert not plain.translate_again() and not translated.translate_again(), "before a reset"
    assert_play_the_same(plain, translated, 40)
    assert not translated.translate_again(), "it has only begun to look"
    assert translated.wait_until_translated()
    assert translated.engine._changeover is not None and translated.engine._changeover.kernels == 2
    assert_play_the_same(plain, translated, 40)
    translated.translate_again()
    translated.wait_until_translated()
    assert translated.engine._changeover.kernels == 2, "there was no need for a third one"
    assert not plain.translate_again()


@pytest.mark.gpu
def test_games_play_the_same_on_other_multiprocessors_from_a_step_on() -> None:
    plain, other = (
        cule.AtariEnv("pong", 1100, device="cuda", translate=True, multiprocessors=some)
        for some in (None, 66)
    )
    for multiprocessors, ordered in ((100, None), (100, True), (3, False), (50, True)):
        assert other.reserve(multiprocessors, ordered=ordered)
        assert other.multiprocessors == multiprocessors
        assert_play_the_same(plain, other, 20)
    with pytest.raises(ValueError, match="expected multiprocessors to be from 3 "):
        other.reserve(2)
    assert (plain.multiprocessors, other.multiprocessors) == (None, 50)


@pytest.mark.gpu
@pytest.mark.parametrize("translate", [False, True])
@pytest.mark.parametrize(
    "num_envs, multiprocessors", [(48, 1), (300, 3), (1100, 3), (1100, 16), (1100, 100)]
)
def test_games_play_the_same_on_some_multiprocessors(
    translate: bool, num_envs: int, multiprocessors: int
) -> None:
    """Warps have few or all lanes in use, and a multiprocessor has two, four or twelve warps."""
    plain, apart = (
        cule.AtariEnv(
            "pong",
            num_envs,
            device="cuda",
            translate=translate,
            multiprocessors=some,
            repeat_action_probability=0.25,
        )
        for some in (None, multiprocessors)
    )
    assert_play_the_same(plain, apart, 30)


def rows_of(device: str, actions: torch.Tensor, **options: Any) -> Iterator[list[torch.Tensor]]:
    """What pong returns on a device, step by step, with sticky actions and episodes of 60
    frames."""
    env = cule.AtariEnv(
        "pong", actions.shape[1], device, repeat_action_probability=0.25,
        max_num_frames_per_episode=60,
        reset_pool_size=4, **options,
    )  # fmt: skip
    env.reset(seed=3)
    for row in actions:
        observations, rewards, terminated, truncated, info = env.step(row.to(device))
        yield [
            v.cpu()
            for v in (observations, rewards, terminated, truncated, info["lives"], env.get_ram())
        ]


@pytest.mark.gpu
@pytest.mark.parametrize("translate", [False, True])
def test_warps_in_step_play_what_a_cpu_plays(translate: bool) -> None:
    """There are so many envs that the warps of a multiprocessor wait for each other.

    The last block is half full.
    """
    actions = torch.randint(6, (20, 132 * 160 + 40), generator=torch.Generator().manual_seed(0))
    ours, theirs = rows_of("cuda", actions, translate=translate), rows_of("cpu", actions)
    for step, (on_gpu, on_cpu) in enumerate(zip(ours, theirs, strict=True)):
        assert all(map(torch.equal, on_gpu, on_cpu)), step


@pytest.mark.gpu
def test_translation_by_the_number_of_envs() -> None:
    """By default a game is translated from 64 envs on. The tests above have compiled pong."""
    found = [
        cule.AtariEnv("pong", n, device="cuda").wait_until_translated() for n in (63, 64, 40_000)
    ]
    assert found == [False, True, True]


@pytest.mark.gpu
def test_games_play_the_same_over_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The change comes in the middle of a game, on another stream.

    A graph that was captured before it still works.
    """
    let, translate = threading.Event(), translation.translate
    monkeypatch.setattr(translation, "translate", lambda *what: let.wait(60) and translate(*what))
    plain = cule.AtariEnv(
        "pong", 70, device="cuda", translate=False, repeat_action_probability=0.25
    )
    env = cule.AtariEnv("pong", 70, device="cuda", repeat_action_probability=0.25)
    for each in (plain, env):
        each.reset(seed=4)
    rows = torch.randint(6, (40, 70), generator=torch.Generator().manual_seed(0)).cuda()
    actions, graph = rows[0].clone(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        env.step(actions)
    env.reset(seed=4)
    for step, row in enumerate(rows):
        if step == 20:
            let.set()
            assert env.wait_until_translated()
        actions.copy_(row)
        if step % 3:
            env.step(actions)
        else:
            graph.replay()
        plain.step(row)
        assert torch.equal(env.get_ram(), plain.get_ram()), step
        assert torch.equal(
            env.engine.tensors["observations"], plain.engine.tensors["observations"]
        ), step
