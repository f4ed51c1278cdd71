"""Survey: reads everything that an install depends on: the cluster's DNS, dnsproxy's own Service, the zones.

The law: a survey sends GET requests only, and reads everything again each time, so that a plan never depends on a state
from before a write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.admin.listing import parse_listing
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.own_service import FoundOwn, ObjectRef
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.cluster_dns.read import discover, gather, read_own
from dnsproxy.cluster_dns.requests import INGRESS, Denied, Request
from dnsproxy.install.change.registrable import hosts_of, registrable_zones
from sidecar.admin.asking import ask
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.structs.network import Ingress
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_ALL_INGRESSES: Final = Request(INGRESS, "")


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """What a user wants to install, and where."""

    where: ServiceRef
    own: ObjectRef
    """dnsproxy's Service, the source of the addresses if none are given."""
    method: Method | None = None
    """None: the method that fits."""
    addresses: tuple[Endpoint, ...] = ()
    zones: tuple[str, ...] = ()
    """Empty: every name, or, if the method needs zones, those of the live hostnames."""
    admin: Endpoint | None = None
    """The admin port of a running dnsproxy, whose table gives the zones; None: the Ingresses of the cluster do."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was read for a request."""

    found: Found
    choice: Choice
    own: FoundOwn | None
    """None if addresses were given."""
    zones: tuple[str, ...]
    zones_from: str
    """The source of the zones, for messages; empty if the user named them, or none are needed."""
    asked: tuple[Request, ...]
    """All requests to the API server."""

    @property
    def cluster_dns(self) -> tuple[str, ...]:
        """The addresses of the cluster's DNS."""
        return self.found.addresses


async def survey(client: ApiClient, request: InstallRequest) -> Survey:
    """Everything that an install for this request depends on. Raises StartError with status 3."""
    found = await discover(client, request.where)
    choice = choose_method(found, request.method)
    own = None if request.addresses else await read_own(client, request.own, found.addresses)
    asked = [*found.asked, *(own.asked if own else ())]
    zones, zones_from = request.zones, ""
    if not zones and _needs_zones(found, choice):
        hostnames, zones_from = await _read_hostnames(client, request.admin)
        zones = registrable_zones(hostnames)
        asked += [] if request.admin else [_ALL_INGRESSES]
    return Survey(found, choice, own, zones, zones_from, tuple(asked))


def _needs_zones(found: Found, choice: Choice) -> bool:
    """Whether zones are needed: also by the place that a printed text is for."""
    if choice.method is not Method.PRINT:
        return choice.needs_zones
    return choice.form is Form.OPENSHIFT_DNS or choose_method(found).needs_zones


async def _read_hostnames(client: ApiClient, admin: Endpoint | None) -> tuple[Iterable[str], str]:
    if admin is not None:
        try:
            rows = parse_listing(await ask(admin, "/table", program="dnsproxy serve")).names
        except ValueError as error:
            text = f"--from {admin}: the answer is not that of a `dnsproxy serve` of this version ({error})"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        return [row.hostname for row in rows], f"the table of the dnsproxy at {admin}"
    answers = await gather(client, lambda answers: () if _ALL_INGRESSES in answers else (_ALL_INGRESSES,))
    listed = answers[_ALL_INGRESSES]
    if isinstance(listed, Denied):
        text = f"zones have to be named, and it is not allowed to {_ALL_INGRESSES} for their hosts: {listed.message}"
        raise StartError(f"{text}; name them with --zone", status=ExitStatus.UNKNOWN)
    ingresses: tuple[Ingress, ...] = listed if isinstance(listed, tuple) else ()
    return hosts_of(ingresses), "the hosts of the cluster's Ingresses"
