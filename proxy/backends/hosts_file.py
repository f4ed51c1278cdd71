"""hosts(5): the names that a computer knows without asking anybody.

The law: pure, and lenient as the C library is: what is no address with names is passed over.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from sidecar.endpoints import is_address

_LOOPBACK: Final = ["::1", "127.0.0.1"]
_LOCALHOST: Final = "localhost"


def addresses_in(content: str, name: str) -> list[str]:
    """The addresses of a name, whatever its case and final dot; none where the file does not have it.

    `localhost` and what ends in it is loopback, whatever the file says (RFC 6761 section 6.3).
    """
    wanted = name.lower().removesuffix(".")
    if wanted == _LOCALHOST or wanted.endswith(f".{_LOCALHOST}"):
        return list(_LOOPBACK)
    found: dict[str, None] = {}
    for line in content.split("\n"):
        address, *names = line.partition("#")[0].split() or [""]
        if any(one.lower().removesuffix(".") == wanted for one in names) and is_address(address):
            found[str(ipaddress.ip_address(address))] = None
    return list(found)
