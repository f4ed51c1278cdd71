"""Finds the addresses of a name in a hosts file, hosts(5).

The law: pure, and as lenient as the C library: a line that is not an address with names is ignored.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from sidecar.values.endpoints import is_address

_LOOPBACK: Final = ["::1", "127.0.0.1"]
_LOCALHOST: Final = "localhost"


def addresses_in(content: str, name: str) -> list[str]:
    """The addresses of a name, ignoring case and a final dot; empty if the file does not have the name.

    `localhost` and names below it are always loopback (RFC 6761 section 6.3).
    """
    wanted = name.lower().removesuffix(".")
    if wanted == _LOCALHOST or wanted.endswith(f".{_LOCALHOST}"):
        return list(_LOOPBACK)
    found: dict[str, None] = {}
    for line in content.removeprefix("\ufeff").split("\n"):  # without a byte order mark
        address, *names = line.partition("#")[0].split() or [""]
        if any(one.lower().removesuffix(".") == wanted for one in names) and is_address(address):
            found[str(ipaddress.ip_address(address))] = None
    return list(found)
