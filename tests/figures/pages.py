"""What a page says, and the numbers in it that look measured."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.figures.results import Source

Span = tuple[int, int]
BEGIN, END = "<!-- {}: written by python -m tests.figures -->\n", "<!-- end of {} -->\n"
WRITTEN = re.compile(r"<!-- [^:>]*: written by [^>]* -->\n.*?<!-- end of [^>]* -->\n", re.DOTALL)
HEAD = "| figures | machine | rows | how many | commits |\n|---|---|---|---:|---|\n"

NUMBER = r"(?<![\w.,/-])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w-]|\.\d|,\d)"
BETWEEN = r"(?:,? and |, | to | or |; | instead of | ± )"
WORDS = (
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|"
    r"fifty|half an?|a third of an?|a hundred|a thousand)"
)
UNIT = (
    r"(?:%|per ?cent\b|[KMGT]i?B\b|s\b|ms\b|us\b|ns\b|FPS\b|GPU-hours?\b|TFLOP/s|MFLOP|TB/s|"
    r"M\b|points?\b|times\b|launches\b|frames (?:a|per) second|"
    r"(?:milli|micro|nano)?seconds?\b|minutes?\b|hours?\b|bytes\b|gigabytes\b|"
    r"(?:thousand|million)\b)"
)
# Ratios in words.
A_RATIO = (
    r"\b(?:twice|thrice|half|halves|halved|doubles?|doubled|triples?|tripled|\w+fold|"
    r"(?:a|one|two|three|four) (?:third|quarter|fifth|sixth|eighth|tenth|fifteenth|hundredth)s?|"
    r"orders? of magnitude|(?:several|many|some|a few|a dozen) times)\b"
)
# "12.9, 14.4 and 15.3 seconds", "thirty seconds", and decimals, which are seldom anything else.
A_FIGURE = re.compile(
    rf"{NUMBER}(?:{BETWEEN}{NUMBER})*(?: ?|-){UNIT}|{WORDS} {UNIT}|{A_RATIO}"
    rf"|(?<![\w.,/-])\d[\d.,]*-\d[\d.,]* ?{UNIT}"
    r"|(?<![\w.,/-])\d[\d.]*x(?!\w)|(?<![\w/])\d/\d\b"
    r"|(?<![\w.,/-])[-+]?\d[\d,]*\.\d+(?![\w-]|\.\d)",
    re.IGNORECASE,
)
A_VERSION = re.compile(
    r"\b(?:Python|torch|CUDA|gymnasium|gym|ale-py|EnvPool|CuLE|TorchRL|glibc|numpy|stable-baselines3"
    r"|capability|ptxas)(?: ALE)? v?\d[\d.]*(?:(?: \([^)]*\))?,? (?:to|and|or) \d[\d.]*)*"
    r"|\barXiv \d+\.\d+|\bv\d+(?:\.\d+)+"
)


@dataclass(frozen=True)
class Said:
    """A text of a page with holes for its figures, and what the rows give for them."""

    template: str
    values: tuple[Any, ...]

    def pieces(self) -> list[tuple[str, str | None]]:
        """(text before a hole, what is in the hole), at the end with None."""
        given, found = iter(self.values), []
        for text, name, form, _ in string.Formatter().parse(self.template):
            filled = None if name is None else format(next(given), form or "")
            found.append((text, filled))
        assert next(given, None) is None, f"more values than holes: {self.template}"
        return found

    def text(self) -> str:
        return "".join(text + (filled or "") for text, filled in self.pieces())

    def holes(self) -> Iterator[Span]:
        """Where the figures are in the text."""
        at = 0
        for text, filled in self.pieces():
            at += len(text)
            if filled is not None:
                yield at, at + len(filled)
                at += len(filled)


def said(template: str, *values: Any) -> Said:
    return Said(one_line(template), values)


def table_line(form: str, *cells: Any) -> Said:
    """A line of a table; `form` has the texts and holes of its cells, separated by "|"."""
    return said(f"| {' | '.join(part.strip() for part in form.split('|'))} |", *cells)


def one_line(text: str) -> str:
    """A text with its lines joined, except those of tables."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    joined = ""
    for before, line in zip(["", *lines], lines, strict=False):
        beside = "\n" if line.startswith("|") or before.startswith("|") else " "
        joined += (beside if joined else "") + line
    return re.sub(r" +", " ", joined).strip()


