"""Every snippet and command of README.md and docs/ runs, with smaller numbers than printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cule import _core
from cule.bench import __main__ as bench
from cule.scope import options as scope_options
from tests.support import warm
from tests.support.anchors import anchors

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FOLDERS = ("docs", "design", "benchmarks", "examples", "roms")
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))]
)
# With some updates in so few frames.
TRAININGS = {
    "examples.a2c_vtrace.train": ["--num-steps", "4", "--warmup-steps", "0"],
    "examples.ppo.ppo": ["--num-steps", "4", "--minibatch-size", "80"],
    "examples.dqn.dqn": ["--memory", "400", "--first-update", "80", "--minibatch-size", "20"],
    "examples.rainbow.rainbow": ["--memory", "400", "--first-update", "120"],
    "examples.rainbow.btr": [
        "--memory",
        "400",
        "--first-update",
        "120",
        "--minibatch-size",
        "20",
    ],
    "examples.pqn.pqn": ["--num-steps", "4", "--minibatch-size", "80"],
    "examples.reinforce.reinforce": ["--n-step", "2"],
    "examples.self_play.train": ["--num-steps", "4", "--minibatch-size", "80"],
}
SHORT_TRAINING = [
    "--num-envs", "20", "--width", "0.1", "--total-frames", "500", "--eval-episodes", "0",
    "--device", "cpu", "--no-plot",
]  # fmt: skip
# What makes a command short; the last of two equal options counts.
SHORTER = {
    "cule": [],
    "cule.bench": [
        "--seconds",
        "0.2",
        "--rounds",
        "1",
        "--warmup-steps",
        "2",
        "--num-envs",
        "2",
        "--quiet",
    ],
    "cule.info": [],
    # Minutes of work for the run-time compiler, which .ci/run does with one game.
    "cule.compile": ["--help"],
    "cule.demo": ["--num-envs", "2", "--steps", "3", "--quiet"],
    "cule.play": ["--seconds", "0.2", "--quiet"],
    "tests.digest": [
        "pong",
        "--devices",
        "cpu",
        "cpu",
        "--envs",
        "1",
        "--steps",
        "2",
        "--pool",
        "1",
    ],
    "tests.peers": ["--help"],
    "benchmarks.peers": ["--help"],
    "benchmarks.conformance": ["--help"],
    "benchmarks.studies": ["--help"],
    "cule.record": ["--seconds", "0.2", "--quiet"],
    # Of a run that another command makes.
    "cule.train.watch": ["--help"],
    "cule.train.evaluate": ["--help"],
    "cule.train.plot": ["--help"],
    "cule.train.publish": ["--help"],
    # Of a demonstration that another command makes; test_robustify.py trains from one.
    "examples.go_explore.robustify": ["--help"],
    # Of rows of a repository; test_atari57_costs.py has it.
    "examples.atari57.costs": ["--help"],
    # Hours of work, which tests/train/test_atari57.py has in small.
    "examples.atari57.run": ["--help"],
    "examples.atari57.report": ["--help"],
    "examples.atari57.search": ["--help"],
    "cule.train.sweep": ["--help"],
    "cule.train.tune": ["--help"],
    **{program: [*SHORT_TRAINING, *words] for program, words in TRAININGS.items()},
    "cule.scope": [],
    "examples.go_explore.explore": [
        "--num-envs",
        "4",
        "--rounds",
        "2",
        "--steps",
        "2",
        "--num-threads",
        "1",
    ],
    "examples/mixed_games.py": ["--steps", "2", "--games", "pong", "breakout"],
}
# Programs that measure in processes of their own, for many seconds. Their commands run with -m
# slow; without it their words are read. test_bench.py and scope/test_command.py have what they do.
PARSERS = {"cule.bench": bench.make_parser, "cule.scope": scope_options.make_parser}
WITH_CUDA = _core.has_cuda() and torch.cuda.is_available()


def blocks(kind: str) -> list[tuple[str, str]]:
    """(where, text) of all code blocks of a kind."""
    found = []
    for page in PAGES:
        texts = re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        found += [(f"{page.relative_to(ROOT)}-{i}", text) for i, text in enumerate(texts)]
    return found


def smaller(code: str) -> str:
    """A snippet with fewer envs, steps and start states.

    Counts up to 8 stay, and so does 57 for as many games.
    """
    counts = {
        text for text in re.findall(r"num_envs=(\d+)", code) if int(text) > 8 and int(text) != 57
    }
    for count in counts:
        code = re.sub(rf"(num_envs=|\] \* ){count}\b", r"\g<1>8", code)
    code = code.replace("num_envs=57,", "num_envs=57, reset_pool_size=1,")
    return re.sub(r"\b(range\(|length=)\d\d+\)", r"\g<1>3)", code)


@pytest.mark.parametrize(
    ("where", "code"), blocks("python"), ids=lambda value: value if "\n" not in value else ""
)
def test_snippet_runs(where: str, code: str, tmp_path: Path) -> None:
    """Each snippet runs in a process of its own, so it must import all that it needs."""
    if '"cuda"' in code and not WITH_CUDA:
        pytest.skip("needs a CUDA build and a GPU")
    done = warm.run(["-c", smaller(code)], cwd=tmp_path, env=environment())
    assert done.returncode == 0, f"{where}: {done.stderr}"


def environment() -> dict[str, str]:
    """The environment of a process that finds this cule and no display."""
    without = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {name: value for name, value in os.environ.items() if name not in without} | {
        "PYTHONPATH": path
    }


def commands() -> list[tuple[str, str]]:
    """(where, command) of all shell lines, and of `python ...` in the text of a page."""
    found = []
    for where, text in blocks("sh"):
        found += [
            (where, line.split("#")[0].strip())
            for line in text.splitlines()
            if line.split("#")[0].strip()
        ]
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        lines = re.findall(r"`((?:python|pip|make) [^`\n]+)`", prose)
        found += [(str(page.relative_to(ROOT)), line) for line in lines if "..." not in line]
    # A command that is on several pages runs once.
    by_command = {command: where for where, command in reversed(found)}
    return [(where, command) for command, where in reversed(by_command.items())]


def check_pip_install(where: str, words: list[str]) -> None:
    """Checks that pip installs this folder with extras that it has, or packages that the project
    names."""
    if "--index-url" in words:
        del words[words.index("--index-url") + 1]
    text = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"^(\w+) = \[", text, re.MULTILINE)
    packages = {
        *re.findall(r'"([\w-]+)[^"]*"', text),
        "nvidia-cuda-nvrtc",
        "nvidia-cuda-nvrtc-cu12",
    }
    if "-r" in words:
        file = words.pop(words.index("-r") + 1)
        assert (ROOT / file).exists(), f"{where}: there is no {file}"
        return
    targets = [word for word in words if not word.startswith("-")]
    assert targets, where
    for target in targets:
        name, _, named = target.rstrip("]").partition("[")
        if name == ".":
            assert set(filter(None, named.split(","))) <= set(extras), (
                f"{where}: there is no such extra"
            )
        else:
            assert name in packages, f"{where}: cule has nothing to do with {name}"


# What is recorded in place of a page's program.
TRAINING = """
from cule import scope
for _ in range(400):
    with scope.iteration(), scope.operation("learning"):
        sum(range(100))
