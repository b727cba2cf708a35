"""Atari games as pure functions, in gymnax's conventions: a state is a JAX value.

    env, params = make("pong")
    observation, state = env.reset(key, params)
    observation, state, reward, done, info = env.step(key, state, action, params)

`jax.vmap` of these plays many envs at once: one call of the emulator plays all of them.
https://github.com/RobertTLange/gymnax
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from types import TracebackType
from typing import Any, cast

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium.spaces import Discrete

from cule import _core
from cule.adapters.jax.batches import Batch
from cule.adapters.jax.handler import register
from cule.adapters.jax.traced import as_array, as_int32
from cule.console import action_numbers
from cule.env import settings
from cule.env.keywords import refuse
from cule.env.lineup import choose_action_space, make_groups
from cule.errors import InvalidType, InvalidValue, shown
from cule.facts.actions import ACTIONS
from cule.rom import find_game
from cule.vector_env import AtariEnv

_RESERVED = {
    "num_envs": "jax.vmap makes the batch",
    "num_players": "it has one player",
    "autoreset_mode": "a step that ends an episode begins the next one",
    "batch_size": "it steps all envs",
    "continuous": "its actions are numbers",
    "obs_type": "its observations are images, and a state has the RAM",
    "output": "it gives JAX arrays",
    "patches": "its states have none",
    "render_mode": "it draws nothing",
    "reset_pool_size": "a state starts from one of a pool of fixed size",
    "seed": "its random numbers come from keys",
    "sound_obs": "its observations have no sound",
}
# The entries of a step's info, by the names of the batch's arrays.
_ENTRIES = {
    "lives": "lives", "frame_number": "frame_numbers",
    "episode_frame_number": "episode_frame_numbers", "fault": "faults", "game_over": "over",
    "new_game": "began", "raw_reward": "raw_rewards", "terminated": "terminated",
    "truncated": "truncated", "played_action": "played", "repeated_frames": "repeated",
}  # fmt: skip
# The words of a record that have an env's seed, and those that count what it was used for.
_SEED_WORDS = [byte // 4 for byte in _core.RANDOM_BYTES[:2]]
_COUNT_WORDS = [byte // 4 for byte in _core.RANDOM_BYTES[2:]]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        "records",
        "ram",
        "cartridge_bytes",
        "pictures",
        "row_of",
        "pooled",
        "observations",
    ],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class State:
    """The whole state of an env, as bytes of the emulator: an env goes on from it exactly.

    `jax.vmap` adds axes in front. A step that is compiled with its state donated writes the new
    state into the old one's memory.

    Attributes:
        records: (words,) uint32: registers, the chips, counters, the env's seed.
        ram: (128,) uint8: the console's RAM.
        cartridge_bytes: uint8: RAM or registers of the cartridge.
        pictures: (2, bytes) uint8: palette indices of the last two frames.
        row_of: (2, 256) uint8: the row of a picture that each scanline shows.
        pooled: (bytes,) uint8: the frame that the observation shows, in games where it cannot be
            made again of the pictures; else None.
        observations: the observation.
    """

    records: jax.Array
    ram: jax.Array
    cartridge_bytes: jax.Array
    pictures: jax.Array
    row_of: jax.Array
    pooled: jax.Array | None
    observations: jax.Array


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class EnvParams:
    """What an env was made with. They are constants of a program: `make` takes other ones.

    Attributes:
        game: the game's name.
        max_steps_in_episode: the longest episode, in steps.
        options: AtariEnv's keywords that are not at their defaults.
    """

    game: str
    max_steps_in_episode: int
    options: tuple[tuple[str, Any], ...]


def _bits(key: jax.Array) -> jax.Array:
    """(2,) uint32: the seed that a key means, low half first, below 2**63."""
    return jax.random.bits(key, (2,), jnp.uint32) & np.array([0xFFFFFFFF, 0x7FFFFFFF], np.uint32)


def seed_of(key: jax.Array) -> int:
    """The seed of `AtariEnv.reset` that starts an env as `Atari.reset` does with this key."""
    low, high = (int(half) for half in _bits(key))
    return high << 32 | low


class Atari:
    """A game as pure functions; made by `make`. All are traced, and can be called from Python.

    Attributes:
        name: the game's name.
        num_actions: how many actions there are.
        action_meanings: their names.
        default_params: what `make` returns with the env.
    """

    def __init__(self, game: str, device: str | torch.device | None, options: dict[str, Any]):
        refuse("make", options, _RESERVED)
        keywords = {
            name: parameter.default
            for name, parameter in inspect.signature(AtariEnv.__init__).parameters.items()
            if name != "self"
        }
        for name in options:
            if name not in keywords:
                raise InvalidType(f"expected a keyword of AtariEnv, got {name!r}")
        given = {"game": game, "device": device, "autoreset_mode": "SameStep", **options}
        self._checked = settings.check({**keywords, **given})
        self._game = find_game(game)
        checked = self._checked
        groups, _ = make_groups([self._game], checked.mode, checked.difficulty)
        numbers = action_numbers(self._game, choose_action_space(groups, checked.full_action_space))
        self.name, self.num_actions = self._game.name, len(numbers)
        self.action_meanings = [ACTIONS[number] for number in numbers]
        steps = -(-checked.max_num_frames_per_episode // checked.frameskip)
        self.default_params = EnvParams(self.name, steps, tuple(sorted(options.items())))
        self._batches: dict[int, Batch] = {}
        self._lock, self._closed = threading.Lock(), False
        register()
        self._reset, self._step = _batched(self._reset_all), _batched(self._step_all)

    # For each number of envs --------------------------------------------------------------------

    def _batch(self, num_envs: int) -> Batch:
        with self._lock:
            if self._closed:
                raise gymnasium.error.ClosedEnvironmentError(
                    "expected an open env, got a call after close()"
                )
            if num_envs not in self._batches:
                self._batches[num_envs] = Batch(self._game, self._checked, num_envs)
            return self._batches[num_envs]

    def _reset_all(self, seeds: jax.Array) -> dict[str, jax.Array]:
        """Resets envs with any axes in front: (..., 2) uint32."""
        axes = seeds.shape[:-1]
        count = int(np.prod(axes, dtype=np.int64))
        states = self._batch(count).reset(seeds.reshape(count, 2))
        return {name: array.reshape(*axes, *array.shape[1:]) for name, array in states.items()}

    def _step_all(
        self, seeds: jax.Array, actions: jax.Array, states: dict[str, jax.Array]
    ) -> dict[str, jax.Array]:
        """Steps envs with any axes in front."""
        axes = actions.shape
        count = int(np.prod(axes, dtype=np.int64))
        batch = self._batch(count)
        records = states["records"].at[..., _SEED_WORDS].set(seeds)
        records = records.at[..., _COUNT_WORDS].set(0)
        flat = {
            name: array.reshape(count, *array.shape[len(axes) :])
            for name, array in {**states, "records": records}.items()
        }
        results = batch.step(actions.reshape(count), flat)
        return {name: array.reshape(*axes, *array.shape[1:]) for name, array in results.items()}

    # What users call ----------------------------------------------------------------------------

    def reset(self, key: jax.Array, params: EnvParams | None = None) -> tuple[jax.Array, State]:
        """Starts an episode.

        Its start state is that of `AtariEnv(game, 1).reset(seed=seed_of(key))`.

        Args:
            key: a key of jax.random.
            params: those of this env; None: the same.

        Returns:
            The observation, (stack_num, img_height, img_width) uint8, and the state.

        Raises:
            ValueError: `params` are those of another env.
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
        """
        self._check(params)
        state = _state_of(self._reset(_bits(key)))
        return state.observations, state

    def step(
        self,
        key: jax.Array,
        state: State,
        action: jax.Array | int,
        params: EnvParams | None = None,
    ) -> tuple[jax.Array, State, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Plays a step of `frameskip` frames. If an episode ends in it, the next one begins.

        All random numbers of the step, those of sticky actions and of the next episode's start,
        come from `key`: they are those of an env with the seed `seed_of(key)`, which has not drawn
        any.

        Args:
            key: a key of jax.random.
            state: the state before.
            action: a number below `num_actions`, of any integer type. On the CPU another number is
                an error; a GPU plays it as a no-op.
            params: those of this env; None: the same.

        Returns:
            The observation, (stack_num, img_height, img_width) uint8, the new state, the reward,
            float32, whether the episode has ended, bool, and a dict of scalars: those of
            AtariEnv.step's info but `env_id`, and `terminated` and `truncated`. After an end the
            observation is the next episode's first.

        Raises:
            TypeError, ValueError: an argument is not as described, or a state not of such an env.
            gymnasium.error.ClosedEnvironmentError: the env has been closed.
            jax.errors.JaxRuntimeError: on the CPU: the action is wrong, or playing cannot produce
                the state. A GPU starts another episode then, and sets `fault` in the info.
        """
        self._check(params)
        self._check_state(state)
        given = as_array("action", action)
        if not jnp.issubdtype(given.dtype, jnp.integer) or given.shape:
            raise InvalidType(
                f"expected action to be an integer, got {given.dtype} of shape {given.shape}: "
                "jax.vmap steps many envs"
            )
        results = self._step(_bits(key), as_int32(given), _arrays_of(state))
        after = _state_of(results)
        info = {key: results[name] for key, name in _ENTRIES.items() if name in results}
        done = results["terminated"] | results["truncated"]
        return after.observations, after, results["rewards"].astype(jnp.float32), done, info

    def _check(self, params: EnvParams | None) -> None:
        if params is not None and params != self.default_params:
            raise InvalidValue(
                f"expected the params that make() returned with the env, got {shown(params)}"
            )

    def _check_state(self, state: State) -> None:
        """Checks that a state has the shapes and types of this env's.

        Raises:
            TypeError, ValueError: it has not.
        """
        if not isinstance(state, State):
            raise InvalidType(f"expected a State of reset() or step(), got {shown(state)}")
        found = {name: (one.shape, one.dtype) for name, one in _arrays_of(state).items()}
        wanted = {name: (one.shape, one.dtype) for name, one in self._forms.items()}
        if found != wanted:
            name = next(n for n in {**wanted, **found} if wanted.get(n) != found.get(n))
            raise InvalidValue(
                f"expected a state of {self.name!r} with the same options, got one whose {name} is "
                f"{found.get(name)}, not {wanted.get(name)}"
            )

    @functools.cached_property
    def _forms(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The shapes and types of one state's arrays."""
        return dict(jax.eval_shape(self._reset_all, jax.ShapeDtypeStruct((2,), jnp.uint32)))

    def observation_space(self, params: EnvParams | None = None) -> gymnasium.spaces.Box:
        """(stack_num, img_height, img_width) uint8."""
        self._check(params)
        shape = self._forms["observations"].shape
        return gymnasium.spaces.Box(0, 255, shape, np.uint8)

    def action_space(self, params: EnvParams | None = None) -> Discrete:
        """The numbers below `num_actions`."""
        self._check(params)
        return Discrete(self.num_actions)

    def close(self) -> None:
        """Frees what the env has. Programs that step it are refused from here on."""
        with self._lock:
            self._closed = True
            while self._batches:
                self._batches.popitem()[1].close()

    def __enter__(self) -> Atari:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _batched(function: Any) -> Any:
    """A function whose arrays may have any axes in front, with jax.vmap as one call of it."""
    call = jax.custom_batching.custom_vmap(function)

    @call.def_vmap
    def many(size: int, mapped: Any, *arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        wide = [
            leaf if has_axis else jnp.broadcast_to(leaf, (size, *leaf.shape))
            for leaf, has_axis in zip(leaves, jax.tree.leaves(mapped), strict=True)
        ]
        results = call(*jax.tree.unflatten(tree, wide))
        return results, jax.tree.map(lambda _: True, results)

    return jax.jit(call)


def _arrays_of(state: State) -> dict[str, jax.Array]:
    arrays = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    return {name: array for name, array in arrays.items() if array is not None}


def _state_of(arrays: dict[str, jax.Array]) -> State:
    fields = {field.name: arrays.get(field.name) for field in dataclasses.fields(State)}
    return State(**cast(Any, fields))


def make(
    game: str, device: str | torch.device | None = None, **options: Any
) -> tuple[Atari, EnvParams]:
    """A game as pure functions, and its params, as `gymnax.make` returns them.

    Args:
        game: a game's name in any spelling.
        device: as AtariEnv's; programs have to run there.
        **options: AtariEnv's other keywords. Those that belong to a batch, to its output and to
            its seeds are refused, as are several players, sound, patches, RAM as observations and
            continuous actions.

    Raises:
        TypeError, ValueError: an argument is wrong.
        RuntimeError: there is no C++ compiler, or it fails.
    """
    env = Atari(game, device, options)
    return env, env.default_params
