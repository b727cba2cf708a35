"""Shows functions that a class takes as its methods (`get_ram = views.get_ram`) as its methods.

mkdocstrings reads sources by griffe, which takes them for attributes without a text.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import griffe


def _classes(of: griffe.Module | griffe.Class) -> Iterator[griffe.Class]:
    for member in of.members.values():
        if not member.is_alias and (member.is_module or member.is_class):
            if member.is_class:
                yield member
            yield from _classes(member)


class AssignedMethods(griffe.Extension):
    """The extension, which griffe loads."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Replaces those attributes, once all modules are there."""
        for shown in list(_classes(pkg)):
            for name, member in list(shown.members.items()):
                value = member.value if "class-attribute" in member.labels else None
                path = value.canonical_path if isinstance(value, griffe.ExprAttribute) else ""
                if path.startswith(f"{pkg.name}."):
                    function = loader.modules_collection[path]
                    if function.is_function:
                        shown.set_member(name, _method(function, name))


def _method(function: griffe.Function, name: str) -> griffe.Function:
    """The function without its first argument, which is the object."""
    method = copy.copy(function)
    method.name = name
    method.parameters = griffe.Parameters(*list(function.parameters)[1:])
    return method
