"""Layouts: as text and back, their instances, and what cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from cule.train.layout import LAYOUTS, Instance, Kind, Layout, Share

TEXTS = {
    "together": Layout.together(),
    "apart:66": Layout.apart(66),
    "staggered:2": Layout.staggered(2),
    "decoupled:3+1": Layout.decoupled(actors=[0, 1, 2], learners=[3]),
    "decoupled:4+2": Layout.decoupled(actors=range(4), learners=[4, 5]),
    "decoupled:[0,2]+[1]": Layout.decoupled(actors=[0, 2], learners=[1]),
}


@pytest.mark.parametrize("text", TEXTS)
def test_layout_is_its_text(text):
    assert Layout.parse(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


def test_docs_have_the_layouts_as_they_are_listed():
    page = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text()
    lines = re.findall(r"^\| `([a-z]+(?::\S+)?)` \| (.*) \|$", page, re.MULTILINE)
    table = {name: what for name, what in lines if name.split(":")[0] in get_args(Kind)}
    assert list(table) == list(LAYOUTS)
    assert {Layout.parse(text).kind for text in LAYOUTS} == set(get_args(Kind))
    for name, what in LAYOUTS.items():
        assert table[name].startswith(what)


def test_layout_places_processes():
    assert Layout.together().processes(2) == [(Instance(0, envs=1),), (Instance(1, envs=1),)]
    assert Layout.apart(66).processes(1) == [
        (Instance(0, ("act",), 66, envs=1), Instance(0, ("learn",)))
    ]
    assert [p[0].device for p in Layout.staggered(2).processes(4)] == [0, 0, 1, 1]
    decoupled = Layout.parse("decoupled:[0,1,4]+[2]")
    assert [p[0].device for p in decoupled.processes(4)] == [2, 0, 1, 4]
    assert decoupled.ranks(4, "learn") == [0] and decoupled.ranks(4, "act") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("decoupled:2+1", [(1, 0, 0, 6), (2, 0, 6, 12)]),
        ("decoupled:1+3", [(3, 0, 0, 4), (3, 1, 4, 8), (3, 2, 8, 12)]),
        ("decoupled:3+2", [(2, 0, 0, 4), (3, 0, 4, 6), (3, 1, 6, 8), (4, 1, 8, 12)]),
        ("decoupled:2+2", [(2, 0, 0, 6), (3, 1, 6, 12)]),
        ("together", []),
    ],
)
def test_all_who_learn_get_equally_many_envs_in_order(text, shares):
    layout = Layout.parse(text)
    size = len(layout.actors) + len(layout.learners) or 2
    assert layout.shares(size, 12) == [Share(*share) for share in shares]


@pytest.mark.parametrize(
    ("text", "size", "mapping"),
    [
        ("together", 3, [[0], [1], [2]]),
        ("staggered:2", 4, [[0, 1], [2, 3]]),
        ("staggered:3", 3, [[0, 1, 2]]),
        ("decoupled:4+2", 6, [[0], [1]]),
    ],
)
def test_layout_maps_learners_to_gpus(text, size, mapping):
    assert Layout.parse(text).learners_by_device(size) == mapping


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("beside", "expected layout to be together, apart:66, staggered:2 or decoupled:3+1"),
        ("apart", "expected layout to be"),
        ("apart:x", "expected layout to be"),
        ("together:2", "expected layout to be"),
        ("decoupled:3", "expected layout to be"),
        ("apart:0", "expected apart with at least 1 multiprocessor that acts, got 0"),
        ("staggered:0", "expected staggered with at least 1 process on a GPU, got 0"),
        ("decoupled:0+1", "expected decoupled with at least 1 actor and 1 learner, got 0 and 1"),
        ("decoupled:[0,1]+[1]", "expected decoupled with a GPU for each actor and learner"),
    ],
)
def test_layout_that_cannot_be(text, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        Layout.parse(text)


@pytest.mark.parametrize(
    ("text", "size", "told"),
    [
        ("decoupled:3+1", 1, "expected 4 processes with the layout decoupled:3+1"),
        ("staggered:2", 3, "expected a multiple of 2 processes with the layout staggered:2, got 3"),
    ],
)
def test_layout_of_other_processes(text, size, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        Layout.parse(text).processes(size)
