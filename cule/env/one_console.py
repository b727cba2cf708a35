"""What ale-py's interface of one console can do with it, beside steps: frames, power, switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

from cule import _core
from cule.console import Group
from cule.env.consoles import HasConsoles
from cule.env.guard import changes
from cule.env.outputs import Step
from cule.errors import Failed

# The words of a record before and after the one with elapsed frames (csrc/console/record.h,
# EnvState).
_ELAPSED = _core.ELAPSED_BYTE // 4
_FRAME, _EPISODE_FRAME = _ELAPSED - 2, _ELAPSED - 1


class OneConsole:
    """The console of an env that has one.

    Args:
        env: the env.
    """

    def __init__(self, env: HasConsoles):
        self._consoles, self._guard = env.consoles, env.consoles.guard

    @property
    def group(self) -> Group:
        """The game, its mode and its difficulty."""
        return self._consoles.engine.groups[0]

    # Sound ----------------------------------------------------------------------------------------

    @property
    def has_sound(self) -> bool:
        """Whether the env was made with sound_obs=True."""
        return self._consoles.engine.options.sound

    def check_sound(self, wanted: bool) -> None:
        """Checks that the setting `sound_obs` is as the env was made.

        Raises:
            RuntimeError: it is not.
        """
        if wanted != self.has_sound:
            raise Failed(
                f"expected sound_obs to be {self.has_sound}, with which this env was made, got "
                f"{wanted}: cule.adapters.ale takes any"
            )

    def sound(self) -> np.ndarray:
        """(512,) uint8: the samples of the last frame; zeros without sound."""
        if not self.has_sound:
            return np.zeros(_core.FRAME_SAMPLES, np.uint8)
        return self._consoles.engine.tensors["sounds"][0, -1].cpu().numpy().copy()

    def _parts_of_sound(self) -> list[torch.Tensor]:
        tensors = self._consoles.engine.tensors
        return [tensors["sound"][0], tensors["sounds"][0, -1]] if self.has_sound else []

    @contextmanager
    def sound_goes_on(self) -> Iterator[None]:
        """In the block a state may be restored: the sound is then as it was before."""
        parts = self._parts_of_sound()
        before = [part.clone() for part in parts]
        yield
        for part, was in zip(parts, before, strict=True):
            part.copy_(was)

    @contextmanager
    def heard_as_one(self) -> Iterator[None]:
        """All frames that are played in the block are one frame of sound, as of ale-py's `act`.

        It is heard, too, if none is played, as the episode has ended.
        """
        parts = self._parts_of_sound()
        channels = [part[_core.SOUND_CHANNELS_BYTE :] for part in parts[:1]]
        before = [part.clone() for part in channels]
        yield
        for part, was in zip(channels, before, strict=True):
            part.copy_(was)
        self.hear()

    def hear(self) -> None:
        """A frame of sound goes by in which nothing is played. Without sound it does nothing."""
        parts = self._parts_of_sound()
        if parts:
            arrays = [part.cpu().numpy() for part in parts]
            _core.hear(*arrays)
            for part, array in zip(parts, arrays, strict=True):
                part.copy_(torch.from_numpy(array))

    # Playing --------------------------------------------------------------------------------------

    @changes
    def play_frame(self, action: int, strength: float) -> Step:
        """Plays one frame, and returns what a step returns.

        Args:
            action: one of cule.ACTIONS, whether the env offers it or not. Where the game does not
                allow it, it is a no-op.
            strength: how fast a paddle turns; 1 is what a stick does.
        """
        consoles = self._consoles
        consoles.check_idle("act")
        consoles.check_started("act")
        engine, offered = consoles.engine, consoles.action_numbers
        if action in offered:
            index = offered.index(action)
        else:  # a place that no action of the env has
            index = _core.NUM_ACTIONS - 1
            engine.tensors["action_ids"][index] = action
        engine.tensors["actions"][0] = index
        engine.batch.actions_b = 0
        had_strengths = "strengths" in engine.tensors
        if strength != 1 and not had_strengths:
            engine.memory.place("strengths", torch.ones(1, device=engine.device))
        if "strengths" in engine.tensors:
            engine.tensors["strengths"][0] = strength
        frameskip, engine.batch.frameskip = engine.batch.frameskip, 1
        try:
            engine.step()
        finally:
            engine.batch.frameskip = frameskip
            if action not in offered:
                engine.tensors["action_ids"][index] = 0xFF
            if "strengths" in engine.tensors:
                engine.tensors["strengths"][0] = 1
        return consoles.results()

    @changes
    def power_on(self, seed: int | None, probability: float) -> None:
        """Turns the console on: in its default mode, as ale-py's loadROM leaves it.

        Args:
            seed: of the random numbers; None: another one each time.
            probability: that a frame repeats the action of the one before.
        """
        consoles, engine = self._consoles, self._consoles.engine
        consoles.check_idle("loadROM")
        game = self.group.game
        self._configure(Group(game, game.facts["default_mode"], 0))
        engine.batch.repeat_action_probability = probability
        if probability > 0 and "repeated" not in engine.tensors:
            rows = torch.zeros((2, 1), dtype=torch.int32, device=engine.device)
            consoles.replace({"repeated": rows[0], "played": rows[1]})
        consoles.reset(None, consoles.drawn_seed() if seed is None else seed)
        booted, records = engine.boots[0].snapshot, engine.contents.records()
        words = torch.from_numpy(booted.record.view("int32")).to(engine.device)
        kept = [byte // 4 for byte in _core.RANDOM_BYTES]
        words[kept] = records[0, kept]
        records[0] = words
        for name in ("ram", "cartridge_bytes"):
            engine.tensors[name][0] = torch.from_numpy(getattr(booted, name)).to(engine.device)
        for part, name in zip(self._parts_of_sound(), ("sound", "sounds"), strict=False):
            part.copy_(torch.from_numpy(getattr(booted, name)))
        pictures = engine.tensors["pictures"]
        both = torch.from_numpy(booted.pictures.reshape(2, -1)[:, : pictures.shape[-1]])
        pictures[0] = both.to(engine.device)
        rows = torch.arange(_core.PICTURE_ROWS, device=engine.device)
        engine.tensors["row_of"][0] = rows.to(torch.uint8)
        engine.tensors["frame_numbers"][0] = words[_FRAME]
        engine.tensors["episode_frame_numbers"][0] = words[_EPISODE_FRAME]

    @changes
    def set_mode(self, mode: int) -> None:
        """Chooses another mode, from the next reset on.

        Raises:
            RuntimeError: there is no such mode, or start states of another mode are in a pool.
        """
        group = self.group
        self._check_listed("mode", mode, group.game.modes)
        self._configure(replace(group, mode=mode))

    @changes
    def set_difficulty(self, difficulty: int) -> None:
        """Moves the difficulty switches, from the next frame on.

        Raises:
            RuntimeError: as set_mode.
        """
        group = self.group
        self._check_listed("difficulty", difficulty, group.game.difficulties)
        self._configure(replace(group, difficulty=difficulty))

    def _check_listed(self, what: str, value: int, listed: tuple[int, ...]) -> None:
        if value not in listed:
            known = ", ".join(map(str, listed))
            raise Failed(f"expected a {what} of {self.group.game.name!r} ({known}), got {value}")

    def _configure(self, group: Group) -> None:
        engine = self._consoles.engine
        if group == engine.groups[0]:
            return
        if engine.options.reset_pool_size:
            raise Failed(
                "expected an env with reset_pool_size=0 for another mode or difficulty, as its "
                f"start states are of one, got {engine.options.reset_pool_size}"
            )
        engine.configure(group)
