"""Documents and comments name only files, code and options that exist; lines have 100 columns."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.support.anchors import anchors

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("benchmarks", "csrc", "cule", "design", "docs", "examples", "release", "roms", "tests")
CODE = (".py", ".pyi", ".h", ".cuh", ".cu", ".cpp")
BUILD_FILES = ("CMakeLists.txt", "Makefile", "pyproject.toml", "setup.py", ".ci/run")
# The log may name what has been removed since.
LOG = ROOT / "benchmarks" / "log"
# Files of other projects, and of users.
OTHERS_FILES = {
    "CuptiActivity.cpp", "SCRIPT.py", "atari_lib.py", "atari_wrappers.py", "backend.cu",
    "baselines/common/atari_wrappers.py", "dopamine/discrete_domains/atari_lib.py", "fails.py",
    "fast.py",
    "modules/imgproc/src/resize.cpp", "my_program.py", "output_json.cpp", "ppo_atari.py",
    "ppo_atari_envpool.py", "pyconfig.h", "q_learner.py", "report.md", "slow.py",
    "torchcule/frontend.cpp",
}  # fmt: skip
# Code of other projects, placeholders, keys of rows that were made by older programs, and names
# that a program puts together.
OTHERS_NAMES = {
    "CULE_0", "NCCL_SOCKET_IFNAME", "any_allocator", "atari_py", "concrete_allocator", "game_path",
    "gpu_utilization_min",
    "integer_traits", "ms_learning",
    "part_milliseconds", "q_learner", "rom_id", "sound_obs", "unique_function",
}  # fmt: skip
# Options of other programs: pytest-xdist, ruff, compute-sanitizer, torchrun, srun.
OTHERS_OPTIONS = {
    "cpunodebind", "dist", "fix", "gpus-per-node", "gpus-per-task", "interleave",
    "master-addr", "master-port", "membind", "nnodes", "node-rank", "tool",
}  # fmt: skip

A_FILE = re.compile(
    r"(?<![\w<*.\-/])((?:[\w.\-]+/)*[\w\-]+"
    r"\.(?:cff|cmake|cpp|cu|cuh|h|ipynb|md|py|pyi|toml|txt))(?![\w(])"
)
A_NAME = re.compile(
    r"\b(?!__)(?:\w+_\w+|k[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+)\b"  # snake_case, kConstants, TypeNames
    r"|\b[a-z]\w+(?=\(\))"  # functions()
)
AN_OPTION = re.compile(r"(?<![\w-])--([a-z][\w.-]*\w)")


def files() -> list[Path]:
    """The repository's files, without what was built."""
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    found += [*ROOT.glob("*.*"), *(ROOT / name for name in BUILD_FILES)]
    return sorted({path for path in found if path.is_file() and "__pycache__" not in path.parts})


def sources() -> list[Path]:
    """Where what is named can be: not in this file, which lists what is elsewhere."""
    return [
        path
        for path in files()
        if (path.suffix in CODE or path.name in BUILD_FILES) and path != Path(__file__).resolve()
    ]


def documents() -> list[Path]:
    return [path for path in files() if path.suffix == ".md" and path.parent != LOG]


def without_blocks(text: str, keep: str = "") -> str:
    """A page without its code blocks, except those of the kind `keep`."""
    return re.sub(
        r"^ *```(\w*)\n.*?^ *```",
        lambda block: block[0] if keep and block[1] == keep else "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def comments(path: Path) -> Iterator[str]:
    """The comments of a source file, and in Python its docstrings."""
    text = path.read_text()
    if path.suffix not in (".py", ".pyi"):
        yield from re.findall(r"//(.*)", text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.string.startswith('"""'):
            yield token.string


def test_files_that_documents_and_comments_name_exist() -> None:
    paths = {str(path.relative_to(ROOT)) for path in files()}
    # A file may be named without the folders above it.
    ends = {path[i + 1 :] for path in paths for i in range(len(path)) if path[i] == "/"} | paths
    gone = set()
    for path in files():
        if path.suffix not in (*CODE, ".md") or path.parent == LOG:
            continue
        text = path.read_text() if path.suffix == ".md" else "\n".join(comments(path))
        for name in A_FILE.findall(re.sub(r"https?://\S+", "", text)):
            beside = name.startswith("../") and (path.parent / name).exists()
            if name not in ends | OTHERS_FILES and not beside:
                gone.add(f"{path.relative_to(ROOT)}: {name}")
    assert gone == set()


def test_citations_of_the_log_name_an_entry() -> None:
    """A day of the log is cited with the anchor of an entry, in documents and in code."""
    cited = [
        (path, day, anchor)
        for path in files()
        if path.suffix in (*CODE, ".md") and path.parent != LOG
        for day, anchor in re.findall(r"\blog/(2026-[\d-]+\.md)(?:#([\w-]+))?", path.read_text())
    ]
    assert len(cited) > 4
    nowhere = [f"{path.relative_to(ROOT)}: {day}#{anchor}"
               for path, day, anchor in cited if anchor not in anchors(LOG / day)]  # fmt: skip
    assert nowhere == []


def test_entries_of_a_day_have_anchors_of_their_own() -> None:
    for page in LOG.glob("*.md"):
        assert len(set(anchors(page))) == len(anchors(page)), page.name


def test_code_that_documents_name_exists() -> None:
    known = set(re.findall(r"\w+", "\n".join(path.read_text() for path in sources())))
    known |= {path.stem for path in files()} | OTHERS_NAMES
    gone = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in documents()
        for quoted in re.findall(r"`([^`]+)`", without_blocks(page.read_text()))
        for name in A_NAME.findall(quoted)
        if name not in known
    }
    assert gone == set()


def test_options_that_documents_name_exist() -> None:
    text = "\n".join(path.read_text() for path in sources())
    known = set(AN_OPTION.findall(text)) | OTHERS_OPTIONS
    # The examples' options are fields of dataclasses: --no-bf16, --train.num-batches.
    known |= {name.replace("_", "-") for name in re.findall(r"^    (\w+): ", text, re.MULTILINE)}
    gone = {
        f"{page.relative_to(ROOT)}: --{option}"
        for page in documents()
        for option in AN_OPTION.findall(without_blocks(page.read_text(), keep="sh"))
        if not {option, option.removeprefix("no-"), option.removeprefix("train.")} & known
    }
    assert gone == set()


def test_lines_of_documents_end_at_column_100() -> None:
    """A row of a table cannot be wrapped, nor an address, nor what a program prints.

    What a program prints is a code block without a language.
    """
    printed = re.compile(r"^```\n.*?^```$", flags=re.DOTALL | re.MULTILINE)
    long = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in [*documents(), *LOG.glob("*.md")]
        for number, line in enumerate(
            printed.sub(lambda block: "\n" * block[0].count("\n"), page.read_text()).splitlines(), 1
        )
        if len(line) > 100 and not line.lstrip().startswith("|") and "://" not in line
    ]
    assert long == []
