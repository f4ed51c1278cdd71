"""What an install or an uninstall writes into a Corefile: the old text, the new text, and notes for people.

The law: a second install changes nothing; every character outside our markers stays; an uninstall restores the text
from before the install. An unsafe change raises CorefileError.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dnsproxy.corefile.edits import insert_before
from dnsproxy.corefile.forward_directive import parse_forward, try_forward
from dnsproxy.corefile.markers import find_region, without_region, zones_with_upstreams
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, format_corefile, listed
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import Site, find_layout, find_site, other_keys, root_port
from dnsproxy.corefile.stanza import SEVERAL_FORWARDS, StanzaForward, Version, format_stanza, make_forward
from dnsproxy.corefile.zones import ROOT, is_at_or_below, normalize_zone
from dnsproxy.dns.wire import DNS_PORT
from sidecar.values.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a Corefile."""

    old: str
    new: str
    notes: tuple[str, ...] = ()
    """One line each: possibly unexpected effects."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new


def plan_install(
    text: str,
    *,
    addresses: Sequence[Endpoint],
    zones: Sequence[str] = (ROOT,),
    coredns_version: Version | None = None,
    imports_known: bool = False,
) -> Change:
    """The Corefile with one stanza, which asks dnsproxy at these addresses for names of these zones.

    Without a version, CoreDNS is assumed to take several forwards per block (1.9.4) and no `failover`. Imported files
    are not read here: a caller that has read them sets `imports_known` and checks them itself.
    Raises CorefileError with line, reason and remedy.
    """
    if not addresses or not zones:
        raise ValueError("an install takes an address and a zone")
    before = parse_corefile(text)
    corefile = without_region(before)
    site = find_site(corefile, zones, forwarded=zones_with_upstreams(before))
    theirs = site.block.named("forward")
    count = len(theirs) + len(site.originals)
    if count > 1 and coredns_version is not None and coredns_version < SEVERAL_FORWARDS:
        shown = ".".join(map(str, coredns_version))
        reason = f"CoreDNS {shown} takes one forward per server block, and this one would have {count}"
        line = theirs[0].line if theirs else site.block.line
        raise CorefileError(line, reason, "upgrade CoreDNS to 1.9.4 or newer")
    unique = tuple(dict.fromkeys(addresses))
    forwards = [
        make_forward(zone, original, addresses=unique, coredns_version=coredns_version)
        for zone, original in site.originals
    ]
    stanza = format_stanza(forwards, find_layout(corefile, site), addresses=len(unique))
    new = format_corefile(insert_before(corefile, site.index, stanza))
    notes = [*_address_notes(addresses), *_install_notes(corefile, site, forwards, coredns_version)]
    if not imports_known:
        notes += _import_notes(corefile, site)
    return Change(text, new, tuple(dict.fromkeys(notes)))


def plan_uninstall(text: str) -> Change:
    """The Corefile without our stanza; unchanged if it has none. Raises CorefileError."""
    corefile = parse_corefile(text)
    region = find_region(corefile)
    if region is None:
        return Change(text, text)
    bare = without_region(corefile)
    _check_upstreams_left(corefile, bare, region.line)
    return Change(text, format_corefile(bare), tuple(_reload_notes(bare)))


def _check_upstreams_left(corefile: Corefile, bare: Corefile, line: int) -> None:
    """The original forward may have been removed by hand, because ours has its upstreams too."""
    forwarded = zones_with_upstreams(corefile)
    for before, after in zip(corefile.blocks, bare.blocks, strict=True):
        # An imported file may have the forward.
        left = None if after.imports else [_zones_served(directive) for directive in after.named("forward")]
        for zone in map(_zone_of, before.named("forward")):
            if left is not None and zone in forwarded and not any(serves(zone) for serves in left):
                raise no_upstreams_left(zone, line)


def no_upstreams_left(zone: str, line: int) -> CorefileError:
    """The error for a stanza that is the only forward for a zone."""
    lost = "nothing outside the cluster" if zone == ROOT else f"no name of {zone}"
    reason = f"without the stanza no forward of this server block serves {zone}, and {lost} would resolve"
    remedy = f"put its own `forward {zone} UPSTREAM` back into it first"
    return CorefileError(line, reason, remedy)


def _zone_of(directive: Directive) -> str | None:
    forward = try_forward(directive)
    return forward.zone if forward is not None else None


def _zones_served(directive: Directive) -> Callable[[str], bool]:
    """Whether a forward serves a zone; one that cannot be read may serve every zone."""
    forward = try_forward(directive)
    return forward.serves if forward is not None and forward.zone is not None else lambda _zone: True


def _address_notes(addresses: Sequence[Endpoint]) -> Iterator[str]:
    for address in addresses:
        if ipaddress.ip_address(address.host).is_loopback:
            yield f"{address.host} is CoreDNS's own pod, unless CoreDNS runs in the network of its node"


def _install_notes(
    corefile: Corefile, site: Site, forwards: Sequence[StanzaForward], version: Version | None
) -> Iterator[str]:
    if version is None:
        yield "this takes CoreDNS 1.9.4 or newer: --coredns-version checks that, and adds `failover` from 1.14.7 on"
    if root_port(site.block) != DNS_PORT:
        yield f"the server block of . listens on port {root_port(site.block)}"
    for forward in forwards:
        yield from forward.notes
    yield from _elsewhere_notes(corefile, site)
    if site.block.named("loop"):
        yield "`loop` is on: CoreDNS stops if dnsproxy forwards back to it, so give dnsproxy upstreams other than it"
    yield from _reload_notes(corefile)


def _elsewhere_notes(corefile: Corefile, site: Site) -> Iterator[str]:
    """Which names never come to the stanza."""
    zones = [normalize_zone(zone) for zone, _ in site.originals]
    keys = [key for key in other_keys(corefile, site.block) if any(_is_below(key.origin.zone, zone) for zone in zones)]
    if keys:
        named = listed([f"{key.text} (line {key.token.line})" for key in keys])
        yield f"names of these server blocks never come to dnsproxy: {named}"
    for directive in site.block.named("forward"):
        forward = parse_forward(directive)
        if directive.index < site.index and any(_is_below(forward.zone, zone) for zone in zones):
            yield f"names of `forward {forward.zone_text}` (line {directive.line}) never come to dnsproxy"
    for _, original in site.originals:
        if original is not None and original.excepted():
            yield f"names under `except` (line {original.directive.line}) never come to dnsproxy"


def _import_notes(corefile: Corefile, site: Site) -> Iterator[str]:
    patterns = dict.fromkeys(found.pattern for found in (*corefile.imports, *site.block.imports))
    if patterns:
        yield f"imported files were not read: {listed(list(patterns))}"


def _is_below(zone: str | None, parent: str) -> bool:
    return zone is not None and is_at_or_below(zone, parent)


def _reload_notes(corefile: Corefile) -> Iterator[str]:
    if not any(block.named("reload") for block in corefile.blocks):
        yield "there is no `reload` plugin: restart CoreDNS to make it read the file again"
