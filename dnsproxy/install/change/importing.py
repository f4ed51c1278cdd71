"""The method import: a key of our own in a ConfigMap that the Corefile imports.

The law: the key is ours and the rest of the ConfigMap is not; inside the block of `.` it holds forwards, between the
blocks a server block for named zones, and what stands behind dnsproxy in either is what was asked before. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dnsproxy.cluster_dns.choice import Choice, ConfigMapKey, Method
from dnsproxy.cluster_dns.found import FoundCorefile, Hook, Server
from dnsproxy.corefile.markers import is_marked
from dnsproxy.corefile.model import CorefileError, Scope
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import labels_of
from dnsproxy.corefile.stanza import Layout, StanzaForward, make_forward
from dnsproxy.corefile.zones import ROOT, normalize_zone
from dnsproxy.install.change.block import format_block
from dnsproxy.install.change.config_map import OBJECT, ConfigMapChange, Entry, data_of, made_entry, words_made
from dnsproxy.install.change.edits import Edits, Wanted
from dnsproxy.install.change.own_file import find_surroundings, format_own_file
from dnsproxy.install.change.refusal import Refusal, refusal_of
from dnsproxy.install.change.routes import Route, Routes, find_routes
from dnsproxy.install.change.zones import check_free, check_named, notes_on_keys, notes_on_plugins, route_of

_FLAT = Layout("", "    ", "\n", "")


@dataclass(frozen=True, slots=True)
class _Lines:
    """What our file says."""

    lines: tuple[str, ...]
    zones: tuple[str, ...]
    notes: tuple[str, ...]


def plan_import(server: Server, corefile: FoundCorefile, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that put our file behind the hook of a choice. Raises Refusal."""
    target, hook = choice.target, choice.hook
    if target is None or hook is None:
        raise ValueError("the choice is none for an import")
    old = data_of(target.source).get(target.key)
    if old is not None and not is_marked(old):
        raise Refusal(f"{target} is there already, and not dnsproxy's", "take it out, or rename it")
    routes = find_routes(corefile, target, _path(hook, target))
    written = _plugins(server, routes, wanted) if hook.scope is Scope.ROOT_PLUGINS else _block(server, routes, wanted)
    around = None if old is None else find_surroundings(old, target)
    new = format_own_file(written.lines, around)
    _check(new, hook.scope, target)
    return Edits(Method.IMPORT, (_change(target, old, new),), written.zones, (*written.notes, *choice.what_else))


def _change(target: ConfigMapKey, old: str | None, new: str) -> ConfigMapChange:
    words = words_made(target.source) if target.source.exists else [OBJECT]
    return ConfigMapChange(target.source, (Entry(target.key, old, new),), (made_entry(target.source, words),))


def _plugins(server: Server, routes: Routes, wanted: Wanted) -> _Lines:
    zones = _inner_first(wanted.zones or (ROOT,))
    for zone in zones:
        for route in routes.before_ours():
            if route.forward.serves(normalize_zone(zone)):
                reason = f"{route} takes the names of {zone} before this import is asked"
                raise Refusal(reason, "put the import in front of it, or choose another --zone or --method")
    behind = routes.behind_ours()
    forwards = [_forward(zone, zone, route_of(zone, behind, zones), server, wanted) for zone in zones]
    lines = [line for forward in forwards for line in forward.lines(_FLAT)]
    notes = [*notes_on_keys(zones, routes.keys), *(note for forward in forwards for note in forward.notes)]
    return _Lines(tuple(lines), zones, tuple(dict.fromkeys(notes)))


def _block(server: Server, routes: Routes, wanted: Wanted) -> _Lines:
    check_named(wanted.zones, "a server block for . is there already, and CoreDNS takes no second one")
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
    """Zones that go the same way today share a block."""
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
        raise Refusal(f"{served}: {error.reason}", error.remedy, place=route.step.place) from None


def _check(text: str, scope: Scope, target: ConfigMapKey) -> None:
    """What is written is read once more: a text that CoreDNS's parser refuses never goes out."""
    try:
        parse_corefile(text, scope)
    except CorefileError as error:
        raise refusal_of(error, target) from None


def _inner_first(zones: Iterable[str]) -> tuple[str, ...]:
    """In one order whoever names them, so that planning again changes nothing."""
    return tuple(sorted(dict.fromkeys(zones), key=lambda zone: (-len(labels_of(zone)), zone)))


def _path(hook: Hook, target: ConfigMapKey) -> str:
    return f"{hook.path.rpartition('/')[0]}/{target.key}"
