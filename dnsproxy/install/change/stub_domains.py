"""The method stub-domains: zones in the JSON `stubDomains` that kube-dns and node-cache read from a ConfigMap.

The law: zones and servers of others stay, character by character, and so does the rest of the ConfigMap; an annotation
lists the zones that the install added. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dnsproxy.cluster_dns.found import Server, StubDomains
from dnsproxy.cluster_dns.method_choice import Choice, ConfigMapKey, Method
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.routes import find_routes
from dnsproxy.cluster_dns.traces import ANNOTATION
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import is_at_or_below, normalize_zone
from dnsproxy.install.change.config_map import (
    OBJECT,
    ConfigMapChange,
    Edits,
    Entry,
    Wanted,
    annotations_of,
    data_of,
    made_entry,
    words_made,
)
from dnsproxy.install.change.members import put_in, take_out
from dnsproxy.install.change.zones import check_free, check_named, check_not_clusters

KEY: Final = "key"
"""In the annotation MADE: the install created the key stubDomains."""
BRACES: Final = "braces"
"""Likewise: the install wrote the JSON object into a blank key."""


def plan_stub_domains(server: Server, stub: StubDomains, choice: Choice, wanted: Wanted) -> Edits:
    """The edits that add the wanted zones. Raises ChangeRefused."""
    target = choice.target
    if target is None:
        raise ValueError("the choice has no stub domains")
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
    """The zones that the annotation lists, as written there."""
    return tuple(annotations_of(stub.source).get(ANNOTATION, "").split())


def without_zones(stub: StubDomains, target: ConfigMapKey) -> ConfigMapChange:
    """The change that removes our zones. Raises ChangeRefused for unreadable JSON."""
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
        raise ChangeRefused(str(error), "fix it by hand, then run this again", place=str(target)) from None


def _check_not_theirs(zone: str, stub: StubDomains, ours: tuple[str, ...], target: ConfigMapKey) -> None:
    """Raises ChangeRefused for a zone inside a stub domain of others: the longest zone wins."""
    for there in stub.zones:
        if there not in ours and is_at_or_below(normalize_zone(zone), _normal(there)):
            servers = ", ".join(stub.zones[there])
            reason = f"{zone} belongs to the stub domain {there}, which goes to {servers}"
            remedy = "choose another --zone, or remove that stub domain first"
            raise ChangeRefused(reason, remedy, place=str(target), zone=zone)


def _normal(zone: str) -> str:
    try:
        return normalize_zone(zone)
    except ValueError:
        return zone
