"""RL-Zoo: its training script with an id of cule's, and its settings for Atari."""

import sys
import tempfile

from measured import arguments, measuring
from rl_zoo3.train import train

import cule
from cule.rom import find_game

args = arguments(__doc__)
name = f"cule/{find_game(args.game).ale_id}NoFrameskip-v4"
settings = (f"n_envs:{args.num_envs}", "n_steps:32", f"batch_size:{32 * args.num_envs}")
sys.argv = [
    "train", "--algo", "ppo", "--env", name, "--gym-packages", cule.__name__, "-n",
    str(args.num_envs * args.steps), "--device", args.device, "--eval-freq", "-1",
    "--log-folder", tempfile.mkdtemp(dir="."), "-params", *settings, "n_epochs:1",
]  # fmt: skip
with measuring("rl_zoo3", args):
    train()
