"""The keys of the ConfigMap `kube-dns`, which the programs kube-dns and node-cache read, and the values of these keys.

The law: a key that is absent or blank has an empty value; any other text is a value or a ValueError with the
reason. Pure. Tested in test_servers.py and test_upstream_config.py.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

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
        raise ValueError(str(error)) from None
