"""Rules for rewrites: which names of dnsproxy's table must keep their own answers, for the sake of others.

The law: a name takes the same path as with the stanza, which is the last forward but one. What another line, forward or
server block answers stays theirs, wherever it stands: CoreDNS asks `rewrite` before all of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dnsproxy.cluster_dns.routes import Routes
from dnsproxy.cluster_dns.taken_hosts import names_of_lines
from dnsproxy.corefile.cluster_zones import block_zones
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.corefile.zones import ROOT
from dnsproxy.dns.names import BadName, Reach, is_within, parse_zone
from dnsproxy.install.change.zones import REVERSE, notes_on_plugins

_ANSWERING: Final = ("auto", "azure", "clouddns", "etcd", "file", "k8s_external", "route53", "secondary", "template")
"""Plugins that may answer names of any zone; CoreDNS asks them after `rewrite`."""


class Rules:
    """The rules of one block of `.`; `absent` are Services for which the cluster's DNS has no address."""

    def __init__(self, routes: Routes, domain: str, absent: frozenset[str] = frozenset()) -> None:
        self._routes = routes
        self._absent = absent
        self._cluster = (domain, *block_zones(routes.root), *(zone.removesuffix(".") for zone in REVERSE))
        self._foreign = dict(_foreign_zones(routes))
        before, after = routes.directives[: routes.turn], routes.directives[routes.turn :]
        self._taken = list(names_of_lines(before))
        self._taken_later = list(names_of_lines(after))

    @property
    def foreign(self) -> tuple[str, ...]:
        """Zones whose names go elsewhere."""
        return tuple(self._foreign)

    def refuse(self, rewrite: Rewrite) -> str:
        """Why a name must not be rewritten; empty if it may."""
        return next(self._reasons(rewrite), "")

    def _reasons(self, rewrite: Rewrite) -> Iterator[str]:
        base, is_wildcard = rewrite.base, rewrite.reach is not Reach.NAME
        for zone in self._cluster:
            if is_within(base, zone) or (is_wildcard and is_within(zone, base)):
                yield f"the cluster's own names are in {zone}"
        for zone, whose in self._foreign.items():
            if is_within(base, zone):
                yield f"names of {zone} go to {whose}"
        for one, place in () if is_wildcard else (*self._taken, *self._taken_later):
            if one.takes(base):
                yield f"{place} has it"
        for one, place in self._taken_later if is_wildcard else ():
            if one.takes_below(base):
                yield f"{place} has names below it"
        if rewrite.service in self._absent:
            yield f"the cluster's DNS has no address of Service {rewrite.service}"

    def notes(self) -> Iterator[str]:
        """Notes on lines whose names are not known."""
        yield from notes_on_plugins(self._routes, "rewritten names", _ANSWERING)
        for placed in self._routes.named("rewrite"):
            if any(word.text.lower() == "regex" for word in placed.directive.words):
                yield f"a rewrite of others has a regular expression, which is not compared with names ({placed.place})"


def _foreign_zones(routes: Routes) -> Iterator[tuple[str, str]]:
    for route in routes.forwards():
        for zone in (route.forward.zone, *route.forward.excepted()):
            if zone not in (None, ROOT):
                yield from _normal(zone, str(route) if zone == route.forward.zone else f"the upstreams beside {route}")
    for served in routes.keys:
        if not served.is_root_block and served.zone != ROOT:
            yield from _normal(served.zone, f"the server block of {served.key.text} ({served.place})")


def _normal(zone: str, whose: str) -> Iterator[tuple[str, str]]:
    """The zone as a name in normal form; nothing for reverse zones in CIDR notation, and other names of no host."""
    try:
        yield parse_zone(zone), whose
    except BadName:
        return
