"""The systems that are measured: cule.AtariEnv, ale_py.AtariVectorEnv, EnvPool and CuLE 0.1."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import ale_py
import numpy as np
import torch
from torch import nn

from cule.bench.cases import Case
from cule.errors import InvalidValue
from cule.rom import find_game, rom_path
from cule.vector_env import AtariEnv

# Warming up goes on while SPREAD_STEPS more steps let the share of distinct states grow by more
# than SPREAD_GROWTH.
SPREAD_STEPS, SPREAD_GROWTH, MAX_SPREAD_STEPS = 100, 0.01, 3_000


def nature_features() -> nn.Sequential:
    """The network of Mnih et al. (2015) up to its 512 features, of (n, 4, 84, 84) from 0 to 1."""
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
    )  # fmt: skip


class NatureCnn(nn.Module):
    """The network of Mnih et al. (2015) as a policy: draws actions from its softmax.

    Takes (n, 4, 84, 84) uint8 and gives (n,) int64.
    """

    def __init__(self, num_actions: int):
        super().__init__()
        self.logits = nn.Sequential(*nature_features(), nn.Linear(512, num_actions))

    @torch.inference_mode()
    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Actions, (n,) int64."""
        # Samples by a race of exponentials, as torch.multinomial would wait for the device.
        chances = self.logits(observations.float() / 255.0).softmax(dim=1)
        return (chances / torch.empty_like(chances).exponential_()).argmax(dim=1)


def distinct_share(env: AtariEnv) -> float:
    """The share of different states: distinct contents of RAM over the number of envs."""
    words = env.get_ram().view(torch.int64)
    # A random linear hash modulo 2^64 makes each row one number, which can be sorted. Different
    # rows rarely have the same hash.
    factors = np.random.default_rng(0).integers(-(2**63), 2**63, size=words.shape[1]) | 1
    hashes = (words * torch.from_numpy(factors).to(env.device)).sum(dim=1)
    return len(hashes.unique()) / len(hashes)


class CuleSystem:
    """cule.AtariEnv; its actions are chosen on the same device."""

    name, on_host = "cule", False

    def __init__(self, case: Case):
        self.device = torch.device(case.device)
        self.env = AtariEnv(
            case.game, case.num_envs, device=self.device, num_threads=case.num_threads,
            frameskip=case.frameskip, output=case.output,
            obs_type="ram" if case.mode == "emulation-only" else "image",
        )  # fmt: skip
        self.env.wait_until_translated()
        self.num_actions = int(self.env.single_action_space.n)
        self.policy = (
            NatureCnn(self.num_actions).to(self.device) if case.mode == "with-policy" else None
        )
        self.actions = torch.zeros(case.num_envs, dtype=torch.int64, device=self.device)
        self.generator = torch.Generator(self.device).manual_seed(0)
        self.observations, self.info = self.env.reset(seed=0)

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps, with the policy's actions unless there is none or `random`."""
        for _ in range(steps):
            if self.policy is None or random:
                actions = self.actions.random_(0, self.num_actions, generator=self.generator)
            else:
                actions = self.policy(self.observations)
            self.observations, _, _, _, self.info = self.env.step(actions)

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        return timed(self.device, self.play, steps)

    def distinct_share(self) -> float:
        """The share of different states."""
        return distinct_share(self.env)

    def faulty_envs(self) -> int:
        """How many envs report a fault."""
        return int((self.info["fault"] != 0).sum())

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


class HostSystem:
    """A vector env of numpy arrays; its policy runs where cule's does."""

    name: str
    on_host = True

    @staticmethod
    def check(case: Case) -> None:
        """Checks that the case can be measured.

        Raises:
            ValueError: it cannot.
        """

    def __init__(self, case: Case, env: Any, num_actions: int, observations: np.ndarray):
        self.env, self.num_envs, self.num_actions, self.observations = (
            env,
            case.num_envs,
            num_actions,
            observations,
        )
        self.device = torch.device(case.device)
        self.policy = (
            NatureCnn(self.num_actions).to(self.device) if case.mode == "with-policy" else None
        )
        self.generator = np.random.default_rng(0)

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps, with the policy's actions unless there is none or `random`."""
        for _ in range(steps):
            if self.policy is None or random:
                actions = self.generator.integers(self.num_actions, size=self.num_envs)
            else:
                actions = (
                    self.policy(torch.from_numpy(self.observations).to(self.device)).cpu().numpy()
                )
            self.observations = self.env.step(actions)[0]

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        return clocked(self.play, steps)

    def close(self) -> None:
        """Frees the envs."""
        self.env.close()


class AleSystem(HostSystem):
    """ale_py.AtariVectorEnv with the same options."""

    name = "ale-py"

    @staticmethod
    def make(case: Case) -> Any:
        """The envs."""
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        return ale_py.AtariVectorEnv(
            case.game, case.num_envs, num_threads=case.num_threads, frameskip=case.frameskip
        )

    def __init__(self, case: Case):
        env = self.make(case)
        super().__init__(case, env, int(env.single_action_space.n), env.reset(seed=0)[0])


