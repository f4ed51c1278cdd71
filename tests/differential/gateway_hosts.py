"""The hostnames that a route has at each listener of a set, and the other facts that controllers go by.

The law: pure; read from the manifests, and shared with no source under test.
https://gateway-api.sigs.k8s.io/reference/spec/#hostname
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.differences import find_object, of_kind
from tests.differential.gateway_listeners import Attached, accepts, attached_listeners, is_meant, listeners_of_parent
from tests.differential.sets import CERTIFICATE, Manifest, ObjectSet
from tests.differential.universe import covers

Fault = Callable[[ObjectSet, Claim, Attached], bool]
"""Why a controller does not serve a claim's hostname at a listener."""

EVERY: Final = "*"
"""Every name: a route without hostnames at a listener without one."""


def object_of(objects: ObjectSet, claim: Claim) -> Manifest:
    """The object that makes a claim."""
    origin = claim.origin
    found = find_object(objects, origin.kind, origin.namespace, origin.name)
    assert found is not None, claim
    return found


def listeners_of_claim(objects: ObjectSet, claim: Claim) -> list[Attached]:
    """The listeners that accept the claim's route and have all names of the claim's hostname."""
    return list(attached_listeners(objects, object_of(objects, claim), claim.hostname))


def listeners_of_route(objects: ObjectSet, route: Manifest) -> list[Attached]:
    """The listeners that accept a route, whatever its hostnames."""
    return [
        one
        for reference in route["spec"]["parentRefs"]
        for one in listeners_of_parent(objects, route, reference)
        if is_meant(reference, one.listener) and accepts(one, route)
    ]


def listeners_beside(one: Attached) -> list[Attached]:
    """All listeners of the object that has this one, in their order."""
    return [Attached(one.parent, listener) for listener in one.parent["spec"]["listeners"]]


def hosts_at(one: Attached, route: Manifest) -> set[str]:
    """The hostnames that a route has at a listener that accepts it."""
    hosts = route["spec"].get("hostnames") or [EVERY]
    own = one.listener.get("hostname")
    if own is None:
        return set(hosts)
    within = {host for host in hosts if covers(own, host)}
    return within | ({own} if any(host == EVERY or covers(host, own) for host in hosts) else set())


def are_in_conflict(first: Manifest, second: Manifest) -> bool:
    """Whether two listeners of a Gateway have one port for HTTP and for TLS, or for one hostname."""
    if first["port"] != second["port"]:
        return False
    is_mixed = (first["protocol"] == "HTTP") != (second["protocol"] == "HTTP")
    return is_mixed or bool(first.get("hostname") == second.get("hostname"))


def has_certificate(objects: ObjectSet, one: Attached) -> bool:
    """Whether the certificates of a listener exist, and its namespace may use them."""
    home = one.parent["metadata"]["namespace"]
    return all(
        reference["name"] == CERTIFICATE
        and (namespace == home or _is_granted(objects, one.parent["kind"], home, namespace))
        for reference in one.certificates
        for namespace in (reference.get("namespace", home),)
    )


def _is_granted(objects: ObjectSet, kind: str, home: str, namespace: str) -> bool:
    grants = (one for one in of_kind(objects, "ReferenceGrant") if one["metadata"]["namespace"] == namespace)
    sources = (source for one in grants for source in one["spec"]["from"])
    return any((source["kind"], source["namespace"]) == (kind, home) for source in sources)
