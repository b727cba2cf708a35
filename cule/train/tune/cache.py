"""Results of searches on disk, in cule's cache folder."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from cule.devices.device import usable_cpus
from cule.disk.cache import cache_folder, digest_of, keep
from cule.disk.claims import Claim
from cule.disk.files import content_of
from cule.disk.forms import formed
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.programs import results
from cule.rom import find_game
from cule.train.algorithm import Algorithm
from cule.train.command import options_of
from cule.train.distributed.process_group import ProcessGroup
from cule.train.import_path import module_of
from cule.train.settings import Args
from cule.train.tune.search import Trial

# Settings on which a result depends, besides the game: those that change what is computed.
SAME = (
    "emulator", "layout", "reduction", "max_staleness", "env_device", "env_groups", "model",
    "width", "bf16", "channels_last", "compile", "cuda_graphs",
)  # fmt: skip


@dataclass(frozen=True)
class Key:
    """By what the result of a search is looked up.

    Attributes:
        algorithm: its module, or its script's name, and its own name.
        game: its name.
        device_name: the GPU's, or the CPU's with its threads.
        num_devices: how many processes train together.
        version: of cule.
        same: other settings that matter.
    """

    algorithm: str
    game: str
    device_name: str
    num_devices: int
    version: str
    same: Mapping[str, Any]

    @property
    def path(self) -> Path:
        """The file."""
        name = re.sub(r"\W", "-", self.algorithm.rpartition(":")[2])
        return cache_folder() / "tuned" / f"{name}-{self.game}-{digest_of(self)}.json"


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        best: the trial with the most frames per second; its `settings` are the setting to use.
        trials: all trials.
        space: what was searched.
        device_name: on which device.
        num_devices: how many processes.
        combinations: combinations of all candidates.
        seconds: how long the search took.
        complete: it was not cut off by the end of the time.
        again: it is the result of an earlier search.
    """

    best: Trial
    trials: Sequence[Trial]
    space: Mapping[str, Sequence[Any]]
    device_name: str
    num_devices: int
    combinations: int
    seconds: float
    complete: bool
    again: bool = False


def key_of(algorithm: Algorithm[Any], processes: ProcessGroup) -> Key:
    """The key of an algorithm's result.

    Args:
        algorithm: with settings for the device.
        processes: the processes.
    """
    from cule import __version__

    args = algorithm.args
    kind = type(algorithm)
    module = module_of(kind)
    if module.endswith(".py"):
        module = Path(module).stem  # as it is called where it is not the main program
    return Key(
        algorithm=f"{module}:{kind.__qualname__}", game=find_game(args.game).name,
        device_name=results.machine(
            processes.device, args.num_threads or usable_cpus()
        )["device_name"],
        num_devices=processes.size, version=__version__,
        same={name: getattr(args, name) for name in SAME},
    )  # fmt: skip


def _trial(values: dict[str, Any]) -> Trial:
    """A trial from a file.

    Raises:
        AttributeError, TypeError, ValueError: it is damaged.
    """
    forms = get_type_hints(Trial)
    return Trial(**{name: formed(value, forms.get(name, Any)) for name, value in values.items()})


def load(key: Key) -> Tuned | None:
    """The result of an earlier search; None: there is none that can be read, and is this user's."""
    with suppress(OSError, *DAMAGE):
        values = json.loads(content_of(key.path, own=True))["tuned"]
        trials = [_trial(trial) for trial in values.pop("trials")]
        best = _trial(values.pop("best"))
        return Tuned(best=best, trials=trials, **values | {"again": True})
    return None


@contextmanager
def claimed(key: Key, processes: ProcessGroup) -> Iterator[None]:
    """Claims a result for these processes while a block runs. All have to run it.

    Where no result can be saved, nothing is claimed.

    Raises:
        ValueError: other processes search for the same.
    """
    with ExitStack() as held:
        with processes.all_or_none():
            if processes.rank == 0:
                with suppress(OSError):
                    held.enter_context(Claim(key.path.with_suffix(".lock"), "a search"))
        yield


def save(key: Key, tuned: Tuned) -> None:
    """Saves a result; if it cannot be written, there is a warning."""
    text = json.dumps({"key": dataclasses.asdict(key), "tuned": dataclasses.asdict(tuned)})
    try:
        keep(key.path, text.encode())
    except OSError as problem:
        warnings.warn(f"the tuned settings are not kept: {problem}", stacklevel=2)


def tuned_settings(
    given: Args,
    algorithm: Algorithm[Any],
    processes: ProcessGroup,
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The tuned values of the settings that are not set; a line on stderr says which.

    A setting that has its default counts as not set.

    Args:
        given: the settings as they were given.
        algorithm: with the same settings, filled for the device.
        processes: the processes.
        before: the tuned settings of the run that is resumed, which stay; None: a new run.

    Raises:
        ValueError: there is no result of a search.
    """
    key = key_of(algorithm, processes)
    if before is None:
        # That of the first machine, as others may have none.
        tuned = processes.broadcast(load(key) if processes.rank == 0 else None, 0)
        if tuned is None:
            program = key.algorithm.partition(":")[0]
            raise InvalidValue(
                f"expected a search before --tuned for {key.game} on {processes.size} x "
                f"{key.device_name}, got none: python -m cule.train.tune {program} --game "
                f"{key.game}"
            )
        before = tuned.best.settings
    defaults = {field.name: field.default for field in dataclasses.fields(given)}
    if unknown := [name for name in before if name not in defaults]:
        raise InvalidValue(
            f"expected settings of {type(given).__name__} to be kept in {key.path}, got "
            f"{', '.join(unknown)}: search again, or delete the file"
        )
    unset = {
        name: value for name, value in before.items() if getattr(given, name) == defaults[name]
    }
    if processes.rank == 0 and given.progress:
        words = " ".join(options_of(unset)) or "nothing that is not set"
        sys.stderr.write(f"Tuned for {key.device_name}: {words}\n")
    return unset