"""


def of_scope(words: list[str], folder: Path) -> list[str]:
    """A command of cule.scope with a short program, and with the recordings that it reads."""
    from cule import scope

    (folder / "short.py").write_text(TRAINING)
    scope.Costs().write(folder / "costs.json")
    if "--counters" in words:  # ncu needs a GPU
        return [*words[:3], "--help"]
    if words[3] in ("report", "compare"):
        for name in words:
            if name.startswith("runs/"):
                with scope.record(folder / name), scope.iteration():
                    pass
        return words
    if words[3] == "start":
        return [*words[: words.index("--")], "--", "short.py"]
    quick = {"calibrate": ["--repeats", "1"], "check": ["--turns", "1"]}.get(words[3], [])
    if "--" in words:
        words = [*words[: words.index("--")], *quick, "--", "short.py"]
    return words


def words_of(command: str) -> list[str]:
    """The words of a command, without the environment, and without a service that needs a GPU."""
    words = shlex.split(command)
    while re.match(r"[A-Z_]+=", words[0]):
        del words[0]
    if words[:3] == ["python", "-m", "cule.train.mps"]:
        words = words[words.index("--") + 1 :]
    return words


def measures(command: str) -> bool:
    """Whether a command is that of one of PARSERS."""
    words = words_of(command)
    return words[:2] == ["python", "-m"] and words[2] in PARSERS


@pytest.mark.parametrize(
    ("where", "command"), [one for one in commands() if measures(one[1])], ids=lambda value: value
)
def test_words_of_a_measuring_command_are_known(where: str, command: str) -> None:
    _, _, program, *words = words_of(command)
    PARSERS[program]().parse_args(words)


@pytest.mark.parametrize(
    ("where", "command"),
    [pytest.param(*one, marks=pytest.mark.slow if measures(one[1]) else ()) for one in commands()],
    ids=lambda value: value,
)
def test_command_runs(where: str, command: str, tmp_path: Path) -> None:
    words = words_of(command)
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        named = {word for word in words[1:] if "=" not in word}
        assert named and named <= set(targets), f"{where}: there is no such target"
        return
    if words[:2] == ["pip", "install"]:
        check_pip_install(where, words[2:])
        return
    if command == "python tests/test_readme.py":
        return
    assert words[0] == "python", f"{where}: {command}"
    program = words[2] if words[1] == "-m" else words[1]
    assert program in SHORTER, f"{where}: {command}"
    words[1:3] = words[1:3] if words[1] == "-m" else [str(ROOT / words[1]), *words[2:3]]
    shorter = SHORTER[program] + (
        ["--results", str(tmp_path / "rows.jsonl")] if program == "cule.bench" else []
    )
    if "--env-groups" in words:
        shorter = [*shorter, "--env-groups", "1", "--num-threads", "1"]
    words = ["pong" if program == "cule.bench" and word == "all" else word for word in words]
    if program == "cule.scope":
        words = of_scope(words, tmp_path)
    words = [*words[1:], *shorter]
    if program == "cule.scope":  # torch's profiler does not know that it is in a fork
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300,
            env=environment() | {"CULE_CACHE_DIR": str(tmp_path / "cache")}, check=False,
        )  # fmt: skip
    else:
        done = warm.run(words, cwd=tmp_path, env=environment())
    # A program as short as this may be found to be biased.
    allowed = (0, 1) if words[1:3] == ["cule.scope", "check"] else (0,)
    assert done.returncode in allowed, f"{where}: {command}: {done.stderr}"


def test_links_lead_somewhere() -> None:
    for page in DOCUMENTS:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if "://" in target:
                continue
            name, _, heading = target.partition("#")
            file = page.parent / name if name else page
            assert file.exists(), f"{page.name}: {target}"
            if heading:
                assert heading in anchors(file), f"{page.name}: {target}"


def test_commands_for_contributors_name_what_is_there() -> None:
    """Checks make's targets, and the files, folders and modules of Python's commands."""
    blocks = re.findall(
        r"^ *```sh\n(.*?)^ *```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE
    )
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = [
        word
        for words in lines
        if "make" in words
        for word in words
        if "=" not in word and word != "make"
    ]
    assert made and set(made) <= targets
    run = [words for words in lines if words[:1] == ["python"]]
    assert len(run) > 10
    for words in run:
        for word in words:
            assert "/" not in word or (ROOT / word).exists(), f"CONTRIBUTING.md: there is no {word}"
        if words[1] == "-m" and words[2] != "pytest":
            file = ROOT / words[2].replace(".", "/")
            assert file.is_dir() or file.with_suffix(".py").exists(), (
                f"CONTRIBUTING.md: there is no {words[2]}"
            )


def test_table_of_keywords_is_complete() -> None:
    """docs/api.md names every keyword of AtariEnv."""
    import inspect

    import cule

    text = (ROOT / "docs" / "api.md").read_text()
    names = [
        name for name in inspect.signature(cule.AtariEnv.__init__).parameters if name != "self"
    ]
    assert [name for name in names if f"`{name}`" not in text] == []
