"""Guards: hostnames that no claim gets, because any tenant can create an Ingress for any name.

The law: a guard reads one hostname and the settings, compares whole labels, and returns the reason as text. Some names
are denied to every claim; others only to the cluster's objects, and a flag allows them, which the reason names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.dns.names import is_within, is_within_any
from dnsproxy.hostnames.cluster_domains import USUAL
from dnsproxy.hostnames.public_suffixes import is_public_suffix

_SERVICES: Final = "svc"
"""Pods with a low `ndots` query `kubernetes.default.svc` as is before they try their search list."""

_LOCAL_ZONES: Final = {
    "internal": "names in internal belong to each network, such as a cloud's metadata service (ICANN, 2024)",
    "local": "names in local belong to each link (RFC 6762 section 3)",
    "localdomain": "names in localdomain belong to each host itself",
    "invalid": "names in invalid never exist (RFC 6761 section 6.4)",
    "home.arpa": "names in home.arpa belong to each home (RFC 8375)",
}
"""Zones that mean something else in each network, so that no public record tells who owns a name in them."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What is denied. All names in normal form; a wildcard in `deny` denies only that wildcard."""

    cluster_domains: tuple[str, ...] = USUAL
    zones: tuple[str, ...] = ()
    """If not empty, only names at or below one of these zones count."""
    deny: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    """The search domains of the node and its pods. With `ndots:5` a pod that asks for `github.com` tries
    `github.com.SEARCH` first, so that an object with this name would get all its connections."""
    allow: tuple[str, ...] = ()
    """The cluster's objects may have names at or below one of these zones, although a guard denies them by default; so
    may they at or below a zone of `zones`."""

    @property
    def closed(self) -> tuple[str, ...]:
        """The search domains that no wildcard from above reaches into: those that neither flag names."""
        closed = (domain for domain in self.search if not is_within_any(domain, self.cluster_domains))
        return tuple(domain for domain in closed if domain not in (*self.zones, *self.allow))


def refusal(hostname: str, guards: Guards) -> str | None:
    """Why this hostname is denied to every claim; None if it is not."""
    base = hostname.removeprefix("*.")
    if is_within(base, "localhost"):
        return "localhost names belong to each host itself (RFC 6761 section 6.3)"
    if is_within(base, _SERVICES):
        return "it is the name of a Service, to which a pod's search list adds the cluster domain"
    for domain in guards.cluster_domains:
        if is_within(base, domain):
            return f"it is inside the cluster domain {domain}"
        if is_within(domain, base) and hostname != base:
            return f"the wildcard would cover the cluster domain {domain}"
    if hostname in guards.deny:
        return "it is denied (--deny)"
    if guards.zones and not is_within_any(base, guards.zones):
        return f"it is outside the zones {', '.join(guards.zones)} (--zone)"
    return None


def overreach(hostname: str, guards: Guards) -> str | None:
    """Why this hostname is denied to the cluster's objects, but not to static names; None if it is not."""
    base = hostname.removeprefix("*.")
    reserved = _reserved_zones(hostname, base, guards.search)
    if not reserved:
        return None
    named = [zone for zone in (*guards.allow, *guards.zones) if is_within(base, zone)]
    for zone, reason in reserved:
        # Only a zone inside the reserved one: `--zone internal` does not give away a search domain below it.
        if not any(is_within(one, zone) for one in named):
            return f"{reason}; --allow {base} allows that"
    return None


def _reserved_zones(hostname: str, base: str, search: Sequence[str]) -> list[tuple[str, str]]:
    """The reserved zones that a hostname is in, each with the reason; `base` is the hostname without `*.`."""
    found = [
        (domain, f"it is in the search domain {domain}, which resolvers add to other names")
        for domain in search
        if is_within(base, domain)
    ]
    last = base.rpartition(".")[2]
    if last == hostname:
        found.append((base, "it has one label, and resolvers add their search domains to it"))
    elif last == base:
        found.append((base, f"it would take all of the top-level domain {base}"))
    elif is_public_suffix(base):
        found.append((base, f"{base} is a public suffix: names of many owners are below it"))
    zone = "home.arpa" if last == "arpa" and is_within(base, "home.arpa") else last
    if zone in _LOCAL_ZONES:
        found.append((zone, _LOCAL_ZONES[zone]))
    return found
