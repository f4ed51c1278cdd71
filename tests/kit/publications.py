"""Sources and tables for the tests of publishers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dnsproxy.admin.publication import Name, Publication, sort_key
from dnsproxy.dns.names import Reach
from dnsproxy.publish.source import SourceError


def publication(*texts: str, ttl: int = 5) -> Publication:
    """Rows as `NAME IP ...`; `*.` stands for one label, `**.` for any number of them."""
    return Publication(ttl, tuple(sorted(map(parse_row, texts), key=sort_key)))


def parse_row(text: str) -> Name:
    hostname, *addresses = text.split()
    reach = Reach.ANY_LABELS if hostname.startswith("**.") else Reach.ONE_LABEL if "*" in hostname else Reach.NAME
    return Name(hostname.replace("**.", "*."), tuple(addresses), reach)


def many(count: int) -> Publication:
    """So many names."""
    return publication(*(f"h{number}.example.org 192.0.2.10" for number in range(count)))


@dataclass
class ScriptedSource:
    """Says one thing after another, the last one for ever; a text is why there is nothing to be had."""

    script: Sequence[Publication | str]
    reads: int = field(default=0)

    async def read(self) -> Publication:
        said = self.script[min(self.reads, len(self.script) - 1)]
        self.reads += 1
        if isinstance(said, str):
            raise SourceError(said)
        return said
