"""Atari 2600 emulation by the thousand, on a GPU or a CPU, for reinforcement learning."""

from cule._core import FAULTS
from cule.actions import ACTIONS
from cule.recording import RecordVideo
from cule.registration import ATARI_57, register_envs
from cule.rom import games
from cule.state import State
from cule.statistics import EpisodeStatistics
from cule.vector_env import AtariEnv

__version__ = "0.1.0"
__all__ = [
    "ACTIONS",
    "ATARI_57",
    "FAULTS",
    "AtariEnv",
    "EpisodeStatistics",
    "RecordVideo",
    "State",
    "games",
]

register_envs()
