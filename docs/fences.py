"""The fenced blocks of a page, and what is to be done with each.

The law: pure. Every block says by its info string how it is held to the truth: a shell block has a mode, and only what
is meant for another system is left with its parse.
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
    """Run on this computer in the order of the page; it has to succeed."""
    SERVE = "serve"
    """The same, and it goes on until the end of the page; what follows waits until it serves."""
    SEEN = "seen"
    """What the block before it prints: each of its lines is looked for."""
    PARSE = "parse"
    """It takes a cluster or another system: the flags of our programs in it are parsed."""
    NONE = ""
    """No shell: YAML is loaded, others are read by people."""


@dataclass(frozen=True, slots=True)
class Fence:
    """One block."""

    language: str
    mode: Mode
    body: str


def find_fences(page: str) -> Iterator[Fence]:
    """The blocks of a page. Raises ValueError for a mode that is none."""
    for found in _FENCE.finditer(page):
        language, _, mode = found["info"].strip().partition(" ")
        yield Fence(language, Mode(mode), found["body"])


def without_modes(page: str) -> str:
    """The page as its readers and the site's builder get it."""
    return _FENCE.sub(lambda found: f"```{found['info'].strip().partition(' ')[0]}\n{found['body']}```", page)
