"""TorchRL: an env of all consoles on the device, in its collector."""

from measured import arguments, measuring
from torchrl.collectors import Collector
from torchrl.envs.utils import RandomPolicy

from cule.adapters.torchrl import AtariTorchRLEnv

args = arguments(__doc__)
env = AtariTorchRLEnv(args.game, args.num_envs, args.device)
collector = Collector(
    env,
    RandomPolicy(env.action_spec),
    frames_per_batch=args.num_envs * 16,
    total_frames=args.num_envs * args.steps,
    device=args.device,
)
with measuring("torchrl", args):
    for batch in collector:
        assert batch["next", "pixels"].shape == (args.num_envs, 16, 4, 84, 84)
collector.shutdown()
