"""The matchers of Traefik's rules: those of each syntax, what they say of hostnames, and which arguments they take.

The law: pure. A rule with one bad matcher is refused as a whole, as Traefik does. Of matchers that do not match
hostnames, and of regular expressions, only the number of arguments is checked.
https://github.com/traefik/traefik/tree/v3.7.13/pkg/muxer/http matcher.go, matcher_v2.go, and the same in pkg/muxer/tcp
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final, Literal, NamedTuple

from dnsproxy.sources.described.traefik_syntax import BadRule, Matcher
from sidecar.values.text import quoted

Syntax = Literal["v2", "v3"]
"""Of a rule: https://doc.traefik.io/traefik/reference/routing-configuration/http/routing/rules-and-priority/."""


class Role(Enum):
    """What a matcher says of hostnames."""

    HOSTS = auto()
    """Its arguments are hostnames."""
    PATTERNS = auto()
    """Its arguments are regular expressions of hostnames."""
    OTHER = auto()
    """Nothing."""


class _Kind(NamedTuple):
    role: Role
    fewest: int = 1
    most: int | None = 1
    """Arguments; None: any number."""


_SERVER_NAME: Final = re.compile(r"(\*\.)?[\w.:-]+", re.ASCII)


def _spelled(kinds: Mapping[str, _Kind]) -> Mapping[str, _Kind]:
    """By each of the four spellings that Traefik knows: no other mixture of cases is a matcher."""
    return {
        spelling: kind
        for name, kind in kinds.items()
        for spelling in (name, name.lower(), name.upper(), name.capitalize())
    }


def _others(*names: str, fewest: int = 1, most: int | None = 1) -> dict[str, _Kind]:
    return dict.fromkeys(names, _Kind(Role.OTHER, fewest, most))


_ONE_OTHER: Final = ("ClientIP", "Method", "Path", "PathRegexp", "PathPrefix")
_KINDS: Final[Mapping[tuple[str, Syntax], Mapping[str, _Kind]]] = {
    ("Host", "v3"): _spelled(
        {
            "Host": _Kind(Role.HOSTS),
            "HostRegexp": _Kind(Role.PATTERNS),
            **_others(*_ONE_OTHER),
            **_others("Header", "HeaderRegexp", fewest=2, most=2),
            **_others("Query", "QueryRegexp", most=2),
        }
    ),
    ("Host", "v2"): _spelled(
        {
            "Host": _Kind(Role.HOSTS, most=None),
            "HostHeader": _Kind(Role.HOSTS, most=None),
            "HostRegexp": _Kind(Role.PATTERNS, most=None),
            **_others("ClientIP", "Method", "Path", "PathPrefix", "Query", most=None),
            **_others("Headers", "HeadersRegexp", fewest=2, most=None),
        }
    ),
    ("HostSNI", "v3"): _spelled(
        {"HostSNI": _Kind(Role.HOSTS), "HostSNIRegexp": _Kind(Role.PATTERNS), **_others("ALPN", "ClientIP")}
    ),
    ("HostSNI", "v2"): _spelled(
        {
            "HostSNI": _Kind(Role.HOSTS, most=None),
            "HostSNIRegexp": _Kind(Role.PATTERNS, most=None),
            **_others("ALPN", "ClientIP", most=None),
        }
    ),
}


def read_matchers(calls: Iterable[Matcher], matcher: str, syntax: Syntax) -> dict[str, Role]:
    """The roles of the matchers of a rule, by name as written. `matcher` is `Host` or `HostSNI`. Raises BadRule."""
    kinds = _KINDS[matcher, syntax]
    roles: dict[str, Role] = {}
    for call in calls:
        kind = kinds.get(call.name)
        if kind is None:
            raise BadRule(f"{quoted(call.name)} is not a matcher of {matcher} rules in the {syntax} syntax")
        _check_arguments(call, kind)
        if kind.role is Role.HOSTS:
            _check_hosts(call.arguments, matcher, syntax)
        roles[call.name] = kind.role
    return roles


def _check_arguments(call: Matcher, kind: _Kind) -> None:
    count = len(call.arguments)
    if count < kind.fewest or (kind.most is not None and count > kind.most):
        expected = f"{kind.fewest}" if kind.most == kind.fewest else f"{kind.fewest} to {kind.most or 'any number'}"
        raise BadRule(f"{call.name} has {count:,} arguments instead of {expected}")
    if not all(call.arguments):
        raise BadRule(f"{call.name} has an empty argument")


def _check_hosts(hosts: Iterable[str], matcher: str, syntax: Syntax) -> None:
    for host in hosts:
        if not host.isascii():
            raise BadRule(f"{matcher} has {quoted(host)}, which is not ASCII: write its A-labels (xn--...)")
        found = _SERVER_NAME.fullmatch(host)
        if matcher == "HostSNI" and host != "*" and (found is None or (found[1] and syntax == "v2")):
            raise BadRule(f"{matcher} has {quoted(host)}, which Traefik refuses in the {syntax} syntax")