def prose(text: str) -> str:
    """A page without the code that it shows and without what tests write."""
    text = WRITTEN.sub("", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return one_line(re.sub(r"^```\w+\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def in_tables(text: str) -> Iterator[Span]:
    """The numbers in columns of numbers, which are those that are aligned at the right."""
    aligned: list[bool] = []
    for line in re.finditer(r"[^\n]+", text):
        if not line[0].startswith("|"):
            aligned = []
        elif re.fullmatch(r"\|(?::?-+:?\|)+", line[0]):
            aligned = [cell.endswith(":") for cell in line[0].strip("|").split("|")]
        elif aligned:
            for cell, right in zip(re.finditer(r"[^|]+", line[0]), aligned, strict=False):
                for number in re.finditer(NUMBER, cell[0]) if right else ():
                    start = line.start() + cell.start()
                    yield start + number.start(), start + number.end()


def without_names(text: str) -> str:
    """A text with code, addresses and versions blanked, so that their numbers do not count."""
    for pattern in (r"`[^`]*`", r"\[[\w-]+ \d+\](?=\()", r"\]\([^)]*\)", A_VERSION):
        text = re.sub(pattern, lambda hidden: "\0" * len(hidden[0]), text)
    return text


def looks_measured(text: str) -> set[Span]:
    """The numbers of a page that look measured, as places in `prose` of it."""
    text = without_names(text)
    found = set(in_tables(text))
    for figure in A_FIGURE.finditer(text):
        numbers = [*re.finditer(NUMBER, figure[0])] or [re.match(r".*", figure[0])]
        found |= {
            (figure.start() + number.start(), figure.start() + number.end()) for number in numbers
        }
    return found


def problems(
    page: str, figures: Sequence[Said], given: Iterable[str], numbers: str = ""
) -> list[str]:
    """What is wrong with the figures of a page.

    Args:
        page: its text.
        figures: what rows say.
        given: words with figures that are no measurements.
        numbers: separated by spaces: those that may stand without a unit anywhere.
    """
    text, covered, found = prose(page), set(), []
    for figure in figures:
        places = [place.start() for place in re.finditer(re.escape(figure.text()), text)]
        if not places:
            found.append(f"expected the page to say: {figure.text()}")
        covered |= {
            range(place + start, place + end) for place in places for start, end in figure.holes()
        }
    for words in map(one_line, given):
        places = [place.start() for place in re.finditer(re.escape(words), text)]
        if not places:
            found.append(f"given, but not in the page: {words}")
        for place in places:
            covered.add(range(place, place + len(words)))
    measured = looks_measured(text)
    plain = [number.span() for number in re.finditer(NUMBER, without_names(text))]
    known = set(numbers.split())
    bare = {(start, end) for start, end in plain if text[start:end] not in known}
    for start, end in sorted(measured | bare):
        if not any(start in span and end - 1 in span for span in covered):
            context = text[max(0, start - 50) : end + 30].replace("\n", " ")
            found.append(f"no rows for {text[start:end]} in: ...{context}...")
    return found


def table_of_sources(path: Path, sources: Iterable[Source]) -> str:
    """The table of a page that says where its figures are from."""
    return HEAD + "".join(f"{source.line(path)}\n" for source in sources)


def with_written(path: Path, blocks: Mapping[str, str]) -> str:
    """The page's text with its blocks, by their names, as rows have them now."""
    text = path.read_text()
    for name, block in blocks.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"expected {path} to have {begin.strip()} and {end.strip()}"
        text = before + begin + block + end + after
    return text
