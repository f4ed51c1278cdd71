"""Service look-up: whether the cluster's DNS has an address for each Service to which names would be rewritten.

The law: a Service is absent only if a server says so three times, and none has an address: a name that is rewritten to
it would not exist any more. From outside of the cluster there may be no answer, which is a note and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.rewrite_probing import Resolved, resolve
from dnsproxy.corefile.stanza import format_address
from dnsproxy.install.run.lasting import look_until_good
from sidecar.values.endpoints import Endpoint

MOST: Final = 20
"""Services that are looked up: dnsproxy has one for each relay and target, so more is another use."""
_QUICKLY: Final = Patience(times=1, datagrams=(0.5, 0.5), stream=0.5)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What the cluster's DNS says about some Services."""

    absent: frozenset[str] = frozenset()
    """`NAMESPACE/NAME`."""
    note: str = ""
    """Why it is unknown; empty if it is known."""


async def look_up_services(places: Sequence[Endpoint], services: Collection[str], domain: str) -> LookedUp:
    """Look up the first MOST of these Services, by name, at each of the servers."""
    asked = sorted(services)[:MOST]

    async def look() -> LookedUp:
        return _judge(await _ask_all(places, asked, domain), places)

    return await look_until_good(look, lambda found: bool(found.absent))


async def _ask_all(places: Sequence[Endpoint], services: Sequence[str], domain: str) -> dict[str, list[Resolved]]:
    found: dict[str, list[Resolved]] = {service: [] for service in services}

    async def ask(place: Endpoint, service: str) -> None:
        namespace, _, name = service.partition("/")
        try:
            found[service].append(await resolve(place, f"{name}.{namespace}.svc.{domain}", _QUICKLY))
        except ValueError as error:
            found[service].append(Resolved(fault=str(error)))

    async with trio.open_nursery() as nursery:
        for place in places:
            for service in services:
                nursery.start_soon(ask, place, service)
    return found


def _judge(found: dict[str, list[Resolved]], places: Sequence[Endpoint]) -> LookedUp:
    known = [one for replies in found.values() for one in replies if one.rcode is not None]
    if found and not known:
        where = ", ".join(map(format_address, places)) or "no known address"
        return LookedUp(note=f"whether the cluster's DNS knows these Services is unknown: no answer at {where}")
    absent = {
        service
        for service, replies in found.items()
        if any(one.is_absent for one in replies) and not any(one.addresses for one in replies)
    }
    return LookedUp(frozenset(absent))
