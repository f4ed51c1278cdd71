"""The method corefile: the stanza between its markers in the Corefile itself.

The law: what plan_install makes of the text, unless a file that the Corefile imports would keep queries from it. Pure.
"""

from __future__ import annotations

from dnsproxy.cluster_dns.choice import Choice, Method
from dnsproxy.cluster_dns.found import FoundCorefile, Server
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.placing import find_site
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.install.change.config_map import ConfigMapChange, Entry
from dnsproxy.install.change.edits import Edits, Wanted
from dnsproxy.install.change.refusal import Refusal, refusal_of
from dnsproxy.install.change.routes import Routes, find_routes
from dnsproxy.install.change.zones import notes_on_keys


def plan_corefile(server: Server, corefile: FoundCorefile, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that put the stanza into the Corefile of a choice. Raises Refusal."""
    target = choice.target
    if target is None:
        raise ValueError("the choice is none for a Corefile")
    zones = wanted.zones or (ROOT,)
    routes = find_routes(corefile)
    try:
        change = plan_install(
            corefile.text,
            addresses=wanted.addresses,
            zones=zones,
            coredns_version=server.version,
            imports_known=True,
        )
        _check_imported(zones, routes)
    except CorefileError as error:
        raise refusal_of(error, target) from None
    imported = [served for served in routes.keys if served.imported]
    notes = [*change.notes, *notes_on_keys(zones, imported), *choice.what_else]
    written = ConfigMapChange(target.source, (Entry(target.key, corefile.text, change.new),))
    return Edits(Method.COREFILE, (written,), zones, tuple(dict.fromkeys(notes)))


def _check_imported(zones: tuple[str, ...], routes: Routes) -> None:
    index = find_site(routes.value, zones).index
    for zone in map(normalize_zone, zones):
        for route in routes.forwards():
            if route.step.imported and route.step.index < index and route.forward.serves(zone):
                reason = f"{route} takes the names of {zone} before the stanza would be asked"
                raise Refusal(reason, "take it out, or choose another --zone")
        for served in routes.keys:
            if served.imported and is_at_or_below(zone, served.zone):
                reason = f"{zone} is served by the server block of {served.key.text}, and never comes to the block of ."
                raise Refusal(reason, "choose another --zone, or put the forward into that block", place=served.place)
