"""Upstream routes: where the names of a server block go without the stanza, in a form that `dnsproxy serve` can follow.

The law: a name goes to the first forward that serves it, in the order of the file, as in CoreDNS; the stanza itself
does not count. Whatever dnsproxy cannot do as CoreDNS does it is a fault with its line, never another upstream.
"""

from __future__ import annotations

import fnmatch
import hashlib
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from dnsproxy.corefile.forward_directive import Forward, parse_forward
from dnsproxy.corefile.markers import is_marked, without_region, zones_with_upstreams
from dnsproxy.corefile.model import Corefile, CorefileError, Import, Scope, ServerBlock, shown
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.placing import find_root_block, other_forwarding
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.upstream_form import (
    NODE,
    TCP,
    endpoint_of,
    format_over_tcp,
    format_upstream,
    is_local,
    upstreams_of,
)
from dnsproxy.corefile.zones import ROOT, has_environment, is_at_or_below, normalize_zone, reverse_zones
from sidecar.values.endpoints import Endpoint

LONGEST: Final = 180
"""Octets of routes in one text. A probe's answer has the text, and fits into 512 octets together with its name."""

_DIGEST: Final = "sha256:"
_BETWEEN: Final = "; "
_EXCEPT: Final = "-"


@dataclass(frozen=True, slots=True)
class UpstreamRoute:
    """The upstreams of one zone."""

    zone: str
    """In the form of normalize_zone."""
    upstreams: tuple[str, ...] = ()
    """In order, in the form of upstream_form.py; none if nobody is asked."""
    excepted: tuple[str, ...] = ()
    """Zones that go to a later route."""
    rotates: bool = False
    """Whether each query may begin with another upstream."""
    fault: str = ""
    """Why dnsproxy cannot forward to these upstreams; empty if it can."""
    line: int = 0
    """Of the forward; 0 if it is not in a Corefile."""

    def serves(self, zone: str) -> bool:
        """Whether names at and below a zone take this route; the zone in the form of normalize_zone."""
        return is_at_or_below(zone, self.zone) and not any(is_at_or_below(zone, one) for one in self.excepted)

    def __str__(self) -> str:
        return " ".join((self.zone, *(_EXCEPT + zone for zone in self.excepted), *self.upstreams))


Routes = tuple[UpstreamRoute, ...]
Files = Mapping[str, str]
"""The texts of files by name."""


def find_upstream_routes(text: str, files: Files = MappingProxyType({})) -> Routes:
    """The routes of the server block of `.`, without our stanza. Raises CorefileError if they are not known.

    An import counts by the last part of its pattern, because `files` have no folders.
    """
    corefile = parse_corefile(text)
    block = find_root_block(without_region(corefile))
    return with_root(routes_of(forwards_of(block, lambda entry: _imported(entry, files))), corefile)


def forwards_of(block: ServerBlock, imported: Callable[[Import], Iterable[Corefile]]) -> Iterator[Forward]:
    """The forwards of a block, with those of imported files at the place of the import. Raises CorefileError."""
    for entry in block.entries:
        if isinstance(entry, Import):
            try:
                values = list(imported(entry))
                inner = [found for value in values for found in value.blocks[:1]]
                yield from [parse_forward(one) for found in inner for one in found.named("forward")]
            except CorefileError as error:
                reason = f"{shown(entry.pattern)}, line {error.line}: {error.reason}"
                raise CorefileError(entry.line, reason) from None
        elif entry.name == "forward":
            yield parse_forward(entry)


def _imported(entry: Import, files: Files) -> Iterator[Corefile]:
    pattern = posixpath.basename(entry.pattern)
    if has_environment(entry.pattern):
        return
    for name in sorted(files):
        if fnmatch.fnmatchcase(name, pattern) and not is_marked(files[name]):
            yield parse_corefile(files[name], Scope.ROOT_PLUGINS)


