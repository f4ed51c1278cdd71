"""The route `/subjects` of two real replicas that follow a real kube-apiserver: two classes, and a Gateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.admin.subjects_document import PATH, SubjectsDocument, parse_subjects
from dnsproxy.hostnames.claimed_subjects import ClaimedSubject
from sidecar.admin.asking import Reply, get
from sidecar.kubernetes.route_services import FOR
from tests.kit import gateway_api as api
from tests.kit.altered import altered
from tests.kit.apiserver import ApiServer, in_thread, running_apiserver
from tests.kit.polling import pause
from tests.kit.ready_services import put_endpoint
from tests.kit.serve_inside import addresses_in, ask
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "gateway-api")

OWN: Final = "switchback"
REST: Final = 15.0
"""Seconds between two counts of all names: a change that shows sooner needed no count."""
RELAY: Final = "10.96.0.60"
NGINX, OTHER, GATE = "ingressclass/nginx", "ingressclass/other", "gateway/default/main"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A separate API server: definitions and classes apply to the whole cluster."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        one.create_namespace(OWN)
        api.install_crds(one)
        for name in ("nginx", "other"):
            manifest = {"metadata": {"name": name}, "spec": {"controller": f"example.org/{name}"}}
            one.request("POST", "/apis/networking.k8s.io/v1/ingressclasses", manifest)
        yield one


def set_status(server: ApiServer, path: str, status: dict[str, Any]) -> None:
    server.request("PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json")


def create_objects(server: ApiServer) -> None:
    """Twelve names of one class behind one address, a denied one, one of another class, and a route of a Gateway."""
    ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    server.create_ingress("many", [f"app{number:02}.example.org" for number in range(11)], ingress_class="nginx")
    server.create_ingress("wild", ["*.wild.example.org", "a.svc.cluster.local"], ingress_class="nginx")
    for name in ("many", "wild"):
        set_status(server, f"{ingresses}/{name}", {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}})
    server.create_ingress("other", ["other.example.net"], ingress_class="other")
    set_status(server, f"{ingresses}/other", {"loadBalancer": {"ingress": [{"hostname": "lb.example.net"}]}})
    server.create_ingress("nobody", ["nobody.example.org"], ingress_class="unknown")
    api.create(server, "gateways", api.gateway(api.listener("http", "*.gate.example.org")))
    api.create(server, "httproutes", api.route("HTTPRoute", "web.gate.example.org"))
    gateway = f"/apis/{api.GROUP}/v1/namespaces/default/gateways/main"
    set_status(server, gateway, {"addresses": [{"type": "IPAddress", "value": "192.0.2.20"}]})


def create_route_service(server: ApiServer, name: str, subject: str) -> None:
    spec = {"clusterIP": RELAY, "ports": [{"name": "https", "port": 443}]}
    metadata = {"name": name, "annotations": {FOR: subject}}
    server.request("POST", f"/api/v1/namespaces/{OWN}/services", {"metadata": metadata, "spec": spec})
    put_endpoint(server, f"{OWN}/{name}")


async def read(ours: Serving, tag: str = "") -> Reply:
    headers = {"If-None-Match": tag} if tag else {}
    return await get(ours.admin_endpoint, PATH, program="dnsproxy serve", headers=headers)


async def until_complete(ours: Serving) -> SubjectsDocument:
    while not (document := parse_subjects((await read(ours)).body)).complete:
        pass  # each round waits for its reply
    return document


async def subjects_of(ours: Serving) -> dict[str, ClaimedSubject]:
    return {one.subject: one for one in parse_subjects((await read(ours)).body).subjects}


async def test_operate_learns_from_any_replica_which_subjects_have_names(server: ApiServer, tmp_path: Path) -> None:
    await in_thread(create_objects, server)
    where = ("--upstream", "127.0.0.1:9", "--kubeconfig", str(server.kubeconfig))
    flags = ("--source", "ingress", "--source", "gateway", "--target", "auto", "--routes-namespace", OWN)
    with ExitStack() as stack:
        environment = altered(tmp_path, {"dnsproxy.admin.counted_route._REST": REST})
        ours, replica = (
            stack.enter_context(serving(tmp_path, *where, *flags, environment=environment)) for _ in range(2)
        )
        for one in (ours, replica):
            await until_complete(one)
        gate, nginx, other = (await until_complete(ours)).subjects
        assert gate == ClaimedSubject(
            subject=GATE, hostnames=1, examples=("web.gate.example.org",), status=("192.0.2.20",)
        )
        assert (nginx.subject, nginx.hostnames, nginx.status) == (NGINX, 12, ("192.0.2.10",))
        assert nginx.examples == tuple(f"app{number:02}.example.org" for number in range(5))
        assert other == ClaimedSubject(
            subject=OTHER, hostnames=1, examples=("other.example.net",), status=("lb.example.net",)
        )
        first, same = await read(ours), await read(replica)
        assert (first.body, first.tag) == (same.body, same.tag)
        again = await read(replica, first.tag)
        assert (again.modified, again.body) == (False, b"")

        # What is steered is answered, and the document stays as it is.
        await in_thread(create_route_service, server, "relay", NGINX)
        with trio.fail_after(20):
            while addresses_in(await ask(ours.endpoint, "app00.example.org")) != [RELAY]:
                await pause()
        assert (await read(ours)).body == first.body

        # A class whose last object goes leaves it; its first one is there at once.
        await in_thread(server.delete_ingress, "other")
        with trio.fail_after(60):
            while OTHER in await subjects_of(ours):
                await pause()
        await in_thread(server.create_ingress, "other", ["new.example.net"], ingress_class="other")
        with trio.fail_after(REST - 3):
            while OTHER not in await subjects_of(ours):
                await pause()
        assert (await subjects_of(ours))[OTHER].examples == ("new.example.net",)
