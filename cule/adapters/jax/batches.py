"""Batches whose envs' states are JAX values: calls of a port with states elsewhere."""

from __future__ import annotations

import weakref
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp

from cule import _core
from cule.adapters.jax.handler import call_port
from cule.adapters.jax.traced import close_port, device_number
from cule.engine import Engine
from cule.env import settings
from cule.env.lineup import choose_action_space, make_groups
from cule.rom import Game

# Of a step's other results.
REPORTS = (
    "rewards", "raw_rewards", "terminated", "truncated", "over", "began", "lives", "frame_numbers",
    "episode_frame_numbers", "faults",
)  # fmt: skip
OF_STICKY = ("played", "repeated")
_BITS = ("terminated", "truncated", "over", "began")


class Batch:
    """What steps and resets of `num_envs` states need besides the states.

    On a GPU this waits until the game is compiled.

    Args:
        game: the game.
        checked: AtariEnv's keywords, as settings.check returns them.
        num_envs: how many states there are in a call.

    Attributes:
        shapes: of each array of one state, without the axis of envs.
        reports: the names of a step's other results.
    """

    def __init__(self, game: Game, checked: SimpleNamespace, num_envs: int):
        self._num_envs, self._device = num_envs, checked.device
        groups, group_of_env = make_groups(
            [game] * num_envs, checked.mode * num_envs, checked.difficulty * num_envs
        )
        space = choose_action_space(groups, checked.full_action_space)
        options = replace(settings.step_options(checked, space), own_seeds=True)
        number = SimpleNamespace(**{**vars(checked), "num_envs": num_envs})
        engine = Engine(
            groups, group_of_env, options, checked.device, settings.threads(number),
            checked.translate, checked.multiprocessors, checked.progress, settings.cpus(number),
            states_elsewhere=True,
        )  # fmt: skip
        engine.wait_until_translated()
        self._engine = engine
        arrays = engine.batch.arrays(True, engine.runs_on_gpu)
        states = [
            name
            for name, (_, life, needed, _) in arrays.items()
            if needed and engine.layout.is_elsewhere(name, life) and life != "output"
        ]
        fields = {name: engine.layout.fields.get(name) for name in arrays}
        self._types = {
            name: jnp.bool_ if name in _BITS else jnp.dtype(dtype)
            for name, (dtype, _, _, _) in arrays.items()
        }
        self.shapes = {
            name: tuple(arrays[name][3][1:]) for name in (*states, "observations", *REPORTS)
        }
        if options.channels == 1:
            self.shapes["observations"] = self.shapes["observations"][:-1]
        self.states = (*states, "observations")
        self.reports = REPORTS + tuple(name for name in OF_STICKY if fields[name] is not None)
        self.shapes |= dict.fromkeys(self.reports, ())
        num_actions = sum(number != 0xFF for number in engine.tensors["action_ids"][:18].tolist())
        self._port = _core.Port(
            engine.backend, engine.batch, _core.Guard(), ["actions", *self.states],
            [*self.states, *REPORTS], [*self.states, *self.reports], True,
            device_number(checked.device), num_actions,
        )  # fmt: skip
        weakref.finalize(engine, close_port, self._port, checked.device)

    def close(self) -> None:
        """Refuses later calls, and waits for one that is being played."""
        close_port(self._port, self._device)

    def _shape(self, name: str) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((self._num_envs, *self.shapes[name]), self._types[name])

    def _call(
        self, given: list[jax.Array], out: list[str], aliases: dict[int, int], **attributes: bool
    ) -> dict[str, jax.Array]:
        shapes = [self._shape(name) for name in out]
        arrays = call_port(self._port.number, given, shapes, aliases, **attributes)
        return dict(zip(out, arrays, strict=True))

    def reset(self, seeds: jax.Array) -> dict[str, jax.Array]:
        """New states.

        Args:
            seeds: (num_envs, 2) uint32, low half first.

        Returns:
            The states' arrays by their names, each with the env as first axis.
        """
        arrays = self._call([seeds], [*self.states, *REPORTS], {}, seeds=True)
        return {name: arrays[name] for name in self.states}

    def step(self, actions: jax.Array, states: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Steps states.

        Args:
            actions: (num_envs,) int32.
            states: as `reset` returns them.

        Returns:
            The new states' arrays, and those of `reports`.
        """
        given = [actions, *(states[name] for name in self.states)]
        aliases = {i + 1: i for i in range(len(self.states))}
        return self._call(given, [*self.states, *self.reports], aliases, steps=True)
