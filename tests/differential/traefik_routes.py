"""Why Traefik serves other hosts of IngressRoutes and IngressRouteTCPs than Switchback claims.

The law: pure; each sentence is in the guide. A host is explained if there is a reason against each route that names it.
https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/crd/http/ingressroute/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from dnsproxy.hostnames.claims import Claim
from tests.differential.common_reasons import rejected_label
from tests.differential.differences import Explanation, Omission, Reasons, find_object, of_kind
from tests.differential.ingress_sets import CLASS_ANNOTATION
from tests.differential.rules import REQUESTS, Reading, Request, Rule, may_match
from tests.differential.sets import ABSENT, FOREIGN, WEB, Manifest, ObjectSet
from tests.differential.universe import covers, probes

KINDS: Final = ("IngressRoute", "IngressRouteTCP")

_WILDCARD: Final = (
    "Switchback claims a wildcard in Host and HostSNI; before Traefik 3.7, it matches nothing in Host, and Traefik "
    "refuses a rule that has one in HostSNI."
)
_POINT: Final = "Switchback knows no entry points: it claims the hosts of a route whose entry points do not exist."
_BACKEND: Final = "Switchback reads neither Services nor Middlewares: Traefik drops a route if one does not exist."
_CASE: Final = "Before 3.7, Traefik compares HostSNI in the case in which it is written, so a capital matches nothing."
_OLD_SYNTAX: Final = (
    "Switchback reads a rule without a syntax in v2 if only v2 accepts it; Traefik goes by core.defaultRuleSyntax."
)
_IMPOSSIBLE: Final = (
    "Switchback takes each matcher that is not for hosts as possible, also two that exclude each other."
)
_PATTERN: Final = (
    "Switchback evaluates no regular expression: it claims a host that a rule names, also if a HostRegexp beside it "
    "excludes the host."
)
_FOREIGN_CLASS: Final = "Without --class-of, Switchback claims the hosts of every class."
_UNNAMED: Final = "Switchback claims only hosts that a rule names, not those that match by a HostRegexp or a negation."

_FAULTS: Final = (_WILDCARD, _POINT, _BACKEND, _CASE, _OLD_SYNTAX, _IMPOSSIBLE, _PATTERN)
_CALL: Final = re.compile(r"\b(host|hostheader|hostsni)\(([^)]*)\)", re.IGNORECASE)
_TEXT: Final = re.compile(r"[`\"]([^`\"]*)[`\"]")


def _rule(route: Manifest) -> Rule:
    return Rule(route["match"], route.get("syntax", ""))


def _named(rule: Rule) -> list[str]:
    """The hosts in a rule, as written."""
    return [text for call in _CALL.finditer(rule.text) for text in _TEXT.findall(call[2])]


def _is(written: str, hostname: str) -> bool:
    return written.lower().removesuffix(".") == hostname


def _fault(objects: ObjectSet, item: Manifest, route: Manifest, hostname: str) -> str | None:
    """Why Traefik does not serve a host by a route that can have it; None if it does."""
    rule = _rule(route)
    if ABSENT in item["spec"].get("entryPoints", ()):
        return _POINT
    if "middlewares" in route or _service_of(route) != WEB:
        return _BACKEND
    if not rule.syntax and _needs_v2(rule):
        return _OLD_SYNTAX
    if item["kind"] == "IngressRouteTCP" and "*" in rule.text:
        return _WILDCARD
    lost = [name for name in _names(objects, hostname) if not _matches(rule, name)]
    if any(_matches(rule, name, Reading.SINCE_3_7) for name in lost):
        return _CASE if item["kind"] == "IngressRouteTCP" else _WILDCARD
    if any(_matches(rule, name, Reading.SINCE_3_7, (None,)) for name in lost):
        return _IMPOSSIBLE
    return _PATTERN if lost else None


def _names(objects: ObjectSet, hostname: str) -> list[str]:
    """A hostname, or the names that a wildcard covers."""
    return [name for name in (hostname, *probes(objects.zone)) if covers(hostname, name, labels="one")]


def _can_have(objects: ObjectSet, route: Manifest, hostname: str) -> bool:
    """Whether a rule names a host in a part that can match."""
    rule = _rule(route)
    is_named = any(_is(text, hostname) for text in _named(rule))
    names = _names(objects, hostname)
    return is_named and any(_matches(rule, name, Reading.UNPATTERNED, (None,)) for name in names)


def _needs_v2(rule: Rule) -> bool:
    return any(len(_TEXT.findall(call[2])) > 1 for call in _CALL.finditer(rule.text))


def _matches(
    rule: Rule, name: str, reading: Reading = Reading.NOW, requests: Sequence[Request | None] = REQUESTS
) -> bool:
    """Whether one of the requests matches; None: one for which every matcher without a host may be true."""
    try:
        return any(may_match(rule, name, one, reading=reading) for one in requests)
    except ValueError:
        return False


def _faults_of(objects: ObjectSet, claim: Claim) -> Iterator[str | None]:
    item = find_object(objects, claim.origin.kind, claim.origin.namespace, claim.origin.name)
    assert item is not None, claim
    for route in _kept(item):
        if _can_have(objects, route, claim.hostname):
            yield _fault(objects, item, route, claim.hostname)


def _kept(item: Manifest) -> Iterable[Manifest]:
    """The routes of an object, of those with one rule the last: Traefik names a router by its rule."""
    routes = item["spec"]["routes"]
    # Before it gets a name, Traefik drops a route of HTTP whose Service does not exist.
    dropped = [one for one in routes if item["kind"] == "IngressRoute" and _service_of(one) == ABSENT]
    kept = {one["match"]: one for one in (*dropped, *(one for one in routes if one not in dropped))}
    return kept.values()


def _service_of(route: Manifest) -> str | None:
    return next((one["name"] for one in route.get("services", ())), None)


def _is_because_of(sentence: str, objects: ObjectSet, claim: Claim) -> bool:
    faults = set(_faults_of(objects, claim))
    return sentence in faults and None not in faults


def _is_foreign(objects: ObjectSet, claim: Claim) -> bool:
    item = find_object(objects, claim.origin.kind, claim.origin.namespace, claim.origin.name)
    return item is not None and item["metadata"].get("annotations", {}).get(CLASS_ANNOTATION) == FOREIGN


def _is_unnamed(objects: ObjectSet, name: str) -> bool:
    return any(
        _matches(_rule(route), name) and _matches(_rule(route), name, Reading.UNNAMED)
        for kind in KINDS
        for item in of_kind(objects, kind)
        for route in item["spec"]["routes"]
    )


def _is_in_old_version(objects: ObjectSet, name: str) -> bool:
    """Whether a rule has the name because a wildcard in a negation means nothing."""
    return any(
        _matches(_rule(route), name) and not _matches(_rule(route), name, Reading.SINCE_3_7)
        for kind in KINDS
        for item in of_kind(objects, kind)
        for route in item["spec"]["routes"]
    )


_CLAIMED: Final = tuple(Explanation(sentence, partial(_is_because_of, sentence)) for sentence in _FAULTS)
_SERVED: Final = (
    Omission(_UNNAMED, _is_unnamed),
    rejected_label("Traefik"),
    Omission(_WILDCARD, _is_in_old_version),
)

FILTERED: Final = Reasons(_CLAIMED, _SERVED)
"""With `--class-of`."""
UNFILTERED: Final = Reasons((*_CLAIMED, Explanation(_FOREIGN_CLASS, _is_foreign)), _SERVED)
"""Without it."""
