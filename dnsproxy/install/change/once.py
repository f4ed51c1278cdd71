"""Once: plugins that CoreDNS takes once in a server block, whatever file brings them.

The law: a block that has one twice is not loaded as it is; running pods go on with what they read before, the next to
start does not come up, and nothing is added to such a block. Found by asking CoreDNS 1.14.7 about each plugin. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.corefile.model import Directive
from dnsproxy.install.change.refusal import Refusal

ONCE: Final = frozenset(["cache", "errors", "hosts", "loop", "nsid", "pprof", "prometheus", "ready", "view"])


def check_once(steps: Iterable[tuple[Directive, str]]) -> None:
    """Raises Refusal for the second of a plugin; each directive comes with its place."""
    first: dict[str, str] = {}
    for directive, place in steps:
        name = directive.name
        if name in ONCE and name in first:
            reason = f"{name} is in this server block already ({first[name]}), and CoreDNS loads no block with two"
            raise Refusal(reason, "take out one of them: a CoreDNS that starts now would not come up", place=place)
        first[name] = place
