"""`python -m tests.digest`: compares two devices step by step in all games.

Every env of every step becomes one number, from its observation, reward, end, lives, frame numbers,
faults and RAM. If any of them differs, the numbers differ, except in one case in 2**64. This is how
a CUDA build is compared with the CPU's: see `--help`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import torch

import cule


class Digest:
    """Turns what a step returns into one number for each env: (num_envs,) int64, on the CPU."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._factors: dict[str, torch.Tensor] = {}

    def _sums(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Each env's values times fixed random numbers, summed modulo 2**64."""
        if values.is_floating_point():
            values = values.float().view(torch.int32)  # their bits
        rows = values.reshape(len(values), -1)
        if name not in self._factors:
            wide = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=self._generator)
            self._factors[name] = wide | 1
        factors = self._factors[name].to(rows.device)
        # In parts, as the products take eight bytes each.
        parts = [(part.long() * factors).sum(1) for part in rows.split(1024)]
        return torch.cat(parts)

    def of(self, env: cule.AtariEnv, results: tuple) -> torch.Tensor:
        """The number of each env, from the `results` of `env.step`."""
        obs, reward, terminated, truncated, info = results
        newest = obs[:, -1:] if obs.ndim > 2 else obs
        seen = {
            "obs": newest, "reward": reward, "terminated": terminated, "truncated": truncated,
            "ram": env.get_ram(), **{f"info {name}": value for name, value in info.items()},
        }  # fmt: skip
        sums = [self._sums(name, seen[name]) for name in sorted(seen)]
        return torch.stack(sums).sum(0).cpu()


def compare(envs: list[cule.AtariEnv], steps: int) -> tuple[torch.Tensor, int]:
    """Steps the envs with the same actions.

    Returns which envs ever differed, and how many episodes ended.
    """
    first = envs[0]
    generator = torch.Generator().manual_seed(1)
    digest = Digest()
    differed = torch.zeros(first.num_envs, dtype=torch.bool)
    episodes = 0
    for env in envs:
        env.reset(seed=7)
    began = time.monotonic()
    for step in range(steps):
        actions = torch.randint(first.single_action_space.n, (first.num_envs,), generator=generator)
        numbers = []
        for env in envs:
            results = env.step(actions.to(env.device))
            numbers.append(digest.of(env, results))
        episodes += int((results[2] | results[3]).sum())
        for other in numbers[1:]:
            differed |= other != numbers[0]
        if step % 50 == 49:
            seconds = time.monotonic() - began
            print(f"  {step + 1} steps, {int(differed.sum())} differ, {seconds:.0f} s", flush=True)
    return differed, episodes


def sets_of_games(games: list[str], apart: bool) -> Iterator[list[str]]:
    """The games of each env."""
    if apart:
        yield from ([game] for game in games)
    else:
        yield games


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.digest", description=__doc__)
    parser.add_argument("games", nargs="*", help="default: all")
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"], help="default: cpu cuda")
    parser.add_argument("--envs", type=int, default=64, help="of each game; default: 64")
    parser.add_argument("--steps", type=int, default=500, help="default: 500")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; default: all")
    parser.add_argument("--pool", type=int, default=30, help="start states; 0: emulated as ale-py")
    parser.add_argument(
        "--apart", action="store_true",
        help="an env for each game, whose ROM is translated on a GPU; else one env of all games",
    )  # fmt: skip
    chosen = parser.parse_args(arguments)
    games = chosen.games or cule.list_games()
    every, differing, episodes = 0, 0, 0
    for names in sets_of_games(games, chosen.apart):
        envs = [
            cule.AtariEnv(
                [name for name in names for _ in range(chosen.envs)],
                len(names) * chosen.envs,
                device=device,
                num_threads=chosen.threads,
                reset_pool_size=chosen.pool,
                repeat_action_probability=0.25,
                full_action_space=True,
                translate=True if chosen.apart and device.startswith("cuda") else None,
            )
            for device in chosen.devices
        ]
        differed, ended = compare(envs, chosen.steps)
        every, episodes = every + len(differed), episodes + ended
        differing += int(differed.sum())
        for i in differed.nonzero().flatten().tolist():
            print(f"{names[i // chosen.envs]}, env {i}: differs")
        for env in envs:
            env.close()
    print(
        f"{differing} of {every} envs differ on {' and '.join(chosen.devices)} in {chosen.steps} "
        f"steps; {episodes} episodes ended"
    )
    return int(differing > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as problem:  # no such game, or no such device
        print(problem, file=sys.stderr)
        sys.exit(2)
