"""gymnasium: make_vec, its own statistics of episodes, and its own wrapper to torch."""

import gymnasium
from gymnasium.wrappers.vector import NumpyToTorch, RecordEpisodeStatistics
from measured import arguments, measuring

import cule  # noqa: F401 (registers the ids)
from cule.rom import find_game

args = arguments(__doc__)
name = f"cule/{find_game(args.game).ale_id}Preprocessed-v5"
env = gymnasium.make_vec(name, num_envs=args.num_envs, device=args.device)
env = NumpyToTorch(RecordEpisodeStatistics(env), device=args.device)
observations, _ = env.reset(seed=0)
with measuring("gymnasium", args):
    for _ in range(args.steps):
        observations, rewards, terminated, truncated, info = env.step(env.action_space.sample())
env.close()
