"""Claims: what one object wants one hostname to be. Sources make them, the plan decides between them.

The law: a claim is a value about one object and one hostname; it knows neither the table nor other claims. There can be
a hundred thousand, so they are made of what the garbage collector need not walk through (gc=False): it would hold up
the answers for a tenth of a second each time.
"""

from __future__ import annotations

import msgspec

from dnsproxy.dns.names import Reach


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a claim comes from, in the terms that people use to find it."""

    kind: str
    """`Ingress`, `hosts file`, `flag` ..."""
    name: str
    """An object's name; `FILE:LINE` or the flag for static names."""
    namespace: str = ""
    created: str = ""
    """creationTimestamp as RFC 3339 in UTC, so that it sorts as text; empty for what has no age."""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


class Claim(msgspec.Struct, frozen=True, gc=False):
    """One object's wish that one hostname be answered."""

    hostname: str
    """In the normal form of names.parse_hostname, `*.` in front of a wildcard."""
    reach: Reach
    origin: Origin
    addresses: tuple[str, ...] = ()
    """Fixed addresses (static names); empty where the target decides."""
    ingress_class: str | None = None
    """The class whose target applies, of an Ingress or of a Gateway; None takes the default target."""
    target: str | None = None
    """The target that the object itself chose (`switchback.dev/target`), before that of its class: `ADDRESS[,ADDRESS]`
    in canonical form, `service:NAMESPACE/NAME` or `status`."""
    status: tuple[str, ...] = ()
    """The addresses and hostnames in the load balancer status of the object, or of the Gateway that serves it."""
    routed: bool = True
    """False for a mere listener: it takes connections for the name, but whoever routes the name comes first."""


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """A hostname or line that cannot be served, and why."""

    origin: Origin
    reason: str
    deliberate: bool = False
    """Somebody asked for it (a filter, a label): worth an explanation, but no warning."""
