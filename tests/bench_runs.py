"""Short runs of `python -m cule.bench`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cule.bench import measure
from cule.bench.__main__ import main
from cule.bench.cases import Case

AGREED_KEYS = {
    "commit", "date", "system", "mode", "device_name", "driver", "cuda", "torch", "game", "rom_md5",
    "num_envs",
    "frameskip", "fps", "steps_per_second", "command",
}  # fmt: skip
SHORT = ["--device", "cpu", "--seconds", "0.02", "--rounds", "2", "--warmup-steps", "2", "--quiet"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


def read_json(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def make_case(game: str = "pong", num_envs: int = 2, **options: Any) -> Case:
    settings = {
        "device": "cpu", "mode": "end-to-end", "frameskip": 4, "num_threads": 1, "seconds": 0.02,
        "rounds": 2,
        "warmup_steps": 2, "against_ale": False,
    }  # fmt: skip
    return Case(game, num_envs, **settings | options)


def fine(case: Case) -> dict:
    """Stands in for a case that can be measured."""
    return {"cule": measure.Measurement([float(os.getpid())], 0)}
