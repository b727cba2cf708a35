"""Shared by the tests of files: contents, and cule.disk.files in processes of its own."""

from __future__ import annotations

from pathlib import Path

from cule.disk import files
from cule.disk.files import replacing

OLD, NEW = b"what was there", b"what is new"


def write(path: Path, content: bytes = NEW) -> None:
    with replacing(path) as file:
        file.write(content)


# The module by itself: the package takes seconds to import.
ALONE = f"""
    import importlib.util
    spec = importlib.util.spec_from_file_location("files", {files.__file__!r})
    files = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(files)
"""
