"""Mixed kinds in a real API server: 100,000 objects in a minute.

The law: the first object of each kind is created through the API, by the definitions of its project. The others are the
octets that the API server stored for it, with another number, written into etcd: their creation through the API would
take an hour on a small machine, and the API server reads the same afterwards.
"""

from __future__ import annotations

import http.client
import random
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.bench.sync import mix
from tests.bench.sync.etcd import MOST_IN_ONE, Etcd
from tests.bench.sync.mix import GATEWAYS_NAMESPACE, KINDS, MixedKind
from tests.bench.sync.new_object import Request
from tests.kit import custom_resources, gateway_api
from tests.kit.apiserver import ApiServer, send
from tests.kit.polling import poll_until

_CONNECTIONS: Final = 4
_CACHED_SECONDS: Final = 300
_TRAEFIK: Final = ("ingressroutes", "ingressroutetcps")
_CLASSES: Final = {
    "public": "k8s.io/ingress-nginx",
    "traefik": "traefik.io/ingress-controller",
    "contour": "projectcontour.io/contour",
}
"""By the name of an IngressClass: its controller."""


@dataclass(frozen=True, slots=True)
class Template:
    """One stored object, from which others of its kind are made."""

    kind: MixedKind
    number: int
    uid: str
    value: bytes

    def copy(self, number: int) -> bytes:
        """The same object with another number.

        What changes keeps its length, so that the lengths in the protobuf of an Ingress stay right.
        """
        value = self.value.replace(mix.name_of(self.number).encode(), mix.name_of(number).encode())
        value = value.replace(mix.namespace_of(self.number).encode(), mix.namespace_of(number).encode())
        value = value.replace(mix.gateway_of(self.number).encode(), mix.gateway_of(number).encode())
        return value.replace(self.uid.encode(), _uid(number).encode())


def fill_mixed(server: ApiServer, count: int, *, tell: Callable[[int], None]) -> None:
    """Have so many objects there, if there are none; `tell` hears how many there are, now and then."""
    with Etcd(server.etcd_port) as etcd:
        if etcd.find(mix.kind_of(count - 1).key(count - 1)) is not None:
            return
    _prepare(server)
    templates = {kind.kind: _make_template(server, kind) for kind in KINDS}
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        shares = [range(start, min(start + MOST_IN_ONE, count)) for start in range(0, count, MOST_IN_ONE)]
        # The last share shows that all were written, so it comes after the others.
        *others, last = shares
        for share in pool.map(lambda share: _write(server.etcd_port, templates, share), others):
            tell(share.stop)
    _write(server.etcd_port, templates, last)
    tell(count)


def wait_cached(server: ApiServer) -> None:
    """Until every kind is in the API server's caches, as in a cluster that has run for a while.

    The cache of a custom kind is filled from its first request on, which takes the API server as long as a list of
    ours; until then, it refuses lists from the cache. The selector selects nothing, so that the answer is small.
    """
    for kind in KINDS:
        path = f"/apis/{kind.version}/{kind.plural}?resourceVersion=0&labelSelector=none%3Dnone"
        poll_until(partial(_is_served, server, path), f"{kind.plural} are in the cache", seconds=_CACHED_SECONDS)


def _is_served(server: ApiServer, path: str) -> bool:
    with server.connection() as connection:
        connection.request("GET", path, headers={"authorization": f"Bearer {server.token}"})
        response = connection.getresponse()
        response.read()
        return response.status == http.client.OK


def _write(port: int, templates: dict[str, Template], numbers: range) -> range:
    with Etcd(port) as etcd:
        etcd.put_all(_entries(templates, numbers))
    return numbers


def _entries(templates: dict[str, Template], numbers: range) -> Iterator[tuple[str, bytes]]:
    for number in numbers:
        kind = mix.kind_of(number)
        yield kind.key(number), templates[kind.kind].copy(number)


def _make_template(server: ApiServer, kind: MixedKind) -> Template:
    number = next(number for number in range(mix.NAMESPACES) if mix.kind_of(number) is kind)
    made = _send(server, kind.create(number))
    report = kind.report(number)
    if report is not None:
        _send(server, report)
    with Etcd(server.etcd_port) as etcd:
        return Template(kind, number, made["metadata"]["uid"], etcd.get(kind.key(number)))


def _send(server: ApiServer, request: Request) -> Any:
    return server.request(request.method, request.path, request.body, content_type=request.content_type)


def _uid(number: int) -> str:
    return str(uuid.UUID(int=random.Random(number).getrandbits(128)))  # noqa: S311  # no secret: only as random as a real one


def _prepare(server: ApiServer) -> None:
    """The definitions, the namespaces, the IngressClasses and the Gateways."""
    gateway_api.install_crds(server, ("gateways", "httproutes"))
    for group, plurals in (
        ("traefik.io", _TRAEFIK), ("projectcontour.io", ("httpproxies",)), ("route.openshift.io", ("routes",)),
    ):  # fmt: skip
        custom_resources.install(server, custom_resources.definitions(group, plurals))
    custom_resources.install(server, [custom_resources.open_definition("sites", "example.org", "v1")])
    with server.connection() as connection:
        for name in (GATEWAYS_NAMESPACE, *(f"mixed-{number:02}" for number in range(mix.NAMESPACES))):
            send(connection, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for name, controller in _CLASSES.items():
            body = {"metadata": {"name": name}, "spec": {"controller": controller}}
            send(connection, "POST", "/apis/networking.k8s.io/v1/ingressclasses", body)
    for number in range(mix.GATEWAYS):
        gateway_api.create(server, "gateways", _gateway(f"gateway-{number:02}"))


def _gateway(name: str) -> dict[str, Any]:
    listener = gateway_api.listener("http", f"*.{mix.ZONE}", allowedRoutes={"namespaces": {"from": "All"}})
    made = gateway_api.gateway(listener, name=name)
    return {**made, "metadata": {"name": name, "namespace": GATEWAYS_NAMESPACE}}
