"""Envs and processes: no pickling, no use after a fork, forked children that end normally, threads
that are refused."""

from __future__ import annotations

import copy
import pickle
import re
import textwrap

import gymnasium
import pytest
from gymnasium import error

import cule
from cule.env.flights import Flights
from tests.support import warm


def make() -> cule.AtariEnv:
    return cule.AtariEnv("pong", 2, device="cpu", num_threads=2, reset_pool_size=1)


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_env_is_not_copied(copying: object) -> None:
    with pytest.raises(
        TypeError,
        match=r"an AtariEnv cannot be pickled or copied.*pickle what clone_state\(\) returns",
    ):
        copying(make())


def run(code: str) -> str:
    """Runs Python code in a process, and returns what it prints."""
    done = warm.run(["-c", textwrap.dedent(code)])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forked_child_neither_uses_the_env_nor_hangs() -> None:
    """It ends normally and frees what it has, although the env's threads do not exist in it."""
    printed = run("""
        import os, sys, gymnasium, torch, cule
        from cule.env.flights import Flights
        env = cule.AtariEnv("pong", 4, device="cpu", num_threads=2, reset_pool_size=1)
        env.reset(seed=0)
        torch.set_num_threads(2)
        # torch's threads exist from here on, and the child has none of them.
        torch.zeros(10_000_000).add_(1)
        flights = Flights(env)
        single = gymnasium.make("cule/Pong-v5", device="cpu", reset_pool_size=1)
        single.reset(seed=0)
        child = os.fork()
        if not child:
            ale = single.unwrapped.ale
            for refused in (
                lambda: env.step([0] * 4), lambda: flights.results(slice(2)), ale.lives,
                ale.getFrameNumber, ale.getEpisodeFrameNumber, ale.getRAM, ale.getRAMSize,
                ale.getScreenDims, ale.getScreen, ale.getScreenRGB, ale.getScreenGrayscale,
            ):
                try:
                    refused()
                except RuntimeError as problem:
                    print(problem, flush=True)
            env.close()
            env.close()
            other = cule.AtariEnv("pong", 2, device="cpu", num_threads=2, reset_pool_size=1)
            other.reset(seed=0)
            other.step([0, 0])
            print("child played", flush=True)
            sys.exit(5)
        print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        env.step([0] * 4)
        print("parent played")
    """)
    lines = printed.splitlines()
    refused = [
        "step", "results", *(f"unwrapped.ale.{name}" for name in (
            "lives", "getFrameNumber", "getEpisodeFrameNumber", "getRAM", "getRAMSize",
            "getScreenDims", "getScreen", "getScreenRGB", "getScreenGrayscale",
        )),
    ]  # fmt: skip
    for name, line in zip(refused, lines, strict=False):
        assert line.startswith(f"expected {name}() in the process that made the env (pid ")
    assert lines[len(refused) :] == ["child played", "child ended with 5", "parent played"]


def test_forked_child_closes_a_port_that_programs_were_using_and_refuses_calls() -> None:
    """The threads of programs, which look up ports at any time, do not exist in it."""
    printed = run("""
        import ctypes, os, signal, struct, threading, cule
        from cule import _core
        from tests.support.waiting import repeat_until
        env = cule.AtariEnv("pong", 1, device="cpu", num_threads=1, reset_pool_size=1)
        port = _core.Port(
            env.engine.backend, env.engine.batch, env.consoles.guard, ["actions"],
            ["observations"], ["observations"], False, -1, 6,
        )
        play = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_char_p)(_core.PLAY_CALL)
        ended = threading.Event()

        def problem_of(number):
            # A step on GPU 7, on which no env is.
            call = struct.pack("=Q4iQ4Q", number, 1, 0, 0, 7, *[0] * 5)
            problem = ctypes.create_string_buffer(512)
            assert not play(call, problem)
            return problem.value.decode()

        def program(number):
            while not ended.is_set():
                problem_of(number)

        threads = [
            threading.Thread(target=program, args=(number,), daemon=True)
            for number in (port.number, port.number, 0, 0)
        ]
        for thread in threads:
            thread.start()
        assert "got one on cuda:7" in problem_of(port.number)
        for _ in range(20):
            child = os.fork()
            if not child:
                said = problem_of(port.number)
                port.close()
                os._exit(0 if "or in a fork of the process" in said else 1)
            statuses = []

            def is_over():
                found, status = os.waitpid(child, os.WNOHANG)
                statuses.append(status)
                return found

            try:
                for _ in repeat_until(is_over, seconds=20):
                    pass
            except BaseException:
                os.kill(child, signal.SIGKILL)
                raise
            assert os.waitstatus_to_exitcode(statuses[-1]) == 0
        ended.set()
        for thread in threads:
            thread.join()
        print("all children ended")
    """)
    assert printed == "all children ended\n"


