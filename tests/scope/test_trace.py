"""Traces are read event by event: as Python's JSON decoder reads them, and damaged ones not."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cule.scope import activities
from cule.scope.trace import read_operators, read_trace

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def packed(path, content):
    """The path of a trace with this content."""
    path.write_bytes(gzip.compress(content.encode()))
    return path


@settings(max_examples=60, deadline=None)
@given(st.lists(json_values), st.dictionaries(st.text(), json_values), st.sampled_from([None, 4]))
def test_other_json_is_left_as_it_is(tmp_path_factory, entries, rest, indent):
    whole = {**rest, "traceEvents": entries, "baseTimeNanoseconds": 5}
    path = packed(tmp_path_factory.mktemp("a") / "t.gz", json.dumps(whole, indent=indent))
    found, operators = read_operators(path)
    assert found == whole == read_trace(path) and not len(operators.begins)


@pytest.mark.parametrize("content", [
    "", "{", '{"traceEvents": [', '{"traceEvents": [1', '{"traceEvents": [1,]}', "[1]", "{} {}",
    '{"traceEvents": [1] "a": 2}', '{"traceEvents" [1]}', '{"traceEvents": 5}', '{"a": 1}',
    '{"traceEvents": [1}', '{"traceEvents": [[', "[" * 100_000,
])  # fmt: skip
def test_what_is_no_trace_is_a_sentence(tmp_path, content):
    path = packed(tmp_path / "trace.json.gz", content)
    for read in (read_trace, read_operators):
        with pytest.raises(ValueError, match=r"^expected a trace of torch\.profiler, got "):
            read(path)


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
    whole = json.loads(gzip.decompress(kinetos.read_bytes()))
    rest, operators = read_operators(kinetos)
    assert read_trace(kinetos) == whole
    left = rest["traceEvents"]
    assert {**rest, "traceEvents": 0} == {**whole, "traceEvents": 0}
    taken = [event for event in whole["traceEvents"] if event not in left]
    assert left + taken != left and sorted(map(str, left + taken)) == sorted(
        map(str, whole["traceEvents"])
    )
    read = zip(
        (operators.names[place] for place in operators.name), operators.threads.tolist(),
        operators.begins.tolist(), operators.lengths.tolist(), strict=True,
    )  # fmt: skip
    assert [*read] == [(event["name"], event["tid"], event["ts"], event["dur"]) for event in taken]
    assert {event["cat"] for event in taken} == {"cpu_op"}
    # The expression fits what this torch writes: nearly all of it is read so.
    calls = sum(event.get("cat") == "cpu_op" for event in whole["traceEvents"])
    assert 40 * 8 < calls <= len(taken) + 2


def operator(**changes):
    """An operator's call as torch 2.13 writes it, with some values as they stand in the text."""
    values = {"name": '"aten::add"', "pid": "7", "tid": "-12", "ts": "5063093779757.721",
              "dur": "0.043", **changes}  # fmt: skip
    lines = "".join(f'    "{key}": {value},\n' for key, value in values.items())
    return (
        f'  {{\n    "ph": "X",\n    "cat": "cpu_op",\n{lines[:-2]}\n    ,\n    "args": {{\n'
        '      "External id": 3,"Ev Idx": 1\n    }\n  }'
    )


def older(call):
    """The same call as torch 2.11 writes it."""
    for before in ('"cat"', '"name"', '"pid"', '"tid"', '"dur"'):
        call = call.replace(f",\n    {before}", f", {before}")
    return call.replace("\n    ,\n", ",\n")


def trace_with(entries):
    return '{\n  "traceEvents": [\n' + ",\n".join(entries) + "\n  ]\n}"


@pytest.mark.parametrize("written", [str, older])
@pytest.mark.parametrize("changes, taken", [
    ({}, True),
    ({"ts": "0.001", "dur": "123456789012.000", "tid": "0"}, True),
    ({"ts": "9007199254740.991"}, True),
    ({"name": '"aten::\u00e4 {}, [] \U0001f600"'}, True),
    ({"name": '""'}, True),
    ({"ts": "-5.001"}, False),
    ({"ts": "5"}, False),
    ({"ts": "5.1"}, True),
    ({"ts": "1e3"}, False),
    ({"dur": "1.2345"}, True),
    ({"ts": "12345678901234567890.123"}, True),
    ({"name": r'"a\"b"'}, False),
    ({"name": r'"a\u0041"'}, False),
    ({"tid": '"7"'}, False),
])  # fmt: skip
def test_an_operator_is_the_same_as_a_decoder_reads_it(tmp_path, changes, taken, written):
    entries = [operator(**changes), operator(name='"last"'), '{"ph": "M"}', operator()]
    content = trace_with(map(written, entries))
    whole = json.loads(content)["traceEvents"]
    rest, found = read_operators(packed(tmp_path / "t.gz", content))
    left = whole[2:] if taken else [whole[0], *whole[2:]]
    assert rest["traceEvents"] == left  # the last has no comma after it
    assert len(found.begins) == 1 + taken
    first = whole[0] if taken else whole[1]
    assert found.names[found.name[0]] == first["name"]
    assert (found.threads[0], found.begins[0], found.lengths[0]) == (
        first["tid"], first["ts"], first["dur"],
    )  # fmt: skip


@pytest.mark.parametrize("place", range(14))
@pytest.mark.parametrize("line", [None, "  {", "    ,", '    "name": "x",', "x" * 40, "    }"])
def test_a_call_with_another_line_is_read_as_the_decoder_reads_it(tmp_path, place, line):
    """But for what is inside of its args, which nobody reads."""
    lines = trace_with([operator(), operator(), operator()]).split("\n")
    lines[place + 2 : place + 3] = [] if line is None else [line]
    path = packed(tmp_path / "t.gz", "\n".join(lines))
    found = []
    for read in (read_trace, read_operators):
        try:
            found.append(read(path))
        except ValueError as problem:
            found.append(str(problem))
    if isinstance(found[0], dict):
        rest, operators = found[1]
        assert len(rest["traceEvents"]) + len(operators.begins) == len(found[0]["traceEvents"])
    elif place != 10:
        assert isinstance(found[1], str)


finite = st.integers(0, 10**15).map(lambda number: f"{number // 1000}.{number % 1000:03}")


@given(st.lists(st.tuples(finite, finite, st.integers(-(10**9), 10**9)), min_size=1))
def test_numbers_are_read_as_the_decoder_reads_them(tmp_path_factory, calls):
    entries = [operator(ts=begin, dur=length, tid=str(tid)) for begin, length, tid in calls]
    content = trace_with([*entries, '{"ph": "M"}'])
    path = packed(tmp_path_factory.mktemp("a") / "t.gz", content)
    rest, found = read_operators(path)
    assert rest["traceEvents"] == [{"ph": "M"}]
    whole = json.loads(content)["traceEvents"][:-1]
    assert found.begins.tolist() == [event["ts"] for event in whole]
    assert found.lengths.tolist() == [event["dur"] for event in whole]
    assert found.threads.tolist() == [event["tid"] for event in whole]
