"""CleanRL's own ppo_atari.py, as it is in its repository, with the envs and the network of all.

It is a script. Its definitions are executed, its network and its log are replaced, and then its
main part is executed. Its envs give numpy arrays, so that pictures go over the bus.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import torch
from torch.distributions.categorical import Categorical

from benchmarks.peers.setting import Policy, Setting

NAME = "cleanrl.ppo_atari"


class Agent(Policy):
    """The network with the methods that the script calls."""

    def get_value(self, pictures: torch.Tensor) -> torch.Tensor:
        """Values (n, 1)."""
        return self(pictures)[1]

    def get_action_and_value(
        self, pictures: torch.Tensor, action: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, ...]:
        """Actions, logarithms of their probabilities, entropies, (n,) each, and values (n, 1)."""
        logits, values = self(pictures)
        chances = Categorical(logits=logits)
        action = chances.sample() if action is None else action
        return action, chances.log_prob(action), chances.entropy(), values


class Log:
    """In place of the script's SummaryWriter.

    Args:
        iterated: called after the last number of an iteration.
    """

    def __init__(self, iterated: Callable[[], None]):
        self.iterated = iterated

    def add_text(self, name: str, text: str) -> None:
        """Keeps nothing."""

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Notes the last number."""
        if name == "charts/SPS":
            self.iterated()


def run(setting: Setting, iterated: Callable[[], None]) -> None:
    """Executes the script.

    Raises:
        ValueError: there is no such file, or it is not as it was in April 2026.
    """
    if setting.cleanrl is None:
        raise ValueError("expected --cleanrl, a folder with CleanRL's repository")
    root = Path(setting.cleanrl)
    path = root / "cleanrl" / "ppo_atari.py"
    *definitions, main = ast.parse(path.read_text()).body
    if not isinstance(main, ast.If):
        raise ValueError(f'expected {path} to end with `if __name__ == "__main__":`')
    module = ModuleType(NAME)
    module.__file__ = str(path)
    sys.modules[NAME] = module
    sys.path.insert(0, str(root))
    space = vars(module)
    exec(compile(ast.Module(definitions, []), str(path), "exec"), space)
    vector = SimpleNamespace(SyncVectorEnv=lambda thunks: setting.env(output="numpy"))
    space |= {
        "Agent": lambda envs: Agent(setting, int(envs.single_action_space.n)),
        "SummaryWriter": lambda folder: Log(iterated),
        "gym": SimpleNamespace(spaces=gymnasium.spaces, vector=vector),
    }
    sys.argv = [str(path), *options_of(setting)]
    exec(compile(ast.Module(main.body, []), str(path), "exec"), space)


def options_of(setting: Setting) -> list[str]:
    """The script's options."""
    options = {
        "num-envs": setting.num_envs, "num-steps": setting.num_steps,
        "num-minibatches": max(1, setting.steps // setting.minibatch),
        "update-epochs": setting.epochs, "total-timesteps": 10**12,
        "learning-rate": setting.learning_rate, "gamma": setting.gamma,
        "gae-lambda": setting.gae_lambda, "clip-coef": setting.clip,
        "ent-coef": setting.entropy_factor, "vf-coef": setting.value_factor,
        "max-grad-norm": setting.max_grad_norm,
    }  # fmt: skip
    on_gpu = setting.device.startswith("cuda")
    flags = ["--no-torch-deterministic", *([] if on_gpu else ["--no-cuda"])]
    return [*(f"--{name}={value}" for name, value in options.items()), *flags]
