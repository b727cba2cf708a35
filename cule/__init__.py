"""Atari 2600 emulation by the thousand, on a GPU or a CPU, for reinforcement learning."""

try:
    from cule._core import FAULTS
except ModuleNotFoundError as problem:
    if problem.name != "cule._core":
        raise
    raise ImportError(
        f"expected the compiled module cule._core in {__path__[0]}, but it has not been built "
        "there: "
        "`pip install -e .` builds it in a checkout, in which Python finds this folder before an "
        "installed cule"
    ) from problem
from cule import errors, presets
from cule.facts.actions import ACTIONS
from cule.facts.modifications import Modification
from cule.facts.patches import Patch
from cule.registration import ATARI_57, register_envs
from cule.rom import games, list_games, modifications, objects, ram_labels
from cule.state import State
from cule.vector_env import AtariEnv
from cule.wrappers.recording import RecordVideo
from cule.wrappers.statistics import EpisodeStatistics

__version__ = "0.1.0"
__all__ = [
    "ACTIONS",
    "ATARI_57",
    "FAULTS",
    "AtariEnv",
    "EpisodeStatistics",
    "Modification",
    "Patch",
    "RecordVideo",
    "State",
    "errors",
    "games",
    "list_games",
    "modifications",
    "objects",
    "presets",
    "ram_labels",
]

register_envs()
