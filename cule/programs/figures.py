"""Figures of matplotlib, for programs that draw only if they are asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cule.disk.files import replacing
from cule.errors import InvalidValue


def new_figure(path: Path, option: str = "--plot") -> Any:
    """An empty matplotlib figure.

    Args:
        path: where it will be saved.
        option: which names the path, for messages.

    Raises:
        ValueError: matplotlib is not installed, or cannot write files with the suffix of `path`.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise InvalidValue(f"expected matplotlib for {option}: pip install matplotlib") from problem
    figure = Figure(layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise InvalidValue(
            f"expected {option} to name a file that ends in one of {', '.join(sorted(kinds))}, got "
            f"{path}"
        )
    return figure


def save_figure(figure: Any, path: Path, dpi: float | str = 150) -> None:
    """Writes a figure of new_figure into the file that --plot names, completely or not at all.

    Args:
        figure: the figure.
        path: the file, in the format that its suffix names.
        dpi: dots per inch; "figure": the figure's own.

    Raises:
        ValueError: the file cannot be written.
    """
    try:
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower(), dpi=dpi)
    except OSError as problem:
        raise InvalidValue(
            f"expected --plot to name a file that can be written, got {path}: {problem.strerror}"
        ) from problem
