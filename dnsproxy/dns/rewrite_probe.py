"""The probe of rewrite lines: a name that only a CoreDNS with exactly these lines answers.

The law: `NONCE.DIGEST._switchback-rewrites.CLUSTERDOMAIN` is rewritten by one of our own lines to a Service that every
cluster has; DIGEST is that of all our lines. A CoreDNS without them answers NXDOMAIN by itself, because the name is in
the zone of its plugin `kubernetes`: no query leaves the cluster. The nonce keeps caches out of it.
"""

from __future__ import annotations

import struct
from typing import Final

from dnsproxy.dns import names, wire
from dnsproxy.dns.wire import Type

LABEL: Final = "_switchback-rewrites"
NONCE: Final = "[0-9a-f]+"
"""The nonce as a regular expression (RE2)."""
NONCE_DIGITS: Final = 16
REFERENCE: Final = "kubernetes.default.svc"
"""The Service of the API server, which exists in every cluster; the cluster domain follows."""


def format_marker(digest: str, domain: str) -> str:
    """The name below which the probes of these lines are, in normal form; `domain` without a final dot."""
    return f"{digest}.{LABEL}.{domain}"


def is_marker(zone: str) -> bool:
    """Whether a name is such a marker, and no zone whose queries go to dnsproxy."""
    return zone.partition(".")[2].startswith(f"{LABEL}.")


def domain_of(marker: str) -> str:
    """The cluster domain of a marker."""
    return marker.split(".", 2)[2].removesuffix(".")


def format_address_query(hostname: str, rtype: Type, ident: int) -> bytes:
    """The query for the addresses of a name in normal form. Raises ValueError for a name that is too long."""
    wire_name = names.to_wire(hostname)
    if len(wire_name) > names.MAXIMUM_NAME:
        raise ValueError(f"{hostname} is too long to be asked for")
    return struct.pack("!H", ident) + wire.plain_query(wire_name, rtype).message[2:]
