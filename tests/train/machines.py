"""Several machines on this one: network namespaces with a switch, and no shared folder.

Only root can make them. Each machine has an address, a link that can go down, and a folder, in
which its programs run; process ids and the rest are this machine's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest
from training_runs import one_thread_each, options

from tests.support import warm

PORT = 29_555
# Enters a namespace and runs a module there.
ENTER = """
import ctypes, os, runpy, sys
name, module = sys.argv[1:3]
place = os.open(f"/run/netns/{name}", os.O_RDONLY)
if ctypes.CDLL(None, use_errno=True).setns(place, 0x40000000):  # CLONE_NEWNET
    raise OSError(ctypes.get_errno(), "setns")
sys.argv = [module, *sys.argv[3:]]
sys.orig_argv[1:] = ["-m", *sys.argv]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def can_be():
    """Whether this user can make network namespaces."""
    if not shutil.which("ip") or os.geteuid():
        return False
    name = f"cule-try-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if done.returncode == 0:
        ip("netns", "del", name)
    return done.returncode == 0


class Machines:
    """Some machines, in a `with` block.

    Args:
        count: how many.
        folder: has a folder for each, m0, m1, ...
    """

    def __init__(self, count, folder):
        self.names = [f"cule-{os.getpid()}-{number}" for number in range(count)]
        self.switch = f"cule-{os.getpid()}-switch"
        self.folders = [folder / f"m{number}" for number in range(count)]

    def __enter__(self):
        for name in (self.switch, *self.names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge", "up")
        for number, name in enumerate(self.names):
            self.folders[number].mkdir(exist_ok=True)
            port = f"port{number}"
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port,
               "netns", self.switch)  # fmt: skip
            ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
        return self

    def __exit__(self, *_):
        for name in (*self.names, self.switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def cut(self, number):
        """Takes a machine's link down: nothing comes or goes any more, and nothing is closed."""
        ip("-n", self.switch, "link", "set", f"port{number}", "down")

    def mend(self, number):
        ip("-n", self.switch, "link", "set", f"port{number}", "up")

    def environment(self, rank, places):
        """What torchrun would set for a process.

        Args:
            rank: its number.
            places: the machine of each process.
        """
        here = places[rank]
        return one_thread_each() | {
            "RANK": str(rank), "WORLD_SIZE": str(len(places)), "MASTER_ADDR": "10.77.0.1",
            "MASTER_PORT": str(PORT), "LOCAL_RANK": str(places[:rank].count(here)),
            "LOCAL_WORLD_SIZE": str(places.count(here)), "GROUP_RANK": str(here),
            "GLOO_SOCKET_IFNAME": "eth0", "PYTHONPATH": str(warm.ROOT),
        }  # fmt: skip

    @contextlib.contextmanager
    def started(self, places, program="examples.a2c_vtrace.train", env=(), **changes):
        """A training's processes, each on its machine with the folder `run` there, by rank."""
        words = [program, *options("run", **changes)]
        with contextlib.ExitStack() as programs:
            yield [
                programs.enter_context(
                    warm.start(
                        ["-c", ENTER, self.names[place], *words],
                        cwd=self.folders[place],
                        env=self.environment(rank, places) | dict(env),
                        timeout=300,
                    )
                )
                for rank, place in enumerate(places)
            ]

    def train(self, places, *more, **changes):
        """Trains to the end; returns what the processes have said on stderr."""
        with self.started(places, *more, **changes) as programs:
            told = [said(program) for program in programs]
        assert [program.returncode for program in programs] == [0] * len(places), told
        return told


def said(program):
    """What a program has printed to stderr, without what torch says of its connections."""
    lines = program.communicate(timeout=300)[1].splitlines(keepends=True)
    torchs = ("[W", "[rank", "Exception raised from ", "frame #")
    return "".join(line for line in lines if line.strip() and not line.startswith(torchs))


def ended(programs, seconds=120):
    """Waits until all processes have ended; returns their statuses, and what they have said."""
    end = time.monotonic() + seconds
    while any(program.poll() is None for program in programs):
        if time.monotonic() > end:
            for program in programs:
                program.send_signal(signal.SIGKILL)
            pytest.fail(f"a process hangs: {[p.communicate()[1] for p in programs]}")
        time.sleep(0.05)
    return [program.returncode for program in programs], [said(program) for program in programs]
