"""The examples' programs: help texts and messages have commands that work as printed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAIN = '\nif __name__ == "__main__":\n'
FILES = [path for path in sorted((ROOT / "examples").rglob("*.py")) if MAIN in path.read_text()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_program_names_itself_as_it_is_called(path, monkeypatch, capsys):
    """Help texts and errors show the name for `python -m`, which itself gives a program its
    file's path."""
    file = path.relative_to(ROOT)
    module = ".".join(file.with_suffix("").parts)
    package = module.removesuffix(".__main__")
    called = f"python {file}" if file.parent.name == "examples" else f"python -m {package}"
    told = {}
    for option, status in (("--help", 0), ("--no-such-option", 2)):
        monkeypatch.setattr("sys.argv", [str(path), option])
        with pytest.raises(SystemExit) as left:
            importlib.import_module(module).main()
        assert left.value.code == status
        printed = capsys.readouterr()
        told[option] = " ".join(re.sub("[│\n]", " ", printed.out + printed.err).split())
        assert str(path) not in told[option]
    assert f"usage: {called} [-h]" in told["--help"]
    assert called in told["--no-such-option"]
