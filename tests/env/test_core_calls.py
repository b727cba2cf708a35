"""The compiled core, called with wrong arguments: it says what was expected and does not end the
process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
from rollouts import make

import cule
from cule import _core
from cule.rom import games

NUM_GAMES = len(_core.games())  # those of several players, too
ODD = (
    "-1", "0", "0xdeadbeef000", "2**64", "None",
    "8", "1", "7", "4096", "2**31", "2**32 - 1", "2**63 - 1", "2**63", "2**70", "1.5",
    "float('nan')", "'x'", "b''", "[]",
    "{}", "object()",
)  # fmt: skip
CALLS = (
    "power_on_numbers({})",
    "decode_rom(b'abc', '2K', {})",
    "decode_rom(b'', '4K', {})",
    "decode_rom({}, '2K', 100)",
    "decode_rom(bytes(4096), {}, 5000)",
    "make_resample({}, 8, 8, 8, 1.0)",
    "make_resample(1, {0}, {0}, {0}, 1.0)",
    "make_resample(1, 8, 8, 8, {})",
    "find_misfit_state({0}, {0}, {0}, {0})",
    "cpu_backend({})",
    "cpu_backend(2, {})",
    "cpu_backend(2, (0, {}))",
    "cuda_backend({}, 0)",
    "find_misfit_state(bytes(4), b'', b'', {})",
    "cuda_backend(0, {})",
    "profile(Batch(), {})",
    "make_config({})",
    "start_pool_episode(Batch(), {})",
    "power_on_env({})",
    "start_first_episode({})",
    "cpu_backend(1).step({})",
    "cpu_backend(1).step(Batch(), {})",
    "cpu_backend(1).reset(Batch(), {0}, {0})",
    "cpu_backend(1).send({})",
    "cpu_backend(1).send(Batch(), {})",
    "cpu_backend(1).wait()",
    "cpu_backend(1).receive()",
    "cpu_backend(1).start(Batch(), {0}, {0}, {0}, {0})",
    "cpu_backend(1).wait_for({})",
    "cpu_backend(1).take({})",
    "cpu_backend(1).finish()",
    "fly({}, None)",
    "fly(np.zeros(1, np.int32), {})",
    "fly(np.array([{}], np.int32), None)",
    "Guard({})",
    "Batch({})",
    "Batch().arrays({0}, {0})",
    "cpu_backend(1).load_translation({}, 0)",
    "cpu_backend(1).load_translation(b'', {})",
    "Guard().call({0}, {0}, {0})",
    "Guard().call('x', True, {})",
    "Backend({})",
    "continue_pool_episode(console.batch, {0}, {0})",
    "continue_pool_episode(Batch(), {0}, {0})",
    "profile(console.batch, {})",
    "profile(console.batch, 1, {})",
    "profile(console.batch, 1, True, {})",
    "start_pool_episode(console.batch, {})",
    "env.backend.reset(env.batch, {0}, 0)",
    "env.backend.reset(env.batch, 0, {})",
    "find_misfit_state(bytes(4 * RECORD_WORDS), bytes(128), {}, bytes(4))",
)
SETTINGS = {
    "game": 70, "scheme": "4K", "rom_bytes": 4096, "pal": 0, "height": 210, "rom_offset": 0,
    "mode": 0, "difficulty": 0,
}  # fmt: skip
CODE = """
    import contextlib, sys
    import numpy as np, torch, cule
    from cule import _core
    from cule.console import Console, Group, Options, boot
    from cule.rom import find_game

    game = find_game("pong")
    def a_console():
        console = Console(Group(game, 0, 0), Options(), False)
        console.configure()
        console.load(boot(game).snapshot)
        return console
    def an_engine(pool):
        env = cule.AtariEnv("pong", 2, device="cpu", num_threads=1, reset_pool_size=pool)
        env.reset(seed=0)
        return env.engine
    console, env, emulating = a_console(), an_engine(2), an_engine(0)
    def fly(envs, seeds):
        for singly in (False, True):
            try:
                env.backend.start(env.batch, envs, True, seeds, singly)
            finally:
                env.backend.finish()
    names = dict(vars(_core), console=console, env=env, fly=fly, np=np)

    def attempt(what, call):
        print(what, flush=True)
        try:
            call()
        except (ValueError, TypeError, RuntimeError, OverflowError) as problem:
            assert str(problem)

    for what in sys.stdin.read().splitlines():
        attempt(what, lambda: eval(what, names))
    fields = [
        name for name in dir(_core.Batch)
        if not name.startswith("_") and name not in ("address", "arrays")
    ]
    for owner, sizes, plays in (
        (console, {name: array.nbytes for name, array in console.arrays.items()}, (
            _core.power_on_env, _core.start_first_episode, lambda b: _core.profile(b, 1),
            lambda b: _core.start_pool_episode(b, 1),
            lambda b: _core.continue_pool_episode(b, 1, 2),
        )),
        (env, {name: tensor.nbytes for name, tensor in env.tensors.items()},
         (env.backend.step, env.backend.reset)),
        (emulating, {name: tensor.nbytes for name, tensor in emulating.tensors.items()}, (
            emulating.backend.step, emulating.backend.reset,
        )),
    ):
        batch = owner.batch
        for field in fields:
            before = getattr(batch, field)
            for odd in map(eval, ODD):
                # A count, or an address and how many bytes are there.
                for value in (odd, (odd, 1 << 40), (before, odd)):
                    try:
                        setattr(batch, field, value)
                    except (ValueError, TypeError) as problem:
                        assert str(problem)
                        continue
                    for play in plays:
                        attempt(f"{field} = {value}", lambda: play(batch))
                    with contextlib.suppress(ValueError):  # a console has no options
                        setattr(batch, field, (before, sizes[field]) if field in sizes else before)
            for play in plays:
                play(batch)
    print("all went well")
