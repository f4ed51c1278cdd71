"""Host readers: how a hostname is written in one place of an object.

The law: pure; a reader takes whatever is there and never fails. A place that has no hostname where one may be says
nothing; a hostname that cannot be expressed as one is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from dnsproxy.sources.described.traefik_rule import Syntax, parse_rule
from sidecar.values.text import quoted


class Hosts(msgspec.Struct, frozen=True, gc=False):
    """What one place of an object says."""

    hostnames: tuple[str, ...] = ()
    """As written."""
    faults: tuple[str, ...] = ()
    """What is no hostname, for the user."""


HostReader = Callable[[Any, int | None], Hosts]
"""Takes the value, and how many hostnames of one object are read at most."""

NO_HOSTS: Final = Hosts()

_MOST_FAULTS: Final = 100
"""Of one list."""
_MOST_ROUTES: Final = 2_000
"""Of one object: a route takes some 20 microseconds, and a megabyte may have 30,000."""
_MOST_CHARACTERS: Final = 65_536
"""Of the rules of one object: a microsecond each, during which nothing is answered. Enough for 1,000 hosts."""


def read_plain(value: Any, most: int | None) -> Hosts:
    """A text that is a hostname, or a list of them."""
    if isinstance(value, str):
        return Hosts((value,)) if value else NO_HOSTS
    if not isinstance(value, list):
        return Hosts(faults=(_not_a_hostname(value),))
    texts: dict[str, None] = {}
    others: list[Any] = []
    for one in value:
        if isinstance(one, str) and one:
            texts[one] = None
        elif one is not None and not isinstance(one, str):
            others.append(one)
        if most is not None and len(texts) > most:
            break
    return Hosts(tuple(texts), tuple(dict.fromkeys(map(_not_a_hostname, others[:_MOST_FAULTS]))))


def _not_a_hostname(value: Any) -> str:
    # Not str() of a map or list: it may be a megabyte, or have more levels than Python can show.
    shown = "a map" if isinstance(value, dict) else "a list" if isinstance(value, list) else quoted(str(value))
    return f"{shown} is not a hostname"


def read_openshift(value: Any, _most: int | None) -> Hosts:
    """The `spec` of a Route: its host, or with the policy Subdomain every name beside it.

    https://docs.redhat.com/en/documentation/openshift_container_platform/4.19/html/networking_apis/route-route-openshift-io-v1
    """
    host = value.get("host") if isinstance(value, dict) else None
    if not isinstance(host, str) or not host:
        return NO_HOSTS
    if value.get("wildcardPolicy") != "Subdomain":
        return Hosts((host,))
    return Hosts((f"*.{host.partition('.')[2]}",))


def traefik_http(default: Syntax | None = None) -> HostReader:
    """Reads the `spec` of an IngressRoute; `default`: the syntax of a rule that names none."""

    def read(value: Any, most: int | None) -> Hosts:
        return _read_routes(value, "Host", default, most)

    return read


def traefik_tcp(default: Syntax | None = None) -> HostReader:
    """Reads the `spec` of an IngressRouteTCP. Without TLS there is no server name, so Traefik refuses a rule for one.

    https://doc.traefik.io/traefik/reference/routing-configuration/tcp/router/rules-and-priority/#hostsni-and-tls
    """

    def read(value: Any, most: int | None) -> Hosts:
        found = _read_routes(value, "HostSNI", default, most)
        if not found.hostnames or value.get("tls") is not None:
            return found
        refused = (
            f"{quoted(name)}: HostSNI needs TLS (spec.tls), so Traefik refuses its rule" for name in found.hostnames
        )
        return Hosts(faults=(*found.faults, *refused))

    return read


def _read_routes(spec: Any, matcher: str, default: Syntax | None, most: int | None) -> Hosts:
    routes = spec.get("routes") if isinstance(spec, dict) else None
    if not isinstance(routes, list):
        return NO_HOSTS
    hostnames: list[str] = []
    faults: list[str] = []
    left = _MOST_CHARACTERS
    for number, route in enumerate(routes):
        text = _rule_of(route, matcher)
        left -= len(text)
        if number == _MOST_ROUTES or left < 0:
            limits = f"more than {_MOST_ROUTES:,} routes, or more than {_MOST_CHARACTERS:,} characters of rules"
            faults.append(f"it has {limits}: those from route {number + 1:,} on are left out")
            break
        if text:
            named = route.get("syntax")
            rule = parse_rule(text, matcher=matcher, syntax=named if named in ("v2", "v3") else default, most=most)
            hostnames += rule.hostnames
            faults += rule.faults
    return Hosts(tuple(hostnames), tuple(faults))


def _rule_of(route: Any, matcher: str) -> str:
    """The rule of a route; empty if it has none, or is of a kind that Traefik does not know."""
    if not isinstance(route, dict) or (matcher == "Host" and route.get("kind", "Rule") != "Rule"):
        return ""
    text = route.get("match")
    return text if isinstance(text, str) else ""
