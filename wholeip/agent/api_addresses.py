"""Finds the addresses of the API server that the agent dials, again and again if its host is a name.

The law: an address that the name has had stays known until the agent ends: a name with many addresses shows a few of
them at a time, and other programs of the node may still be connected to one of before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import trio

from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import is_address
from wholeip.mappings.addresses import Address, parse_each
from wholeip.mappings.refused_addresses import parse_shown

_RESOLVE_SECONDS: Final = 5.0
"""For the name of the API server: a mapping must not wait for it."""
_AGAIN_SECONDS: Final = 60.0
"""Between two look-ups. A name that moves, such as that of a cloud's load balancer, has a TTL of about this."""
_FAILED_SECONDS: Final = 5.0
"""After a look-up without an address: at the start of a node, its DNS may be late."""


async def api_addresses(server: str) -> frozenset[Address]:
    """The addresses of the host in a URL; none if its name has none now. Loopback is refused anyway."""
    host = urlsplit(server).hostname or ""
    texts = {host}
    with suppress(OSError, UnicodeError), trio.move_on_after(_RESOLVE_SECONDS):
        texts |= {str(found[4][0]) for found in await trio.socket.getaddrinfo(host, None)}
    return parse_each(parse_shown, texts)


async def follow_api_addresses(
    client: ApiClient,
    known: frozenset[Address],
    take: Callable[[frozenset[Address]], None],
    *,
    again: float = _AGAIN_SECONDS,
) -> None:
    """Report new addresses until cancelled; returns at once if the host is an address. `known` has those of before."""
    if is_address(urlsplit(client.cluster.server).hostname or ""):
        return
    while True:
        await trio.sleep(again if known else _FAILED_SECONDS)
        found = await api_addresses(client.cluster.server)
        if new := found - known:
            take(new)
            known |= new