class EnvPoolSystem(HostSystem):
    """EnvPool with the same options, waiting for all envs at each step."""

    name = "EnvPool"

    @staticmethod
    def task(case: Case) -> str:
        """The game's name there: ale-py's except for TicTacToe3d."""
        return "".join(word.capitalize() for word in find_game(case.game).name.split("_")) + "-v5"

    @staticmethod
    def check(case: Case) -> None:
        """Checks that EnvPool is installed and has the game.

        Raises:
            ValueError: it is not installed, or does not have the game.
        """
        try:
            import envpool
        except ImportError as problem:
            raise InvalidValue(
                f"expected EnvPool for --against-envpool (pip install envpool), got: {problem}"
            ) from None
        if EnvPoolSystem.task(case) not in envpool.list_all_envs():
            raise InvalidValue(
                f"expected a game that EnvPool has for --against-envpool, got {case.game!r}"
            )

    @staticmethod
    def make(case: Case, batch_size: int) -> Any:
        """The envs, which step in batches of this size."""
        import envpool

        return envpool.make_gymnasium(
            EnvPoolSystem.task(case), num_envs=case.num_envs, batch_size=batch_size,
            num_threads=case.num_threads, seed=0, frame_skip=case.frameskip,
            max_episode_steps=108_000 // case.frameskip,
        )  # fmt: skip

    def __init__(self, case: Case):
        self.check(case)
        env = self.make(case, case.num_envs)
        super().__init__(case, env, int(env.action_space.n), env.reset()[0])


class OriginalSystem:
    """CuLE 0.1, used as in its own examples: a step waits for one grey 84x84 frame."""

    name, on_host = "CuLE 0.1", False
    START_STEPS = 400  # before the first observation, as in its examples

    @staticmethod
    def check(case: Case) -> None:
        """Checks that CuLE 0.1 is installed and can do what the case asks for.

        Raises:
            ValueError: it is not installed, or cannot do that.
        """
        if case.mode == "with-policy":
            raise InvalidValue(
                "expected --against-original without --with-policy: CuLE 0.1 stacks no frames"
            )
        try:
            import torchcule.atari  # noqa: F401 (whether it can be imported)
        except ImportError as problem:
            raise InvalidValue(
                f"expected torchcule (docs/benchmarks.md) for --against-original: {problem}"
            ) from None

    def __init__(self, case: Case):
        self.check(case)
        from torchcule.atari import Env

        self.device = torch.device(case.device)
        self.env = Env(
            str(rom_path(find_game(case.game))), case.num_envs, color_mode="gray",
            device=self.device, rescale=True,
            frameskip=case.frameskip, repeat_prob=0.0, episodic_life=True,
        )  # fmt: skip
        # It treats an unknown ROM as Bowling.
        if "bowling" in self.env.cart.game_name().lower() and case.game != "bowling":
            raise InvalidValue(
                f"expected a ROM that CuLE 0.1 knows, got {case.game!r}, which it takes for Bowling"
            )
        self.env.train(case.frameskip)
        self.env.reset(initial_steps=self.START_STEPS)

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps with random actions."""
        for _ in range(steps):
            self.env.step(self.env.sample_random_actions())

    def seconds(self, steps: int) -> float:
        """How long steps take."""
        return timed(self.device, self.play, steps)

    def close(self) -> None:
        """Frees the envs."""
        del self.env


def clocked(play: Callable[[int], None], steps: int) -> float:
    """The seconds that `play(steps)` takes, by the clock."""
    begin = time.perf_counter()
    play(steps)
    return time.perf_counter() - begin


def timed(device: torch.device, play: Callable[[int], None], steps: int) -> float:
    """The seconds that `play(steps)` takes, on a GPU by its own clock."""
    if device.type != "cuda":
        return clocked(play, steps)
    with torch.cuda.device(device):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        play(steps)
        end.record()
        end.synchronize()
    return begin.elapsed_time(end) / 1e3


class Spreading(Protocol):
    """A system that knows how different its envs' states are."""

    def play(self, steps: int, *, random: bool = False) -> None:
        """Plays steps."""

    def distinct_share(self) -> float:
        """The share of different states."""


def spread_out(
    system: Spreading, least_steps: int, most_steps: int = MAX_SPREAD_STEPS
) -> tuple[int, float]:
    """Plays at random until the envs' states stop becoming more different.

    Envs start from a few dozen states. While they are alike, the threads of a GPU do the same at
    the same time, which is faster than usual. How different the states become depends on the game.
    So this plays until the share of distinct states stops growing, whatever that share is.

    Returns:
        How many steps that took, and the share of distinct states after them.
    """
    before = system.distinct_share()
    system.play(least_steps, random=True)
    steps, share = least_steps, system.distinct_share()
    while before + SPREAD_GROWTH < share < 1 - SPREAD_GROWTH and steps < most_steps:
        system.play(SPREAD_STEPS, random=True)
        steps, share, before = steps + SPREAD_STEPS, system.distinct_share(), share
    return steps, share
