"""Loops: a query of ours that comes back to us shows that an upstream leads here.

With `dnsPolicy: ClusterFirst`, a pod's resolv.conf names the cluster's DNS, whose stanza names us: every query would go
round until its time is over. So each upstream is asked now and then for a name that nobody else can know.

The law: only the very name that is out on its way counts; 128 random bits keep a forger from taking an upstream away.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Query

_SUFFIX: Final = names.to_wire("loop-probe.switchback.invalid")
_TXT: Final = 16

CameBack = Callable[[], None]


class LoopProbes:
    """The probes that are on their way, and whom to tell when one comes back."""

    def __init__(self) -> None:
        self.out: dict[bytes, CameBack] = {}
        """By lower-cased wire name; nearly always empty."""

    def make(self, came_back: CameBack) -> Query:
        """A fresh probe, under ID 0."""
        name = b"\x20" + secrets.token_hex(16).encode() + _SUFFIX
        self.out[name] = came_back
        return wire.plain_query(name, _TXT)

    def caught(self, name: bytes) -> bool:
        """Whether this lower-cased wire name is that of a probe on its way; if so, its upstream is told."""
        came_back = self.out.get(name)
        if came_back is None:
            return False
        came_back()
        return True

    def forget(self, probe: Query) -> None:
        """A probe's time is over."""
        self.out.pop(probe.name, None)
