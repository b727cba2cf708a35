"""PPO by cule.train beside other programs: the same envs, network and settings, in turns.

    python -m benchmarks.tools.train_beside --rounds 5              # seconds of an iteration
    python -m benchmarks.tools.train_beside --largest 16            # GiB; the largest observation

Systems: cule.train with lag 0 and 1, a loop as CleanRL's ppo_atari.py has it (all observations in
one tensor, values kept from acting, advantages after the rollout), stable-baselines3, whose rollout
buffer is numpy on the host, and, where it is asked for, RLlib. An iteration is `--num-steps` steps
of all envs, and `--epochs` epochs of minibatches. Prints a JSON line for each system.

With --largest the envs give RGB pictures, 256 envs play 1,000 steps, and each system gets larger
pictures until it no longer fits into so many GiB of the device's memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import cule
from cule.registration import make_vector_env
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.models import ActorCritic, sample
from cule.train.nn.returns import gae
from cule.train.trainer import Trainer
from examples.ppo import ppo

SIZES = ((42, 32), (84, 64), (105, 80), (210, 160), (420, 320), (840, 640))


class Pictures(nn.Module):
    """A small policy and value on stacks of RGB pictures (n, 4, h, w, 3) of any size."""

    def __init__(self, num_actions: int):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(12, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(3), nn.Flatten(),
        )  # fmt: skip
        self.policy, self.value = nn.Linear(288, num_actions), nn.Linear(288, 1)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probabilities and values."""
        pixels = images.permute(0, 1, 4, 2, 3).flatten(1, 2)
        features = self.features(pixels.to(self.policy.weight.dtype) / 255)
        return self.policy(features).float().log_softmax(1), self.value(features)[:, 0].float()


class OnPictures(ppo.PPO):
    """The same PPO on RGB pictures."""

    size = SIZES[0]

    @classmethod
    def environment(cls, args: Any, num_envs: int, device: torch.device) -> Any:
        """RGB pictures, single."""
        return pictures(args.game, num_envs, device, cls.size, 1)

    def networks(self, num_actions: int) -> dict[str, nn.Module]:
        """One network."""
        return {"net": Pictures(num_actions)}


def pictures(
    game: str, num_envs: int, device: torch.device, size: tuple[int, int], stack: int
) -> cule.AtariEnv:
    """Envs with RGB observations."""
    return cule.AtariEnv(
        game, num_envs, device, grayscale=False, img_height=size[0], img_width=size[1],
        stack_num=stack,
    )  # fmt: skip


def by_cule(args: argparse.Namespace, size: tuple[int, int] | None, lag: int) -> Iterator[None]:
    """Iterations of cule.train."""
    settings = ppo.Args(
        game=args.game, device=args.device, num_envs=args.num_envs, num_steps=args.num_steps,
        minibatch_size=args.minibatch, update_epochs=args.epochs, lag=lag, total_frames=10**9,
        memory_budget=args.largest and args.largest * 0.9,
    ).on(torch.device(args.device))  # fmt: skip
    algorithm = ppo.PPO if size is None else type("Sized", (OnPictures,), {"size": size})
    trainer = Trainer(algorithm, settings, ProcessGroup(0, 1, torch.device(args.device)))
    try:
        while True:
            trainer.iterate()
            yield
    finally:
        trainer.close()


def by_loop(args: argparse.Namespace, size: tuple[int, int] | None) -> Iterator[None]:
    """Iterations of a loop as CleanRL writes it."""
    device, n, steps = torch.device(args.device), args.num_envs, args.num_steps
    env = (
        cule.AtariEnv(args.game, n, device)
        if size is None
        else pictures(args.game, n, device, size, 4)
    )
    net = (Pictures if size else ActorCritic)(int(env.single_action_space.n)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2.5e-4, eps=1e-5, fused=True)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
    following, _ = env.reset(seed=0)
    shape = (steps, n)
    seen = torch.zeros((*shape, *following.shape[1:]), dtype=torch.uint8, device=device)
    actions = torch.zeros(shape, dtype=torch.int64, device=device)
    log_mu, rewards, discounts, values = (torch.zeros(shape, device=device) for _ in range(4))
    ones = torch.ones(shape, device=device)
    while True:
        with torch.no_grad(), autocast:
            for t in range(steps):
                seen[t] = following
                log_pi, values[t] = net(following)
                actions[t] = sample(log_pi)
                log_mu[t] = log_pi.gather(1, actions[t].unsqueeze(1)).squeeze(1)
                following, rewards[t], over, _, _ = env.step(actions[t])
                discounts[t] = 0.99 * (~over).float()
            last = net(following)[1]
            advantages = gae(rewards, discounts, ones, torch.cat([values, last[None]]), 0.95)
            targets = advantages + values
        flat = seen.flatten(0, 1)
        for _ in range(args.epochs):
            for some in torch.randperm(steps * n, device=device).split(args.minibatch):
                with autocast:
                    log_pi, value = net(flat[some])
                advantage = advantages.flatten()[some]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                chosen = log_pi.gather(1, actions.flatten()[some].unsqueeze(1)).squeeze(1)
                ratio = (chosen - log_mu.flatten()[some]).exp()
                policy = -torch.minimum(ratio * advantage, ratio.clamp(0.9, 1.1) * advantage).mean()
                error = 0.5 * (value - targets.flatten()[some]).square().mean()
                loss = policy + 0.5 * error + 0.01 * (log_pi.exp() * log_pi).sum(1).mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
        yield


