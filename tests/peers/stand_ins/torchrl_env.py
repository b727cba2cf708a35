"""`AtariTorchRLEnv` in the place of `MultiThreadedEnv`, TorchRL's env of EnvPool's envs."""

from __future__ import annotations

import sys
from typing import Any

import fake_envpool  # noqa: F401
import torchrl.envs.libs.envpool
import torchrl.testing

from cule.adapters.torchrl import AtariTorchRLEnv


class MultiThreadedEnv(AtariTorchRLEnv):
    """As many envs of Pong as the test makes workers."""

    def __init__(
        self, num_workers: int, env_name: str, *, create_env_kwargs: Any = None, device: Any = "cpu"
    ):
        options: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 0}
        frameskip = (create_env_kwargs or {}).get("frame_skip", 4)
        super().__init__("pong", num_workers, device, frameskip=frameskip, **options)


torchrl.envs.libs.envpool._has_envpool = True
# The tests' names of envs are classic control's; of Pong they know that it has pictures.
torchrl.testing.CARTPOLE_VERSIONED = torchrl.testing.PONG_VERSIONED
for name, module in list(sys.modules.items()):
    if name.startswith("torchrl") and hasattr(module, "MultiThreadedEnv"):
        module.MultiThreadedEnv = MultiThreadedEnv
