"""Unified diffs that patch(1) can apply.

The law: only LF ends a line, and a missing LF at the end is marked; invalid UTF-8 passes through as surrogates, so the
printed diff can be applied. Pure.
"""

from __future__ import annotations

import difflib


def format_diff(old: str | bytes, new: str | bytes, name: str) -> str:
    """The unified diff from the old text of a file to the new one; empty if they are equal."""
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str | bytes) -> list[str]:
    """Lines as patch(1) reads them; str.splitlines would split at CR, form feed and others too."""
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
