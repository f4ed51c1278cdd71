"""What CoreDNS does with `rewrite` lines, in the form of plugin/rewrite/name.go: the judge of our own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence


def rewritten(lines: Sequence[str], name: str) -> str:
    """The name that the first matching line makes of a name in lower case with a final dot; else the name itself."""
    for line in lines:
        plugin, mode, field, kind, before, after, *rest = line.split(" ")
        assert (plugin, mode, field, rest) == ("rewrite", "stop", "name", ["answer", "auto"])
        if kind == "exact" and name == before:
            return after
        if kind == "regex" and (found := re.search(before, name)):
            for number, group in enumerate(found.groups(), 1):
                after = after.replace(f"{{{number}}}", group)
            return after
    return name
