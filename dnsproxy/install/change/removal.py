"""Plans an uninstall: removes everything that an install wrote, by whatever method.

The law: an uninstall removes what bears the markers or annotations of an install, even incomplete, and nothing else.
Damaged text stays and is reported; the rest is removed all the same. A ConfigMap that an install created is deleted
with its last key. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server, Source
from dnsproxy.cluster_dns.method_choice import ConfigMapKey, Method
from dnsproxy.cluster_dns.original_upstreams import routes_without_stanza
from dnsproxy.cluster_dns.refusal import ChangeRefused, refusal_of
from dnsproxy.cluster_dns.traces import Trace, find_traces
from dnsproxy.corefile.markers import zones_with_upstreams
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import no_upstreams_left, plan_uninstall
from dnsproxy.corefile.upstream_routes import route_for
from dnsproxy.corefile.zones import normalize_zone
from dnsproxy.install.change.config_map import (
    OBJECT,
    ConfigMapChange,
    Edits,
    Entry,
    data_of,
    keys_left,
    made_entry,
    merge_changes,
    words_made,
)
from dnsproxy.install.change.importing import find_surroundings
from dnsproxy.install.change.stub_domains import without_zones


@dataclass(frozen=True, slots=True)
class _Removed:
    change: ConfigMapChange
    notes: tuple[str, ...] = ()


def plan_removal(found: Found, *, keep: ConfigMapKey | None = None) -> Edits:
    """The edits that remove every trace except `keep`."""
    changes: list[ConfigMapChange] = []
    notes: list[str] = []
    refusals: list[str] = []
    traces = [trace for trace in find_traces(found) if str(trace.target) != str(keep)]
    for trace in traces:
        try:
            removed = _remove(trace, found)
            if keep is None:
                _check_upstreams_left(trace, found)
        except ChangeRefused as refusal:
            refusals.append(str(refusal))
        else:
            changes.append(removed.change)
            notes += removed.notes
    merged = merge_changes([*changes, *_empties(found, keep)])
    zones = tuple(dict.fromkeys(zone for trace in traces for zone in trace.zones))
    # The trace to keep may be in the same ConfigMap and not written yet.
    kept = str(keep.source) if keep else ""
    final = tuple(change if str(change.source) == kept else _emptied(change) for change in merged)
    return Edits(None, final, zones, tuple(dict.fromkeys(notes)), tuple(refusals))


def _check_upstreams_left(trace: Trace, found: Found) -> None:
    """Raises ChangeRefused for a zone that only the stanza forwards: its own forward may have been removed by hand."""
    for server in _servers(found):
        corefile = server.corefile
        if corefile is None or trace.method is Method.STUB_DOMAINS or not _reads(corefile, trace.target):
            continue
        try:
            routes = routes_without_stanza(server)
            lost = next((zone for zone in _forwarded(trace, corefile) if route_for(zone, routes) is None), None)
        except ValueError:
            # What cannot be read is no reason to keep the stanza.
            continue
        if lost is not None:
            error = no_upstreams_left(lost, 1)
            raise ChangeRefused(error.reason, error.remedy, place=str(trace.target))


def _forwarded(trace: Trace, corefile: FoundCorefile) -> Iterable[str]:
    """The zones of a stanza that had a forward before it."""
    if trace.method is not Method.COREFILE:
        return trace.zones
    had = zones_with_upstreams(parse_corefile(corefile.text))
    return (zone for zone in trace.zones if normalize_zone(zone) in had)


def _reads(corefile: FoundCorefile, target: ConfigMapKey) -> bool:
    files = [(corefile.source, corefile.key), *((file.source, file.key) for file in corefile.files)]
    return any((str(source), key) == (str(target.source), target.key) for source, key in files)


def _remove(trace: Trace, found: Found) -> _Removed:
    source, key = trace.target.source, trace.target.key
    if trace.method is Method.STUB_DOMAINS:
        stubs = [server.stub_domains for server in _servers(found) if server.stub_domains]
        return _Removed(without_zones(next(stub for stub in stubs if str(stub.source) == str(source)), trace.target))
    text = data_of(source)[key]
    if trace.method is Method.COREFILE:
        try:
            change = plan_uninstall(text)
        except CorefileError as error:
            raise refusal_of(error, trace.target) from None
        return _Removed(ConfigMapChange(source, (Entry(key, text, change.new),)), change.notes)
    around = find_surroundings(text, trace.target)
    left = None if around.empty else around.before + around.after
    made = made_entry(source, [word for word in words_made(source) if word == OBJECT])
    return _Removed(ConfigMapChange(source, (Entry(key, text, left),), (made,)))


def _emptied(change: ConfigMapChange) -> ConfigMapChange:
    """Deletes a ConfigMap that an install created, if no key would be left."""
    if OBJECT not in words_made(change.source):
        return change
    if keys_left(change):
        # It holds keys of others by now, so it is theirs: only the annotation goes.
        return replace(change, annotations=(*change.annotations, made_entry(change.source, [])))
    return replace(change, removes=True)


def _empties(found: Found, keep: ConfigMapKey | None) -> Iterator[ConfigMapChange]:
    """ConfigMaps that an install created and that another program has emptied since."""
    kept = str(keep.source) if keep else ""
    for source in {str(source): source for source in _sources(found)}.values():
        if OBJECT in words_made(source) and not data_of(source) and str(source) != kept:
            yield ConfigMapChange(source, (), (made_entry(source, []),), removes=True)


def _sources(found: Found) -> Iterable[Source]:
    for server in _servers(found):
        if server.corefile is not None:
            yield from (hook.source for hook in server.corefile.hooks if hook.source)
        if server.stub_domains is not None:
            yield server.stub_domains.source


def _servers(found: Found) -> list[Server]:
    both = [found.server, found.node_local.server if found.node_local else None]
    return [server for server in both if server is not None]
