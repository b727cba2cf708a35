"""CleanRL: its ppo_atari_envpool.py as it is, with cule's adapter in EnvPool's place.

CleanRL is a folder, and no package; of others it needs gym 0.23.1.
"""

import runpy
import sys
from pathlib import Path

from measured import arguments, measuring

from cule.adapters import envpool_v0
from cule.rom import find_game

args = arguments(__doc__, cleanrl="cleanrl")
sys.modules["envpool"] = envpool_v0
script = Path(args.cleanrl) / "cleanrl" / "ppo_atari_envpool.py"
sys.path.insert(0, args.cleanrl)
sys.argv = [
    str(script), f"--env-id={find_game(args.game).ale_id}-v5", f"--num-envs={args.num_envs}",
    "--num-steps=32", f"--total-timesteps={args.num_envs * args.steps}",
    *(["--no-cuda"] if args.device == "cpu" else []),
]  # fmt: skip
with measuring("gym", args):
    runpy.run_path(str(script), run_name="__main__")
