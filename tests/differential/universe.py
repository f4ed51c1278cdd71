"""The universe: the few names of a zone that objects of a set use, and those by which two answers are compared.

The law: every wildcard that a set can have covers some of the probed names and not others, at one label and at more.
"""

from __future__ import annotations

import re
from typing import Final

HOSTS: Final = ("", "a", "b", "c", "x.a", "y.b", "*", "*.a", "*.b", "*.x.a")
"""The hosts of objects, relative to the zone; empty: the zone itself."""
STRANGE: Final = ("xn--bcher-kva", "xn--99999", "1", "a-b.c")
"""Valid for the API server: an A-label of a name, an A-label of none, a number, an inner hyphen."""
STRANGE_TO_US: Final = ("xn--99999",)
"""Those of them that Switchback rejects (UTS 46)."""
_PROBES: Final = ("", "a", "b", "c", "d", "x.a", "y.a", "y.b", "x.x.a", "z.y.x.a", "z.d", *STRANGE)


def in_zone(host: str, zone: str) -> str:
    """A host of a set's zone."""
    return f"{host}.{zone}" if host else zone


def probes(zone: str) -> tuple[str, ...]:
    """The names to compare by."""
    return tuple(in_zone(host, zone) for host in _PROBES)


def covers(pattern: str, name: str, *, labels: str = "any") -> bool:
    """Whether a hostname or a wildcard of `one` label, or of `any` number, covers a name."""
    if not pattern.startswith("*."):
        return pattern == name
    label = r"[^.]+\." if labels == "one" else r"(?:[^.]+\.)+"
    return re.fullmatch(label + re.escape(pattern.removeprefix("*.")), name) is not None
