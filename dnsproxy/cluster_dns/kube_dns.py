"""The keys of the ConfigMap `kube-dns`, which the programs kube-dns and node-cache read, and the values of these keys.

The law: a key that is absent or blank has an empty value; any other text is a value or a ValueError with the
reason. Pure. Tested in test_servers.py and test_upstream_config.py.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_BYTE: Final = re.compile(r" \(byte (\d+)\)")
_QUOTES: Final = frozenset("\u201c\u201d\u201e\u2033\u00ab\u00bb\u2018\u2019")
STUB_DOMAINS: Final = "stubDomains"
UPSTREAMS: Final = "upstreamNameservers"


Zones = dict[str, tuple[str, ...]]
"""The value of STUB_DOMAINS: the servers of each zone."""
Nameservers = tuple[str, ...]
"""The value of UPSTREAMS: the servers of all other names."""


def parse_value(text: str | None, shape: Any) -> Any:
    """A value of one of these shapes; None: the key is absent. Raises ValueError."""
    text = text or ""
    try:
        return msgspec.json.decode(text, type=shape) if text.strip() else shape()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(_describe(str(error), text)) from None


def _describe(reason: str, text: str) -> str:
    """The reason with line and column in place of the byte, and what people paste from a web page."""
    if found := _BYTE.search(reason):
        before = text.encode(errors="surrogatepass")[: int(found[1])].decode(errors="replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = f"{_BYTE.sub('', reason)} at line {line}, column {column}"
    return f'{reason}; it has typographic quotes, where JSON needs "' if _QUOTES.intersection(text) else reason
