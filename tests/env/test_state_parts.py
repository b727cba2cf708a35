"""State files with wrong parts are refused as a whole."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from started_envs import play, started

import cule


class Wrapper(torch.Tensor):
    """A tensor that wraps another one, as torch's fake and distributed ones do."""

    @staticmethod
    def __new__(cls, like: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


def freed(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.clone()
    tensor.untyped_storage().resize_(0)
    return tensor


ODD_PARTS = {
    "sparse": lambda part: part.to_sparse(),
    "csr": lambda part: part.reshape(len(part), -1).to_sparse_csr(),
    "nested": lambda part: torch.nested.nested_tensor([row.float() for row in part]),
    "jagged": lambda part: torch.nested.nested_tensor(
        [row.float().flatten() for row in part], layout=torch.jagged
    ),
    "meta": lambda part: part.to("meta"),
    "quantized": lambda part: torch.quantize_per_tensor(part.float(), 1.0, 0, torch.quint8),
    "wrapper": Wrapper,
    "freed": freed,
    "array": lambda part: part.numpy(),
    "list": lambda part: part.tolist(),
    "nothing": lambda part: None,
    "number": lambda part: part.flatten()[0],
    "float": lambda part: part.float().requires_grad_(),
    "one row": lambda part: part[:1],
    "another shape": lambda part: part[..., None],
}
NAMES = ("ram", "rewards", "faults", "records", "observations")


def refuse_and_stay(env: cule.AtariEnv, state: Any, sentence: str = "^expected ") -> None:
    before = env.clone_state()
    with pytest.raises(ValueError, match=sentence):
        env.restore_state(state)
    after = env.clone_state()
    assert all(torch.equal(after.tensors[name], part) for name, part in before.tensors.items()), (
        "half of it was put"
    )


@pytest.mark.filterwarnings("ignore:.*beta|prototype.*")
@pytest.mark.parametrize("odd", ODD_PARTS)
@pytest.mark.parametrize("name", NAMES)
def test_state_with_an_odd_part_is_refused_and_nothing_of_it_put(odd: str, name: str) -> None:
    env = started()
    state = env.clone_state()
    play(env, 3)
    parts = state.tensors | {name: ODD_PARTS[odd](state.tensors[name])}
    refuse_and_stay(env, cule.State(state.version, state.games, parts))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2"}, {"version": None}, {"games": None}, {"games": "breakout"},
        {"games": [None, None]},
        {"games": []},
        {"games": [["breakout", 0, 0]] * 2}, {"games": [("breakout", 0.0, 0)] * 2},
        {"tensors": None}, {"tensors": []},
        {"tensors": {}}, {"tensors": {"ram": 3}}, {"tensors": {3: torch.zeros(2)}},
    ],
)  # fmt: skip
def test_state_of_odd_fields_is_refused(changes: dict[str, Any]) -> None:
    env = started()
    state = env.clone_state()
    play(env, 3)
    refuse_and_stay(env, dataclasses.replace(state, **changes))


@pytest.mark.parametrize("name", ["terminated", "truncated"])
def test_state_whose_flags_are_none_is_refused(name: str) -> None:
    env = started()
    state = env.clone_state()
    state.tensors[name][1] = 2
    refuse_and_stay(env, state, f"state 1 with an impossible value in {name}")


def test_state_of_the_envs_own_tensors_is_put_as_it_was() -> None:
    """The observations of this state are the env's own memory.

    Restored in another order, they are overwritten while they are read.
    """
    env = started()
    env.step([1, 0])
    play(env, 5)
    state = env.clone_state()
    own = cule.State(
        state.version,
        state.games,
        state.tensors | {"observations": env.engine.tensors["observations"]},
    )
    env.restore_state(own, [1, 0])
    assert torch.equal(
        env.clone_state([1, 0]).tensors["observations"], state.tensors["observations"]
    )


def test_state_of_a_subclass_with_elements_is_taken() -> None:
    env = started()
    state = env.clone_state()
    play(env, 3)
    tensors = {
        name: torch.nn.Parameter(part, requires_grad=False) for name, part in state.tensors.items()
    }
    env.restore_state(cule.State(state.version, state.games, tensors))
    assert all(type(part) is torch.Tensor for part in env.engine.tensors.values())
    assert torch.equal(env.clone_state().tensors["ram"], state.tensors["ram"])


class OnlyPickle:
    """A class that torch.load refuses."""

    def __str__(self) -> str:  # the same in each of pytest's processes
        return "OnlyPickle"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        3,
        "breakout",
        torch.zeros(3),
        {},
        {"games": []},
        {"tensors": {}},
        {"games": 3, "tensors": {}},
        {"games": [3], "tensors": {}},
        {"games": [["breakout", 0]], "tensors": {}},
        {"games": [], "tensors": 3},
        {"games": [["breakout", "x", 0]], "tensors": {}},
        {"games": [], "tensors": {"ram": 3}},
        OnlyPickle(),
        {"games": [], "tensors": {"ram": None}},
        {"games": [], "tensors": {3: torch.zeros(3)}},
        {"games": [["breakout", float("inf"), 0]], "tensors": {}},
        *(
            {"games": [], "tensors": {"ram": ODD_PARTS[odd](torch.ones(2, 3, dtype=torch.uint8))}}
            for odd in ("sparse", "csr", "nested", "meta", "quantized", "array", "list")
        ),
    ],
    ids=str,
)
def test_file_that_holds_no_states_is_refused(content: Any, tmp_path: Path) -> None:
    """The file is complete and has the right checksum, but State.save did not write it."""
    written = io.BytesIO()
    torch.save(content, written)
    load_body(tmp_path, written.getvalue())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"PK\3\4",
        b"x",
        b"\x80\2",
        b"\x80\2.",
        b".",
        b"PK\5\6" + bytes(18),
        b"\x80\2]q\0.",
        bytes(1000),
    ],
)
def test_file_whose_body_torch_cannot_read_is_refused(body: bytes, tmp_path: Path) -> None:
    load_body(tmp_path, body)


def load_body(folder: Path, body: bytes) -> None:
    """Loads a state file with this content, and expects that it is refused."""
    path = folder / "game.state"
    started().clone_state().save(path)
    path.write_bytes(path.read_bytes()[:15] + hashlib.sha256(body).digest() + body)
    with pytest.raises(ValueError, match=r"^expected .* to hold states as State.save writes them"):
        cule.State.load(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("damages", [300, pytest.param(3_000, marks=pytest.mark.slow)])
def test_file_whose_body_was_damaged_before_its_checksum_was_taken_is_refused_or_loaded(
    damages: int, tmp_path: Path
) -> None:
    """Loading checks the types of a file's parts, and restoring checks their contents."""
    path, random = tmp_path / "game.state", np.random.default_rng(0)
    env = started(num_envs=1, img_height=4, img_width=4, stack_num=1)
    env.clone_state().save(path)
    content = path.read_bytes()
    # Most of the content is pictures; the data that describe them are at both ends.
    ends = np.r_[: min(3000, len(content) - 47), max(len(content) - 6047, 0) : len(content) - 47]
    for _ in range(damages):
        body = bytearray(content[47:])
        for _ in range(random.integers(1, 4)):
            body[random.choice(ends)] = random.integers(256)
        path.write_bytes(content[:15] + hashlib.sha256(body).digest() + body)
        try:
            state = cule.State.load(path)
            env.restore_state(state)
        except ValueError as problem:
            assert "expected" in str(problem)
