"""Sound against ale-py's `getAudio`: each sample of each frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
import torch
from reference import OPTIONS, Pair
from test_core import other_settings

import cule
from cule.adapters.ale import ALEInterface
from cule.rom import find_game, games, rom_path
from tests.env.single_envs import pair

NAMES = [game.name for game in games()]
SOUND = replace(OPTIONS, sound=True)
FRAMES, RESET_EVERY = 600, 250
# Games with much sound: all ways in which a channel's bits move, frequencies that change, and one
# that writes a volume several times a frame.
SOME = ("asteroids", "breakout", "pitfall2", "pong", "qbert", "yars_revenge")
IDS = ("SpaceInvaders-v5", "Pong-v5")


@pytest.mark.parametrize("name", SOME)
def test_samples_are_those_of_ale(name: str) -> None:
    """From the first reset on, with others between, which sound goes on through."""
    Pair(name, options=SOUND).play(FRAMES, RESET_EVERY)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SOME)))
def test_samples_of_all_games_are_those_of_ale(name: str) -> None:
    Pair(name, options=SOUND).play(FRAMES, RESET_EVERY)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "difficulty"), other_settings())
def test_samples_of_other_modes_are_those_of_ale(name: str, mode: int, difficulty: int) -> None:
    Pair(name, mode, difficulty, options=SOUND).play(300, 200)


def same(theirs: Any, ours: Any, when: object) -> None:
    """Compares observations."""
    assert theirs.keys() == ours.keys() == {"image", "sound"}
    for name in theirs:
        assert theirs[name].dtype == ours[name].dtype
        np.testing.assert_array_equal(theirs[name], ours[name], err_msg=f"{name}, {when}")


def envs(name: str, **options: Any) -> tuple[Any, Any]:
    """ale-py's env and cule's, with sound."""
    return pair(f"ALE/{name}", f"cule/{name}", sound_obs=True, **options)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("obs_type", ["ram", "rgb"])
def test_observations_are_those_of_ales_env(name: str, obs_type: str) -> None:
    """Over the ends of episodes, and over resets that seed, after which sound begins anew."""
    theirs, ours = envs(
        name, obs_type=obs_type, frameskip=4, repeat_action_probability=0.0,
        max_num_frames_per_episode=330,
    )  # fmt: skip
    assert theirs.observation_space == ours.observation_space
    rng = np.random.default_rng(0)
    same(theirs.reset(seed=2)[0], ours.reset(seed=2)[0], "reset")
    ends = 0
    for step in range(220):
        action = int(rng.integers(theirs.action_space.n))
        results = theirs.step(action), ours.step(action)
        same(results[0][0], results[1][0], step)
        if results[0][2] or results[0][3]:
            same(theirs.step(action)[0], ours.step(action)[0], f"after the end, {step}")
            ends += 1
            seed = step if ends % 2 else None
            same(theirs.reset(seed=seed)[0], ours.reset(seed=seed)[0], f"reset after {step}")
    assert ends >= 2


def test_random_frameskips_sound_as_ales_do() -> None:
    theirs, ours = envs("SpaceInvaders-v5", frameskip=(2, 6), repeat_action_probability=0.0)
    same(theirs.reset(seed=2)[0], ours.reset(seed=2)[0], "reset")
    for step in range(150):
        same(theirs.step(step % 6)[0], ours.step(step % 6)[0], step)


def test_sound_goes_on_when_the_single_env_restores_a_state() -> None:
    """As in ale-py, whose states hold no sound."""
    theirs, ours = envs("SpaceInvaders-v5", frameskip=3, repeat_action_probability=0.0)
    same(theirs.reset(seed=2)[0], ours.reset(seed=2)[0], "reset")
    saved: list[Any] = []
    for step in range(120):
        if step == 60:
            saved = [env.unwrapped.clone_state(include_rng=True) for env in (theirs, ours)]
        if step == 100:
            for env, state in zip((theirs, ours), saved, strict=True):
                env.unwrapped.restore_state(state)
            np.testing.assert_array_equal(
                theirs.unwrapped.ale.getAudio(), ours.unwrapped.ale.getAudio()
            )
        same(theirs.step(1 + step % 3)[0], ours.step(1 + step % 3)[0], step)


@pytest.mark.parametrize("frame_skip", [1, 3])
def test_interface_sounds_as_ales_does(frame_skip: int) -> None:
    """An `act` is one frame of sound, also after the end; loadROM begins it anew."""
    both: tuple[Any, Any] = ale_py.ALEInterface(), ALEInterface()
    path = str(rom_path(find_game("space_invaders")))
    rng = np.random.default_rng(1)

    loud = 0

    def check(when: object) -> None:
        nonlocal loud
        theirs, ours = (ale.getAudio() for ale in both)
        loud += bool((theirs > 128).any())
        np.testing.assert_array_equal(theirs, ours, err_msg=str(when))
        given = np.zeros(both[1].getAudioSize(), np.uint8)
        both[1].getAudio(given)
        np.testing.assert_array_equal(theirs, given)

    for ale in both:
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("random_seed", 3)
        ale.setInt("frame_skip", frame_skip)
        ale.setInt("max_num_frames_per_episode", 250)
    for sound in (False, True, True):
        for ale in both:
            ale.setBool("sound_obs", sound)
            ale.loadROM(path)
        check("loadROM")
        for step in range(60 if not sound else 400 // frame_skip):
            action = int(rng.integers(6))
            for ale in both:
                ale.act(action)
            check(step)
            if step == 300 // frame_skip:
                for ale in both:
                    ale.reset_game()
                check("reset")
    assert loud > 20


@pytest.mark.parametrize("pool", [0, 5])
def test_envs_of_a_batch_sound_as_alone(pool: int) -> None:
    """Any number of threads; sticky actions; ends of episodes; all ways of resetting."""
    options: dict[str, Any] = {
        "frameskip": 4, "repeat_action_probability": 0.25, "sound_obs": True, "noop_max": 4,
        "max_num_frames_per_episode": 120, "reset_pool_size": pool, "device": "cpu",
    }  # fmt: skip
    many = cule.AtariEnv(["space_invaders", "pong"], 4, num_threads=3, **options)
    same_step = cule.AtariEnv(
        ["space_invaders", "pong"], 4, num_threads=1, autoreset_mode="same_step", **options
    )
    first, _ = many.reset(seed=3)
    second, _ = same_step.reset(seed=3)
    assert torch.equal(first["sound"], second["sound"])
    generator = torch.Generator().manual_seed(0)
    heard, ends = 0, 0
    for _ in range(45):
        actions = torch.randint(6, (4,), generator=generator)
        a, b = many.step(actions), same_step.step(actions)
        done = a[2] | a[3]
        assert torch.equal(done, b[2] | b[3])
        if done.any():
            assert done.all()
            ends += 1
            assert torch.equal(a[0]["sound"], b[4]["final_obs"]["sound"])
            a = many.step(actions)
        assert torch.equal(a[0]["image"], b[0]["image"])
        assert torch.equal(a[0]["sound"], b[0]["sound"])
        heard += int((a[0]["sound"] != 128).any(1).sum())
    assert ends and heard


@pytest.mark.parametrize("game", ["space_invaders", "seaquest"])
def test_episodes_from_a_pool_sound_as_ales_first_one(game: str) -> None:
    """As in an env that ale-py has just made, after as many no-ops."""
    options: dict[str, Any] = {"frameskip": 1, "repeat_action_probability": 0.0, "sound_obs": True}
    env = cule.AtariEnv(
        game, 8, "cpu", noop_max=60, reset_pool_size=2, use_fire_reset=False, **options
    )
    alone = gymnasium.make(f"ALE/{find_game(game).ale_id}", **options)
    for round_ in range(2):  # the second episode is no other than the first
        observed, infos = env.reset(seed=1)
        sounds, noops = [observed["sound"]], infos["episode_frame_number"].clone()
        assert len(noops.unique()) == 2
        for step in range(250):
            sounds.append(env.step(torch.full((8,), step % 4))[0]["sound"])
        for at in (int(noops.argmin()), int(noops.argmax())):
            told, info = alone.reset(seed=7)
            for _ in range(int(noops[at]) - info["episode_frame_number"]):
                told = alone.step(0)[0]
            for step, ours in enumerate(sounds):
                np.testing.assert_array_equal(ours[at].numpy(), told["sound"], f"{round_} {step}")
                told = alone.step(step % 4)[0]


def test_states_hold_sound_and_those_without_begin_it_anew() -> None:
    options: dict[str, Any] = {"frameskip": 2, "reset_pool_size": 2, "device": "cpu"}
    env = cule.AtariEnv("space_invaders", 3, sound_obs=True, **options)
    silent = cule.AtariEnv("space_invaders", 3, **options)
    env.reset(seed=1)
    silent.reset(seed=1)
    for step in range(120):
        actions = torch.full((3,), step % 6)
        env.step(actions)
        silent.step(actions)
    state = env.clone_state()

    def go_on(played: cule.AtariEnv) -> list[Any]:
        return [played.step(torch.tensor([1, 2, 3]))[0] for _ in range(60)]

    ahead = go_on(env)
    assert any((step["sound"] != 128).any() for step in ahead)
    env.restore_state(state)
    assert torch.equal(env.get_sound()[:, -1], state.tensors["sounds"])
    for a, b in zip(ahead, go_on(env), strict=True):
        assert torch.equal(a["sound"], b["sound"]) and torch.equal(a["image"], b["image"])
    env.restore_state(state)
    env.copy_state([0], [2])
    assert torch.equal(env.get_sound()[0, -1], env.get_sound()[2, -1])

    plain = silent.clone_state()
    assert "sound" not in plain.tensors
    silent.restore_state(state)  # it makes no sound of it
    for a, b in zip(ahead, go_on(silent), strict=True):
        assert torch.equal(a["image"], b)
    env.restore_state(plain)
    assert not env.get_sound()[:, -1].any()
    first = go_on(env)
    env.restore_state(plain)
    for a, b, c in zip(first, go_on(env), ahead, strict=True):
        assert torch.equal(a["sound"], b["sound"]) and torch.equal(a["image"], c["image"])
