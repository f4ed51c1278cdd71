"""Forwarding check: asks, before a stanza is written, whether dnsproxy gets the answers that the cluster's DNS gets.

The law: both are asked the same question about a zone, which nobody has in a table. It counts only if dnsproxy replies
with a failure, if the cluster's DNS then has an answer, and if this lasts: a network policy or a firewall that keeps
dnsproxy's pods from the upstreams would take every other name from the cluster, while both forward to the same ones.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Final

from dnsproxy.cluster_dns.exchange import Patience, ask_together
from dnsproxy.cluster_dns.probe_results import MOST_ZONES, Outcome
from dnsproxy.cluster_dns.probing import ask_once
from dnsproxy.dns import names
from dnsproxy.dns.wire import Rcode, Type, plain_query
from dnsproxy.install.run.lasting import look_until_good
from sidecar.values.endpoints import Endpoint

_PATIENTLY: Final = Patience(datagrams=(2.5,), stream=2.5)
"""dnsproxy says SERVFAIL before 2 seconds are over; CoreDNS skips a dead upstream within two seconds."""
_TIMES: Final = 3
"""Queries to dnsproxy, whose replicas share one address and may stand in different networks."""
_NAMES: Final = {Rcode.SERVFAIL.value: "SERVFAIL", Rcode.REFUSED.value: "REFUSED"}
_FAILURES: Final = _NAMES.keys()


async def check_forwarding(zones: Sequence[str], dnsproxy: Sequence[Endpoint], cluster_dns: Sequence[Endpoint]) -> str:
    """Why names outside the table would get no answer, in one sentence; `` if they would, or if nobody can say."""

    async def find_worse() -> list[str]:
        return [text for zone in zones[:MOST_ZONES] if (text := await _compare(zone, dnsproxy, cluster_dns))]

    return next(iter(await look_until_good(find_worse, bool)), "")


async def _compare(zone: str, dnsproxy: Sequence[Endpoint], cluster_dns: Sequence[Endpoint]) -> str:
    for own in dnsproxy:
        rcodes = [said.rcode for said in await _ask(own, zone, times=_TIMES) if said.rcode in _FAILURES]
        if not rcodes:
            continue
        for other in cluster_dns:
            (before,) = await _ask(other, zone, times=1)
            if before.rcode is not None and before.rcode not in _FAILURES:
                return (
                    f"dnsproxy at {own} has no answer for {zone} (SOA: {_NAMES[rcodes[0]]}), and the cluster's DNS at "
                    f"{other} has one: dnsproxy's pods do not reach the upstreams"
                )
    return ""


async def _ask(endpoint: Endpoint, zone: str, *, times: int) -> tuple[Outcome, ...]:
    """The outcomes of as many queries at the same time, each from a socket of its own."""
    queries = [secrets.token_bytes(2) + _question(zone) for _ in range(times)]
    return await ask_together(partial(ask_once, endpoint, patience=_PATIENTLY), queries)


def _question(zone: str) -> bytes:
    return plain_query(names.to_wire(zone.removesuffix(".")), Type.SOA).message[2:]
