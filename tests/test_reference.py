"""The API reference has every public name, each with a docstring, and the guides."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cule
from cule.adapters import envpool, jax, pettingzoo, stable_baselines3, torchrl

ROOT = Path(__file__).resolve().parents[1]
ADAPTERS = (envpool, jax, pettingzoo, stable_baselines3, torchrl)
MODULES = (
    cule,
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
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec and spec.loader
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    folder = tmp_path_factory.mktemp("reference")
    reference.build(folder)
    return folder


# Of annotations that TorchRL's own base class cannot resolve.
@pytest.mark.filterwarnings("ignore:Error parsing type annotation:UserWarning")
def test_reference_has_every_public_name(pages: Path) -> None:
    for module in MODULES:
        page = (pages / f"{module.__name__.replace('.', '/')}.html").read_text()
        for name in public_names(module):
            if inspect.ismodule(getattr(module, name)):
                continue  # with a page of its own
            assert f'id="{name}"' in page, f"{module.__name__}.{name}"
            for member, _ in members(getattr(module, name)):
                assert f'id="{name}.{member}"' in page, f"{module.__name__}.{name}.{member}"
    assert not (pages / "cule" / "engine.html").exists()


@pytest.mark.filterwarnings("ignore:Error parsing type annotation:UserWarning")
def test_reference_has_the_guides_and_their_links_lead_somewhere(pages: Path) -> None:
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"release"}
    assert {path.stem.replace("_", "-") for path in (pages / "guides").glob("*.html")} == guides
    index = (pages / "guides.html").read_text()
    for guide in guides:
        page = pages / "guides" / f"{guide.replace('-', '_')}.html"
        assert f"guides/{page.name}" in index
        text = page.read_text()
        for link in re.findall(r'(?:href|src)="([^"#:$]+)(?:#[^"]*)?"', text):
            assert (page.parent / link).exists(), f"{guide}: {link}"
    api = (pages / "guides" / "api.html").read_text()
    assert 'id="which-life-keyword"' in api
    assert 'href="games.html"' in api and "design/" in (pages / "guides/training.html").read_text()
