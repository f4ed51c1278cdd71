"""The method stub-domains: zones of ours in the JSON that kube-dns and node-cache read beside their configuration.

The law: the zones and servers of others stay, character by character, and so does everything else of the ConfigMap;
which zones are ours stands in an annotation. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dnsproxy.cluster_dns.choice import Choice, ConfigMapKey, Method
from dnsproxy.cluster_dns.found import Server, StubDomains
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import is_at_or_below, normalize_zone
from dnsproxy.install.change.config_map import (
    OBJECT,
    ConfigMapChange,
    Entry,
    annotations_of,
    data_of,
    made_entry,
    words_made,
)
from dnsproxy.install.change.edits import Edits, Wanted
from dnsproxy.install.change.members import put_in, take_out
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.change.routes import find_routes
from dnsproxy.install.change.zones import check_free, check_named, check_not_clusters

KEY: Final = "key"
"""In the annotation of what was made for us: the key stubDomains."""
BRACES: Final = "braces"
"""Likewise: the JSON object in a key that was blank."""


def plan_stub_domains(server: Server, stub: StubDomains, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that add our zones. Raises Refusal."""
    target = choice.target
    if target is None:
        raise ValueError("the choice is none for stub domains")
    check_named(wanted.zones, "a stub domain is a zone")
    zones = tuple(sorted(dict.fromkeys(wanted.zones)))
    if server.corefile is not None:
        check_free(zones, find_routes(server.corefile))
    else:
        check_not_clusters(zones)
    ours = our_zones(stub)
    for zone in zones:
        _check_not_theirs(zone, stub, ours, target)
    members = {zone: list(map(format_address, wanted.addresses)) for zone in zones}
    change = _change(stub, target, ours, members)
    return Edits(Method.STUB_DOMAINS, (change,), zones, choice.what_else)


def our_zones(stub: StubDomains) -> tuple[str, ...]:
    """The zones that are ours by the annotation, as they are written there."""
    return tuple(annotations_of(stub.source).get(ANNOTATION, "").split())


def without_zones(stub: StubDomains, target: ConfigMapKey) -> ConfigMapChange:
    """The change that takes our zones out. Raises Refusal where the JSON is not to be read."""
    source, made = stub.source, words_made(stub.source)
    old = data_of(source).get(target.key)
    new: str | None = _without(old or "", our_zones(stub), target)
    if BRACES in made and (new or "").strip() == "{}":
        new = (new or "").replace("{}", "")
    if KEY in made and (new or "").strip() in ("", "{}"):
        new = None
    annotation = Entry(ANNOTATION, annotations_of(source).get(ANNOTATION), None)
    left = [word for word in made if word == OBJECT]
    return ConfigMapChange(source, (Entry(target.key, old, new),), (annotation, made_entry(source, left)))


def _change(
    stub: StubDomains, target: ConfigMapKey, ours: tuple[str, ...], members: Mapping[str, list[str]]
) -> ConfigMapChange:
    source = stub.source
    old = data_of(source).get(target.key)
    named = annotations_of(source).get(ANNOTATION)
    annotation = Entry(ANNOTATION, named, " ".join(members))
    made = words_made(source) if named is not None else _to_be_made(stub, old)
    there = {zone: list(stub.zones[zone]) for zone in ours if zone in stub.zones}
    new = old if there == dict(members) and set(ours) == set(there) else _with(old or "", ours, members, target)
    return ConfigMapChange(source, (Entry(target.key, old, new),), (annotation, made_entry(source, made)))


def _to_be_made(stub: StubDomains, old: str | None) -> list[str]:
    made = [] if stub.source.exists else [OBJECT]
    if old is None:
        return [*made, KEY]
    return made if old.strip() else [*made, BRACES]


def _with(old: str, ours: tuple[str, ...], members: Mapping[str, list[str]], target: ConfigMapKey) -> str:
    return put_in(_without(old, ours, target) if old.strip() else f"{old}{{}}", members)


def _without(old: str, ours: tuple[str, ...], target: ConfigMapKey) -> str:
    if not old.strip():
        return old
    try:
        return take_out(old, ours)
    except ValueError as error:
        raise Refusal(str(error), "mend it by hand, then run this again", place=str(target)) from None


def _check_not_theirs(zone: str, stub: StubDomains, ours: tuple[str, ...], target: ConfigMapKey) -> None:
    """The longest zone wins, so a zone inside another's takes names away from it."""
    for there in stub.zones:
        if there not in ours and is_at_or_below(normalize_zone(zone), _normal(there)):
            servers = ", ".join(stub.zones[there])
            reason = f"{zone} belongs to the stub domain {there}, which goes to {servers}"
            raise Refusal(reason, "choose another --zone, or take that out first", place=str(target))


def _normal(zone: str) -> str:
    try:
        return normalize_zone(zone)
    except ValueError:
        return zone
