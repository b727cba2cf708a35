"""TorchRL: GymEnv with an id of gymnasium's registry, as for ale-py's: a process for each env."""

from measured import arguments, measuring
from torchrl.envs import GymEnv
from torchrl.envs.utils import RandomPolicy

import cule  # noqa: F401 (registers the ids)
from cule.rom import find_game

if __name__ == "__main__":  # its processes import this file
    args = arguments(__doc__)
    name = f"cule/{find_game(args.game).ale_id}Preprocessed-v5"
    env = GymEnv(name, num_envs=args.num_envs, device=args.device)
    with measuring("torchrl", args):
        data = env.rollout(args.steps, RandomPolicy(env.action_spec), break_when_any_done=False)
    assert data["next", "observation"].shape == (args.num_envs, args.steps, 4, 84, 84)
    env.close()
