"""Upstream comparison: asks dnsproxy, before a stanza is written or printed, whether it forwards where names go now.

The law: queries to dnsproxy only. A difference counts if it lasts, because a dnsproxy follows a changed Corefile within
a second; what could not be asked is a note, never a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.original_upstreams import ACCEPT, UpstreamCheck, check_upstreams, find_original
from dnsproxy.cluster_dns.probing import Patience, ask_all
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.refusal import ChangeRefused
from dnsproxy.install.run.applying import Planned
from dnsproxy.install.run.survey import InstallRequest
from sidecar.values.endpoints import Endpoint

_QUICKLY: Final = Patience(times=2, datagrams=(0.5,), stream=0.5)
"""In the cluster a ready dnsproxy answers in milliseconds; from elsewhere its ClusterIP may have no route."""
_LOOKS: Final = 3
_PAUSE_SECONDS: Final = 1.0


async def compare_upstreams(planned: Planned, request: InstallRequest) -> str:
    """Compare for the zones of a plan. Returns a note or ``. Raises ChangeRefused for upstreams not accepted."""
    if planned.wanted is None:
        return ""
    check = await _check(planned.found, planned.edits.zones, planned.wanted.addresses)
    if check.differences and not request.accepts_upstreams:
        raise ChangeRefused("; ".join(check.differences), f"{check.original.remedy}, or accept it with {ACCEPT}")
    return _note_on(check)


async def note_on_upstreams(found: Found, zones: Sequence[str], addresses: Sequence[Endpoint]) -> str:
    """The result of the comparison as a note, for a stanza that another program writes; `` if nothing differs."""
    zones = zones or (ROOT,)
    check = await _check(found, zones, addresses)
    faults = check.original.faults(zones)
    # Differences contain them.
    return f"other upstreams than before: {faults[0]}" if faults and not check.differences else _note_on(check)


async def _check(found: Found, zones: Sequence[str], addresses: Sequence[Endpoint]) -> UpstreamCheck:
    original = find_original(found)
    for look in range(_LOOKS):
        if look:
            await trio.sleep(_PAUSE_SECONDS)
        check = check_upstreams(original, zones, await ask_all(addresses, (ROOT,), _QUICKLY))
        if not check.differences:
            break
    return check


def _note_on(check: UpstreamCheck) -> str:
    if check.differences:
        return f"other upstreams than before: {'; '.join(check.differences)}"
    if check.unknown:
        return f"whether dnsproxy forwards all other names where they go now is unknown: {check.unknown}"
    return ""
