"""Look-ups: the addresses of hostnames, from the cluster's DNS and from public DNS.

The law: A and AAAA are queried over UDP, and over TCP if the reply was truncated, each within its deadline; a missing
answer is a fault of the look-up, never an exception. An answer of one type counts without that of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype
import trio

from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.doctor.collect.bounded_work import Finished, run_all
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.paths import name_to_ask
from dnsproxy.forward.resolv_conf import parse_nameservers
from dnsproxy.forward.resolv_conf_follower import LARGEST
from sidecar.files.follow import read_regular_file
from sidecar.values.endpoints import Endpoint, parse_endpoint

SECONDS: Final = 5.0
ALL_SECONDS: Final = 30.0
"""Seconds for all look-ups: a dead server must not delay the user once for each of 300 names."""
GIVE_UP: Final = 8
"""A server that leaves so many names in a row without an answer is not asked again."""
NO_ANSWER: Final = "no answer"
_TYPES: Final = (dns.rdatatype.A, dns.rdatatype.AAAA)
_RESOLV_CONF: Final = Path("/etc/resolv.conf")
_FAULTS: Final = (dns.exception.DNSException, OSError, ValueError, EOFError)


async def look_up_all(
    hostnames: Sequence[str],
    servers: Mapping[str, Endpoint],
    on_done: Callable[[int], None] = lambda _: None,
    *,
    seconds: float = ALL_SECONDS,
) -> Finished[Lookup]:
    """The answers of each server (`cluster`, `public`) for each hostname, name by name."""
    # All servers of a name in turn: a dead server must not take the time of the other one.
    pairs = [(hostname, server) for hostname in hostnames for server in servers]

    silent = dict.fromkeys(servers, 0)

    async def one(pair: tuple[str, str]) -> Lookup:
        hostname, server = pair
        if silent[server] >= GIVE_UP:
            return Lookup(hostname, server, str(servers[server]), fault=f"no answer to {GIVE_UP} other names")
        found = await look_up(hostname, server, servers[server])
        silent[server] = silent[server] + 1 if found.fault == NO_ANSWER else 0
        return found

    return await run_all(one, pairs, on_done, seconds=seconds)


async def look_up(hostname: str, server: str, endpoint: Endpoint, *, seconds: float = SECONDS) -> Lookup:
    """The answer of one server for one hostname; a query that gets none is sent once more."""
    addresses: dict[str, None] = {}
    aliases: dict[str, None] = {}
    faults: dict[str, str] = {}

    async def ask(rtype: dns.rdatatype.RdataType) -> None:
        try:
            query = dns.message.make_query(name_to_ask(hostname), rtype)
            reply = await _ask_twice(query, endpoint, seconds)
        except trio.TooSlowError:
            faults[rtype.name] = NO_ANSWER
        except _FAULTS as error:
            faults[rtype.name] = str(error) or type(error).__name__
        else:
            _take(reply, addresses, aliases)
            if reply.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                faults[rtype.name] = dns.rcode.to_text(reply.rcode())

    async with trio.open_nursery() as nursery:
        for rtype in _TYPES:
            nursery.start_soon(ask, rtype)
    fault = "" if addresses else ", ".join(dict.fromkeys(faults.values()))
    partial = "".join(f"{name}: {why}" for name, why in faults.items()) if len(faults) < len(_TYPES) else ""
    return Lookup(hostname, server, str(endpoint), tuple(sorted(addresses)), tuple(aliases), fault, partial)


async def _ask_twice(query: dns.message.Message, endpoint: Endpoint, seconds: float) -> dns.message.Message:
    """The reply to the first or the second datagram. Raises TooSlowError and what dnspython raises."""
    with trio.fail_after(seconds):
        for attempt in (seconds / 2, seconds):
            with trio.move_on_after(attempt):
                reply, _ = await dns.asyncquery.udp_with_fallback(
                    query, endpoint.host, port=endpoint.port, ignore_unexpected=True
                )
                return reply
    raise trio.TooSlowError


def _take(reply: dns.message.Message, addresses: dict[str, None], aliases: dict[str, None]) -> None:
    for records in reply.answer:
        for record in records:
            if records.rdtype in _TYPES:
                addresses[record.to_text()] = None
            elif records.rdtype == dns.rdatatype.CNAME:
                aliases[record.to_text().removesuffix(".").lower()] = None


def public_server(cluster: Sequence[str], resolv_conf: Path = _RESOLV_CONF) -> Endpoint | None:
    """The first nameserver of this machine that is not the cluster's DNS; None in an ordinary pod."""
    try:
        content = read_regular_file(resolv_conf, largest=LARGEST)
    except (OSError, ValueError):
        return None
    for text in parse_nameservers(content):
        try:
            endpoint = parse_endpoint(text, default_port=DNS_PORT)
        except ValueError:
            continue
        if endpoint.host not in cluster:
            return endpoint
    return None
