"""Listeners of a Gateway or ListenerSet, with the specification's defaults filled in.

The law: pure; an invalid part of a listener accepts nothing, and does not affect other listeners. Of listeners that
cannot be distinguished, an implementation serves none; here too, none counts.
https://gateway-api.sigs.k8s.io/reference/spec/#listener
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dnsproxy.dns.names import BadName, parse_hostname
from dnsproxy.sources.gateway import structs
from dnsproxy.sources.gateway.admission import NO_NAMESPACE, Admission, BadScope, parse_admission
from dnsproxy.sources.gateway.kinds import GROUP, GROUPS, ROUTES, ROUTES_OF_PROTOCOL
from dnsproxy.sources.gateway.selectors import BadSelector
from sidecar.values.text import quoted

_Distinction = tuple[str, int, str | None]
"""Protocol, port and hostname, which distinguish the listeners of a Gateway."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The fields of one listener that decide names."""

    name: str
    port: int
    hostname: str | None
    """In normal form; None: every name."""
    kinds: frozenset[str]
    """The kinds of routes that it accepts."""
    admission: Admission


def parse_listeners(listeners: Iterable[structs.Listener | None] | None) -> tuple[tuple[Listener, ...], list[str]]:
    """The listeners that can be served, and the faults of all."""
    parsed: list[tuple[_Distinction, Listener]] = []
    faults: list[str] = []
    for listener in listeners or ():
        if listener is None:
            continue
        try:
            hostname = _parse_hostname(listener)
        except BadName as error:
            faults.append(f"listener {quoted(listener.name)}: {error}")
        else:
            kinds = _route_kinds(listener)
            one = Listener(listener.name, listener.port, hostname, kinds, _admission(listener, faults))
            parsed.append(((listener.protocol, listener.port, hostname), one))
    return _distinct(parsed, faults), faults


def _distinct(listeners: list[tuple[_Distinction, Listener]], faults: list[str]) -> tuple[Listener, ...]:
    """The distinct listeners (GatewaySpec.listeners, "Handling indistinct Listeners").

    Since v1 of the CRDs, the API server refuses indistinct ones. Whether TCP and another protocol share a port is up to
    the implementation.
    """
    uses = Counter(distinction for distinction, _ in listeners)
    distinct = []
    for (protocol, port, hostname), one in listeners:
        # If the port is absent, the controller chooses one for each listener.
        if not port or uses[protocol, port, hostname] == 1:
            distinct.append(one)
        else:
            what = f"{quoted(protocol)} on port {port}{f' for {hostname}' if hostname else ''}"
            faults.append(f"listener {quoted(one.name)}: another listener is also {what}, so neither is served")
    return tuple(distinct)


def _parse_hostname(listener: structs.Listener) -> str | None:
    """None for TCP and UDP: the specification says that their hostname is ignored."""
    if not listener.hostname or listener.protocol in ("TCP", "UDP"):
        return None
    return parse_hostname(listener.hostname)


def _route_kinds(listener: structs.Listener) -> frozenset[str]:
    """The named kinds that fit the protocol; all that fit if none is named.

    Every kind fits a protocol that only the implementation knows.
    """
    fitting = ROUTES_OF_PROTOCOL.get(listener.protocol, frozenset(ROUTES))
    allowed = listener.allowed_routes
    named = [kind for kind in (allowed.kinds if allowed is not None else None) or () if kind is not None]
    if not named:
        return fitting
    # An absent group means the Gateway API, an empty one the core group.
    groups = {(GROUP if kind.group is None else kind.group, kind.kind) for kind in named}
    return frozenset(kind for kind in fitting if (GROUPS[kind], kind) in groups)


def _admission(listener: structs.Listener, faults: list[str]) -> Admission:
    allowed = listener.allowed_routes
    try:
        return parse_admission(allowed.namespaces if allowed is not None else None, default="Same")
    except (BadScope, BadSelector) as error:
        faults.append(f"listener {quoted(listener.name)}: allowedRoutes: {error}")
        return NO_NAMESPACE
