"""Loop probes: a probe that comes back to this server, or to another that asks the same upstream, shows a loop.

With `dnsPolicy: ClusterFirst`, the resolv.conf of a pod names the cluster's DNS, whose stanza forwards to this server:
every query would loop until its deadline. So each upstream is asked regularly for a random name. Behind a Service, the
probe may come to another pod with the same upstream: that pod answers every such probe with "there is a loop".

The law: only the reply to our own probe excludes an upstream, or an outstanding probe itself; its 128 random bits keep
an attacker from either.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Final

from dnsproxy.dns import names, records, wire
from dnsproxy.dns.wire import Query, Type
from sidecar.values.endpoints import Endpoint

SUFFIX: Final = names.to_wire("loop-probe.switchback.invalid")
"""All probes end with it, in lower-case wire form."""

_NONCE: Final = 32
"""Hexadecimal digits of the first label."""
_MARK: Final = 16
"""The same of the second one, which stands for the upstream that the probe was sent to."""
_TEXT: Final = b"switchback loop"
_ANSWER: Final = records.format_record(Type.TXT, 0, bytes([len(_TEXT)]) + _TEXT)

CameBack = Callable[[], None]


class LoopProbes:
    """The outstanding probes with the callback of each, and the upstreams of this server."""

    def __init__(self) -> None:
        self.out: dict[bytes, CameBack] = {}
        """By lower-case wire name; nearly always empty."""
        self._marks: frozenset[bytes] = frozenset()

    def set_upstreams(self, upstreams: Iterable[Endpoint]) -> None:
        """Set the upstreams for which a probe of another server shows a loop."""
        # Another computer means another server by the same local address.
        self._marks = frozenset(_mark_of(one) for one in upstreams if not _is_local(one))

    def make(self, upstream: Endpoint, came_back: CameBack) -> Query:
        """A new probe for an upstream, with ID 0."""
        name = bytes([_NONCE]) + secrets.token_hex(_NONCE // 2).encode() + _mark_of(upstream) + SUFFIX
        self.out[name] = came_back
        return wire.plain_query(name, Type.TXT)

    def answer(self, query: Query) -> bytes | None:
        """Our reply to a probe that shows a loop; None for any other query. The callback of our own probe runs."""
        came_back = self.out.get(query.name)
        if came_back is not None:
            came_back()
        elif not self._is_of_our_upstream(query.name):
            return None
        flags = records.reply_flags(int.from_bytes(query.message[2:4]), rcode=0, authoritative=True)
        return query.message[:2] + flags.to_bytes(2) + b"\0\1\0\1\0\0\0\0" + query.question + _ANSWER

    def forget(self, probe: Query) -> None:
        """Stop waiting for a probe."""
        self.out.pop(probe.name, None)

    def _is_of_our_upstream(self, name: bytes) -> bool:
        start = 1 + _NONCE
        return name[start + 1 + _MARK :] == SUFFIX and name[start : start + 1 + _MARK] in self._marks


def shows_loop(reply: bytes) -> bool:
    """Whether the reply to a probe of ours says that there is a loop."""
    return _TEXT in reply


def _is_local(upstream: Endpoint) -> bool:
    address = ip_address(upstream.host)
    return address.is_loopback or address.is_link_local or address.is_unspecified


def _mark_of(upstream: Endpoint) -> bytes:
    """The label of an upstream: a digest, because a probe may come to servers that must not learn the address."""
    address = str(Endpoint(upstream.host, upstream.port))
    return bytes([_MARK]) + hashlib.sha256(address.encode()).hexdigest()[:_MARK].encode()
