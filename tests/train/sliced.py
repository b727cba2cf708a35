"""Trains as if each GPU of the layout were a MIG slice of the first GPU, which is not divided."""

from __future__ import annotations

import sys

from cule import train
from cule.train.distributed import placement
from examples.a2c_vtrace.train import A2C, Args

placement.divided = lambda: True
placement.take = lambda number: f"MIG-{number}"

if __name__ == "__main__":
    sys.exit(train.main(A2C, Args))
