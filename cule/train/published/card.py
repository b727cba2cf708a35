"""A published policy's README.md: the model card that the Hugging Face Hub shows.

Its head is YAML, of which JSON is a part: https://huggingface.co/docs/hub/model-cards.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cule.disk.forms import are_numbers
from cule.programs.results import read_rows
from cule.rom import find_game
from cule.train.evaluate.evaluator import NOOPS
from cule.train.logs.log import RESULT
from cule.train.logs.rows import is_result
from cule.train.published.config import Config
from cule.train.settings import Args

CARD, CURVE, FILM = "README.md", "curve.png", "replay.mp4"
EVALUATIONS = "evaluations.jsonl"
# Settings that name places on the machine of the training.
PLACES = ("folder", "results", "explain_picture")
# Those of cule.train; what a user's own settings say may be secret.
SHOWN = {field.name for field in dataclasses.fields(Args)} - {*PLACES}
# Numbers in the row of an evaluation.
EVALUATED = ("sticky", "noops", "episodes", "score", "score_deviation", "max_frames")
Row = Mapping[str, Any]


def evaluations_in(run: Path, config: Config, digest: str) -> list[Row]:
    """The rows of a policy's evaluations, each protocol's newest; of the training, if those lack.

    Evaluations of a modified game are left out.

    Args:
        run: the run's folder.
        config: what the policy is.
        digest: of its checkpoint's networks, which its evaluations name.

    Raises:
        OSError: a file cannot be read.
    """
    path, by_protocol = run / EVALUATIONS, {}
    row: Row | None
    for row in read_rows(path) if path.exists() else ():
        mine = _is_of(row, config) and row.get("networks") == digest and not row.get("patches")
        if mine and isinstance(row.get("system"), str) and are_numbers(row, EVALUATED):
            by_protocol[_protocol_of(row)] = row
    if by_protocol:
        return list(by_protocol.values())
    row = result_of(run, config)
    trained = ("score", "score_deviation", "eval_episodes", "eval_sticky")
    if row is None or not are_numbers(row, trained):
        return []
    names = {"episodes": "eval_episodes", "sticky": "eval_sticky", "system": "eval_emulator"}
    evaluated = {name: row.get(other) for name, other in names.items()}
    return [{**row, **evaluated, "noops": NOOPS, "full_action_space": config.full_action_space}]


def result_of(run: Path, config: Config) -> Row | None:
    """The row of the training that ended with a policy.

    Raises:
        OSError: the file cannot be read.
    """
    path = run / RESULT
    rows = read_rows(path) if path.exists() else []
    found = [row for row in rows if _is_of(row, config) and is_result(row)]
    return found[-1] if found else None


def _is_of(row: Row, config: Config) -> bool:
    """Whether a row is about a policy: an earlier checkpoint has fewer frames."""
    names = ("game", "algorithm", "frames", "seed")
    return all(row.get(name) == getattr(config, name) for name in names)


def _protocol_of(row: Row) -> tuple[Any, ...]:
    names = ("system", "sticky", "noops", "greedy", "max_frames", "episodes", "full_action_space")
    return tuple(row.get(name) for name in names)


def protocol_text(row: Row) -> str:
    """A row's protocol in words."""
    words = ["sticky actions " + f"{row['sticky']:g}" if row.get("sticky") else "no sticky actions"]
    words.append(f"fewer than {row['noops']:g} no-ops" if row["noops"] else "no no-ops")
    words += ["all 18 actions"] if row.get("full_action_space") else []
    words += ["most probable actions"] if row.get("greedy") else []
    return f"{', '.join(words)}, on {_plain(row.get('system'))}"


