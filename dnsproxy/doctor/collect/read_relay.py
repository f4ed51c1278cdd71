"""Reads the relay: its Service, or the route Services where dnsproxy answers names with these.

The law: as in read_own.py. Which of the two it is follows from dnsproxy's own setting. Tested in
tests/dnsproxy/doctor/collect/test_read_relay.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.read_hosts import make_service
from dnsproxy.doctor.collect.read_own import pods_of, read_own_service, read_workload
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import OwnService, RouteService
from dnsproxy.doctor.judge.installation import is_automatic
from sidecar.kubernetes.endpoint_slices import EndpointSlice
from sidecar.kubernetes.route_services import PORT_BACKENDS, RELAY_TO, parse_port_backends, parse_relay_to
from sidecar.kubernetes.structs.network import Service as RawService
from sidecar.loop.side_by_side import side_by_side

_NAME: Final = "relay"
"""Of the relay's workload, and of its Service where there is one."""
_TARGET: Final = "service:"


async def read_relay(reader: Reader, dnsproxy: OwnService, named: ObjectRef | None) -> OwnService:
    """The relay of a dnsproxy; `named`: its Service, if the user named one."""
    namespace = dnsproxy.key.partition("/")[0]
    if named is None and is_automatic(dnsproxy):
        return await _read_routes(reader, dnsproxy.settings.get("DNSPROXY_ROUTES_NAMESPACE") or namespace)
    target = dnsproxy.settings.get("DNSPROXY_TARGET", "")
    default = target.removeprefix(_TARGET) if target.startswith(_TARGET) else f"{namespace}/{_NAME}"
    return await read_own_service(reader, str(named or default))


async def _read_routes(reader: Reader, namespace: str) -> OwnService:
    key, where = f"{namespace}/{_NAME}", f"in namespace {namespace}"
    found = await reader.list(f"/api/v1/namespaces/{namespace}/services", RawService, f"list services {where}")
    if found is None:
        return OwnService(key)
    raw = sorted((one for one in found if _relay_to(one) is not None), key=lambda one: one.metadata.name)
    routes = tuple(map(_route, raw))
    if not raw:
        return OwnService(key, found=True)
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    async with side_by_side() as start:
        workload = start(read_workload, reader, namespace, raw[0])
        slices = start(_list_slices, reader, path, f"list endpointslices {where}")
    names = {one.metadata.name for one in raw}
    pods = pods_of(one for one in slices.value or () if _service_of(one) in names)
    return OwnService(
        key,
        found=True,
        addresses=tuple(dict.fromkeys(address for route in routes for address in route.addresses)),
        ready=None if slices.value is None else sum(pods.values()),
        pods=tuple(address for address, _ in pods),
        pod_names=tuple(pod for _, pod in pods),
        image=workload.value.image,
        settings=workload.value.settings,
        routes=routes,
    )


async def _list_slices(reader: Reader, path: str, what: str) -> Iterable[EndpointSlice] | None:
    return await reader.list(path, EndpointSlice, what)


def _service_of(one: EndpointSlice) -> str | None:
    return one.metadata.labels.service_name if one.metadata.labels else None


def _relay_to(raw: RawService) -> str | None:
    return (raw.metadata.annotations or {}).get(RELAY_TO)


def _route(raw: RawService) -> RouteService:
    service = make_service(raw)
    try:
        backend = "/".join(parse_relay_to(_relay_to(raw) or ""))
        others = parse_port_backends((raw.metadata.annotations or {}).get(PORT_BACKENDS, ""))
    except ValueError:
        return RouteService(service.key, "", service.cluster_ips, service.ports)
    # The ports of other Services serve none of the controller's hosts.
    ports = tuple(port for port in service.ports if port.port not in others)
    return RouteService(service.key, backend, service.cluster_ips, ports)
