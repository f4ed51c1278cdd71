"""Text for people: foreign text made safe to show, columns, and colour.

The law: text from outside never controls a terminal and never forges a line. Pure.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

# Cc: C0, DEL and C1. Cf: the bidirectional overrides, among others. Zl, Zp: line separators. Cs: surrogates, which no
# encoder can write. Co and Cn only show as boxes.
_UNSAFE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
_QUOTED_LIMIT: Final = 80
_MESSAGE_LIMIT: Final = 320


def escape_controls(text: str, *, keep: str = "") -> str:
    r"""The text with every control and format character written as an escape (`\x1b`), except those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _UNSAFE else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """The text on one line, with controls escaped; line ends and the blanks around them become one space."""
    return escape_controls(" ".join(line.strip() for line in text.splitlines()).strip())


def quoted(text: str) -> str:
    """The text for an error message: in quotes, in ASCII with escapes, cut to what is enough to recognise it."""
    return ascii(cut(text, _QUOTED_LIMIT))


def cut(text: str, most: int) -> str:
    """The text, or its first `most` characters and three dots."""
    return text if len(text) <= most else text[:most] + "..."


def cut_list(values: Iterable[str], between: str = ", ") -> str:
    """The values for a sentence, cut."""
    return cut(between.join(values), _MESSAGE_LIMIT)


def message_of(error: object) -> str:
    """What the error of a library says, on one line and cut: it may repeat a whole line, value or header of others."""
    return cut(one_line(str(error)), _MESSAGE_LIMIT)


def align_columns(rows: Sequence[Sequence[str]], *, widest: int | None = None) -> Iterator[str]:
    """Lines with aligned columns; a cell longer than `widest` shifts its own line alone."""
    longest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths = longest if widest is None else [min(width, widest) for width in longest]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def escaped_json(value: object, *, indent: int | None = None) -> str:
    """JSON in printable ASCII."""
    import msgspec  # noqa: PLC0415  # --help must not cost it

    # DEL is the only control character that JSON does not escape.
    return json.dumps(value, indent=indent, default=msgspec.to_builtins).replace("\x7f", "\\u007f")


def colour_choice(environment: Mapping[str, str]) -> bool | None:
    """False for never, True for always, None for "on a terminal only".

    A non-empty NO_COLOR (no-color.org) or TERM=dumb means never; a non-empty FORCE_COLOR means always.
    """
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return True if environment.get("FORCE_COLOR") else None


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
