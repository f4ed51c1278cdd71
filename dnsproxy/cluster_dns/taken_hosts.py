"""Taken hosts: those that another line of the cluster's DNS answers before the stanza is asked, and which line it is.

The law: the lines are in the order in which CoreDNS asks them (taken_names.py, and its plugin.cfg): a longer zone's
block comes before the block of `.`, `rewrite`, `template` and `hosts` before every `forward` wherever they stand, and a
forward before the forwards below it. The stanza stands right before one of these. What a regular expression matches is
not judged. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile
from dnsproxy.cluster_dns.method_choice import ConfigMapKey, Method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.requests import Fault
from dnsproxy.cluster_dns.routes import PlacedDirective, Routes, find_routes
from dnsproxy.corefile.markers import is_marked
from dnsproxy.corefile.model import Scope, listed
from dnsproxy.corefile.taken_names import Match, TakenNames, line_of, names_in_zone, taken_names
from dnsproxy.corefile.zones import ROOT, is_at_or_below
from sidecar.values.text import cut

_IN_TURN: Final = ("rewrite", "template", "hosts")
"""The order of plugin.cfg: a name that is rewritten comes to the other two as another name."""
_LONGEST_TEXT: Final = 120


@dataclass(frozen=True, slots=True)
class TakenLine:
    """A line, and the names that it answers."""

    names: TakenNames
    what: str
    """The line and its place, for messages: `hosts (Corefile in ConfigMap kube-system/coredns, line 7)`."""
    excepted: tuple[TakenNames, ...] = ()
    """What of these it leaves to the lines after it."""
    text: str = ""
    """What is written there, cut; empty if `what` says it."""

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


class TakenNameIndex:
    """The first of some lines that takes a name. A tool may have written a line for each of thousands of hosts."""

    def __init__(self, lines: Iterable[TakenLine]) -> None:
        self._lines = tuple(lines)
        self._exact: dict[str, int] = {}
        self._others: list[int] = []
        for at, line in enumerate(self._lines):
            if line.names.kind is Match.EXACT and not line.excepted:
                self._exact.setdefault(line.names.text, at)
            else:
                self._others.append(at)

    def first(self, hostname: str) -> TakenLine | None:
        """The line that takes a name in normal form; None if no line does."""
        other = next((at for at in self._others if self._lines[at].takes(hostname)), len(self._lines))
        at = min(other, self._exact.get(f"{hostname}.", other))
        return self._lines[at] if at < len(self._lines) else None


def find_taken_lines(found: Found, method: Method | None, zones: Collection[str]) -> tuple[TakenLine, ...]:
    """The lines that come before a stanza of this method for these zones; none before a server block of its own."""
    if method is not Method.COREFILE and not (method is Method.IMPORT and ROOT in zones):
        return ()
    dotted = [zone.removesuffix(".") + "." for zone in zones]
    passes_on = found.node_local is None or found.node_local.passes_on
    servers = (found.node_local.server if found.node_local else None, found.server if passes_on else None)
    corefiles = [server.corefile for server in servers if server is not None and server.corefile is not None]
    lines: list[TakenLine] = []
    for corefile in corefiles:
        try:
            lines += _lines_of(_routes_of(corefile), dotted)
        except ChangeRefused:
            # The report has what CoreDNS would not load.
            continue
    return tuple(lines)


def find_taken_hosts(lines: Iterable[TakenLine], hostnames: Iterable[str], zones: Collection[str]) -> TakenHosts:
    """Which of the hostnames in the stanza's zones are taken; a wildcard is, if every name below it is."""
    index = TakenNameIndex(lines)
    dotted = [zone.removesuffix(".") + "." for zone in zones]
    wanted = {host for host in hostnames if any(is_at_or_below(f"{host}.", zone) for zone in dotted)}
    firsts = ((host, index.first(host)) for host in wanted)
    return TakenHosts(tuple(sorted((host, line.what) for host, line in firsts if line is not None)))


def names_of_lines(directives: Iterable[PlacedDirective]) -> Iterator[tuple[TakenNames, str]]:
    """What the directives of a block take, and where they stand."""
    for placed in directives:
        yield from ((one, _what(placed)) for one in taken_names(placed.directive))


def _routes_of(corefile: FoundCorefile) -> Routes:
    """The routes, with the place of our own file if an import has it. Raises ChangeRefused."""
    own = (file for file in corefile.files if file.scope is Scope.ROOT_PLUGINS and is_marked(file.text))
    file = next(own, None)
    return find_routes(corefile, ConfigMapKey(file.source, file.key), file.path) if file else find_routes(corefile)


def _lines_of(routes: Routes, zones: Collection[str]) -> Iterator[TakenLine]:
    for served in routes.keys:
        if not served.is_root_block and served.zone != ROOT:
            what = f"the server block of {served.key.text} ({served.place})"
            yield from (TakenLine(names, what) for names in names_in_zone(served.zone))
    for plugin in _IN_TURN:
        for placed in routes.named(plugin):
            for names in taken_names(placed.directive):
                yield TakenLine(names, _what(placed), text=_text(placed, names))
    for placed in routes.named("hosts"):
        yield from _unlisted(placed)
    behind = routes.behind_ours()
    for route in routes.forwards():
        excepted = tuple(names for zone in route.forward.excepted() for names in names_in_zone(zone))
        if any(route.forward.serves(zone) for zone in zones):
            # The stanza stands before it with the same exceptions, and before all forwards after it.
            yield from (TakenLine(names, f"the upstreams beside {route}") for names in excepted)
            break
        if route.forward.zone is not None and route not in behind:
            yield from (TakenLine(names, str(route), excepted) for names in names_in_zone(route.forward.zone))


def _what(placed: PlacedDirective) -> str:
    return f"{placed.directive.name} ({placed.place})"


def _text(placed: PlacedDirective, names: TakenNames) -> str:
    is_listed = placed.directive.name == "hosts"
    text = f"{names.gives} {names.text.removesuffix('.')}" if is_listed else line_of(placed.directive)
    return cut(text, _LONGEST_TEXT)


def _unlisted(placed: PlacedDirective) -> Iterator[TakenLine]:
    """The names that a `hosts` fails because it has them not, and does not leave to the next plugin."""
    falls = [words for words in placed.directive.option_lines if words[0] == "fallthrough"]
    if ["fallthrough"] in falls:
        return
    left = tuple(names for words in falls for zone in words[1:] for names in names_in_zone(zone))
    for zone in [word.text for word in placed.directive.arguments[1:]] or [ROOT]:
        yield from (TakenLine(names, _what(placed), left) for names in names_in_zone(zone))