"""


@pytest.mark.parametrize(
    "odd", [ODD[:5], pytest.param(ODD, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_no_odd_call_ends_the_process(odd: tuple[str, ...]) -> None:
    """Calls every function of the core with odd values of every argument, and with odd values in
    every field of a batch."""
    calls = [call.format(value) for call in CALLS for value in odd]
    for name in SETTINGS:
        calls += [f"make_config({SETTINGS | {name: '@'}})".replace("'@'", value) for value in odd]
    code = textwrap.dedent(CODE).replace("ODD", repr(odd))
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(calls),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert lines[-1] == "all went well"
    assert len(lines) > 100 * len(odd)


@pytest.mark.parametrize("name", SETTINGS)
def test_make_config_refuses_what_it_is_not_given(name: str) -> None:
    settings = dict(SETTINGS)
    del settings[name]
    with pytest.raises(ValueError, match=f"expected settings with {name}, got none"):
        _core.make_config(settings)


@pytest.mark.parametrize("game", [-1, NUM_GAMES, 2**32])
def test_make_config_refuses_a_game_that_is_none(game: int) -> None:
    wanted = f"expected game to be from 0 to {NUM_GAMES - 1}, got {game}"
    with pytest.raises(ValueError, match=wanted):
        _core.make_config(SETTINGS | {"game": game})


def test_make_config_takes_every_mode_of_every_game() -> None:
    """Some modes have several bytes, such as 5002 of video_cube."""
    for game in games():
        for mode in game.modes:
            _core.make_config(SETTINGS | {"game": game.index, "mode": mode})


def test_equal_configs_are_equal_bytes() -> None:
    """The bytes between the fields are equal too, whatever was in memory before: here other
    configs."""
    first = {game: _core.make_config(SETTINGS | {"game": game}) for game in range(NUM_GAMES)}
    for game in reversed(range(NUM_GAMES)):
        _core.make_config(
            SETTINGS | {"game": game, "scheme": "F6", "rom_bytes": 16384, "mode": 255}
        )
        config = _core.make_config(SETTINGS | {"game": game})
        assert config == first[game]
        assert config[1:4] == bytes(3)  # after the scheme, which is a byte


def test_backend_plays_a_batch_whose_steps_are_longer_than_those_before() -> None:
    """Each thread keeps a buffer for the TIA writes of a step, which is as large as the first
    batch needs."""
    short, long = (
        cule.AtariEnv(
            "robotank", 2, device="cpu", num_threads=1, reset_pool_size=1, frameskip=frames
        )
        for frames in (1, 40)
    )
    for env in (short, long):
        env.reset(seed=0)
    backend = short.engine.backend
    backend.step(short.engine.batch)
    backend.step(long.engine.batch)
    expected = cule.AtariEnv(
        "robotank", 2, device="cpu", num_threads=1, reset_pool_size=1, frameskip=40
    )
    expected.reset(seed=0)
    observations = expected.step([0, 0])[0]
    assert torch.equal(long.engine.tensors["observations"], observations)


def test_backend_plays_a_batch_of_another_game_than_the_one_before() -> None:
    """Code that was decoded from the ROMs of one batch is not used for another."""
    batches = [make(game, 2) for game in ("pong", "breakout")]
    replays = [make(game, 2) for game in ("pong", "breakout")]
    for env in (*batches, *replays):
        env.reset(seed=0)
    backend = batches[0].engine.backend
    for _ in range(3):
        for env, replay in zip(batches, replays, strict=True):
            backend.step(env.engine.batch)
            replay.step([0, 0])
            assert torch.equal(env.get_ram(), replay.get_ram())


def test_step_that_is_received_at_once_is_waited_for() -> None:
    env, replay = make(num_envs=2), make(num_envs=2)
    for each in (env, replay):
        each.reset(seed=0)
    backend, batch = env.engine.backend, env.engine.batch
    for _ in range(20):
        backend.send(batch)
        backend.receive()
        assert not backend.in_flight
        replay.step([0, 0])
        assert torch.equal(env.get_ram(), replay.get_ram())


@pytest.mark.parametrize("cpus", [(0,), (0, 0, 0)])
def test_cpus_are_as_many_as_threads(cpus: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"CPU for each of 2 threads, or none, got \(0"):
        _core.cpu_backend(2, cpus)
