"""Traefik without a cluster's nodes: the program itself, fed by an API server, and the names that it serves.

The law: its own API says which routers are enabled, and its entry points which hosts get another answer than the 404
page. It needs no backends: a Service without endpoints is a router that answers 503.
https://doc.traefik.io/traefik/reference/install-configuration/api-dashboard/
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.differential.rules import REQUESTS, Request, Rule, may_match, names_hosts
from tests.differential.sets import TEAMS, ObjectSet
from tests.kit.apiserver import ApiServer
from tests.kit.launched import end_session
from tests.kit.polling import poll_until
from tests.kit.ports import free_ports
from tests.kit.processes import wait_for
from tests.kit.programs import find_program, program

INGRESS_CONTROLLER: Final = "traefik.io/ingress-controller"
GATEWAY_CONTROLLER: Final = "traefik.io/gateway-controller"
INGRESS_CLASS: Final = "traefik"
"""The only class that Traefik also takes from the annotation."""
NEEDS_TRAEFIK: Final = pytest.mark.skipif(
    find_program("traefik") is None, reason="missing peer: traefik (`make world-peers` brings it)"
)
"""It is none of the peers that CI demands: its build takes minutes and many modules."""
_NAMESPACE: Final = re.compile(rf"[a-z]+-\d+-(?:{'|'.join(TEAMS)})(?![a-z])")
"""The first namespace of a set in the name of a router is that of its object."""
_SECONDS: Final = 60
_TRUSTING: Final = ssl._create_unverified_context()  # noqa: S323  # whether a certificate is good is not judged
_TRUSTING.set_alpn_protocols(["http/1.1"])
_MOST: Final = 1_000_000


@dataclass(frozen=True)
class Ports:
    """Loopback ports of its entry points and of its API."""

    http: int
    https: int
    api: int


def choose_ports() -> Ports:
    """Free ones."""
    return Ports(*free_ports(3))


@dataclass(frozen=True)
class Router:
    """An enabled router."""

    name: str
    """`ingress-0-red-ingress-0-a-ingress-0-example-org@kubernetes`"""
    rule: Rule

    @property
    def is_for_every_name(self) -> bool:
        """Whether its rule depends on no host."""
        return not names_hosts(self.rule)

    @property
    def namespace(self) -> str:
        """That of its object; empty if the object is in no set."""
        found = _NAMESPACE.search(self.name)
        return found[0] if found is not None else ""

    def serves(self, name: str) -> bool:
        return not self.is_for_every_name and any(may_match(self.rule, name, one) for one in REQUESTS)


class Routers:
    """All routers, by the namespaces of their objects."""

    def __init__(self, routers: Iterable[Router]) -> None:
        self._found: dict[str, list[Router]] = {}
        for one in routers:
            self._found.setdefault(one.namespace, []).append(one)

    def of(self, objects: ObjectSet) -> list[Router]:
        """Those of a set."""
        return [one for namespace in objects.namespaces for one in self._found.get(namespace, ())]

    def serve(self, objects: ObjectSet, name: str) -> bool:
        """Whether a router of the set has the name."""
        return any(one.serves(name) for one in self.of(objects))


@dataclass(frozen=True)
class Traefik:
    """A running Traefik."""

    ports: Ports

    def routers(self) -> list[Router]:
        """All enabled routers of Kubernetes objects."""
        return [
            Router(one["name"], Rule(one["rule"], one.get("ruleSyntax", "")))
            for kind in ("http", "tcp")
            for one in self._routers(kind)
            if one["status"] != "disabled"
        ]

    def first_routers(self) -> Routers:
        """The routers of a provider's first configuration, which is made of all objects that there are at its start."""
        poll_until(self.routers, "Traefik has routers", seconds=_SECONDS)
        return Routers(self.routers())

    def answering(self, names: Iterable[str], requests: Sequence[Request] = REQUESTS) -> set[str]:
        """Those of some hosts for which a request has another answer than Traefik's 404 page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.http, timeout=_SECONDS)
        try:
            return {name for name in names if any(_has_route(connection, name, one) for one in requests)}
        finally:
            connection.close()

    def answering_by_tls(self, names: Iterable[str], requests: Sequence[Request] = REQUESTS) -> set[str]:
        """The same by TLS with the host as server name: routers of TCP have no backend, and end the connection."""
        return {name for name in names if self._answers_by_tls(name, requests)}

    def _answers_by_tls(self, name: str, requests: Sequence[Request] = REQUESTS) -> bool:
        plain = socket.create_connection(("127.0.0.1", self.ports.https), timeout=_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with _TRUSTING.wrap_socket(plain, server_hostname=name) as stream:
                connection = http.client.HTTPConnection("127.0.0.1")
                connection.sock = stream
                return any(_has_route(connection, name, one) for one in requests)
        except (OSError, http.client.HTTPException):
            return True
        finally:
            plain.close()

    def is_ready(self) -> bool:
        """Whether its API answers; its port is open before."""
        try:
            return self._get("/api/overview")[0] == http.client.OK
        except OSError:
            return False

    def _routers(self, kind: str) -> list[dict[str, Any]]:
        status, body = self._get(f"/api/{kind}/routers?per_page={_MOST}")
        assert status == http.client.OK, body
        return [one for one in json.loads(body) if one["provider"].startswith("kubernetes")]

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.api, timeout=_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def _has_route(connection: http.client.HTTPConnection, name: str, request: Request) -> bool:
    connection.request("GET", request.path, headers={"Host": name, "X-Test": "yes" if request.is_test else "no"})
    response = connection.getresponse()
    response.read()
    return response.status != http.client.NOT_FOUND


@contextmanager
def running_traefik(folder: Path, server: ApiServer, ports: Ports, *flags: str) -> Iterator[Traefik]:
    """Traefik with the providers of these flags, until the end of the block."""
    log = folder / "traefik.log"
    command = [
        program("traefik"),
        f"--entrypoints.web.address=127.0.0.1:{ports.http}",
        f"--entrypoints.websecure.address=127.0.0.1:{ports.https}",
        f"--entrypoints.traefik.address=127.0.0.1:{ports.api}",
        "--api.insecure=true",
        "--log.level=WARN",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        *flags,
    ]
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
    try:
        traefik = Traefik(ports)
        wait_for(traefik.is_ready, process=process, log=log)
        yield traefik
    finally:
        end_session(process)


@dataclass(frozen=True)
class World:
    """The objects, and the controller that has read them."""

    server: ApiServer
    sets: Sequence[ObjectSet]
    traefik: Traefik
    routers: Routers


@contextmanager
def read_world(folder: Path, server: ApiServer, sets: Sequence[ObjectSet], *flags: str) -> Iterator[World]:
    """These objects with a Traefik that has read them."""
    with running_traefik(folder, server, choose_ports(), *flags) as traefik:
        yield World(server, sets, traefik, traefik.first_routers())
