"""Loops: a query of ours that comes back to us shows that an upstream leads here.

With `dnsPolicy: ClusterFirst`, a pod's resolv.conf names the cluster's DNS, whose stanza names us: every query would go
round until its time is over. So each upstream is asked now and then for a name that nobody else can know.

The law: only the very name that is out on its way counts; 128 random bits keep a forger from taking an upstream away.
"""

from __future__ import annotations

import secrets
import struct
from typing import Final

from dnsproxy import names, wire

_SUFFIX: Final = names.to_wire("loop-probe.switchback.invalid")
_TXT: Final = 16


class LoopProbes:
    """The probes that are on their way, one an upstream at most."""

    def __init__(self) -> None:
        self._out: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._out)

    def make(self, upstream: int) -> bytes:
        """A probe for an upstream, as a message without its ID; an earlier one for it no longer counts."""
        self._out = {name: index for name, index in self._out.items() if index != upstream}
        name = b"\x20" + secrets.token_hex(16).encode() + _SUFFIX
        self._out[name] = upstream
        return struct.pack("!HHHHH", wire.RD, 1, 0, 0, 0) + name + struct.pack("!HH", _TXT, wire.CLASS_IN)

    def seen(self, name: bytes) -> int | None:
        """The upstream that brought back the probe of this lower-cased wire name; None for any other name."""
        return self._out.get(name)

    def forget(self, upstream: int) -> None:
        """A probe's time is over."""
        self._out = {name: index for name, index in self._out.items() if index != upstream}
