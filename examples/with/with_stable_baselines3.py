"""stable-baselines3: PPO on an adapter, which is a VecEnv."""

from measured import arguments, measuring
from stable_baselines3 import PPO

from cule.adapters.stable_baselines3 import AtariVecEnv

args = arguments(__doc__)
env = AtariVecEnv(args.game, args.num_envs, args.device, life_loss_info=True)
model = PPO("CnnPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device=args.device)
with measuring("stable_baselines3", args):
    model.learn(args.num_envs * args.steps)
assert model.num_timesteps >= args.num_envs * args.steps
env.close()
