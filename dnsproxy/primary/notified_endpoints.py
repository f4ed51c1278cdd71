"""The endpoints of a headless Service that are told of each change.

The law: every endpoint that is not gone is told, ready or not: a starting replica wants the table most of all. Pure but
for follow_endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from dnsproxy.primary.settings import ServiceEndpoints
from dnsproxy.sources.target_endpoints import slice_collection
from sidecar.kubernetes.endpoint_slices import FAMILIES, EndpointSlice
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.listwatch import Changes, follow
from sidecar.kubernetes.objects import Unreadable
from sidecar.values.endpoints import Endpoint, is_address, parse_address

_UDP: Final = "UDP"
_MOST: Final = 20_000


def endpoints_to_tell(slices: Iterable[EndpointSlice | Unreadable]) -> tuple[Endpoint, ...]:
    """The addresses of all endpoints, with the UDP port of their slice."""
    found: dict[Endpoint, None] = {}
    for one in slices:
        if isinstance(one, EndpointSlice) and one.address_type in FAMILIES:
            port = next((each.port for each in one.ports or () if each.protocol == _UDP and each.port), None)
            texts = (text for each in one.endpoints or () for text in each.addresses or () if is_address(text))
            if port is not None:
                found |= dict.fromkeys(Endpoint(parse_address(text), port) for text in texts)
    return tuple(sorted(found, key=lambda one: (one.host, one.port)))[:_MOST]


async def follow_endpoints(
    client: ApiClient, service: ServiceEndpoints, *, tell: Callable[[tuple[Endpoint, ...]], None]
) -> NoReturn:
    """Tell the endpoints now and after each change, until cancelled."""
    slices: dict[str, EndpointSlice | Unreadable] = {}

    def note(changes: Changes[EndpointSlice]) -> None:
        for key, one in changes.items():
            if one is None:
                slices.pop(key, None)
            else:
                slices[key] = one
        tell(endpoints_to_tell(slices.values()))

    await follow(client, slice_collection(str(service.ref)), on_change=note)
