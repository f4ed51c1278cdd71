"""Plans an install: from the state of a cluster and the wish to the edits, or ChangeRefused.

The law: planning again after the write gives no change. A change that would cause a loop, or stop names from resolving,
is refused. If another method was installed before, its stanza is removed after the new one is written, so that at least
one is installed at any time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server
from dnsproxy.cluster_dns.method_choice import Choice, Method
from dnsproxy.cluster_dns.refusal import ChangeRefused, refusal_of
from dnsproxy.cluster_dns.routes import Routes, find_routes
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.placing import find_site
from dnsproxy.corefile.plan import plan_install
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.install.change.config_map import ConfigMapChange, Edits, Entry, Wanted, merge_changes
from dnsproxy.install.change.importing import plan_import
from dnsproxy.install.change.override_rewrites import plan_override_rewrites
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.stub_domains import plan_stub_domains
from dnsproxy.install.change.zones import notes_on_keys

_MOST_LEFT_OUT: Final = 100
"""Each costs one plan."""


def plan_apply(found: Found, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that install by the method of `choice`. Raises ChangeRefused. `found` has to be read completely."""
    check_loop(found, wanted)
    edits = _plan(found, choice, wanted)
    others = plan_removal(found, keep=choice.target)
    left = [f"removes the stanza of another method from ConfigMap {change.source}" for change in others.changes]
    return replace(
        edits,
        changes=merge_changes(edits.changes, others.changes),
        notes=tuple(dict.fromkeys([*edits.notes, *left, *others.refusals])),
    )


def plan_found(found: Found, choice: Choice, wanted: Wanted) -> Edits:
    """The same for the zones of live hostnames, to which anybody with an Ingress may add. Raises ChangeRefused.

    Zones that are refused are left out, with a note, as long as one is left: the others are no less wanted.
    """
    left = wanted.zones
    notes: list[str] = []
    while True:
        try:
            edits = plan_apply(found, choice, replace(wanted, zones=left))
        except ChangeRefused as refusal:
            if refusal.zone not in left or len(left) == 1 or len(notes) == _MOST_LEFT_OUT:
                raise
            left = tuple(zone for zone in left if zone != refusal.zone)
            notes.append(f"left out: {refusal}")
        else:
            return replace(edits, notes=(*notes, *edits.notes))


def check_loop(found: Found, wanted: Wanted) -> None:
    """Raises ChangeRefused if CoreDNS would ask itself: no query would be answered, and the plugin `loop` stops it."""
    for address in wanted.addresses:
        if address.host in _own_addresses(found):
            reason = f"{format_address(address)} is the cluster's DNS itself, which would ask itself"
            raise ChangeRefused(reason, "give dnsproxy's own address with --address, or its Service with --service")


def _plan(found: Found, choice: Choice, wanted: Wanted) -> Edits:
    server = found.asked_by_pods
    if choice.method is None or server is None:
        raise ChangeRefused(choice.why)
    if choice.method is Method.IMPORT and server.corefile is not None:
        return plan_import(server, server.corefile, choice, wanted)
    if choice.method is Method.OVERRIDE_REWRITES and server.corefile is not None:
        return plan_override_rewrites(server.corefile, choice, wanted)
    if choice.method is Method.COREFILE and server.corefile is not None:
        return _plan_corefile(server, server.corefile, choice, wanted)
    if choice.method is Method.STUB_DOMAINS and server.stub_domains is not None:
        return plan_stub_domains(server, server.stub_domains, choice, wanted)
    raise ChangeRefused(choice.why, "print it for the owner with --method print")


def _plan_corefile(server: Server, corefile: FoundCorefile, choice: Choice, wanted: Wanted) -> Edits:
    """The method corefile: the stanza between its markers in the Corefile itself."""
    target = choice.target
    if target is None:
        raise ValueError("the choice has no Corefile")
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
    """Raises ChangeRefused if a file that the Corefile imports would keep queries away from the stanza."""
    index = find_site(routes.value, zones).index
    for zone in map(normalize_zone, zones):
        for route in routes.forwards():
            if route.placed.imported and route.placed.index < index and route.forward.serves(zone):
                reason = f"{route} takes the names of {zone} before the stanza would be asked"
                raise ChangeRefused(reason, "remove it, or choose another --zone")
        for served in routes.keys:
            if served.imported and is_at_or_below(zone, served.zone):
                reason = f"{zone} is served by the server block of {served.key.text} and never reaches the block of ."
                remedy = "choose another --zone, or put the forward into that block"
                raise ChangeRefused(reason, remedy, place=served.place)


def _own_addresses(found: Found) -> Iterator[str]:
    if found.service is not None:
        yield from found.service.addresses
    if found.node_local is not None:
        yield from found.node_local.addresses
