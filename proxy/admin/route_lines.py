"""The lines of /readyz below its reason: every route with its state, and every fault of a route Service.

The law: pure. A relay without --routes-from has none of these lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proxy.admin.page import RouteStatus, ServicesStatus
from proxy.routes import ROUTE_FLAG
from sidecar.values.text import one_line


def format_lines(routes: Iterable[RouteStatus], services: ServicesStatus | None) -> Iterator[str]:
    """One line each, the state of the watch first."""
    if services is not None:
        yield from map(one_line, _lines(routes, services))


def _lines(routes: Iterable[RouteStatus], services: ServicesStatus) -> Iterator[str]:
    yield f"route Services: {services.state}"
    for one in routes:
        origin = ", ".join(one.services) or ROUTE_FLAG
        yield f"route {one.listen} to {one.backend}, {one.protocol}, from {origin}: {one.fault or 'no failure'}"
    yield from _faults(services.faults)


def _faults(faults: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for service, why in faults.items():
        for fault in why:
            yield f"fault of {service}: {fault}"
