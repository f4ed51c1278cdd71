"""CHANGELOG.md: a section for each version, the newest first, and `Unreleased` above them.

The law: a heading is `## Unreleased`, or `## VERSION` with anything behind it, such as a date. Nothing is rewritten.
"""

from __future__ import annotations

import re
from typing import Final

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## +(?P<title>\S+)(?: .*)?$", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """The text of each section by its version, without blank lines around it. Raises ValueError for a second one."""
    headings = list(_HEADING.finditer(text))
    ends = [*(one.start() for one in headings[1:]), len(text)][: len(headings)]
    found: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=True):
        title = heading["title"].strip("[]")
        if title in found:
            line = text.count("\n", 0, heading.start()) + 1
            raise ValueError(f"CHANGELOG.md:{line}: a second section {title}; put both into one")
        found[title] = text[heading.end() : end].strip()
    return found
