"""Diffs: what would become of a text, as patch(1) takes it.

The law: lines end at LF alone and a missing one at the end is said; octets that are no UTF-8 pass through as
surrogates, so that what is printed can be applied. Pure.
"""

from __future__ import annotations

import difflib


def format_diff(old: str | bytes, new: str | bytes, name: str) -> str:
    """The unified diff that turns the old text of a file into the new one; empty where nothing changes."""
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str | bytes) -> list[str]:
    """As patch(1) cuts them; str.splitlines would at CR, form feed and others too."""
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
