"""Trains with actors that always take the oldest weights that they may, so that it is repeatable.

STALEST says what else is other than usual: "messages": processes share no memory; "kill N": process
N kills itself after some steps; "raise N": it has an error.
"""

from __future__ import annotations

import os
import signal
import sys

from cule import train
from cule.train.distributed.channels import MessageIn
from cule.train.distributed.connections import Connections
from cule.train.distributed.shared_memory import MemoryIn
from cule.train.trainer import Trainer
from examples.a2c_vtrace.train import Args
from tests.train.hashed import Hashed

MemoryIn.ready = MessageIn.ready = lambda box: False
WHAT, _, WHO = os.environ.get("STALEST", "").partition(" ")
if WHAT == "messages":
    Connections.share_memory = lambda connections, rank: False
iterate = Trainer.iterate


def iterate_and_end(trainer, *args):
    """Ends in the midst of an iteration's messages."""
    if trainer.steps >= 40:
        if WHAT == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyError("a slip")
    iterate(trainer, *args)


if WHO and os.environ["RANK"] == WHO:
    Trainer.iterate = iterate_and_end

if __name__ == "__main__":
    sys.exit(train.main(Hashed, Args))
