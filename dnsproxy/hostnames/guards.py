"""Guards: hostnames that no claim gets, because any tenant can create an Ingress for any name.

The law: a guard reads one hostname and the settings, compares whole labels, and returns the reason as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import is_within, is_within_any

_SERVICES: Final = "svc"
"""Pods with a low `ndots` query `kubernetes.default.svc` as is before they try their search list."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What is denied. All names in normal form; a wildcard in `deny` denies only that wildcard."""

    cluster_domain: str = "cluster.local"
    zones: tuple[str, ...] = ()
    """If not empty, only names at or below one of these zones count."""
    deny: tuple[str, ...] = ()


def refusal(hostname: str, guards: Guards) -> str | None:
    """Why this hostname is denied to every claim; None if it is not."""
    base = hostname.removeprefix("*.")
    if is_within(base, "localhost"):
        return "localhost names belong to each host itself (RFC 6761 section 6.3)"
    if is_within(base, _SERVICES):
        return "it is the name of a Service, to which a pod's search list adds the cluster domain"
    if is_within(base, guards.cluster_domain):
        return f"it is inside the cluster domain {guards.cluster_domain}"
    if is_within(guards.cluster_domain, base) and hostname != base:
        return f"the wildcard would cover the cluster domain {guards.cluster_domain}"
    if hostname in guards.deny:
        return "it is denied (--deny)"
    if guards.zones and not is_within_any(base, guards.zones):
        return f"it is outside the zones {', '.join(guards.zones)} (--zone)"
    return None


def overreach(hostname: str, guards: Guards) -> str | None:
    """Why this hostname is denied to the cluster's objects, but not to static names; None if it is not."""
    base = hostname.removeprefix("*.")
    if hostname != base and "." not in base and not guards.zones:
        return f"it would take all of the top-level domain {base}; --zone {base} allows that"
    return None
