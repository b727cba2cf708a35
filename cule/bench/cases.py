"""What is to be measured: a case, and the command that measures it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

MODES = ("end-to-end", "emulation-only", "with-policy", "with-training")
# Rows of training programs have a speed, too, which is shown and drawn beside these.
SHOWN_MODES = (*MODES, "training")
# With the first a step copies nothing.
Output = Literal["torch_shared", "torch"]
OUTPUTS: tuple[Output, ...] = ("torch_shared", "torch")


@dataclass(frozen=True)
class Case:
    """A game and a number of envs, and how they are measured.

    Attributes:
        game: a ROM id.
        num_envs: consoles at once.
        device: "cpu" or "cuda:0".
        mode: one of MODES.
        frameskip: frames in a step.
        num_threads: CPU threads, for either system.
        seconds: how long each system is measured.
        rounds: into how many rounds these seconds are divided.
        warmup_steps: the least number of steps before measuring.
        against_ale: whether ale-py is measured in turns with cule.
        against_envpool: whether EnvPool is measured, too.
        against_original: whether CuLE 0.1 is measured, too.
        env_groups: envs are on the CPU, in so many groups that are in flight; 0: they step together
            where `device` is.
        output: of cule's AtariEnv: one of OUTPUTS.
    """

    game: str
    num_envs: int
    device: str
    mode: str
    frameskip: int
    num_threads: int
    seconds: float
    rounds: int
    warmup_steps: int
    against_ale: bool
    against_envpool: bool = False
    against_original: bool = False
    env_groups: int = 0
    output: Output = OUTPUTS[0]

    @property
    def command(self) -> str:
        """The command that measures this case again, with every default written out."""
        parts = [
            "python",
            "-m",
            "cule.bench",
            self.game,
            "--num-envs",
            self.num_envs,
            "--device",
            self.device,
        ]
        for name in ("frameskip", "num_threads", "seconds", "rounds", "warmup_steps"):
            parts += [f"--{name.replace('_', '-')}", getattr(self, name)]
        parts.append("--against-ale" if self.against_ale else "--no-against-ale")
        if self.against_envpool:
            parts.append("--against-envpool")
        if self.against_original:
            parts.append("--against-original")
        if self.env_groups:
            parts += ["--env-groups", self.env_groups]
        if self.output != OUTPUTS[0]:
            parts += ["--output", self.output]
        if self.mode != MODES[0]:
            parts.append(f"--{self.mode}")
        return shlex.join(map(str, parts))
