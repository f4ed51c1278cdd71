"""Ownership: whether the public record of a hostname points to the cluster whose object claims it.

Any tenant can create an Ingress for `login.example.com` and would receive that name's traffic from every pod. Public
DNS shows who owns a name. The law: pure; a claim is unverified only if a record was seen that points elsewhere. A name
without a record passes, and so does a claim without anything to compare, but for --ownership enforce: there a name is
not answered before its first lookup, and a record that cannot be compared excludes, because whoever could leave out the
status or the class would pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

import msgspec

from dnsproxy.dns.addresses import is_address
from dnsproxy.dns.names import BadName, is_within_any, parse_zone
from dnsproxy.hostnames.claims import Claim
from dnsproxy.hostnames.ownership_schedule import DEFAULT_PACE, OwnershipPace
from sidecar.values.text import quoted

Network = IPv4Network | IPv6Network

ADVICE: Final = (
    "if this is intended (a CDN, a router, split-horizon DNS), trust it with --trust ZONE or --trust NETWORK; "
    "--deny NAME forwards the name again, --ownership off disables the check"
)
"""What to do about an unverified name."""

_SHOWN: Final = 3
_INTERNAL: Final = tuple(
    map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
                     "127.0.0.0/8", "fc00::/7", "fe80::/10", "::1/128"))
)  # fmt: skip
"""Addresses that no public record should have (RFC 1918, 6598, 3927, 4193, 4291)."""


class Mode(Enum):
    """What happens to a claim whose public record points elsewhere (`--ownership`)."""

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


class Standing(Enum):
    """What public DNS shows about one claim."""

    OWNED = "owned"
    UNKNOWN = "unknown"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class OwnershipSettings:
    """The mode, and what is trusted as the cluster's own whatever its objects say."""

    mode: Mode = Mode.WARN
    zones: tuple[str, ...] = ()
    """Names at or below these zones are never unverified: they use a CDN or split-horizon DNS (`--trust ZONE`)."""
    networks: tuple[Network, ...] = ()
    """Addresses that route here but are in no object's status, such as a NAT router's (`--trust NETWORK`)."""
    pace: OwnershipPace = DEFAULT_PACE

    def trusts_name(self, hostname: str) -> bool:
        """Whether a hostname, wildcards included, is trusted."""
        return is_within_any(hostname.removeprefix("*."), self.zones)

    def trusts_address(self, addresses: Iterable[str]) -> bool:
        """Whether one of these addresses is trusted to route here."""
        return any(ip_address(address) in network for address in addresses for network in self.networks)


class Finding(msgspec.Struct, frozen=True, gc=False):
    """The public record of one hostname, with everything else that claims to it are judged by."""

    public: tuple[str, ...]
    """The addresses that its record resolves to, in canonical form, sorted; none if `zone` is set, or
    an alias has none."""
    aliases: tuple[str, ...] = ()
    """The CNAME targets on the way to them."""
    resolved: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The addresses of the load balancers that a status names; a missing one could not be resolved."""
    balancers: Mapping[str | None, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By class, the load balancers of its other objects: those of its controller."""
    strict: bool = False
    """Whether the operator has named our public addresses; then a status with internal addresses excuses nothing."""

    zone: str = ""
    """For a wildcard without a public one, and a name without addresses: the registrable domain, which exists."""
    led: tuple[str, ...] = ()
    """The namespaces of which a name in `zone` leads here."""

    def reason_for(self, standing: Standing) -> str:
        """Why a claim that is not owned is unverified, for users."""
        if standing is Standing.FOREIGN:
            return self.reason
        shown = ", ".join((self.public or self.aliases)[:_SHOWN])
        return f"its public record ({shown}) cannot be compared with a load balancer"

    @property
    def reason(self) -> str:
        """Why a foreign claim is unverified, for users."""
        if self.zone:
            return f"the domain {self.zone} exists publicly, and no name of it in this namespace is known to lead here"
        more = ", ..." if len(self.public) > _SHOWN else ""
        return f"its public record points elsewhere ({', '.join(self.public[:_SHOWN])}{more})"


def standing_of(claim: Claim, *, answers: Collection[str], finding: Finding) -> Standing:
    """What a finding shows about a claim that would be answered with `answers`."""
    if claim.terms.addresses:
        return Standing.UNKNOWN  # a static name: the operator set it
    if finding.zone:
        return Standing.OWNED if claim.origin.namespace in finding.led else Standing.FOREIGN
    public = frozenset(finding.public)
    # An answer within the public record is harmless; one additional address might not be.
    if answers and public.issuperset(answers):
        return Standing.OWNED
    points = dict.fromkeys((*claim.terms.status, *finding.balancers.get(claim.terms.ingress_class, ())))
    if not points.keys().isdisjoint(finding.aliases):
        return Standing.OWNED
    ours: set[str] = set()
    complete = True
    for point in points:
        addresses = (point,) if is_address(point) else finding.resolved.get(point, ())
        complete = complete and bool(addresses)
        ours.update(addresses)
    if not ours.isdisjoint(public):
        return Standing.OWNED
    if _is_declared(claim, finding):
        return Standing.UNKNOWN
    comparable = complete and any(_are_comparable(ours, public, version, strict=finding.strict) for version in (4, 6))
    return Standing.FOREIGN if comparable else Standing.UNKNOWN


def _is_declared(claim: Claim, finding: Finding) -> bool:
    """Whether the object's writer asked for this record, which proves nothing: a stranger can quote any record."""
    declared = frozenset(claim.terms.declared)
    return not declared.isdisjoint(finding.aliases) or (bool(finding.public) and declared.issuperset(finding.public))


def parse_trust(text: str) -> str | Network:
    """A zone in normal form, or an address or network. Raises ValueError."""
    text = text.strip()
    if "/" in text or is_address(text):
        try:
            return ip_network(text)
        except ValueError as error:
            raise ValueError(f"{quoted(text)} is not a network: {error}") from None
    zone = parse_zone(text)
    if zone.rpartition(".")[2].isdigit():
        raise BadName(f"{quoted(text)} is neither a zone nor a network such as 192.0.2.0/24")
    return zone


def _are_comparable(ours: Iterable[str], public: Iterable[str], version: int, *, strict: bool) -> bool:
    """Whether addresses of one family without a common address contradict the claim.

    Behind a NAT router, a status has internal addresses, while the record rightly has the router's.
    """
    mine = [_is_internal(text) for text in ours if ip_address(text).version == version]
    theirs = [_is_internal(text) for text in public if ip_address(text).version == version]
    return bool(mine) and bool(theirs) and (strict or not all(mine) or all(theirs))


def _is_internal(text: str) -> bool:
    address = ip_address(text)
    return any(address in network for network in _INTERNAL)
