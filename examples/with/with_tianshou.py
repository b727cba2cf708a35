"""Tianshou: its own vector env of single envs, in its collector."""

import gymnasium
from measured import arguments, measuring
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.env.atari.atari_network import DQNet

import cule  # noqa: F401 (registers the ids)
from cule.rom import find_game

args = arguments(__doc__)
name = f"cule/{find_game(args.game).ale_id}Preprocessed-v5"
envs = DummyVectorEnv([lambda: gymnasium.make(name, device=args.device)] * args.num_envs)
space = envs.action_space[0]
net = DQNet(4, 84, 84, space.n).to(args.device)
policy = DiscreteQLearningPolicy(model=net, action_space=space, eps_training=1.0)
buffer = VectorReplayBuffer(args.num_envs * args.steps, args.num_envs)
collector = Collector[CollectStats](policy, envs, buffer)
collector.reset()
with measuring("tianshou", args):
    stats = collector.collect(n_step=args.num_envs * args.steps)
assert stats.n_collected_steps == args.num_envs * args.steps == len(buffer)
