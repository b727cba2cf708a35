"""docs/troubleshooting.md quotes messages that the source has, and every error of the library."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"
HOLE = "\0"  # where a message has a value
# Programs, whose users get a line that says what was wrong.
PROGRAMS = {
    "bench", "command_line.py", "compile.py", "demo.py", "figures.py", "info.py", "play.py",
    "record.py", "train",
}  # fmt: skip


def text_of(node: ast.AST) -> str | None:
    """A string of the source, with holes for its values; None if the node is not a string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else f"{left or HOLE}{right or HOLE}"
    return None


@functools.cache
def all_texts() -> list[str]:
    """The strings of the package and of setup's files."""
    texts = [(ROOT / "CMakeLists.txt").read_text().replace("\\", "")]
    texts += [path.read_text() for path in (ROOT / "csrc" / "bindings").glob("*.h")]
    for path in (ROOT / "cule").rglob("*.py"):
        texts += [text for node in ast.walk(ast.parse(path.read_text())) if (text := text_of(node))]
    return texts


def raised_messages() -> list[str]:
    """What the library raises or warns with, beginning with "expected"."""
    found = []
    for path in (ROOT / "cule").rglob("*.py"):
        if PROGRAMS & set(path.relative_to(ROOT / "cule").parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = text_of(node.exc.args[0])
                if text and text.startswith("expected "):
                    found.append(text)
    return found


def quoted_messages() -> list[str]:
    """What the page quotes: lines of messages in bold, such as "**`expected …`**"."""
    lines = re.findall(r"^\*\*(`.+`)\*\* *$", PAGE.read_text(), re.MULTILINE)
    return [message for line in lines for message in re.findall(r"`([^`]+)`", line)]


def matches(quoted: str, text: str) -> bool:
    """Whether a text of the source matches the quoted one, in which "…" stands for any text."""
    pieces = quoted.split("…")
    if not all(piece in text for piece in pieces):  # which is found out much sooner
        return False
    return re.search(".*".join(map(re.escape, pieces)), text, re.DOTALL) is not None


@pytest.mark.parametrize("quoted", quoted_messages())
def test_quoted_message_is_in_the_source(quoted: str) -> None:
    assert any(matches(quoted, text) for text in all_texts())


def test_every_error_of_the_library_is_on_the_page() -> None:
    messages, quoted = raised_messages(), quoted_messages()
    assert len(messages) > 50
    assert len(quoted) > 20
    lacking = [text for text in messages if not any(matches(one, text) for one in quoted)]
    lacking = [text.replace(HOLE, "…") for text in lacking]
    assert lacking == [], "expected docs/troubleshooting.md to quote each of these"
