"""Sources and tables for the tests of publishers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dnsproxy.admin.publication import Name, Publication, sort_key
from dnsproxy.dns.names import Reach
from dnsproxy.publish.source import SourceError


def publication(*texts: str, ttl: int = 5) -> Publication:
    """Rows as `NAME IP ...`; `*.` matches one label, `**.` any number of labels."""
    return Publication(ttl, tuple(sorted(map(parse_row, texts), key=sort_key)))


def parse_row(text: str) -> Name:
    hostname, *addresses = text.split()
    reach = Reach.ANY_LABELS if hostname.startswith("**.") else Reach.ONE_LABEL if "*" in hostname else Reach.NAME
    return Name(hostname.replace("**.", "*."), tuple(addresses), reach)


def many(count: int) -> Publication:
    """A publication of this many names."""
    return publication(*(f"h{number}.example.org 192.0.2.10" for number in range(count)))


@dataclass
class ScriptedSource:
    """Returns one publication after another, then the last one forever; a text is the reason of a SourceError."""

    script: Sequence[Publication | str]
    reads: int = field(default=0)

    async def read(self) -> Publication:
        result = self.script[min(self.reads, len(self.script) - 1)]
        self.reads += 1
        if isinstance(result, str):
            raise SourceError(result)
        return result
