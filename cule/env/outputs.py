"""Makes the results of `reset` and `step` from the engine's tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from cule.engine import Engine
from cule.env.parts import TENSORS, ObsType, parts_of

# A result: a tensor, or an array with output="numpy". It is Any and not a union, as then every
# caller would have to check which of the two it got.
Array = Any
# Observations: an Array, or with sound a dict of two, "image" and "sound", as ale-py's env has.
Observations = Any
# The results of a step.
Step = tuple[Array, Array, Array, Array, dict[str, Any]]


def for_each(function: Callable[[torch.Tensor], Any], observations: Observations) -> Any:
    """What the function makes of observations, or of each part of them."""
    if not isinstance(observations, dict):
        return function(observations)
    return {name: function(part) for name, part in observations.items()}


class Outputs:
    """The results of calls: views of the engine's tensors, which are made once, or copies of them.

    Args:
        engine: the engine that has the tensors.
        obs_type: "image", "ram" or "objects", or several of them.
        output: "torch": calls return copies; "torch_shared": the views themselves; "numpy": arrays.
        same_step: whether a step that ends an episode also resets the env, and so returns two
            observations.

    Attributes:
        same_step: as given.
        observations: (num_envs, stack_num, img_height, img_width) uint8, or (num_envs, 128), or
            objects, (num_envs, rows, 7) int16. Of several a dict. With sound a dict, too, of these,
            "image", and of the last frame's samples, "sound", (num_envs, 512) uint8.
        final: the same of the episodes that ended in this step, in SAME_STEP; else None.
        terminated, truncated: (num_envs,) bool.
        done: (num_envs,) bool: either of them. It is computed when it is asked for.
        info: the entries that `reset` and `step` have in common, (num_envs,) each; with several
            players `lives` is (num_envs, num_players).
        everywhere: (num_envs,) bool, all True: the mask of an entry that every env has.
    """

    def __init__(self, engine: Engine, obs_type: ObsType, output: str, same_step: bool):
        self._engine, self._output, self.same_step = engine, output, same_step
        tensors, device, num_envs = engine.tensors, engine.device, engine.num_envs
        self.observations = self._parts(obs_type, 0)
        self.final = self._parts(obs_type, 1) if same_step else None
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
        if "objects_left_out" in tensors:
            self.info["objects_left_out"] = tensors["objects_left_out"]
        self._sticky = {}
        if "repeated" in tensors:  # with sticky actions
            self._sticky["played_action"] = tensors["played"]
            self._sticky["repeated_frames"] = tensors["repeated"]
        self.everywhere = torch.ones(num_envs, dtype=torch.bool, device=device)

    def _parts(self, obs_type: ObsType, final: int) -> Observations:
        """The tensors of observations; with `final` 1 those of episodes that ended."""
        tensors = self._engine.tensors
        parts = {name: tensors[TENSORS[name][final]] for name in parts_of(obs_type)}
        if not isinstance(obs_type, str):
            found = parts
        elif self._engine.options.sound:
            found = {"image": parts[obs_type]}
        else:
            return parts[obs_type]
        if self._engine.options.sound:
            found["sound"] = tensors["final_sounds" if final else "sounds"][:, -1]
        return found

    @property
    def step_info(self) -> dict[str, torch.Tensor]:
        """The entries of a step's info, (num_envs,) each.

        With several players `lives` and `raw_reward` are (num_envs, num_players).
        """
        return {**self.info, "raw_reward": self._engine.tensors["raw_rewards"], **self._sticky}

    def give(self, tensor: torch.Tensor) -> Any:
        """A result as `output` asks for it: a copy, the tensor itself, or an array."""
        return tensor.cpu().numpy() if self._output == "numpy" else tensor

    def _observed(self, observations: Observations) -> Any:
        if self._output == "torch_shared":
            return observations
        return for_each(lambda part: self.give(part.clone()), observations)

    def _each(self, vectors: list[torch.Tensor]) -> list[Any]:
        """(num_envs,) or (num_envs, num_players) tensors as `output` asks for them.

        Copies of one dtype and shape share an allocation, as on a GPU each copy by itself would be
        a launch.
        """
        if self._output == "torch_shared":
            return vectors
        kinds = [(vector.dtype, vector.dim()) for vector in vectors]
        copies: dict[tuple[torch.dtype, int], Iterator[Any]] = {}
        for kind in set(kinds):
            alike = [vector for vector, its in zip(vectors, kinds, strict=True) if its == kind]
            copies[kind] = iter(self.give(torch.stack(alike)))
        return [next(copies[kind]) for kind in kinds]

    def find_done(self) -> torch.Tensor:
        """(num_envs,) bool: whose episode ended in this step; `done`, computed anew."""
        return torch.logical_or(self.terminated, self.truncated, out=self.done)

    # A rollout under torch.inference_mode is learned from outside of it.
    @torch.inference_mode(False)
    def after_reset(self) -> tuple[Array, dict[str, Any]]:
        """The observations and the info."""
        return self._observed(self.observations), self._infos(self.info, [])[1]

    @torch.inference_mode(False)
    def after_step(self) -> Step:
        """The observations, rewards, terminated, truncated and the info."""
        (rewards, terminated, truncated), infos = self._infos(
            self.step_info, [self._engine.tensors["rewards"], self.terminated, self.truncated]
        )
        observations = self._observed(self.observations)
        return observations, rewards, terminated, truncated, infos | self._final_infos()

    def _infos(
        self, entries: dict[str, torch.Tensor], others: list[torch.Tensor]
    ) -> tuple[list[Any], dict[str, Any]]:
        """`others` as `output` asks for them, and the info with these entries and their masks."""
        # gymnasium's masks say which envs an entry is about: here always all of them.
        infos = entries | {f"_{key}": self.everywhere for key in entries}
        given = self._each([*others, *infos.values()])
        return given[: len(others)], dict(zip(infos, given[len(others) :], strict=True))

    def _final_infos(self) -> dict[str, Any]:
        """In SAME_STEP the last observations of the episodes that ended in this step."""
        if not self.same_step:
            return {}
        done = self.find_done()
        # On the CPU it is known at once whether any env is done. On a GPU that would have to wait.
        if self._engine.device.type != "cuda" and not bool(done.any()):
            return {}
        (mask,) = self._each([done])
        return {"final_obs": self._observed(self.final), "_final_obs": mask}
