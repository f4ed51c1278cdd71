"""Probing: asks DNS servers for names that only dnsproxy answers, or that only rewrite lines of ours do.

The law: each query has a new nonce and a new socket (exchange.py), so that no cache answers it and every server behind
a Service gets some queries. All queries together take a bounded time, whatever the servers do.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

import trio

from dnsproxy.cluster_dns.exchange import NoReply, Patience, ask_together, exchange
from dnsproxy.cluster_dns.probe_results import Outcome, ProbeResult
from dnsproxy.cluster_dns.rewrite_probing import ask_marker
from dnsproxy.dns import probe
from dnsproxy.dns.rewrite_probe import is_marker
from dnsproxy.dns.wire import rcode_of
from sidecar.values.endpoints import Endpoint


async def ask_all(
    endpoints: Sequence[Endpoint], zones: Sequence[str], patience: Patience | None = None
) -> tuple[ProbeResult, ...]:
    """The results of each server for each zone (in normal form, or `.`) or marker, all asked at the same time."""
    asked: dict[tuple[Endpoint, str], ProbeResult] = {}

    async def ask_one(endpoint: Endpoint, zone: str) -> None:
        asked[endpoint, zone] = await ask(endpoint, zone, patience)

    pairs = [(endpoint, zone) for endpoint in endpoints for zone in zones]
    async with trio.open_nursery() as nursery:
        for pair in pairs:
            nursery.start_soon(ask_one, *pair)
    return tuple(asked[pair] for pair in pairs)


async def ask(endpoint: Endpoint, zone: str, patience: Patience | None = None) -> ProbeResult:
    """The result of one server for one zone or marker. A name too long for a probe is an outcome too."""
    patience = patience or Patience()
    how = ask_marker if is_marker(zone) else _ask_zone
    try:
        return ProbeResult(endpoint, zone, await how(endpoint, zone, patience))
    except ValueError as error:
        return ProbeResult(endpoint, zone, (Outcome(fault=str(error)),))


async def _ask_zone(endpoint: Endpoint, zone: str, patience: Patience) -> tuple[Outcome, ...]:
    queries = [_make_query(zone) for _ in range(patience.times)]
    return await ask_together(partial(ask_once, endpoint, patience=patience), queries)


def _make_query(zone: str) -> bytes:
    name = probe.probe_name(zone, secrets.token_hex(probe.NONCE_DIGITS // 2))
    return probe.format_query(name, secrets.randbits(16))


async def ask_once(endpoint: Endpoint, query: bytes, patience: Patience) -> Outcome:
    """The outcome of one query, which may be for any name; the deadlines of `patience` bound it."""
    reply = await exchange(endpoint, query, patience)
    if isinstance(reply, NoReply):
        return Outcome(fault=reply.why)
    ours = probe.read_reply(query, reply) is probe.Reply.OURS
    forwards = probe.read_forwards(reply) if ours else None
    return Outcome(ours=ours, rcode=rcode_of(reply), forwards=forwards)
