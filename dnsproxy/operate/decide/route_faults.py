"""What is wrong with a route Service that somebody wrote: a fault for its Event, the page and the status.

The law: the relay's own faults first (sidecar/kubernetes/relay_routes.py), then what the relay cannot know: whether the
backend exists, and whether the Service leads to the relay's pods. A list that was not read makes no fault.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.kubernetes.relay_routes import RelayRoute, RouteService, find_relay_routes

RELAY_ADMIN_PORT: Final = 8082
"""The port of `proxy --admin` in its pods."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A Service of the cluster, as far as it can be a backend."""

    ports: frozenset[int]
    """Its TCP ports."""
    external: bool = False
    """Whether it is an ExternalName, which has no endpoints."""


def find_route_faults(
    services: Mapping[str, RouteService],
    backends: Mapping[str, Backend] | None,
    *,
    relay_selector: tuple[tuple[str, str], ...],
) -> dict[str, tuple[str, ...]]:
    """The faults by route Service, `NAMESPACE/NAME`; `backends`: every Service; None if not all are known."""
    found = find_relay_routes(services, reserved=[RELAY_ADMIN_PORT])
    faults: dict[str, list[str]] = {key: list(why) for key, why in found.faults.items()}
    for route in found.routes:
        for fault in _of_backend(route, backends):
            for key in route.services:
                faults.setdefault(key, []).append(fault)
    for key, service in services.items():
        if service.annotations.relay_to is not None and not _selects(service, relay_selector):
            wanted = ",".join(f"{name}={value}" for name, value in relay_selector)
            faults.setdefault(key, []).append(f"its selector does not select the relay's pods ({wanted})")
    return {key: tuple(dict.fromkeys(why)) for key, why in sorted(faults.items())}


def lasting_faults(faults: Mapping[str, tuple[str, ...]], *, changing: Container[str]) -> dict[str, tuple[str, ...]]:
    """Those that no change mends which is about to be written, to the Services `NAMESPACE/NAME` in `changing`.

    Otherwise a neighbor that goes would be told as a fault of our own Service, just before we mend it.
    """
    return {key: why for key, why in faults.items() if key not in changing}


def _of_backend(route: RelayRoute, backends: Mapping[str, Backend] | None) -> Iterator[str]:
    if backends is None:
        return
    key = f"{route.namespace}/{route.backend}"
    backend = backends.get(key)
    if backend is None:
        yield f"there is no Service {key}"
    elif backend.external:
        yield f"Service {key} is an ExternalName, which the relay cannot dial"
    elif route.port not in backend.ports:
        yield f"Service {key} has no TCP port {route.port}"


def _selects(service: RouteService, relay_selector: tuple[tuple[str, str], ...]) -> bool:
    """Whether it selects the relay's pods: a selector with fewer labels does, too."""
    selector = service.spec.selector if service.spec is not None else None
    return selector is not None and bool(selector) and set(selector.items()) <= set(relay_selector)
