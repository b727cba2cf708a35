"""Traces are read event by event: as Python's JSON decoder reads them, and damaged ones not."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cule.scope import activities
from cule.scope.trace import _scan, read_trace

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(json_values), st.dictionaries(st.text(), json_values), st.sampled_from([None, 1]))
def test_entries_are_those_of_the_list(entries, rest, indent):
    found = []
    content = f" {json.dumps({**rest, 'traceEvents': entries}, indent=indent)}\n"
    assert _scan(content, found.append, None) == {**rest, "traceEvents": []}
    assert found == entries
    # Values that are no calls of operators, as Kineto writes them, are entries as before.
    again, operators = [], []
    _scan(content, again.append, lambda *call: operators.append(call))
    assert (again, operators) == (entries, [])


@pytest.mark.parametrize("content", [
    "", "{", '{"traceEvents": [', '{"traceEvents": [1', '{"traceEvents": [1,]}', "[1]", "{} {}",
    '{"traceEvents": [1] "a": 2}', '{"traceEvents" [1]}', '{"traceEvents": 5}', '{"a": 1}',
    '{"traceEvents": [1}', '{"traceEvents": [[', "[" * 100_000,
])  # fmt: skip
def test_what_is_no_trace_is_a_sentence(tmp_path, content):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(content.encode()))
    with pytest.raises(ValueError, match=r"^expected a trace of torch\.profiler, got "):
        read_trace(path, lambda event: None)


@pytest.fixture(scope="module")
def kinetos(tmp_path_factory):
    """A trace that Kineto wrote, with operators on two threads."""
    path = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    profile = activities.Activities()
    profile.start()
    x = torch.ones(3, requires_grad=True)
    for _ in range(40):
        (x * 2).sum().backward()
    with torch.profiler.record_function("a name with { and }"):
        x.detach().add(1)
    profile.stop()
    profile.write(path)
    return path


def test_operators_are_read_as_the_decoder_reads_them(kinetos):
    entries, others, operators = [], [], []
    rest = read_trace(kinetos, entries.append)
    assert read_trace(kinetos, others.append, lambda *call: operators.append(call)) == rest
    whole = json.loads(gzip.decompress(kinetos.read_bytes()))
    assert entries == whole["traceEvents"] and rest == {**whole, "traceEvents": []}
    expected = [
        (event["name"], event["tid"], event["ts"], event["dur"])
        for event in entries
        if event.get("cat") == "cpu_op" and event not in others
    ]
    assert operators == expected
    # The expression fits what this torch writes: nearly all of it is read so.
    calls = sum(event.get("cat") == "cpu_op" for event in entries)
    assert 40 * 8 < calls <= len(operators) + 2


def test_an_operator_with_a_correlation_is_an_entry(tmp_path, kinetos):
    text = gzip.decompress(kinetos.read_bytes()).decode()
    changed = text.replace('"External id"', '"correlation"', 1)
    assert changed != text
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(changed.encode()))
    entries, operators = [], []
    read_trace(path, entries.append, lambda *call: operators.append(call))
    assert sum("correlation" in event.get("args", {}) for event in entries) == 1