def head_of(config: Config, evaluations: Sequence[Row]) -> str:
    """The card's head, between two lines of dashes."""
    game = f"ALE/{find_game(config.game).ale_id}-v5"
    results = [
        {
            "task": {"type": "reinforcement-learning", "name": "reinforcement-learning"},
            "dataset": {"type": game, "name": game, "config": protocol_text(row)},
            "metrics": [{
                "type": "mean_reward", "value": row["score"],
                "name": f"mean score of {row['episodes']:g} episodes, {protocol_text(row)}",
                "verified": False,
            }],
        }
        for row in evaluations
    ]  # fmt: skip
    values: dict[str, Any] = {
        "library_name": "cule",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["cule", "reinforcement-learning", "deep-reinforcement-learning", "atari",
                 config.game, game],
    }  # fmt: skip
    if results:
        values["model-index"] = [{"name": f"{config.algorithm} on {config.game}",
                                  "results": results}]  # fmt: skip
    lines = [f"{name}: {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(["---", *lines, "---"])


def _without_places(command: str) -> str:
    """A command without the options that name places on its author's machine."""
    with suppress(ValueError):  # it is no command
        words, kept = iter(shlex.split(command)), []
        for word in words:
            name = word.partition("=")[0].removeprefix("--").replace("-", "_")
            if name not in PLACES:
                kept.append(_last_part(word))
            elif "=" not in word:
                next(words, None)
        return shlex.join(kept)
    return "not known"


def _last_part(word: str) -> str:
    """A word of a command; of an absolute path, with or without an option, the last part."""
    option, given, path = word.rpartition("=")
    return f"{option}{given}{Path(path).name}" if path.startswith(("/", "~")) else word


def _code(text: Any) -> str:
    """A text in Markdown as it is, in one line: it may come from a file of another's."""
    return f"`{' '.join(str(text).split()).replace('`', chr(39)).replace('|', '/')}`"


def card_of(
    config: Config, run: Path, settings: Mapping[str, Any], digest: str, *, name: str, film: bool,
    curve: bool,
) -> str:  # fmt: skip
    """The text of README.md.

    Args:
        config: what the policy is.
        run: the run's folder, with rows of evaluations and results.
        settings: of the training; those that cule.train itself has are shown.
        digest: of the checkpoint's networks.
        name: by which the policy is loaded: a folder, or an id of the Hub.
        film: whether there is a film.
        curve: whether there is a curve.

    Raises:
        OSError: a file cannot be read.
    """
    evaluations, result = evaluations_in(run, config, digest), result_of(run, config)
    own = ", network=MyNetwork" if config.network == "own" else ""
    pictures = [f'<video controls src="{FILM}"></video>'] if film else []
    pictures += [f"![Scores in the training]({CURVE})"] if curve else []
    scores = ["It was not evaluated."]
    if evaluations:
        scores = ["| protocol | episodes | mean score | deviation |", "|---|---:|---:|---:|"]
        scores += [
            f"| {protocol_text(row)} | {row['episodes']:g} | {row['score']:,.2f} | "
            f"{row['score_deviation']:,.2f} |"
            for row in evaluations
        ]
    facts = {"commit of cule": config.commit or "not known", "seed": config.seed}
    for key, label in (("device_name", "device"), ("seconds", "seconds of training"),
                       ("torch", "torch"), ("command", "command")):  # fmt: skip
        if result is not None and result.get(key) is not None:
            facts[label] = result[key] if key != "command" else _without_places(str(result[key]))
    return "\n".join([
        head_of(config, evaluations), "",
        f"# {_plain(config.algorithm)} on {config.game}", "",
        f"A policy for the Atari 2600 game {config.game}, trained with cule on "
        f"{config.frames:,} frames.", "",
        *(line for picture in pictures for line in (picture, "")),
        "## Score", "", *scores, "",
        "## Use", "",
        "```python", "import cule.train", "",
        f"policy = cule.train.load({json.dumps(name)}{own})",
        "env = policy.make_env(num_envs=8)",
        "observations, info = env.reset(seed=0)",
        "for _ in range(1000):",
        "    observations, rewards, terminated, truncated, info = env.step(policy(observations))",
        "```", "",
        "## Training", "",
        *(f"- {label}: {_code(value)}" for label, value in facts.items()), "",
        "<details><summary>All settings</summary>", "",
        *(f"- {_plain(key)}: {_code(value)}" for key, value in sorted(settings.items())
          if key in SHOWN), "",
        "</details>", "",
    ])  # fmt: skip


def _plain(text: Any) -> str:
    """A text of letters, digits and a few signs, which Markdown shows as they are."""
    return re.sub(r"[^\w+ .,=-]", "", str(text))
