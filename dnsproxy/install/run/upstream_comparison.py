"""Upstream comparison: asks dnsproxy, before a stanza is written or printed, whether it forwards where names go now.

The law: a difference counts if it lasts, because a dnsproxy follows a changed Corefile within a second; what could not
be asked is a note, never a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.original_upstreams import ACCEPT, UpstreamCheck, check_upstreams, find_original
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult, places_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.run.applying import Planned
from dnsproxy.install.run.forwarding_check import check_forwarding
from dnsproxy.install.run.lasting import look_until_good
from dnsproxy.install.run.survey import InstallRequest
from sidecar.values.endpoints import Endpoint

_QUICKLY: Final = Patience(times=2, datagrams=(0.5,), stream=0.5)
"""In the cluster a ready dnsproxy answers in milliseconds; from elsewhere its ClusterIP may have no route."""
_REACH: Final = "see its NetworkPolicy (deploy/README.md: other ports) and firewalls, or name others with --upstream"


async def compare_upstreams(planned: Planned, request: InstallRequest, *, dns: Endpoint | None = None) -> str:
    """Compare for the zones of a plan. Returns a note or ``. Raises ChangeRefused for upstreams not accepted.

    `dns`: the address of the cluster's DNS; None: that of its Service.
    """
    if planned.wanted is None or planned.wanted.rewrites is not None:
        # With rewrite lines, no query comes to dnsproxy.
        return ""
    zones, addresses = planned.edits.zones, planned.wanted.addresses
    check, asked = await _check(planned.found, zones, addresses)
    if check.differences and not request.accepts_upstreams:
        raise ChangeRefused("; ".join(check.differences), f"{check.original.remedy}, or accept it with {ACCEPT}")
    places = (dns,) if dns else places_to_ask(planned.found)
    # One that is silent here may have no route from here, and says nothing about its upstreams.
    awake = tuple(one.endpoint for one in asked if one.state is not Presence.SILENT)
    if not request.accepts_upstreams and (fault := await check_forwarding(zones or (ROOT,), awake, places)):
        raise ChangeRefused(fault, f"{_REACH}, or accept it with {ACCEPT}")
    return _note_on(check)


async def note_on_upstreams(found: Found, zones: Sequence[str], addresses: Sequence[Endpoint]) -> str:
    """The result of the comparison as a note, for a stanza that another program writes; `` if nothing differs."""
    zones = zones or (ROOT,)
    check, _ = await _check(found, zones, addresses)
    faults = check.original.faults(zones)
    # Differences contain them.
    return f"other upstreams than before: {faults[0]}" if faults and not check.differences else _note_on(check)


async def _check(
    found: Found, zones: Sequence[str], addresses: Sequence[Endpoint]
) -> tuple[UpstreamCheck, tuple[ProbeResult, ...]]:
    """The comparison, and the answers that it rests on."""
    original = find_original(found, addresses)

    async def compare() -> tuple[UpstreamCheck, tuple[ProbeResult, ...]]:
        asked = await ask_all(addresses, (ROOT,), _QUICKLY)
        return check_upstreams(original, zones, asked), asked

    return await look_until_good(compare, lambda result: bool(result[0].differences))


def _note_on(check: UpstreamCheck) -> str:
    if check.differences:
        return f"other upstreams than before: {'; '.join(check.differences)}"
    if check.unknown:
        return f"whether dnsproxy forwards all other names where they go now is unknown: {check.unknown}"
    return ""
