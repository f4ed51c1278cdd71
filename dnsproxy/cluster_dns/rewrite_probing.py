"""Probing of rewrite lines: whether a DNS server has exactly these lines, and what it answers for a Service.

The law: a server has the lines if it answers their probe (dns/rewrite_probe.py) with the addresses that it has itself
for the Service to which the probe is rewritten, and the probe of no lines otherwise. A server that does not answer says
nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from typing import Final

from dnsproxy.cluster_dns.exchange import NoReply, Patience, ask_together, exchange
from dnsproxy.cluster_dns.probe_results import Outcome
from dnsproxy.dns.addresses import parse_address_reply
from dnsproxy.dns.rewrite_probe import NONCE_DIGITS, REFERENCE, domain_of, format_address_query, format_marker
from dnsproxy.dns.wire import Rcode, Type, rcode_of
from sidecar.values.endpoints import Endpoint

_TYPES: Final = (Type.A, Type.AAAA)
_REWRITTEN: Final = "rewritten"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a server answers for one name."""

    addresses: frozenset[str] = frozenset()
    """Of both families."""
    rcode: int | None = None
    """The worst of both replies; None if one of them is missing."""
    fault: str = ""
    """Why a reply is missing."""

    @property
    def is_absent(self) -> bool:
        """Whether the server says that the name has no address."""
        return not self.addresses and self.rcode in (Rcode.NOERROR, Rcode.NXDOMAIN)


async def resolve(endpoint: Endpoint, hostname: str, patience: Patience) -> Resolved:
    """What a server answers for a name in normal form. Raises ValueError for a name that is too long."""
    queries = [format_address_query(hostname, rtype, secrets.randbits(16)) for rtype in _TYPES]
    replies = await ask_together(partial(exchange, endpoint, patience=patience), queries)
    missing = next((one for one in replies if isinstance(one, NoReply)), None)
    if missing is not None:
        return Resolved(fault=missing.why)
    found = [parse_address_reply(one) for one in replies if isinstance(one, bytes)]
    whole = [one for one in found if one is not None]
    if len(whole) < len(replies):
        return Resolved(fault="an unreadable reply")
    addresses = frozenset(address for one in whole for address in one.addresses)
    return Resolved(addresses, max(one.rcode for one in whole))


async def ask_marker(endpoint: Endpoint, marker: str, patience: Patience) -> tuple[Outcome, ...]:
    """The outcomes of as many probes as `patience` says. Raises ValueError for a marker that is too long."""
    reference = f"{REFERENCE}.{domain_of(marker)}"
    there = await resolve(endpoint, reference, patience)
    if not there.addresses:
        return (Outcome(rcode=there.rcode, fault=there.fault or f"no address for {reference}"),)
    control = await resolve(endpoint, _probe(format_marker(_nonce(), domain_of(marker))), patience)
    if control.addresses & there.addresses:
        return (Outcome(rcode=control.rcode, fault=f"the address of {reference} for every name"),)
    # One family is enough, and a cluster may have either.
    is_ipv4 = any(map(_is_ipv4, there.addresses))
    expected = frozenset(one for one in there.addresses if _is_ipv4(one) is is_ipv4)
    rtype = Type.A if is_ipv4 else Type.AAAA
    queries = [format_address_query(_probe(marker), rtype, secrets.randbits(16)) for _ in range(patience.times)]
    return await ask_together(partial(_ask, endpoint, expected, patience), queries)


async def _ask(endpoint: Endpoint, expected: frozenset[str], patience: Patience, query: bytes) -> Outcome:
    reply = await exchange(endpoint, query, patience)
    if isinstance(reply, NoReply):
        return Outcome(fault=reply.why)
    found = parse_address_reply(reply)
    ours = found is not None and frozenset(found.addresses) == expected
    return Outcome(ours=ours, by=_REWRITTEN, rcode=rcode_of(reply))


def _probe(marker: str) -> str:
    return f"{_nonce()}.{marker.removesuffix('.')}"


def _nonce() -> str:
    return secrets.token_hex(NONCE_DIGITS // 2)


def _is_ipv4(address: str) -> bool:
    return ":" not in address
