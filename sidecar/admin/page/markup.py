"""HTML from values: the only place where text becomes markup.

The law: pure; every argument is escaped and its control and format characters are made visible, so no hostname or
reason can add a tag, reverse the direction of a line or forge a line. Templates are literals of this program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, LiteralString

from markupsafe import Markup, escape

from sidecar.values.text import escape_controls

LONGEST: Final = 300
"""Characters of one text that are shown: an annotation may be as long as a megabyte."""

NOTHING: Final = Markup()


def html(template: LiteralString, *values: object, **named: object) -> Markup:
    """The template (str.format) with the values; a value of type Markup is not escaped again."""
    # Markup.format would escape too, but takes ten times as long; the template is not text from outside.
    return Markup(template.format(*map(_safe, values), **{name: _safe(value) for name, value in named.items()}))  # noqa: S704


def joined(parts: Iterable[Markup], between: LiteralString = "") -> Markup:
    """Pieces of HTML in sequence."""
    return Markup(between).join(parts)  # noqa: S704  # as above


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut to `longest` characters."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def _safe(value: object) -> str:
    return value if isinstance(value, Markup) else escape(escape_controls(str(value)))
