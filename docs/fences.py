"""The fenced blocks of a page, and how each one is tested.

The law: pure. The info string of a block selects its test: a shell block has a mode, and only blocks for another system
are merely parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_FENCE: Final = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Mode(StrEnum):
    """How a block is tested."""

    RUN = "run"
    """Run on this computer in the order of the page; it must succeed."""
    SERVE = "serve"
    """The same, but it runs until the end of the page; the next block waits until it serves."""
    SEEN = "seen"
    """Output of the previous block: each of these lines must occur in it."""
    CLUSTER = "cluster"
    """Run by tests/peers on a real API server, where it must succeed."""
    PARSE = "parse"
    """It needs nodes or another system: only the flags of our programs in it are parsed."""
    NONE = ""
    """Not a shell block: YAML is loaded, other languages are not tested."""


@dataclass(frozen=True, slots=True)
class Fence:
    """One block."""

    language: str
    mode: Mode
    body: str


def find_fences(page: str) -> Iterator[Fence]:
    """The blocks of a page. Raises ValueError for an unknown mode."""
    for found in _FENCE.finditer(page):
        language, _, mode = found["info"].strip().partition(" ")
        yield Fence(language, Mode(mode), found["body"])


def without_modes(page: str) -> str:
    """The page for readers and the site's builder: info strings without modes."""
    return _FENCE.sub(lambda found: f"```{found['info'].strip().partition(' ')[0]}\n{found['body']}```", page)
