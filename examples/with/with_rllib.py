"""RLlib's new API stack: PPO with a vector entry point, and bytes that become numbers of 0 to 1."""

import numpy as np
import ray
from measured import arguments, measuring
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module.observation_preprocessor import (
    SingleAgentObservationPreprocessor,
)
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

import cule
from cule.registration import make_vector_env

args = arguments(__doc__)


class Floats(SingleAgentObservationPreprocessor):
    """(4, 84, 84) bytes as (84, 84, 4) numbers, which RLlib's own convolutions take."""

    def recompute_output_observation_space(self, space, action_space):
        return type(space)(0.0, 1.0, (84, 84, 4), np.float32)

    def preprocess(self, observation, episode):
        return np.moveaxis(observation, 0, -1).astype(np.float32) / 255


def make(context):
    if "num_envs" not in context:  # RLlib asks for a single env to learn the spaces
        return cule.SingleAtariEnv(args.game, device=args.device)
    return make_vector_env(args.game, context["num_envs"], device=args.device)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
ray.tune.register_env("cule", make)
config = PPOConfig().environment("cule").learners(num_learners=0)
config.env_runners(
    num_env_runners=0, num_envs_per_env_runner=args.num_envs, rollout_fragment_length=32,
    gym_env_vectorize_mode="vector_entry_point",
    env_to_module_connector=lambda *_, **__: Floats(),
)  # fmt: skip
config.training(
    train_batch_size_per_learner=32 * args.num_envs, minibatch_size=32 * args.num_envs, num_epochs=1
)
convs = [[16, 8, 4], [32, 4, 2]]
config.rl_module(model_config=DefaultModelConfig(conv_filters=convs, head_fcnet_hiddens=[64]))
algorithm = config.build_algo()
with measuring("ray", args):
    for _ in range(max(1, args.steps // 32)):
        algorithm.train()
algorithm.stop()
