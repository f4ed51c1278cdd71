"""Loop probes: a probe that comes back to this server shows that an upstream routes queries back here.

With `dnsPolicy: ClusterFirst`, the resolv.conf of a pod names the cluster's DNS, whose stanza forwards to this server:
every query would loop until its deadline. So each upstream is asked regularly for a random name.

The law: only a probe that is outstanding counts; its 128 random bits keep an attacker from excluding an upstream.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Query

_SUFFIX: Final = names.to_wire("loop-probe.switchback.invalid")

CameBack = Callable[[], None]


class LoopProbes:
    """The outstanding probes, and the callback of each."""

    def __init__(self) -> None:
        self.out: dict[bytes, CameBack] = {}
        """By lower-case wire name; nearly always empty."""

    def make(self, came_back: CameBack) -> Query:
        """A new probe, with ID 0."""
        name = b"\x20" + secrets.token_hex(16).encode() + _SUFFIX
        self.out[name] = came_back
        return wire.plain_query(name, wire.Type.TXT)

    def caught(self, name: bytes) -> bool:
        """Whether this lower-case wire name is that of an outstanding probe; if so, its callback runs."""
        came_back = self.out.get(name)
        if came_back is None:
            return False
        came_back()
        return True

    def forget(self, probe: Query) -> None:
        """Stop waiting for a probe."""
        self.out.pop(probe.name, None)
