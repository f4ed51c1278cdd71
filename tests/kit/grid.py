"""A table as text: columns as wide as their widest cell, numbers aligned to the right. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def format_grid(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> str:
    """Lines that end in a newline; `left` are the columns of text."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "".join(_format_line(line, widths, left) + "\n" for line in lines)


def _format_line(cells: Sequence[str], widths: Sequence[int], left: Collection[int]) -> str:
    padded = (
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
