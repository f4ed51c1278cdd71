"""The lines of the guide's page for each resolver, with what differs on this computer.

The law: a rig has the lines of the page and what every installation has anyway: a port, folders, where to forward.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from docs.build import HERE
from docs.fences import find_fences

PAGES: Final = HERE / "pages"
PAGE: Final = (PAGES / "rpz.md").read_text(encoding="utf-8")
PRIMARY: Final = "192.0.2.53"
"""The primary, as the page has it."""
NOTIFIERS: Final = "192.0.2.0/24"
"""From where the primary sends NOTIFY."""
SECRET: Final = "SECRET"
"""Where the page says: your secret."""


def blocks(heading: str, *, page: str = PAGE) -> list[str]:
    """The blocks below a heading of a page, in order."""
    _, found, rest = page.partition(f"\n## {heading}\n")
    assert found, heading
    return [fence.body for fence in find_fences(rest.partition("\n## ")[0])]


def adapted(block: str, *, primary: str, secret: str, folders: tuple[str, ...] = (), folder: Path | None = None) -> str:
    """A block for this computer: another address and secret, and its files in `folder` instead of `folders`."""
    text = block.replace(PRIMARY, primary).replace(NOTIFIERS, "127.0.0.0/8").replace(SECRET, secret)
    for one in folders:
        assert folder is not None
        text = text.replace(one, str(folder))
    return text
