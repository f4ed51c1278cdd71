"""Guards: hostnames that are never taken, whoever asks (any tenant can write an Ingress for any name).

The law: a guard looks at one hostname and the settings, compares whole labels, and says why in words for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import is_within, is_within_any

_SERVICES: Final = "svc"
"""Pods with a low `ndots` ask for `kubernetes.default.svc` as it stands before they try their search list."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What is kept out. All names in normal form; a wildcard in `deny` means just that wildcard."""

    cluster_domain: str = "cluster.local"
    zones: tuple[str, ...] = ()
    """Where it is not empty, only names at or below one of these count."""
    deny: tuple[str, ...] = ()


def refusal(hostname: str, guards: Guards) -> str | None:
    """Why this hostname is not taken, or None where it may be."""
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
    """Why no object of the cluster gets this hostname, though who starts the server may have it; None where one may."""
    base = hostname.removeprefix("*.")
    if hostname != base and "." not in base and not guards.zones:
        return f"it would take all of the top-level domain {base}; --zone {base} allows that"
    return None
