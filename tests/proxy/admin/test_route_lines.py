"""The lines of /readyz below its reason."""

from __future__ import annotations

from proxy.admin.page import RouteStatus, ServicesStatus
from proxy.admin.route_lines import format_lines

BY_FLAG = RouteStatus("[::]:8080", "example.org:80", "v1", [])
BY_SERVICE = RouteStatus(
    "[::]:20443", "service:web/shop:443", "v1; none at 192.0.2.1", [], "timeout: x", ("own/a", "own/b")
)


def test_without_services_there_is_no_line() -> None:
    assert list(format_lines([BY_FLAG], None)) == []


def test_every_route_and_every_fault_has_a_line() -> None:
    services = ServicesStatus("watching", False, {"own/c": ["it has no port"], "own/d": ["x", "y"]})
    assert list(format_lines([BY_FLAG, BY_SERVICE], services)) == [
        "route Services: watching",
        "route [::]:8080 to example.org:80, v1, from --route: no failure",
        "route [::]:20443 to service:web/shop:443, v1; none at 192.0.2.1, from own/a, own/b: timeout: x",
        "fault of own/c: it has no port",
        "fault of own/d: x",
        "fault of own/d: y",
    ]


def test_what_others_wrote_stays_on_its_line() -> None:
    services = ServicesStatus("retrying: a\nready", True, {"own/c": ["x\nready\u202e"]})
    shown = list(format_lines([], services))
    assert all(line.isprintable() for line in shown)