def test_views_of_an_env_are_refused_after_its_end() -> None:
    env = make()
    env.reset(seed=0)
    flights = Flights(env)
    single = gymnasium.make("cule/Pong-v5", device="cpu", reset_pool_size=1)
    single.reset(seed=0)
    ale = single.unwrapped.ale
    env.close()
    single.close()
    for refused in (lambda: flights.results(slice(2)), ale.lives, ale.getRAM, ale.getScreenRGB):
        with pytest.raises(error.ClosedEnvironmentError, match=r"expected an open env, got .*\(\)"):
            refused()


def test_threads_that_cannot_be_started_are_an_error() -> None:
    """With 256 MiB more than it uses, a process has room for the stacks of two threads, but not
    of 400."""
    printed = run("""
        import resource, cule
        make = lambda threads: cule.AtariEnv(
            "pong", 400, device="cpu", num_threads=threads, reset_pool_size=1
        )
        make(1)  # whatever is loaded at first use is loaded
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
        try:
            make(400)
        except RuntimeError as problem:
            print(problem, flush=True)
        env = make(2)
        env.reset(seed=0)
        env.step([0] * 400)
        print("played")
    """)
    lines = printed.splitlines()
    expected = (
        r"expected to start 399 threads beside the caller's, got \d+, so that num_threads cannot "
        r"be 400 here: ."
    )
    assert re.match(expected, lines[0]), lines[0]
    assert lines[1:] == ["played"]


@pytest.mark.gpu
def test_cuda_after_a_fork_is_refused() -> None:
    printed = run("""
        import os, cule
        env = cule.AtariEnv("pong", 4, device="cuda", reset_pool_size=1)
        env.reset(seed=0)
        child = os.fork()
        if not child:
            new = lambda: cule.AtariEnv("pong", 4, device="cuda")
            for call in (lambda: env.step([0] * 4), new):
                try:
                    call()
                except RuntimeError as problem:
                    print(problem, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        env.step([0] * 4)
        print("parent played")
    """)
    lines = printed.splitlines()
    assert lines[0].startswith("expected step() in the process that made the env (pid ")
    assert "was asked for in a process that was forked after its parent had used CUDA" in lines[1]
    assert lines[2] == "parent played"


def test_two_threads_in_one_env_are_refused_by_a_sentence() -> None:
    """One of the two is refused, and the other goes on."""
    printed = run("""
        import threading, cule, torch
        env = cule.AtariEnv("pong", 64, device="cpu", num_threads=2, reset_pool_size=2)
        env.reset(seed=0)
        actions, told = torch.zeros(64, dtype=torch.int64), []

        def play():
            for _ in range(60):
                try:
                    env.step(actions)
                except Exception as problem:
                    told.append(str(problem))

        threads = [threading.Thread(target=play) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        env.reset(seed=1)
        env.step(actions)
        print({text.partition(", got")[0] for text in told})
    """)
    assert "expected one thread at a time in an env" in printed


def test_long_reset_can_be_interrupted() -> None:
    """1,024 emulated resets take much longer than the signal takes to arrive."""
    printed = run("""
        import _thread, signal, threading, cule
        # Which a process that was started in the background ignores.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        env = cule.AtariEnv("seaquest", 1024, device="cpu", num_threads=1, reset_pool_size=0)
        threading.Timer(1.0, _thread.interrupt_main).start()
        try:
            env.reset(seed=0)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert printed == "interrupted\n"
