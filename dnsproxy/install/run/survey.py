"""Surveying: reads all that an install rests on: the cluster's DNS, dnsproxy's own Service, the zones.

The law: only GET; everything is read anew each time, so a plan never rests on what was seen before a write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.admin.listing import parse_listing
from dnsproxy.cluster_dns.choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.own_service import FoundOwn, ObjectRef
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.cluster_dns.read import discover, gather, read_own
from dnsproxy.cluster_dns.requests import INGRESS, Denied, Request
from dnsproxy.install.change.registrable import hosts_of, registrable_zones
from sidecar.admin.asking import ask
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.structs.network import Ingress
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import ExitStatus, StartError

_ALL_INGRESSES: Final = Request(INGRESS, "")


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asks for."""

    where: ServiceRef
    own: ObjectRef
    """dnsproxy's Service, which is asked where no address is given."""
    method: Method | None = None
    """None: the one that fits."""
    addresses: tuple[Endpoint, ...] = ()
    zones: tuple[str, ...] = ()
    """Empty: every name, or the zones of the live hostnames where the method needs some."""
    admin: Endpoint | None = None
    """A running dnsproxy whose table gives the zones; without it the Ingresses of the cluster do."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was read for an order."""

    found: Found
    choice: Choice
    own: FoundOwn | None
    """None where addresses were given."""
    zones: tuple[str, ...]
    zones_from: str
    """Where the zones come from, for people; empty where a person named them, or none are needed."""
    asked: tuple[Request, ...]
    """Everything that was read of the API server."""

    @property
    def cluster_dns(self) -> tuple[str, ...]:
        """The addresses of the cluster's DNS."""
        return self.found.addresses


async def survey(client: ApiClient, order: Order) -> Survey:
    """All that an install by this order rests on. Raises StartError with status 3."""
    found = await discover(client, order.where)
    choice = choose_method(found, order.method)
    own = None if order.addresses else await read_own(client, order.own, found.addresses)
    asked = [*found.asked, *(own.asked if own else ())]
    zones, zones_from = order.zones, ""
    if not zones and _needs_zones(found, choice):
        hostnames, zones_from = await _read_hostnames(client, order.admin)
        zones = registrable_zones(hostnames)
        asked += [] if order.admin else [_ALL_INGRESSES]
    return Survey(found, choice, own, zones, zones_from, tuple(asked))


def _needs_zones(found: Found, choice: Choice) -> bool:
    """What is printed may be for a place that takes zones alone."""
    if choice.method is not Method.PRINT:
        return choice.needs_zones
    return choice.form is Form.OPENSHIFT_DNS or choose_method(found).needs_zones


async def _read_hostnames(client: ApiClient, admin: Endpoint | None) -> tuple[Iterable[str], str]:
    if admin is not None:
        try:
            rows = parse_listing(await ask(admin, "/table", program="dnsproxy serve")).names
        except ValueError as error:
            text = f"--admin {admin}: the answer is not what `dnsproxy serve` of this version gives ({error})"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        return [row.hostname for row in rows], f"the table of the dnsproxy at {admin}"
    answers = await gather(client, lambda answers: () if _ALL_INGRESSES in answers else (_ALL_INGRESSES,))
    listed = answers[_ALL_INGRESSES]
    if isinstance(listed, Denied):
        text = f"zones have to be named, and it is not allowed to {_ALL_INGRESSES} for their hosts: {listed.message}"
        raise StartError(f"{text}; name them with --zone", status=ExitStatus.UNKNOWN)
    ingresses: tuple[Ingress, ...] = listed if isinstance(listed, tuple) else ()
    return hosts_of(ingresses), "the hosts of the cluster's Ingresses"