def by_stable_baselines3(args: argparse.Namespace, size: tuple[int, int] | None) -> Iterator[None]:
    """Iterations of stable-baselines3."""
    import stable_baselines3

    from cule.adapters.stable_baselines3 import AtariVecEnv

    height, width = size or (84, 84)
    env = AtariVecEnv(
        args.game, args.num_envs, args.device, grayscale=size is None, img_height=height,
        img_width=width,
    )  # fmt: skip
    model = stable_baselines3.PPO(
        "CnnPolicy", env, n_steps=args.num_steps, batch_size=args.minibatch, n_epochs=args.epochs,
        device=args.device, clip_range=0.1, ent_coef=0.01,
    )  # fmt: skip
    while True:
        model.learn(args.num_envs * args.num_steps, reset_num_timesteps=False)
        yield


def by_rllib(args: argparse.Namespace, size: tuple[int, int] | None) -> Iterator[None]:
    """Iterations of RLlib, with the envs and the learner in this process."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule

    height, width = size or (84, 84)
    options = {"grayscale": size is None, "img_height": height, "img_width": width}

    class Module(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
        def setup(self) -> None:
            self.net = (Pictures if size else ActorCritic)(int(self.action_space.n))

        def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
            return {Columns.ACTION_DIST_INPUTS: self.net(batch[Columns.OBS])[0]}

        def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
            return self.net(batch[Columns.OBS])[1]

    def make(context: dict[str, Any]) -> Any:
        # Only to learn the spaces, RLlib asks for a single env.
        if "num_envs" not in context:
            return cule.SingleAtariEnv(args.game, device=args.device, **options)
        return make_vector_env(args.game, context["num_envs"], device=args.device, **options)

    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True, log_to_driver=False)
    ray.tune.register_env("cule", make)
    on_gpu = args.device.startswith("cuda")
    config = (
        PPOConfig()
        .environment("cule")
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=args.num_envs,
            rollout_fragment_length=args.num_steps, gym_env_vectorize_mode="vector_entry_point",
            num_gpus_per_env_runner=int(on_gpu),
        )
        .learners(num_learners=0, num_gpus_per_learner=int(on_gpu))
        .training(
            train_batch_size_per_learner=args.num_envs * args.num_steps,
            minibatch_size=args.minibatch, num_epochs=args.epochs, lr=2.5e-4, gamma=0.99,
            lambda_=0.95, clip_param=0.1, vf_loss_coeff=0.5, entropy_coeff=0.01, grad_clip=0.5,
            use_kl_loss=False,
        )
        .rl_module(rl_module_spec=RLModuleSpec(module_class=Module))
    )  # fmt: skip
    algorithm = config.build_algo()
    try:
        while True:
            algorithm.train()
            yield
    finally:
        algorithm.stop()


SYSTEMS: dict[str, Callable[..., Iterator[None]]] = {
    "cule.train": lambda args, size: by_cule(args, size, 0),
    "cule.train, lag 1": lambda args, size: by_cule(args, size, 1),
    "CleanRL's loop": by_loop,
    "stable-baselines3": by_stable_baselines3,
    "RLlib": by_rllib,
}
# RLlib is no requirement of anything here: pip install "ray[rllib]" where it is to be measured.
USUAL = [name for name in SYSTEMS if name != "RLlib"]


def seconds_of(iterations: Iterator[None], args: argparse.Namespace) -> float:
    """How long the next iteration takes."""
    begun = time.perf_counter()
    next(iterations)
    if args.device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def compare(args: argparse.Namespace, systems: list[str]) -> None:
    """Iterations in turns; the first four of each, in which graphs are captured, do not count."""
    running = {name: SYSTEMS[name](args, None) for name in systems}
    for iterations in running.values():
        for _ in range(args.warm_up):
            seconds_of(iterations, args)
    times: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(args.rounds):
        for name, iterations in running.items():
            times[name].append(seconds_of(iterations, args))
    for name, found in times.items():
        row = {"system": name, "seconds": statistics.median(found), "rounds": found}
        print(json.dumps(row | {"settings": vars(args)}))


def largest(args: argparse.Namespace, systems: list[str]) -> None:
    """The largest pictures with which each system gets through an iteration.

    A JSON line for each size, with the seconds of an iteration or the problem.
    """
    if args.device.startswith("cuda"):
        total = torch.cuda.get_device_properties(args.device).total_memory
        torch.cuda.set_per_process_memory_fraction(args.largest * 2**30 / total)
    for name in systems:
        for size in args.sizes:
            iterations = SYSTEMS[name](args, size)
            row: dict[str, Any] = {"system": name, "size": size, "settings": vars(args)}
            try:
                row["seconds"] = seconds_of(iterations, args)
            except (MemoryError, RuntimeError, ValueError) as problem:
                row["problem"] = str(problem)[:200]
            finally:
                iterations.close()
                del iterations
                torch.cuda.empty_cache()
            print(json.dumps(row), flush=True)
            if "problem" in row:
                break


def size_of(text: str) -> tuple[int, int]:
    """Height and width of a size such as "210x160"."""
    height, width = map(int, text.split("x"))
    return height, width


def main() -> None:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="pong")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--num-steps", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--minibatch", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--largest", type=float, default=None, metavar="GIB")
    parser.add_argument(
        "--sizes", nargs="+", type=size_of, default=SIZES, metavar="HxW",
        help="with --largest: the pictures' sizes, the smallest first",
    )  # fmt: skip
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=USUAL)
    args = parser.parse_args()
    if args.largest is None:
        compare(args, args.systems)
        return
    args.num_envs, args.num_steps, args.epochs, args.minibatch = 256, 1000, 1, 4000
    largest(args, args.systems)


if __name__ == "__main__":
    main()
