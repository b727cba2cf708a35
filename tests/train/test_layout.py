"""Layouts: as text and back, their instances, and what cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cule.train.layout import LAYOUTS, Instance, Layout, Share

TEXTS = {
    "together": Layout.together(),
    "apart:66": Layout.apart(66),
    "staggered:2": Layout.staggered(2),
    "decoupled:3+1": Layout.decoupled(actors=[0, 1, 2], learners=[3]),
    "decoupled:4+2": Layout.decoupled(actors=range(4), learners=[4, 5]),
    "decoupled:[0,2]+[1]": Layout.decoupled(actors=[0, 2], learners=[1]),
    "decoupled:[0,0]+[1,1]": Layout.decoupled(actors=[0, 0], learners=[1, 1]),
    "learn+2act": Layout.of(*[Instance(role="act")] * 2, Instance(role="learn"), everywhere=True),
    "both:40": Layout.of(Instance(budget=40), everywhere=True),
    "2both:0.5GiB": Layout.of(*[Instance(memory=0.5)] * 2, everywhere=True),
    "both:0.00001GiB@2+both:1234567.5GiB@2": Layout.of(
        Instance(2, memory=1e-5), Instance(2, memory=1234567.5)
    ),
    "learn:88:20GiB@0+2act:44@0+act@0": Layout.of(
        Instance(0, "act", 44),
        Instance(0, "act", 44),
        Instance(0, "act"),
        Instance(0, "learn", 88, 20),
    ),
    "2both@0+both@1": Layout.of(Instance(0), Instance(0), Instance(1)),
    "learn@0+both@1+2act@0+act@2": Layout.of(
        Instance(0, "act"),
        Instance(1),
        Instance(0, "act"),
        Instance(0, "learn"),
        Instance(2, "act"),
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_layout_is_its_text(text):
    assert Layout.parse(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


def test_instances_in_another_order_or_with_their_names_are_the_same_layout():
    for text, same in (
        ("both", "together"), ("2both", "staggered:2"), ("act@0+act@1+learn@2", "decoupled:2+1"),
        ("2act@0+learn@0+both@1", "learn@0+both@1+2act@0"), ("2act+learn", "learn+2act"),
        ("act@0+learn@1+act@0", "decoupled:[0,0]+[1]"),
    ):  # fmt: skip
        assert Layout.parse(text) == Layout.parse(same) and str(Layout.parse(text)) == same


def test_docs_have_the_layouts_as_they_are_listed():
    page = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text()
    table = dict(re.findall(r"^\| `(\S+)` \| (.*) \|$", page, re.MULTILINE))
    assert [name for name in table if name in LAYOUTS] == list(LAYOUTS)
    for name, what in LAYOUTS.items():
        assert table[name].startswith(what)


def test_layout_places_processes():
    assert Layout.together().processes(2) == [(Instance(0),), (Instance(1),)]
    assert Layout.apart(66).processes(1) == [(Instance(0, "act", 66), Instance(0, "learn"))]
    assert [p[0].device for p in Layout.staggered(2).processes(4)] == [0, 0, 1, 1]
    decoupled = Layout.parse("decoupled:[0,1,4]+[2]")
    assert [p[0].device for p in decoupled.processes(4)] == [2, 0, 1, 4]
    assert decoupled.ranks(4, "learn") == [0] and decoupled.ranks(4, "act") == [1, 2, 3]
    everywhere = Layout.parse("2act+learn")
    assert [p[0].device for p in everywhere.processes(6)] == [0, 0, 0, 1, 1, 1]
    assert everywhere.only(6, "learn") == [0, 3] and everywhere.only(6, "act") == [1, 2, 4, 5]
    mixed = Layout.parse("2act@0+learn@0+both@1")
    assert [p[0].role for p in mixed.processes(4)] == ["learn", "both", "act", "act"]
    assert mixed.ranks(4, "learn") == [0, 1] and mixed.ranks(4, "act") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "size", "envs"),
    [
        ("together", 2, [(0, 6), (6, 12)]),
        ("apart:8", 2, [(0, 6), (6, 12)]),
        ("decoupled:3+2", 5, [(0, 0), (0, 0), (0, 4), (4, 8), (8, 12)]),
        ("2act@0+learn@0+both@1", 4, [(0, 0), (6, 12), (0, 3), (3, 6)]),
        ("act@0+2learn@0+2both@1", 5, [(0, 0), (0, 0), (6, 9), (9, 12), (0, 6)]),
        ("2act+learn", 6, [(0, 0), (0, 3), (3, 6), (0, 0), (6, 9), (9, 12)]),
    ],
)
def test_all_who_act_have_envs_of_their_own(text, size, envs):
    layout = Layout.parse(text)
    layout.check_envs(len(layout.ranks(size, "act")), 12)
    assert [(each.start, each.stop) for each in layout.envs(size, 12) if each] == [
        (begin, end) for begin, end in envs if end > begin
    ]
    assert [len(each) for each in layout.envs(size, 12)] == [end - begin for begin, end in envs]


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("decoupled:2+1", [(1, 0, 0, 6), (2, 0, 6, 12)]),
        ("decoupled:1+3", [(3, 0, 0, 4), (3, 1, 4, 8), (3, 2, 8, 12)]),
        ("decoupled:3+2", [(2, 0, 0, 4), (3, 0, 4, 6), (3, 1, 6, 8), (4, 1, 8, 12)]),
        ("decoupled:2+2", [(2, 0, 0, 6), (3, 1, 6, 12)]),
        ("together", []),
        ("2act@0+learn@0+both@1", [(2, 0, 0, 3), (3, 0, 3, 6)]),
        ("act@0+2learn@0+2both@1", [(4, 0, 0, 3), (4, 1, 3, 6)]),
    ],
)
def test_all_who_learn_get_equally_many_envs_in_order(text, shares):
    layout = Layout.parse(text)
    assert layout.shares(len(layout.places), 12) == [Share(*share) for share in shares]


@pytest.mark.parametrize(
    ("text", "size", "mapping"),
    [
        ("together", 3, [[0], [1], [2]]),
        ("staggered:2", 4, [[0, 1], [2, 3]]),
        ("staggered:3", 3, [[0, 1, 2]]),
        ("decoupled:4+2", 6, [[0], [1]]),
        ("2act@0+learn@0+both@1+both@0", 5, [[0, 2], [1]]),
        ("2act+learn", 6, [[0], [3]]),
    ],
)
def test_layout_maps_learners_to_gpus(text, size, mapping):
    assert Layout.parse(text).learners_by_device(size) == mapping


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "beside",
            "expected layout to be together, apart:66, staggered:2, decoupled:3+1 or 2act@0",
        ),
        ("act@0+learn", "expected layout to be"),
        ("act:4:4@0+learn@0", "expected layout to be"),
        ("both:4GB", "expected layout to be"),
        ("both:0", "expected an instance with a budget of at least 1 multiprocessor, got 0"),
        ("2serve@0+learn@0", "expected layout to be"),
        ("act@0", "expected a layout in which some instances do both, or some act and others"),
        ("both@0+act@1", "learn from that, got both, act"),
        ("both+learn", "learn from that, got both, learn"),
        ("0both", "learn from that, got none"),
        ("apart", "expected layout to be"),
        ("apart:x", "expected layout to be"),
        ("together:2", "expected layout to be"),
        ("decoupled:3", "expected layout to be"),
        ("apart:0", "expected apart with at least 1 multiprocessor that acts, got 0"),
        ("staggered:0", "expected staggered with at least 1 process on a GPU, got 0"),
        ("decoupled:0+1", "expected decoupled with at least 1 actor and 1 learner, got 0 and 1"),
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


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Instance(0, "serve"), "expected an instance with the role act, learn or both"),
        (lambda: Instance(-1), "expected an instance with a GPU, counted from 0, got -1"),
        (lambda: Instance(budget=0), "expected an instance with a budget of at least 1 multipro"),
        (lambda: Instance(memory=0.0), "expected an instance with more than 0 GiB of memory, got"),
        (lambda: Instance(memory=float("inf")), "with more than 0 GiB of memory, got inf"),
        (lambda: Layout.of(Instance(1), everywhere=True), "expected GPU 0 in a layout of each GPU"),
        (lambda: Layout.parse("3act@0+2learn@0").check_envs(3, 9), "of the 2 processes that learn"),
        (
            lambda: Layout.parse("2act@0+learn@0+both@0").check_envs(3, 6),
            "expected the 2 processes that only act with the layout learn@0+both@0+2act@0 to have "
            "equally many of the 3 envs from which others learn, got num_envs 6",
        ),
    ],
)
def test_instances_and_envs_that_cannot_be(make, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        make()


def test_budgets_are_of_processes_with_one_instance():
    assert Layout.parse("2both:44").limited and Layout.parse("2both:44").budget is None
    assert Layout.apart(44).budget == 44 and not Layout.apart(44).limited
    assert Layout.parse("both:2GiB").processes(2) == [
        (Instance(0, memory=2),),
        (Instance(1, memory=2),),
    ]


def test_fewest_envs_of_those_who_act():
    mixed = Layout.parse("2act@0+learn@0+both@1")
    assert [len(its) for its in mixed.envs(4, 12)] == [0, 6, 3, 3]
    assert mixed.fewest_envs(3, 12) == 3
    assert Layout().fewest_envs(2, 12) == 6
    assert Layout.decoupled([0, 1], [2]).fewest_envs(2, 12) == 6
    assert Layout.staggered(2).fewest_envs(4, 12) == 3
