"""State files: what is written can be read; damaged and newer files and those of other games are
refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from started_envs import play, started

import cule
from cule.state import VERSION
from tests.support import warm


@pytest.mark.parametrize("pool", [0, 2])
def test_saved_states_go_on_identically(pool: int, device: str, tmp_path: Path) -> None:
    path = tmp_path / "game.state"
    env = started(device=device, reset_pool_size=pool)
    play(env, 5)
    env.clone_state().save(path)
    expected = play(env, 10)
    state = cule.State.load(path)
    assert state.games == [("breakout", 0, 0)] * 2
    assert all(tensor.device.type == "cpu" for tensor in state.tensors.values())
    other = started(device=device, reset_pool_size=pool)
    other.restore_state(state)
    assert torch.equal(play(other, 10), expected)
    assert os.listdir(tmp_path) == ["game.state"], "nothing else is left"


def test_file_of_another_game_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.state"
    started("pong").clone_state().save(path)
    with pytest.raises(ValueError, match=r"\('breakout', 0, 0\), got one of \('pong', 0, 0\)"):
        started("breakout").restore_state(cule.State.load(path))


@pytest.mark.parametrize("pool", [0, 2])
def test_states_that_playing_leaves_are_taken_in_all_games(pool: int) -> None:
    """Takes states of each game, at the beginning and after some random steps."""
    games = [game.name for game in cule.games()]
    env = cule.AtariEnv(
        games,
        len(games),
        device="cpu",
        num_threads=1,
        reset_pool_size=pool,
        noop_max=2,
        frameskip=2,
    )
    env.reset(seed=0)
    random = torch.Generator().manual_seed(0)
    for _ in range(3):
        env.restore_state(env.clone_state())
        for _ in range(20):
            env.step(torch.randint(int(env.single_action_space.n), (len(games),), generator=random))
    env.close()


@pytest.mark.parametrize("game", ["breakout", "pitfall2"])  # pitfall2's cartridge has registers
def test_states_that_playing_cannot_leave_are_refused_or_harmless(game: str) -> None:
    """Each word of a record gets extreme values, as it could have in a damaged file."""
    env = started(game, num_envs=1)
    play(env, 3)
    state, refused = env.clone_state(), set()
    words = {
        name: state.tensors[name].contiguous().view(torch.int32)
        for name in ("records", "cartridge_bytes")
    }
    for name, parts in words.items():
        for word in range(parts.shape[1]):
            for extreme in (0x7FFFFFFF, -0x80000000, -1, 0x00FF00FF):
                changed = parts.clone()
                changed[0, word] = extreme
                tensors = state.tensors | {name: changed.view(state.tensors[name].dtype)}
                try:
                    env.restore_state(cule.State(state.version, state.games, tensors))
                except ValueError as problem:
                    assert "expected states that playing can produce, got state 0" in str(problem)
                    refused.add((name, str(problem).partition("value in ")[2]))
                else:
                    play(env, 1)
    parts = {
        "the processor's registers",
        "the timer",
        "the clocks of the frame",
        "the bank that shows",
        "the beam",
        "the objects on the screen",
        "which picture is shown",
        "what the game's rules remember",
        "what the env remembers",
    }
    expected = {("records", part) for part in parts}
    if game == "pitfall2":
        expected.add(("cartridge_bytes", "the cartridge's registers"))
    assert refused == expected
    env.restore_state(state)


def test_states_are_what_torch_saves_and_loads(tmp_path: Path) -> None:
    env = started()
    state = env.clone_state()
    torch.save({"at": state}, tmp_path / "states.pt")
    expected = play(env, 5)
    env.restore_state(torch.load(tmp_path / "states.pt")["at"])
    assert torch.equal(play(env, 5), expected)
    assert state == state and state != env.clone_state()
    assert env.clone_state([]).games == []
    assert repr(state) == f"State(version=5, {len(state.games)} envs, games={state.games})"


def test_states_with_impossible_random_numbers_are_refused() -> None:
    env = started(reset_pool_size=0)
    state = env.clone_state()
    state.tensors["noop_random"][1, -1] = 625
    with pytest.raises(
        ValueError, match=r"got state 1 with an impossible value in the random numbers"
    ):
        env.restore_state(state)


def test_file_of_a_newer_cule_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.state"
    state = started().clone_state()
    state.version = VERSION + 1
    state.save(path)
    with pytest.raises(
        ValueError, match=rf"is of a newer cule: expected a state of version {VERSION}, got version"
    ):
        cule.State.load(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Path]:
    path = tmp_path_factory.mktemp("states") / "game.state"
    started(num_envs=1).clone_state().save(path)
    return path.read_bytes(), path


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_file_is_refused(saved: tuple[bytes, Path], data: st.DataObject) -> None:
    content, path = saved
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flipped", "longer", "zeroed"]))
    damaged = {
        "cut": content[:place],
        "flipped": content[:place]
        + bytes([content[place] ^ data.draw(st.integers(1, 255))])
        + content[place + 1 :],
        "longer": content + b"\0",
        "zeroed": content[:place] + b"\xff" * (len(content) - place),
    }[kind]
    path.write_bytes(damaged)
    with pytest.raises(
        ValueError, match=r"damaged or cut off|is none or is cut off|is of (a newer|an older) cule"
    ):
        cule.State.load(path)
    path.write_bytes(content)
    cule.State.load(path)


def test_files_that_cannot_be_read_or_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"expected a state file at .*, but it cannot be read: No such file"
    ):
        cule.State.load(tmp_path / "none")
    with pytest.raises(ValueError, match=r"cannot be read: Is a directory"):
        cule.State.load(tmp_path)
    state = started().clone_state()
    with pytest.raises(
        ValueError, match=r"expected a state file that can be written, got .*: No such file"
    ):
        state.save(tmp_path / "nowhere" / "game.state")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="expected a state file that can be written"):
        state.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_files_that_are_no_regular_ones_are_refused(tmp_path: Path) -> None:
    """Nothing waits, as opening a FIFO would."""
    state = started(num_envs=1).clone_state()
    os.mkfifo(tmp_path / "fifo")
    reason = "Is a FIFO, not a regular file"
    with pytest.raises(
        ValueError, match=f"expected a state file that can be written, got .*: {reason}"
    ):
        state.save(tmp_path / "fifo")
    with pytest.raises(
        ValueError, match=f"expected a state file at .*, but it cannot be read: {reason}"
    ):
        cule.State.load(tmp_path / "fifo")


def test_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    """The process cannot write files larger than the limit.

    Writing fails there, as on a full disk.
    """
    path = tmp_path / "game.state"
    code = f"""
        import os, resource, signal, cule
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        env = cule.AtariEnv("breakout", 8, device="cpu", num_threads=1, reset_pool_size=1)
        env.reset(seed=0)
        state = env.clone_state()
        state.save({str(path)!r})
        size = os.stat({str(path)!r}).st_size
        for limit in (0, 30, 1000, size // 2, size - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                state.save({str(path)!r})
            except ValueError as problem:
                print(problem)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (
        done.stdout.splitlines()
        == [f"expected a state file that can be written, got {path}: File too large"] * 5
    )
    assert cule.State.load(path).tensors["ram"].shape == (8, 128)
    assert os.listdir(tmp_path) == ["game.state"]


@pytest.mark.slow
def test_thousands_of_loads_while_three_threads_save_are_of_whole_states(tmp_path: Path) -> None:
    path, stop = tmp_path / "game.state", threading.Event()
    states = [started(num_envs=count).clone_state() for count in (1, 3, 6)]
    states[0].save(path)

    def save(state: cule.State) -> None:
        while not stop.is_set():
            state.save(path)

    savers = [threading.Thread(target=save, args=[state]) for state in states]
    for saver in savers:
        saver.start()
    try:
        seen = set()
        for _ in range(2500):
            loaded = cule.State.load(path)
            (same,) = (state for state in states if len(state.games) == len(loaded.games))
            assert all(
                torch.equal(tensor, loaded.tensors[name]) for name, tensor in same.tensors.items()
            )
            seen.add(len(loaded.games))
    finally:
        stop.set()
        for saver in savers:
            saver.join()
    assert seen == {1, 3, 6}
    assert os.listdir(tmp_path) == ["game.state"]


def test_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path: Path) -> None:
    """Four processes are, one after the other, each a little later than the one before."""
    path = tmp_path / "game.state"
    done = warm.run(["-c", textwrap.dedent(f"""
        import os, signal, time, cule
        for attempt in range(4):
            saved, told = os.pipe()
            child = os.fork()
            if not child:
                env = cule.AtariEnv("breakout", 8, "cpu", num_threads=1, reset_pool_size=1)
                env.reset(seed=0)
                while True:
                    env.step([1] * 8)
                    env.clone_state().save({str(path)!r})
                    os.write(told, b"+")
            os.close(told)
            assert [os.read(saved, 1) for _ in range(3)] == [b"+"] * 3
            time.sleep(0.003 * attempt)
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
            os.close(saved)
            print(*cule.State.load({str(path)!r}).tensors["ram"].shape)
    """)])  # fmt: skip
    assert done.stdout.splitlines() == ["8 128"] * 4, done.stderr
    cule.State.load(path).save(path)
    assert os.listdir(tmp_path) == ["game.state"], "what the killed processes left is deleted"
