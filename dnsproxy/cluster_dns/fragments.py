"""Fragments: a Corefile, or what an import brings into one, as a value.

The law: a fragment is read as what it becomes a part of; a text that is read again and again is parsed once.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from dnsproxy.corefile.model import Corefile, CorefileError
from dnsproxy.corefile.parser import parse_corefile


class Scope(Enum):
    """What an imported file is a part of."""

    BLOCKS = "server blocks"
    """It stands between server blocks and holds whole ones: `*.server`."""
    ROOT_PLUGINS = "plugins of the root"
    """It stands inside the server block that serves `.` and holds lines of plugins: `*.override`."""
    OTHER = "plugins of another zone"


def parsed(text: str, scope: Scope = Scope.BLOCKS) -> Corefile | None:
    """A Corefile, or a part of one, as a value; None for what is none."""
    try:
        return parse_fragment(text, scope)
    except CorefileError:
        return None


# A large one takes a second, and discovery looks at it once for each round of reading.
@lru_cache(maxsize=16)
def parse_fragment(text: str, scope: Scope = Scope.BLOCKS) -> Corefile:
    """A Corefile, or what an import brings into one; plugins alone are read as the block of `.`. Raises CorefileError.

    Lines are those of the text.
    """
    return parse_corefile(text if scope is Scope.BLOCKS else f". {{ {text}\n}}\n")
