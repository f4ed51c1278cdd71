"""HTML out of values: the one place where text becomes markup.

The law: pure; every argument is escaped, and its control and format characters are made visible, so that no hostname or
reason can bring in a tag, turn a line round or forge one. Templates are literals of this program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, LiteralString

from markupsafe import Markup, escape

from sidecar.values.text import escape_controls

LONGEST: Final = 300
"""Characters of one text that are shown: an annotation of a megabyte is not read by anybody."""

NOTHING: Final = Markup()


def html(template: LiteralString, *values: object, **named: object) -> Markup:
    """The template (str.format) with the values in it; what is Markup already stays as it is."""
    # Markup.format would escape too, in ten times the time; the template itself is no text from outside.
    return Markup(template.format(*map(_safe, values), **{name: _safe(value) for name, value in named.items()}))  # noqa: S704


def joined(parts: Iterable[Markup], between: LiteralString = "") -> Markup:
    """Pieces of HTML one after the other."""
    return Markup(between).join(parts)  # noqa: S704  # as above


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where nobody reads on."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def _safe(value: object) -> str:
    return value if isinstance(value, Markup) else escape(escape_controls(str(value)))
