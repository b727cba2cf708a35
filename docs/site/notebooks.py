"""Notebooks as pages of the site."""

from __future__ import annotations

import json
from pathlib import Path


def markdown(path: Path, repository: str) -> str:
    """A notebook's cells, without outputs; with a link that opens it in Colab from GitHub."""
    cells = json.loads(path.read_text())["cells"]
    texts = [
        text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        for cell in cells
        if (text := "".join(cell["source"]))
    ]
    title, _, rest = texts[0].partition("\n")
    name = repository.partition("https://github.com/")[2]
    if name:
        root = Path(__file__).resolve().parents[2]
        address = f"https://colab.research.google.com/github/{name}/blob/HEAD/"
        title += f"\n\n[Open it in Colab]({address}{path.relative_to(root)})"
    return "\n\n".join([title, rest.strip(), *texts[1:]]) + "\n"
