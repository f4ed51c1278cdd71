"""Survey: reads everything that an install depends on: the cluster's DNS, dnsproxy's own Service, the zones.

The law: a survey sends GET requests and DNS queries only, and reads everything again each time, so that a plan never
depends on a state from before a write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.own_service import FoundOwn
from dnsproxy.cluster_dns.owner import Form
from dnsproxy.cluster_dns.probe_results import Presence, places_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, read_own
from dnsproxy.cluster_dns.requests import Request
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.corefile.model import listed
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from dnsproxy.install.change.zone_choice import MOST_ZONES, choose_zones
from dnsproxy.install.run.live_hostnames import ALL_INGRESSES, FoundZones, HostsDenied, read_zones
from dnsproxy.install.run.own_rewrites import RewritesReader
from dnsproxy.install.run.own_zones import ZonesReader
from dnsproxy.install.run.service_lookup import look_up_services
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_QUICKLY: Final = Patience(times=2, datagrams=(0.5,), stream=0.5)


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
    dns: Endpoint | None = None
    """The address for DNS queries to the cluster's DNS; None: that of its Service."""


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
    named: tuple[str, ...] = ()
    """The zones that dnsproxy's pods, or another source, named."""
    asked_pods: tuple[Endpoint, ...] = ()
    """The admin ports that were asked for zones."""
    notes: tuple[str, ...] = ()
    """What a user should know about the zones, or the names."""
    rewrites: LiveRewrites | None = None
    """For the method override-rewrites: the names of dnsproxy's table."""
    asked_already: bool = False
    """For the method override-rewrites: whether the cluster's DNS asks dnsproxy, without any trace of ours."""

    @property
    def followed_pods(self) -> tuple[Endpoint, ...]:
        """The admin ports that have to be followed; none if no zones are needed, or a user named them."""
        return self.asked_pods if self.zones_from or self.rewrites else ()

    @property
    def cluster_dns(self) -> tuple[str, ...]:
        """The addresses of the cluster's DNS."""
        return self.found.addresses


@dataclass(frozen=True, slots=True)
class Readers:
    """What asks dnsproxy's pods: used again and again, they are sent no document twice."""

    zones: ZonesReader = field(default_factory=ZonesReader)
    rewrites: RewritesReader = field(default_factory=RewritesReader)


async def survey(client: ApiClient, request: InstallRequest, readers: Readers | None = None) -> Survey:
    """Everything that an install for this request depends on. Raises StartError with status 3."""
    readers = readers or Readers()
    found = await discover(client, request.where)
    choice = choose_method(found, request.method)
    if choice.method is Method.OVERRIDE_REWRITES:
        return await _survey_names(client, request, found, choice, readers.rewrites)
    own = None if request.addresses else await read_own(client, request.own, found.addresses)
    asked = [*found.asked, *(own.asked if own else ())]
    if request.zones or not _needs_zones(found, choice):
        return Survey(found, choice, own, request.zones, "", tuple(asked))
    standing = [zone for trace in find_traces(found) for zone in trace.zones]
    pods = (request.admin,) if request.admin else own.pods if own else ()
    try:
        wanted = await read_zones(client, request.admin, pods, readers.zones)
    except HostsDenied as error:
        if not pods or not standing:
            text = f"zones have to be named, and {error}; name them with --zone"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        wanted = FoundZones((), "the stanza itself", str(error), f"no dnsproxy gave its zones, and {error}")
    asked += [] if request.admin else [ALL_INGRESSES]
    chosen = choose_zones(wanted.wanted, standing, complete=not wanted.doubt)
    notes = [wanted.note] if wanted.note else []
    if chosen.kept:
        notes.append(f"kept, because zones may be missing ({wanted.doubt}): {listed(chosen.kept)}")
    if chosen.left_out:
        notes.append(f"left out beyond {MOST_ZONES} zones: {listed(chosen.left_out)}; name zones with --zone")
    return Survey(found, choice, own, chosen.zones, wanted.source, tuple(asked), wanted.wanted, pods, tuple(notes))


async def _survey_names(
    client: ApiClient, request: InstallRequest, found: Found, choice: Choice, reader: RewritesReader
) -> Survey:
    """The names that the cluster's DNS would rewrite, which only the pods of dnsproxy know."""
    own = await read_own(client, request.own, found.addresses)
    pods = (request.admin,) if request.admin else own.pods
    live = await reader.read(pods)
    traces = find_traces(found)
    places = (request.dns,) if request.dns else places_to_ask(found)
    standing = [one for trace in traces if trace.rewrites for one in trace.rewrites.rewrites]
    services = {one.service for one in (*live.names, *standing) if one.service}
    looked_up = await look_up_services(places, services, choice.domain)
    unread = f"no dnsproxy gave its names, so the lines stay as they are: {live.doubt}" if not live.answered else ""
    return Survey(
        found,
        choice,
        own,
        request.zones,
        "",
        (*found.asked, *own.asked),
        asked_pods=pods,
        notes=tuple(filter(None, (unread if standing else "", looked_up.note))),
        rewrites=replace(live, absent=looked_up.absent),
        asked_already=not traces and await _asks_dnsproxy(places),
    )


async def _asks_dnsproxy(places: tuple[Endpoint, ...]) -> bool:
    """Whether the owner has the stanza in place in a form without our markers."""
    asked = await ask_all(places, (ROOT,), _QUICKLY)
    return bool(asked) and all(one.state is Presence.YES for one in asked)


def _needs_zones(found: Found, choice: Choice) -> bool:
    """Whether zones are needed: also by the place that a printed text is for."""
    if choice.method is not Method.PRINT:
        return choice.needs_zones
    return choice.form is Form.OPENSHIFT_DNS or choose_method(found).needs_zones
