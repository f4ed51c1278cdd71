"""The method import: a key of Switchback's own in a ConfigMap that the Corefile imports.

The law: the install owns the key from its first marker to its second, both included; other text in the key, and the
rest of the ConfigMap, stay. In an import inside the block of `.` the key holds forwards; in an import between the
blocks it holds a server block for named zones. In both, the second upstreams are the servers asked until now. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dnsproxy.cluster_dns.found import FoundCorefile, Hook, Server
from dnsproxy.cluster_dns.method_choice import Choice, ConfigMapKey, Method
from dnsproxy.cluster_dns.refusal import ChangeRefused, refusal_of
from dnsproxy.cluster_dns.routes import Route, Routes, find_routes
from dnsproxy.corefile.markers import is_marked
from dnsproxy.corefile.model import CorefileError, Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import labels_of
from dnsproxy.corefile.stanza import END, Layout, StanzaForward, format_begin, make_forward
from dnsproxy.corefile.zones import ROOT, normalize_zone
from dnsproxy.install.change.config_map import (
    OBJECT,
    ConfigMapChange,
    Edits,
    Entry,
    Wanted,
    data_of,
    made_entry,
    words_made,
)
from dnsproxy.install.change.server_block import format_block
from dnsproxy.install.change.zones import check_free, check_named, notes_on_keys, notes_on_plugins, route_of

_FLAT: Final = Layout("", "    ", "\n", "")
# A marker starts its line here: the install writes it that way, and none of its words spans several lines.
_MARKER: Final = re.compile(r"(?m)^[ \t]*#[ \t]*(BEGIN|END) switchback\b(?!-).*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Text of others in the key."""

    before: str = ""
    after: str = ""

    @property
    def empty(self) -> bool:
        """Whether the install owns the whole key."""
        return not (self.before + self.after).strip()


@dataclass(frozen=True, slots=True)
class _Lines:
    """What the install writes into the key."""

    lines: tuple[str, ...]
    zones: tuple[str, ...]
    notes: tuple[str, ...]


def plan_import(server: Server, corefile: FoundCorefile, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that write the key for the import of a choice. Raises ChangeRefused."""
    target, hook = choice.target, choice.hook
    if target is None or hook is None:
        raise ValueError("the choice has no import")
    old = data_of(target.source).get(target.key)
    check_own_key(old, target)
    routes = find_routes(corefile, target, path_of_key(hook, target))
    written = _plugins(server, routes, wanted) if hook.scope is Scope.ROOT_PLUGINS else _block(server, routes, wanted)
    around = None if old is None else find_surroundings(old, target)
    new = format_own_file(written.lines, around, addresses=len(wanted.addresses))
    check_own_text(new, hook.scope, target)
    change = change_own_key(target, old, new)
    return Edits(Method.IMPORT, (change,), written.zones, (*written.notes, *choice.what_else))


def check_own_key(text: str | None, target: ConfigMapKey) -> None:
    """Raises ChangeRefused if the key exists with a text of others."""
    if text is not None and not is_marked(text):
        raise ChangeRefused(f"{target} exists and is not dnsproxy's", "remove or rename it")


def path_of_key(hook: Hook, target: ConfigMapKey) -> str:
    """The path of the key's file in the container."""
    return f"{hook.path.rpartition('/')[0]}/{target.key}"


def find_surroundings(text: str, place: object) -> Surroundings:
    """The text outside the markers. Raises ChangeRefused unless there is one pair of markers."""
    found = list(_MARKER.finditer(text))
    if [match[1] for match in found] == ["BEGIN", "END"]:
        return Surroundings(text[: found[0].start()], text[found[1].end() :])
    reason = f"its markers are damaged: {' '.join(match[1] for match in found) or 'none'}, not BEGIN END"
    raise ChangeRefused(reason, "remove dnsproxy's lines by hand, then run this again", place=str(place))


def format_own_file(lines: Iterable[str], around: Surroundings | None = None, *, addresses: int = 1) -> str:
    """The text of the key with these lines between the markers."""
    around = around or Surroundings()
    return around.before + "".join(f"{line}\n" for line in (format_begin(addresses), *lines, END)) + around.after


def change_own_key(target: ConfigMapKey, old: str | None, new: str) -> ConfigMapChange:
    """The change that gives the key a new text, and creates its ConfigMap if it does not exist."""
    words = words_made(target.source) if target.source.exists else [OBJECT]
    return ConfigMapChange(target.source, (Entry(target.key, old, new),), (made_entry(target.source, words),))


def _plugins(server: Server, routes: Routes, wanted: Wanted) -> _Lines:
    zones = _inner_first(wanted.zones or (ROOT,))
    for zone in zones:
        for route in routes.before_ours():
            if route.forward.serves(normalize_zone(zone)):
                reason = f"{route} takes the names of {zone} before this import is asked"
                raise ChangeRefused(reason, "put the import in front of it, or choose another --zone or --method")
    behind = routes.behind_ours()
    forwards = [_forward(zone, zone, route_of(zone, behind, zones), server, wanted) for zone in zones]
    lines = [line for forward in forwards for line in forward.lines(_FLAT)]
    notes = [*notes_on_keys(zones, routes.keys), *(note for forward in forwards for note in forward.notes)]
    return _Lines(tuple(lines), zones, tuple(dict.fromkeys(notes)))


def _block(server: Server, routes: Routes, wanted: Wanted) -> _Lines:
    check_named(wanted.zones, "a server block for . exists already, and CoreDNS accepts only one")
    zones = _inner_first(wanted.zones)
    check_free(zones, routes)
    lines: list[str] = []
    notes = [*notes_on_keys(zones, routes.keys), *notes_on_plugins(routes)]
    for route, together in _by_route(zones, routes):
        forward = _forward(ROOT, together[0], route, server, wanted)
        lines += format_block(together, forward, routes)
        notes += forward.notes
    return _Lines(tuple(lines), zones, tuple(dict.fromkeys(notes)))


def _by_route(zones: Sequence[str], routes: Routes) -> Iterator[tuple[Route, list[str]]]:
    """Zones with the same forward today share a block."""
    forwards = routes.forwards()
    found: dict[int, tuple[Route, list[str]]] = {}
    for zone in zones:
        route = route_of(zone, forwards, zones)
        found.setdefault(forwards.index(route), (route, []))[1].append(zone)
    yield from found.values()


def _forward(zone: str, served: str, route: Route, server: Server, wanted: Wanted) -> StanzaForward:
    try:
        return make_forward(zone, route.forward, addresses=wanted.addresses, coredns_version=server.version)
    except CorefileError as error:
        raise ChangeRefused(f"{served}: {error.reason}", error.remedy, place=route.placed.place) from None


def check_own_text(text: str, scope: Scope, target: ConfigMapKey) -> None:
    """Raises ChangeRefused for a text that CoreDNS's parser rejects, so that it is never written."""
    try:
        parse_corefile(text, scope)
    except CorefileError as error:
        raise refusal_of(error, target) from None


def _inner_first(zones: Iterable[str]) -> tuple[str, ...]:
    """In one order, however the user orders them, so that planning again gives no change."""
    return tuple(sorted(dict.fromkeys(zones), key=lambda zone: (-len(labels_of(zone)), zone)))