def with_root(routes: Routes, corefile: Corefile) -> Routes:
    """The routes of a Corefile with one of `.`: without upstreams, if it forwards no other names.

    Raises CorefileError if something else may forward them, or our stanza alone has the upstreams.
    """
    if any(route.zone == ROOT for route in routes):
        return routes
    block = find_root_block(without_region(corefile))
    other = other_forwarding(block)
    if not other and all(route_for(zone, routes) for zone in zones_with_upstreams(corefile)):
        return (*routes, UpstreamRoute(ROOT, line=block.line))
    raise CorefileError(block.line, "the server block of . has no `forward .`" + (f"; {other}" if other else ""))


def routes_of(forwards: Iterable[Forward]) -> Routes:
    """The routes of some forwards, in order, without those that no query reaches."""
    found: list[UpstreamRoute] = []
    for forward in forwards:
        route = make_route(forward)
        if route is not None and not any(earlier.serves(route.zone) for earlier in found):
            found.append(route)
    return tuple(found)


def make_route(forward: Forward) -> UpstreamRoute | None:
    """The route of one forward; None if an environment variable names its zone."""
    if forward.zone is None:
        return None
    # CoreDNS takes the first of several.
    line, zone = forward.directive.line, next(reverse_zones(forward.zone))
    # No query is below a name that is not ASCII: CoreDNS compares zones with escaped names.
    excepted = tuple(one for name in forward.excepted() if name.isascii() for one in reverse_zones(name))
    try:
        _check_ascii(zone)
        upstreams = tuple(dict.fromkeys(upstreams_of(forward)))
    except ValueError as error:
        return UpstreamRoute(zone, excepted=excepted, fault=str(error), line=line)
    # Without `policy`, CoreDNS chooses at random.
    rotates = not any(option.name == "policy" and option.values == ("sequential",) for option in forward.options)
    return UpstreamRoute(zone, upstreams, excepted, rotates=rotates and len(upstreams) > 1, line=line)


def routes_of_stub_domains(
    zones: Mapping[str, Sequence[str]], upstreams: Sequence[str], *, ours: Iterable[str] = ()
) -> Routes:
    """The routes of kube-dns and node-cache: stub domains, without our own, and the upstreams of all other names."""
    theirs = {zone: servers for zone, servers in zones.items() if zone not in set(ours)}
    inner_first = sorted(theirs, key=lambda zone: -len(zone.rstrip(".").split(".")))
    routes = [_stub_route(zone, theirs[zone]) for zone in inner_first]
    return (*routes, _stub_route(ROOT, upstreams or (NODE,)))


def route_for(zone: str, routes: Iterable[UpstreamRoute]) -> UpstreamRoute | None:
    """The route of the names at and below a zone; None without any."""
    normal = normalize_zone(zone)
    return next((route for route in routes if route.serves(normal)), None)


def seen_from(listening: Collection[Endpoint], routes: Iterable[UpstreamRoute]) -> Routes:
    """The routes of a CoreDNS for a dnsproxy at these addresses, which is in another pod unless all are loopback."""
    together = bool(listening) and all(ip_address(one.host).is_loopback for one in listening)
    return tuple(route if together else _outside_its_pod(route) for route in routes)


def _outside_its_pod(route: UpstreamRoute) -> UpstreamRoute:
    """A route as seen from another pod: a loopback address, such as that of a sidecar, is none of CoreDNS there."""
    inside = next((one for one in route.upstreams if is_local(one)), None)
    if inside is None:
        return route
    return replace(route, upstreams=(), fault=f"{shown(inside)} is an address of CoreDNS's own pod")


def in_pods(route: UpstreamRoute, nameservers: Sequence[str]) -> UpstreamRoute:
    """A route of pods whose resolv.conf has these nameservers; NODE stands for those of the node."""
    found: dict[str, None] = {}
    for upstream in route.upstreams:
        if upstream == NODE:
            found |= dict.fromkeys(map(format_upstream, nameservers))
        elif upstream == TCP + NODE:
            found |= dict.fromkeys(format_over_tcp(format_upstream(one)) for one in nameservers)
        else:
            found[upstream] = None
    return replace(route, upstreams=tuple(found))


