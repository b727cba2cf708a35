"""Files of published policies that are damaged or hostile: refused in a sentence, and never run."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from pathlib import Path

import pytest
import torch
from published_runs import published, run_of_a2c

from cule import train
from cule.train.published.config import CONFIG, WEIGHTS

pytest.importorskip("safetensors")
safetensors = pytest.importorskip("safetensors.torch")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of A2C, and its published folder."""
    return run_of_a2c(tmp_path_factory.mktemp("run"))


@pytest.fixture
def copy(run, tmp_path):
    """A published folder to damage."""
    for path in (run / "published").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def change(folder, **values):
    """Changes fields of a folder's config.json."""
    old = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(old | values))


def refuse(folder, told):
    with pytest.raises(ValueError, match=told) as problem:
        train.load(folder, "cpu")
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("values, told", [
    ({"format": 2}, "expected a policy in the form 1, got form 2, of another version of cule"),
    ({"format": True}, "expected format to be an integer, got True"),
    ({"game": "doom"}, "doom"),
    ({"game": ["pong"]}, "expected game to be a text"),
    ({"num_actions": 18}, "expected a policy for the 6 actions of pong, got one for 18"),
    ({"num_actions": 10**30}, "got one for 1000000"),
    ({"observations": {"frameskip": 4}}, "expected a policy of observations"),
    ({"observations": {"frameskip": True, "stack_num": 4, "img_height": 84, "img_width": 84,
                       "grayscale": True}}, "expected a policy of observations"),
    ({"network": "os.system"}, "expected network to be 'actor-critic' or 'q-network' or 'own'"),
    ({"model": "torch.nn.Linear"}, "expected model to be"),
    ({"model": None}, "expected a model and a width of all networks but one's own"),
    ({"width": None}, "expected a model and a width of all networks but one's own"),
    ({"width": 1e9}, "expected width to be from 0 to 64"),
    ({"width": float("nan")}, "expected width to be a finite number"),
    ({"width": -1.0}, "expected width to be above 0"),
    ({"width": 64.0}, "expected the weights of a ActorCritic in .*, got others: features.0.bias"),
    ({"layer_norm": True}, "expected layer_norm with a q-network only, got actor-critic"),
    ({"network": "q-network", "layer_norm": True, "model": "impala"}, "expected no layer_norm"),
    ({"network": "q-network"}, "expected the weights of a QNetwork in .*, got others: heads.bias"),
    ({"outputs": "eval"}, "expected outputs to be 'log-probabilities' or 'logits' or 'values'"),
    ({"sha256": "0" * 63}, "expected a SHA-256 in hexadecimal"),
    ({"sha256": "0" * 64}, "to be as it was published, but it is another file, damaged or cut off"),
    ({"frames": -1}, "expected frames to be at least 0, got -1"),
    ({"seed": 2**40}, "expected seed to be from 0 to"),
    ({"commit": 1}, "expected commit to be a text or None"),
    ({"weights": "../../weights"}, "expected the fields of a policy in .*, got others: 'weights'"),
])  # fmt: skip
def test_a_wrong_config_is_refused_before_anything_is_made_of_it(copy, values, told):
    change(copy, **values)
    refuse(copy, told)


@pytest.mark.parametrize("content, told", [
    (b"", "expected JSON in .*config.json, got something else"),
    (b"\xff\xfe{", "expected JSON in"),
    (b"[" * 200_000, "expected JSON in"),
    (b"[1]", "expected the fields of a policy in .*, got others: 'algorithm'"),
    (b" " * (2 << 20), "whose config.json cannot be read: File too large"),
    (pickle.dumps({"a": 1}), "expected JSON in"),
])  # fmt: skip
def test_what_is_no_config_is_refused(copy, content, told):
    (copy / CONFIG).write_bytes(content)
    refuse(copy, told)


class Executed:
    """A pickle of it makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def tensors(**more):
    return {name: torch.zeros(size) for name, size in more.items()}


def header(**entries):
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("content, told", [
    (b"", "expected a file of safetensors at .*, got something else"),
    (header(a={"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}), "safetensors"),
    (header(a={"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}) + b"0000", "safetensors"),
    ((1 << 60).to_bytes(8, "little") + b"{}", "safetensors"),
    (safetensors.save(tensors(a=3)), "expected the weights of a ActorCritic in .*: a is"),
    ("pickle", "expected a file of safetensors at .*, got something else"),
    ("float64", "features.0.bias is .torch.float64, .3,.. in place of .torch.float32, .3,.."),
])  # fmt: skip
def test_what_is_no_file_of_its_weights_is_refused(copy, content, told):
    path = copy / WEIGHTS
    if content == "pickle":
        torch.save(Executed(copy / "executed"), path)
    elif content == "float64":
        state = safetensors.load_file(path)
        path.write_bytes(safetensors.save({n: v.double() for n, v in state.items()}))
    else:
        path.write_bytes(content)
    change(copy, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    refuse(copy, told)
    assert not (copy / "executed").exists()


def test_damage_and_lacks_are_said(copy, tmp_path):
    path = copy / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1])
    refuse(copy, "to be as it was published, but it is another file, damaged or cut off")
    path.unlink()
    refuse(copy, "expected weights at .*, but they cannot be read: No such file")
    path.mkdir()
    refuse(copy, "but they cannot be read")
    (copy / CONFIG).unlink()
    refuse(copy, "whose config.json cannot be read: No such file")
    refuse(tmp_path / "nowhere", "expected a folder with a published policy, got .*nowhere")


@pytest.mark.parametrize("more, told", [
    ({"source": 3}, "expected a folder or an id of the Hub, got 3"),
    ({"seed": -1}, "expected seed to be from 0 to"),
    ({"greedy": 1}, "expected greedy to be True or False, got 1"),
])  # fmt: skip
def test_wrong_arguments_are_refused(run, more, told):
    source = more.pop("source", run / "published")
    with pytest.raises((TypeError, ValueError), match=told):
        train.load(source, "cpu", **more)


def test_without_safetensors_a_sentence_says_so(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    refuse(run / "published", "expected safetensors to be installed .pip install safetensors.")
    with pytest.raises(ValueError, match="expected safetensors to be installed"):
        published(run)
