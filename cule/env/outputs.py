"""Makes what `reset` and `step` return from the engine's tensors."""

from __future__ import annotations

from typing import Any

import torch

from cule.engine import Engine


class Outputs:
    """What calls return, as views of the engine's tensors that are made once.

    Args:
        engine: where the tensors are.
        obs_type: "image" or "ram".
        output: "torch": calls return the views themselves; "numpy": fresh arrays.
        same_step: whether a step that ends an episode also resets the env, and so returns two
            observations.

    Attributes:
        observations: (num_envs, stack_num, img_height, img_width) uint8, or (num_envs, 128).
        terminated, truncated: (num_envs,) bool.
        done: (num_envs,) bool: either of them. It is computed when it is asked for.
        info: the entries that `reset` and `step` have in common, (num_envs,) each.
        everywhere: (num_envs,) bool, all True: the mask of an entry that every env has.
    """

    def __init__(self, engine: Engine, obs_type: str, output: str, same_step: bool):
        self._engine, self._output, self._same_step = engine, output, same_step
        tensors, device, num_envs = engine.tensors, engine.device, engine.num_envs
        self.observations = tensors["ram" if obs_type == "ram" else "observations"]
        self.terminated = tensors["terminated"].view(torch.bool)
        self.truncated = tensors["truncated"].view(torch.bool)
        self.done = torch.zeros(num_envs, dtype=torch.bool, device=device)
        self.info = {
            "env_id": torch.arange(num_envs, dtype=torch.int32, device=device),
            "lives": tensors["lives"],
            "frame_number": tensors["frame_numbers"],
            "episode_frame_number": tensors["episode_frame_numbers"],
            "fault": tensors["faults"],
            "game_over": tensors["over"].view(torch.bool),
            "new_game": tensors["began"].view(torch.bool),
        }
        self.everywhere = torch.ones(num_envs, dtype=torch.bool, device=device)

    def give(self, tensor: torch.Tensor) -> Any:
        """A tensor as `output` asks for it."""
        return tensor if self._output == "torch" else tensor.cpu().numpy().copy()

    def find_done(self) -> torch.Tensor:
        """(num_envs,) bool: whose episode ended in this step; `done`, computed anew."""
        return torch.logical_or(self.terminated, self.truncated, out=self.done)

    def after_reset(self) -> tuple[Any, dict[str, Any]]:
        """The observations and the info."""
        return self.give(self.observations), self._infos(self.info)

    def after_step(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """The observations, rewards, terminated, truncated and the info."""
        tensors = self._engine.tensors
        return (
            self.give(self.observations),
            self.give(tensors["rewards"]),
            self.give(self.terminated),
            self.give(self.truncated),
            self._infos({**self.info, "reward": tensors["raw_rewards"]}) | self._final_infos(),
        )

    def _infos(self, entries: dict[str, torch.Tensor]) -> dict[str, Any]:
        infos = {key: self.give(value) for key, value in entries.items()}
        # gymnasium's masks say which envs an entry is about: here always all of them.
        return infos | {f"_{key}": self.give(self.everywhere) for key in entries}

    def _final_infos(self) -> dict[str, Any]:
        """In SAME_STEP the last observations of the episodes that ended in this step."""
        if not self._same_step:
            return {}
        done = self.find_done()
        # On the CPU it is known at once whether any env is done. On a GPU that would have to wait.
        if self._engine.device.type != "cuda" and not bool(done.any()):
            return {}
        final = self._engine.tensors["final_observations"]
        return {"final_obs": self.give(final), "_final_obs": self.give(done)}
