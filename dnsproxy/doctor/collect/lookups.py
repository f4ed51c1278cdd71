"""Look-ups: the addresses of hostnames, from the cluster's DNS and from public DNS.

The law: A and AAAA are queried over UDP, and over TCP if the reply was truncated, each within its deadline; a missing
answer is a fault of the look-up, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype
import trio

from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.paths import name_to_ask
from dnsproxy.forward.resolv_conf import parse_nameservers
from sidecar.values.endpoints import Endpoint, parse_endpoint

SECONDS: Final = 5.0
ALL_SECONDS: Final = 30.0
"""Seconds for all look-ups: a dead server must not delay the user once for each of 300 names."""
_TOGETHER: Final = 16
_RESOLV_CONF: Final = Path("/etc/resolv.conf")
_FAULTS: Final = (dns.exception.DNSException, OSError, ValueError, EOFError)


async def look_up_all(
    hostnames: Sequence[str], servers: dict[str, Endpoint], on_done: Callable[[int], None] = lambda _: None
) -> tuple[Lookup, ...]:
    """The answers of each server (`cluster`, `public`) for each hostname that arrive within ALL_SECONDS."""
    pairs = [(hostname, server) for server in servers for hostname in hostnames]
    found: dict[tuple[str, str], Lookup] = {}
    turns = trio.CapacityLimiter(_TOGETHER)

    async def one(hostname: str, server: str) -> None:
        async with turns:
            found[hostname, server] = await look_up(hostname, server, servers[server])
            on_done(len(found))

    with trio.move_on_after(ALL_SECONDS):
        async with trio.open_nursery() as nursery:
            for pair in pairs:
                nursery.start_soon(one, *pair)
    return tuple(found[pair] for pair in pairs if pair in found)


async def look_up(hostname: str, server: str, endpoint: Endpoint) -> Lookup:
    """The answer of one server for one hostname."""
    addresses: dict[str, None] = {}
    aliases: dict[str, None] = {}
    faults: dict[str, None] = {}

    async def ask(rtype: dns.rdatatype.RdataType) -> None:
        try:
            query = dns.message.make_query(name_to_ask(hostname), rtype)
            with trio.fail_after(SECONDS):
                reply, _ = await dns.asyncquery.udp_with_fallback(
                    query, endpoint.host, timeout=SECONDS, port=endpoint.port, ignore_unexpected=True
                )
        except trio.TooSlowError:
            faults["no answer"] = None
        except _FAULTS as error:
            faults[str(error) or type(error).__name__] = None
        else:
            _take(reply, addresses, aliases, faults)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, dns.rdatatype.A)
        nursery.start_soon(ask, dns.rdatatype.AAAA)
    fault = "" if addresses else ", ".join(faults)
    return Lookup(hostname, server, str(endpoint), tuple(sorted(addresses)), tuple(aliases), fault)


def _take(
    reply: dns.message.Message, addresses: dict[str, None], aliases: dict[str, None], faults: dict[str, None]
) -> None:
    code = reply.rcode()
    if code not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        faults[dns.rcode.to_text(code)] = None
    for records in reply.answer:
        for record in records:
            if records.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA):
                addresses[record.to_text()] = None
            elif records.rdtype == dns.rdatatype.CNAME:
                aliases[record.to_text().removesuffix(".").lower()] = None


def public_server(cluster: Sequence[str], resolv_conf: Path = _RESOLV_CONF) -> Endpoint | None:
    """The first nameserver of this machine that is not the cluster's DNS; None in an ordinary pod."""
    try:
        content = resolv_conf.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for text in parse_nameservers(content):
        try:
            endpoint = parse_endpoint(text, default_port=DNS_PORT)
        except ValueError:
            continue
        if endpoint.host not in cluster:
            return endpoint
    return None
