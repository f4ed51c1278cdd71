"""Taken hosts: those that another line of the cluster's DNS answers before the stanza is asked, and which line it is.

The law: the lines are read as CoreDNS reads them (taken_names.py): `rewrite`, `hosts` and `template` come before every
`forward` wherever they stand, a longer zone's block before the block of `.`, and a forward before those below it. What
a regular expression matches is not judged. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Method
from dnsproxy.cluster_dns.requests import Fault
from dnsproxy.corefile.model import listed
from dnsproxy.corefile.taken_names import TakenNames, names_in_zone, taken_names
from dnsproxy.corefile.zones import ROOT, is_at_or_below
from dnsproxy.install.change.refusal import ChangeRefused
from dnsproxy.install.change.routes import PlacedDirective, Routes, find_routes


@dataclass(frozen=True, slots=True)
class TakenLine:
    """A line, and the names that it answers."""

    names: TakenNames
    what: str
    """The line and its place, for messages: `hosts (Corefile in ConfigMap kube-system/coredns, line 7)`."""
    excepted: tuple[TakenNames, ...] = ()
    """What of these it leaves to the lines after it."""

    def takes(self, hostname: str) -> bool:
        """Whether it answers a name in normal form."""
        return self.names.takes(hostname) and not any(one.takes(hostname) for one in self.excepted)


@dataclass(frozen=True, slots=True)
class TakenHosts:
    """Live hostnames that never come to the stanza."""

    hosts: tuple[tuple[str, str], ...] = ()
    """Each with what answers it, sorted."""
    unread: Fault | None = None
    """Why the hostnames could not be read, although there are lines to compare them with."""

    def sentences(self) -> tuple[str, ...]:
        """One for each line, without its full stop."""
        lines = dict.fromkeys(what for _, what in self.hosts)
        return tuple(f"{one} answers {listed([host for host, what in self.hosts if what == one])}" for one in lines)


def find_taken_lines(found: Found, method: Method | None, zones: Collection[str]) -> tuple[TakenLine, ...]:
    """The lines that come before a stanza of this method for these zones; none before a server block of its own."""
    if method is not Method.COREFILE and not (method is Method.IMPORT and ROOT in zones):
        return ()
    servers = (found.node_local.server if found.node_local else None, found.server)
    corefiles = [server.corefile for server in servers if server is not None and server.corefile is not None]
    lines: list[TakenLine] = []
    for corefile in corefiles:
        try:
            lines += _lines_of(find_routes(corefile))
        except ChangeRefused:
            # The report has what CoreDNS would not load.
            continue
    return tuple(lines)


def find_taken_hosts(lines: Iterable[TakenLine], hostnames: Iterable[str], zones: Collection[str]) -> TakenHosts:
    """Which of the hostnames in the stanza's zones are taken; a wildcard is, if every name below it is."""
    lines = tuple(lines)
    dotted = [zone.removesuffix(".") + "." for zone in zones]
    wanted = {host for host in hostnames if any(is_at_or_below(f"{host}.", zone) for zone in dotted)}
    firsts = ((host, next((line.what for line in lines if line.takes(host)), "")) for host in wanted)
    return TakenHosts(tuple(sorted((host, what) for host, what in firsts if what)))


def names_of_lines(directives: Iterable[PlacedDirective]) -> Iterator[tuple[TakenNames, str]]:
    """What the directives of a block take, and where they stand."""
    for placed in directives:
        yield from ((one, f"{placed.directive.name} ({placed.place})") for one in taken_names(placed.directive))


def _lines_of(routes: Routes) -> Iterator[TakenLine]:
    yield from (TakenLine(names, what) for names, what in names_of_lines(routes.directives))
    for placed in routes.named("hosts"):
        yield from _unlisted(placed)
    for route in routes.forwards():
        excepted = tuple(names for zone in route.forward.excepted() for names in names_in_zone(zone))
        if route.forward.zone == ROOT:
            # The stanza stands before it with the same exceptions, and no forward after it is asked.
            yield from (TakenLine(names, f"the upstreams beside {route}") for names in excepted)
            break
        if route.forward.zone is not None:
            yield from (TakenLine(names, str(route), excepted) for names in names_in_zone(route.forward.zone))
    for served in routes.keys:
        if not served.is_root_block and served.zone != ROOT:
            what = f"the server block of {served.key.text} ({served.place})"
            yield from (TakenLine(names, what) for names in names_in_zone(served.zone))


def _unlisted(placed: PlacedDirective) -> Iterator[TakenLine]:
    """The names that a `hosts` fails because it has them not, and does not leave to the next plugin."""
    falls = [words for words in placed.directive.option_lines if words[0] == "fallthrough"]
    if ["fallthrough"] in falls:
        return
    left = tuple(names for words in falls for zone in words[1:] for names in names_in_zone(zone))
    what = f"{placed.directive.name} ({placed.place})"
    for zone in [word.text for word in placed.directive.arguments[1:]] or [ROOT]:
        yield from (TakenLine(names, what, left) for names in names_in_zone(zone))
