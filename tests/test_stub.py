"""cule/_core.pyi names what the compiled module has.

`python tests/test_stub.py` writes the fields of a batch again, which come from the module's rows.
"""

from __future__ import annotations

import ast
from pathlib import Path

from cule import _core

STUB = Path(__file__).resolve().parents[1] / "cule" / "_core.pyi"


BEGIN, END = "    # Fields: written by tests/test_stub.py.\n", "    # End of fields.\n"


def fields() -> str:
    """A batch's fields as the stub has them: numbers, and addresses of arrays."""
    batch = _core.Batch()
    arrays = batch.arrays(envs=True, on_gpu=True)
    values = {name: getattr(batch, name) for name in dir(batch) if not name.startswith("_")}
    numbers = [
        f"    {name}: {type(value).__name__}\n"
        for name, value in values.items()
        if name not in (*arrays, "address") and not callable(value)
    ]
    note = "    # Each is set as (address, bytes), or 0.\n"
    return "".join([*numbers, note, *(f"    {name}: int\n" for name in arrays)])


def names_of(body: list[ast.stmt]) -> set[str]:
    """What a module's or a class's body defines or declares."""
    defined = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    declared = {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name for name in defined | declared if not name.startswith("_")}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def split_stub() -> tuple[str, str, str]:
    """What comes before the fields, the fields, what comes after them."""
    before, rest = STUB.read_text().split(BEGIN)
    written, after = rest.split(END)
    return before, written, after


def test_stub_has_the_fields_of_the_rows() -> None:
    assert split_stub()[1] == fields(), "run python tests/test_stub.py"


def test_stub_names_all_that_there_is() -> None:
    body = ast.parse(STUB.read_text()).body
    assert names_of(body) == public(_core)
    for node in body:
        if isinstance(node, ast.ClassDef):
            assert names_of(node.body) == public(getattr(_core, node.name))


if __name__ == "__main__":
    before, _, after = split_stub()
    STUB.write_text(before + BEGIN + fields() + END + after)
