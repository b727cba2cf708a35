"""How long each kernel of a step takes on a GPU.

For example `python benchmarks/tools/kernel_times.py pong:4096,65536`. Prints a line for each case:
milliseconds a step in each kernel, by torch's profiler, and million FPS from the time between two
events. Before that it plays until the games have spread out, as they do in training, and until the
env has timed both of its kernels (csrc/kernels/cuda/play_choice.cuh). With `--once` each case then
plays a single step between cudaProfilerStart and cudaProfilerStop, for
`ncu --profile-from-start off`.
"""

from __future__ import annotations

import argparse
import re

import torch
from torch.profiler import ProfilerActivity, profile

import cule

STEPS = 10


def kernel_name(name: str) -> str:
    """A kernel's name without its namespace, template arguments and parameters."""
    if mangled := re.search(
        r"\d([a-z_]+)(?:I|ENS_)", name
    ):  # of an unnamed namespace: not translated back
        return mangled[1]
    for sign in "(<":
        name = name.partition(sign)[0]
    return name.removeprefix("void ").rpartition("::")[2].split()[-1]


def measure(game: str, num_envs: int, warm_up: int, once: bool, translate: bool | None) -> str:
    """The line of one case."""
    env = cule.AtariEnv(game, num_envs=num_envs, device="cuda", translate=translate)
    env.reset(seed=0)
    translated = env.wait_until_translated()
    actions = torch.randint(env.single_action_space.n, (warm_up + STEPS, num_envs), device="cuda")
    for row in actions[:warm_up]:
        env.step(row)
    torch.cuda.synchronize()
    case = f"{game:16s} {num_envs:8d} {'translated' if translated else 'interpreted'}"
    if once:
        torch.cuda.profiler.start()
        env.step(actions[-1])
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        return case
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for row in actions[warm_up:]:
        env.step(row)
    end.record()
    torch.cuda.synchronize()
    milliseconds = begin.elapsed_time(end) / STEPS
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for row in actions[warm_up:]:
            env.step(row)
        torch.cuda.synchronize()
    times: dict[str, float] = {}
    for event in profiled.key_averages():
        name = kernel_name(event.key)
        times[name] = times.get(name, 0.0) + event.device_time_total / 1000 / STEPS
    kernels = [f"{name} {time:.2f}" for name, time in sorted(times.items()) if time >= 0.005]
    fps = num_envs * 4 / milliseconds / 1000
    return f"{case} {milliseconds:8.2f} ms {fps:7.3f} M FPS: {', '.join(kernels)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", help="game:num_envs[,num_envs...]")
    parser.add_argument("--warm-up", type=int, default=80, help="random steps before (default: 80)")
    parser.add_argument("--once", action="store_true", help="one step a case, for ncu")
    parser.add_argument("--interpreted", action="store_true", help="with translate=False")
    options = parser.parse_args()
    translate = False if options.interpreted else None
    for case in options.cases:
        game, _, sizes = case.partition(":")
        for num_envs in map(int, sizes.split(",")):
            line = measure(game, num_envs, options.warm_up, options.once, translate)
            print(line, flush=True)


if __name__ == "__main__":
    main()
