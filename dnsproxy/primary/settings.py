"""The settings of a primary. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.hostnames.targets import SERVICE
from dnsproxy.zone.policy import Triggers, Wildcards
from dnsproxy.zone.tsig_keys import TsigKey
from sidecar.values.endpoints import Endpoint

Network = IPv4Network | IPv6Network
LEASE: Final = "lease:"
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class ServiceEndpoints:
    """The endpoints of a headless Service."""

    ref: ObjectRef

    def __str__(self) -> str:
        return f"{SERVICE}{self.ref}"


NotifyTarget = Endpoint | ServiceEndpoints


@dataclass(frozen=True, slots=True)
class LeaseRef:
    """The Lease by which two replicas share a zone."""

    ref: ObjectRef

    def __str__(self) -> str:
        return f"{LEASE}{self.ref}"


SerialPlace = Path | LeaseRef | None
"""Where the serial is kept; None: the clock tells it."""


@dataclass(frozen=True, slots=True)
class RpzSettings:
    """The settings of a primary."""

    zone: bytes
    """The wire name of the policy zone."""
    keys: tuple[TsigKey, ...] = ()
    """If there are any, requests must be signed with one of them."""
    allow: tuple[Network, ...] = LOOPBACK
    unsigned: tuple[Network, ...] = ()
    """Networks that need no key, although there are keys."""
    notify: tuple[NotifyTarget, ...] = ()
    wildcards: Wildcards = Wildcards.EXCLUDE
    serial: SerialPlace = None
    address: Endpoint | None = None
    """Where the other replica of a shared zone finds this one; None: where it listens."""
    kubeconfig: str | None = None
    context: str | None = None
    triggers: Triggers = Triggers.ADDRESSES

    @property
    def needs_cluster(self) -> bool:
        """Whether the API server has something to tell."""
        return isinstance(self.serial, LeaseRef) or any(isinstance(one, ServiceEndpoints) for one in self.notify)

    def allows(self, client: str) -> bool:
        """Whether a client's address may ask for the zones."""
        return _is_within(client, self.allow) or self.allows_unsigned(client)

    def allows_unsigned(self, client: str) -> bool:
        """Whether it may do so without a key."""
        return _is_within(client, self.allow if not self.keys else self.unsigned)


def _is_within(client: str, networks: tuple[Network, ...]) -> bool:
    address = ip_address(client.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    return any(address in network for network in networks if network.version == address.version)
