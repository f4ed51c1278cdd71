"""Survey: reads everything that an install depends on: the cluster's DNS, dnsproxy's own Service, the zones.

The law: a survey sends GET requests only, and reads everything again each time, so that a plan never depends on a state
from before a write.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.own_service import FoundOwn, ObjectRef
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.cluster_dns.read import discover, read_own
from dnsproxy.cluster_dns.requests import Request
from dnsproxy.hostnames.registrable import registrable_zones
from dnsproxy.install.run.live_hostnames import ALL_INGRESSES, HostsDenied, read_hostnames
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus


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
    accepts_upstreams: bool = False
    """Whether dnsproxy may forward all other names to other upstreams than the cluster's DNS did."""


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
        try:
            hostnames, zones_from = await read_hostnames(client, request.admin)
        except HostsDenied as error:
            text = f"zones have to be named, and {error}; name them with --zone"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        zones = registrable_zones(hostnames)
        asked += [] if request.admin else [ALL_INGRESSES]
    return Survey(found, choice, own, zones, zones_from, tuple(asked))


def _needs_zones(found: Found, choice: Choice) -> bool:
    """Whether zones are needed: also by the place that a printed text is for."""
    if choice.method is not Method.PRINT:
        return choice.needs_zones
    return choice.form is Form.OPENSHIFT_DNS or choose_method(found).needs_zones
