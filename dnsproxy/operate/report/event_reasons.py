"""Why `dnsproxy operate` creates an Event, and about which object.

The law: users select by these words, so they stay as they are. Pure.
"""

from __future__ import annotations

from typing import Final

from dnsproxy.operate.decide.facts import Subject
from sidecar.kubernetes.events.event import About, Reason, Reporter

OPERATOR: Final = Reporter("switchback.dev/dnsproxy-operate", action="Steer", name_prefix="dnsproxy-operate")

STEERED: Final = Reason("Steered")
"""The names of a class or Gateway are answered with a relay from now on."""
LET_GO: Final = Reason("LetGo")
"""They are not, because pods reach the controller without it."""
RELAY_FAILS: Final = Reason("RelayFails", warns=True)
"""They are not, because handshakes through the relay fail."""
UNDECIDED: Final = Reason("Undecided", warns=True)
"""Something is missing to decide."""
NOT_WRITTEN: Final = Reason("RouteNotWritten", warns=True)
"""The relay Service of a class or Gateway cannot be written."""
ROUTE_FAULT: Final = Reason("RouteFault", warns=True)
"""A route Service that somebody wrote is not relayed, or not completely."""
UNKNOWN_ADDRESS: Final = Reason("UnknownAddress", warns=True)
"""Names of a class or Gateway lead to an address that no status names: a router, or a CDN."""


def about_subject(subject: Subject) -> About:
    """The IngressClass or Gateway."""
    if subject.namespace:
        version = "gateway.networking.k8s.io/v1"
        return About("Gateway", subject.namespace, subject.name, api_version=version)
    return About("IngressClass", "", subject.name, api_version="networking.k8s.io/v1")


def about_service(key: str) -> About:
    """The Service `NAMESPACE/NAME`."""
    namespace, _, name = key.partition("/")
    return About("Service", namespace, name)
