"""Nesting: JSON text with values that are nested too deeply to be decoded.

The law: pure; only text that cannot be decoded otherwise is changed. The API server accepts 10,000 levels where a
definition preserves unknown fields, and a decoder that gives up at fewer would lose the whole kind by one object.
https://github.com/kubernetes-sigs/json/blob/main/internal/golang/encoding/json/scanner.go (maxNestingDepth)
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

DEEPEST: Final = 100
"""Levels that stay; an object with a Kubernetes type has some 30."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*"|[\[{\]}]', re.DOTALL)
_OPENING: Final = b"[{"
_CLOSING: Final = b"]}"


def decode_nested(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """What a decoder makes of a text, without its deepest values if there are too many levels. Raises as it does."""
    try:
        return decoder.decode(body)
    except RecursionError:
        return decoder.decode(cut_deep(bytes(body)))


def cut_deep(body: bytes) -> bytes:
    """The text with null in place of each list and map at a level below DEEPEST."""
    parts: list[bytes] = []
    depth = kept = 0
    for token in _TOKEN.finditer(body):
        if token[0] in _OPENING:
            depth += 1
            if depth == DEEPEST + 1:
                parts += (body[kept : token.start()], b"null")
        elif token[0] in _CLOSING:
            if depth == DEEPEST + 1:
                kept = token.end()
            depth -= 1
    return b"".join(parts) + (body[kept:] if depth <= DEEPEST else b"")
