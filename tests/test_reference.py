"""The API reference has every public name, each with a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest
import reference_pages

import cule
from cule import scope, train
from cule.adapters import ale, envpool, envpool_v0, jax, pettingzoo, stable_baselines3, torchrl

ROOT = Path(__file__).resolve().parents[1]
ADAPTERS = (ale, envpool, envpool_v0, jax, pettingzoo, stable_baselines3, torchrl)
MODULES = (
    cule,
    scope,
    train,
    *ADAPTERS,
    *(module for name in cule.__all__ if inspect.ismodule(module := getattr(cule, name))),
)


def is_own(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("cule")


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    defined = {n: t for n, t in vars(module).items() if inspect.isclass(t) or inspect.isfunction(t)}
    return [n for n, t in defined.items() if t.__module__ == module.__name__ and n[0] != "_"]


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that cule defines, including inherited ones."""
    if inspect.isclass(thing):
        for base in (base for base in thing.__mro__ if is_own(base)):
            for name, member in vars(base).items():
                called = inspect.isfunction(member) or isinstance(member, (classmethod, property))
                if name[0] != "_" and called:
                    yield name, member


def test_every_public_name_has_a_docstring() -> None:
    lacking = []
    for module in MODULES:
        assert module.__doc__, module.__name__
        for name in public_names(module):
            thing = getattr(module, name)
            # Values have none of their own: their module's text tells of them.
            if not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            if not (thing.__doc__ or "").strip():
                lacking.append(f"{module.__name__}.{name}")
            for member_name, member in members(thing):
                own = member.__doc__ or inspect.getdoc(getattr(thing, member_name))
                if not (own or "").strip():
                    lacking.append(f"{module.__name__}.{name}.{member_name}")
    assert lacking == []
    assert {"AtariEnv", "State", "EpisodeStatistics", "RecordVideo"} <= set(public_names(cule))


@pytest.fixture(scope="module")
def read() -> griffe.Module:
    """cule as griffe reads it for the site."""
    return griffe.load(
        "cule", search_paths=[str(ROOT)], docstring_parser="google",
        extensions=griffe.load_extensions("assigned_methods"),
    )  # fmt: skip


def test_reference_has_every_public_name_with_its_text(
    read: griffe.Module, caplog: pytest.LogCaptureFixture
) -> None:
    """What griffe warns of, the site's build takes for an error."""
    for module in MODULES:
        page = reference_pages.page(module.__name__)
        assert page.startswith(f"# {module.__name__}\n\n::: {module.__name__}\n")
        for name in public_names(module):
            thing = getattr(module, name)
            if inspect.ismodule(thing):
                assert f"{module.__name__}.{name}" in reference_pages.MODULES  # a page of its own
                continue
            assert f"\n::: {module.__name__}.{name}\n" in page
            shown = read[f"{module.__name__}.{name}".removeprefix("cule.")]
            for member, of in members(thing):
                if of.__doc__:
                    text = shown.all_members[member].docstring
                    assert text and text.parsed, f"{shown.path}.{member}"
            assert shown.docstring is None or shown.docstring.parsed
    assert caplog.messages == []
    assert set(reference_pages.MODULES) == {module.__name__ for module in MODULES}


def test_reference_shows_methods_of_other_files_without_their_first_argument(
    read: griffe.Module,
) -> None:
    send = read["vector_env.AtariEnv"].members["send"]
    assert send.is_function and send.path == "cule.vector_env.AtariEnv.send"
    assert [parameter.name for parameter in send.parameters] == ["actions", "player_b_actions"]
