"""rejax: its PPO, whose whole training is one compiled program, on envs that are pure functions.

It asks for gymnax's spaces. Its networks are dense, so that they learn little from images.
"""

import gymnax
import jax
import jax.numpy as jnp
import rejax
from measured import arguments, measuring

from cule.adapters.jax import make

args = arguments(__doc__)


class Env:
    """An env with gymnax's spaces, whose observations are numbers from 0 to 1."""

    def __init__(self, game, device):
        self.env, self.default_params = make(game, device=device)

    def __deepcopy__(self, memo):
        return self

    def action_space(self, params):
        return gymnax.environments.spaces.Discrete(self.env.num_actions)

    def observation_space(self, params):
        shape = self.env.observation_space(params).shape
        return gymnax.environments.spaces.Box(0.0, 1.0, shape, jnp.float32)

    def reset(self, key, params):
        observation, state = self.env.reset(key, params)
        return observation / 255.0, state

    def step(self, key, state, action, params):
        observation, *rest = self.env.step(key, state, action, params)
        return observation / 255.0, *rest


frames = args.num_envs * args.steps
algorithm = rejax.get_algo("ppo").create(
    env=Env(args.game, args.device), num_envs=args.num_envs, num_steps=32, num_epochs=1,
    num_minibatches=4, total_timesteps=frames, eval_freq=frames, skip_initial_evaluation=True,
    agent_kwargs={"hidden_layer_sizes": (32,)},
)  # fmt: skip
# Its own evaluation plays 128 whole episodes.
algorithm = algorithm.replace(eval_callback=lambda algorithm, state, key: state.global_step)
train = jax.jit(algorithm.train).lower(jax.random.key(0)).compile()
with measuring("rejax", args):
    state, steps = jax.block_until_ready(train(jax.random.key(0)))
assert int(steps[-1]) == frames
