"""Envs and processes: no pickling, no use after a fork, and a forked child that ends in peace."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap

import pytest

import cule


def make() -> cule.AtariEnv:
    return cule.AtariEnv("pong", 2, device="cpu", num_threads=2, reset_pool_size=1)


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_env_is_not_copied(copying: object) -> None:
    with pytest.raises(TypeError, match=r"an AtariEnv cannot be pickled or copied.*clone_state\(\) gives what can be"):
        copying(make())


def run(code: str) -> str:
    """What a Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forked_child_neither_uses_the_env_nor_hangs() -> None:
    """It ends as a process of its own does, freeing what it has: an env's threads, which it has not, among it."""
    printed = run("""
        import os, sys, torch, cule
        env = cule.AtariEnv("pong", 4, device="cpu", num_threads=2, reset_pool_size=1)
        env.reset(seed=0)
        torch.set_num_threads(2)
        torch.zeros(10_000_000).add_(1)  # torch's threads exist from here on, and the child has none of them
        child = os.fork()
        if not child:
            try:
                env.step([0] * 4)
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
    assert lines[0].startswith("expected step() in the process that made the env (pid ")
    assert lines[1:] == ["child played", "child ended with 5", "parent played"]


@pytest.mark.gpu
def test_cuda_after_a_fork_is_refused() -> None:
    printed = run("""
        import os, cule
        env = cule.AtariEnv("pong", 4, device="cuda", reset_pool_size=1)
        env.reset(seed=0)
        child = os.fork()
        if not child:
            for call in (lambda: env.step([0] * 4), lambda: cule.AtariEnv("pong", 4, device="cuda")):
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
