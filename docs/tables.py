"""Tables of Markdown.

The law: pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a heading for each column."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))