def usable_routes(routes: Iterable[UpstreamRoute]) -> Routes:
    """What dnsproxy does with routes: those without a fault, and for all other names the node's nameservers."""
    followed = (replace(route, upstreams=(NODE,), fault="", line=0) if route.fault else route for route in routes)
    usable = [route for route in followed if _is_queried(route.zone)]
    return (*usable, *(() if any(route.zone == ROOT for route in usable) else (UpstreamRoute(ROOT, (NODE,)),)))


def format_routes(routes: Iterable[UpstreamRoute]) -> str:
    """The routes as one text of at most LONGEST characters; a longer text is replaced by its SHA-256."""
    text = _BETWEEN.join(map(str, routes))
    if len(text.encode()) <= LONGEST:
        return text
    return _DIGEST + hashlib.sha256(text.encode()).hexdigest()


def parse_routes(text: str) -> Routes | None:
    """The routes of such a text; None for a digest. Raises ValueError."""
    if text.startswith(_DIGEST):
        return None
    return tuple(_parse_route(part.split()) for part in text.split(_BETWEEN.strip()))


def differences(zones: Iterable[str], before: Routes, now: str) -> Iterator[str]:
    """How the names of some zones are forwarded otherwise than before, one sentence each without its full stop.

    `now` is the text that a dnsproxy reports of its routes. Raises ValueError if it is not one.
    """
    routes = parse_routes(now)
    if routes is None:
        if now != format_routes(usable_routes(before)) or any(route.fault for route in before):
            yield "dnsproxy forwards to other upstreams than those before it; it has too many to list here"
        return
    for zone in dict.fromkeys(zones):
        there, here = route_for(zone, before), route_for(zone, routes)
        if there is None:
            continue
        to = _names(here)
        if there.fault:
            yield f"names of {zone}: {_at_line(there)}{there.fault}, and dnsproxy forwards them to {to}"
        elif here is None or _servers(here) != _servers(there):
            yield f"names of {zone} went to {_names(there)}, and dnsproxy forwards them to {to}"


def _names(route: UpstreamRoute | None) -> str:
    """Its upstreams for a message."""
    return " ".join(route.upstreams) if route is not None and route.upstreams else "no upstream"


def _servers(route: UpstreamRoute) -> list[str]:
    """Its upstreams, the same over TCP alone as without."""
    plain = [one.removeprefix(TCP) for one in route.upstreams]
    return [one if one == NODE or "://" in one else format_address(endpoint_of(one)) for one in plain]


def _at_line(route: UpstreamRoute) -> str:
    return f"line {route.line}: " if route.line else ""


def _parse_route(words: Sequence[str]) -> UpstreamRoute:
    if not words:
        raise ValueError("a route names a zone")
    excepted = [word.removeprefix(_EXCEPT) for word in words[1:] if word.startswith(_EXCEPT)]
    upstreams = tuple(word for word in words[1:] if not word.startswith(_EXCEPT))
    return UpstreamRoute(normalize_zone(words[0]), upstreams, tuple(map(normalize_zone, excepted)))


def _is_queried(zone: str) -> bool:
    """Whether a query can be at or below a zone; that of a faulty stub domain may be any text."""
    try:
        return zone.isascii() and normalize_zone(zone) == zone
    except ValueError:
        return False


def _check_ascii(zone: str) -> None:
    if not zone.isascii():
        raise ValueError(f"{shown(zone)} is not ASCII, so that no query matches it; write xn--...")


def _stub_route(zone: str, servers: Sequence[str]) -> UpstreamRoute:
    try:
        normal = normalize_zone(zone)
        _check_ascii(normal)
    except ValueError as error:
        # The empty text is not the root: no name may take this route.
        return UpstreamRoute((zone.lower().rstrip(".") or ".") + ".", fault=str(error))
    try:
        return UpstreamRoute(normal, tuple(dict.fromkeys(format_upstream(server) for server in servers)))
    except ValueError as error:
        return UpstreamRoute(normal, fault=str(error))
