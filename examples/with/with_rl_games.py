"""rl_games: PPO on envs that it knows as a vector env; tensors stay on the device."""

import tempfile

from measured import arguments, measuring
from rl_games.common import env_configurations, vecenv
from rl_games.common.ivecenv import IVecEnv
from rl_games.torch_runner import Runner

import cule

args = arguments(__doc__)


class Envs(IVecEnv):
    def __init__(self, name, num_actors, **_):
        self.env = cule.AtariEnv(args.game, num_actors, args.device)

    def reset(self):
        return self.env.reset()[0]

    def step(self, actions):
        pictures, rewards, terminated, truncated, _ = self.env.step(actions)
        return pictures, rewards.float(), terminated | truncated, {}

    def get_env_info(self):
        spaces = self.env.single_observation_space, self.env.single_action_space
        return dict(zip(("observation_space", "action_space"), spaces, strict=True))


vecenv.register("CULE", Envs)
env_configurations.register("cule", {"vecenv_type": "CULE", "env_creator": lambda **_: None})
plain = {"activation": "relu", "initializer": {"name": "default"}}
conv = {"filters": 16, "kernel_size": 8, "strides": 4, "padding": 0}
network = {
    "name": "actor_critic", "separate": False, "space": {"discrete": None},
    "cnn": {"type": "conv2d", "permute_input": False, "convs": [conv], **plain},
    "mlp": {"units": [64], **plain},
}  # fmt: skip
config = {
    "name": "cule", "env_name": "cule", "num_actors": args.num_envs, "horizon_length": 32,
    "minibatch_size": args.num_envs * 32, "mini_epochs": 1, "learning_rate": 2.5e-4, "gamma": 0.99,
    "tau": 0.95, "e_clip": 0.1, "entropy_coef": 0.01, "critic_coef": 1.0, "grad_norm": 0.5,
    "truncate_grads": True, "clip_value": False, "normalize_advantage": True, "lr_schedule": None,
    "normalize_input": False, "score_to_win": 10**9, "max_epochs": max(1, args.steps // 32),
    "reward_shaper": {"scale_value": 1.0}, "device": args.device, "device_name": args.device,
    "train_dir": tempfile.mkdtemp(dir="."), "ppo": True, "print_stats": False,
    "torch_compile": False,
    "save_best_after": 10**9, "save_frequency": 0,
}  # fmt: skip
runner = Runner()
runner.load({"params": {"seed": 1, "algo": {"name": "a2c_discrete"}, "network": network,
                        "model": {"name": "discrete_a2c"}, "config": config}})  # fmt: skip
with measuring("rl_games", args):
    runner.run({"train": True, "play": False})
