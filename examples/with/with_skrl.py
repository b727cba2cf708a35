"""skrl: wrap_env finds out by itself what an AtariEnv is."""

import torch
from measured import arguments, measuring
from skrl.envs.wrappers.torch import wrap_env

import cule

args = arguments(__doc__)
env = wrap_env(cule.AtariEnv(args.game, args.num_envs, args.device))
observations, _ = env.reset()
with measuring("skrl", args):
    for _ in range(args.steps):
        actions = torch.randint(env.action_space.n, (env.num_envs, 1), device=env.device)
        observations, rewards, terminated, truncated, info = env.step(actions)
assert observations.shape == (args.num_envs, 4 * 84 * 84) and observations.is_cuda == (
    args.device != "cpu"
)
env.close()
