"""Where a link into a page of Markdown can lead."""

from __future__ import annotations

import re
from pathlib import Path


def anchors(page: Path) -> list[str]:
    """The anchors of a page: of its headings, as GitHub makes them, and those that it sets."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = [re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words in headings]
    return [*made, *re.findall(r'<a id="([\w-]+)"></a>', text)]
