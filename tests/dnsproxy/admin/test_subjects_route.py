"""The route `/subjects` of a whole server with a cluster, over its admin port."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from dnsproxy.admin import counted_route
from dnsproxy.admin.subjects_document import PATH, SubjectsDocument, parse_subjects
from dnsproxy.hostnames.claimed_subjects import ClaimedSubject
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.service import Bound
from dnsproxy.sources.settings import ClusterSettings
from sidecar.admin.asking import Reply, get
from tests.dnsproxy.serve.test_program_cluster import ALL, served_over_tcp, write_kubeconfig
from tests.dnsproxy.sources.test_cluster_sources_steered import NGINX, make_cluster, put_route_service
from tests.kit.live_api import LiveApi
from tests.kit.serve_inside import get as get_text
from tests.kit.serve_inside import serving, settings

AUTO: Final = replace(ALL, steers=True, routes_namespace="own")


async def read(bound: Bound, tag: str = "") -> Reply:
    assert bound.admin is not None
    return await get(bound.admin, PATH, program="dnsproxy serve", headers={"If-None-Match": tag} if tag else {})


async def subjects_of(bound: Bound) -> dict[str, ClaimedSubject]:
    return {one.subject: one for one in parse_subjects((await read(bound)).body).subjects}


def put_ingress(api: LiveApi, hostname: str, *addresses: str) -> None:
    status = {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}
    rules = {"ingressClassName": "nginx", "rules": [{"host": hostname}]}
    metadata = {"name": hostname.partition(".")[0], "namespace": "shop"}
    api.put("networking.k8s.io", "ingresses", {"metadata": metadata, "spec": rules, "status": status})


def cluster_settings(folder: Path, url: str, cluster: ClusterSettings = AUTO, target: str = "auto") -> object:
    write_kubeconfig(folder / "kubeconfig", url)
    cluster = replace(cluster, kubeconfig=str(folder / "kubeconfig"))
    return settings(cluster=cluster, targets=Targets((target,)), hosts=())


async def until_complete(bound: Bound) -> SubjectsDocument:
    while not (document := parse_subjects((await read(bound)).body)).complete:
        pass  # each round waits for its reply
    return document


async def test_a_class_and_a_gateway_are_named_before_and_after_they_are_steered(tmp_path: Path) -> None:
    api = make_cluster()
    put_ingress(api, "app.example.org", "192.0.2.10")
    async with served_over_tcp(api) as url, serving(cluster_settings(tmp_path, url)) as bound:  # type: ignore[arg-type]
        gate, nginx = (await until_complete(bound)).subjects
        assert nginx == ClaimedSubject(
            subject=NGINX, hostnames=1, examples=("app.example.org",), status=("192.0.2.10",)
        )  # fmt: skip
        assert gate.subject.startswith("gateway/")
        assert gate.examples == ("web.example.org",)
        first = await read(bound)
        again = await read(bound, first.tag)
        assert (again.modified, again.body) == (False, b"")
        put_route_service(api, "first", NGINX, "10.96.1.1")
        while "ready, 1 names" not in (await get_text(bound.admin, "/readyz"))[1]:
            pass
        assert (await read(bound)).body == first.body


async def test_a_first_hostname_and_a_new_load_balancer_are_there_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No second count of all names brings them, however long a busy machine takes.
    monkeypatch.setattr(counted_route, "_REST", 1000)
    api = make_cluster()
    async with served_over_tcp(api) as url, serving(cluster_settings(tmp_path, url)) as bound:  # type: ignore[arg-type]
        assert (await until_complete(bound)).subjects
        for address in ("192.0.2.10", "192.0.2.11"):
            put_ingress(api, "app.example.org", address)
            with trio.fail_after(30):
                while address not in (await subjects_of(bound))[NGINX].status:
                    await trio.lowlevel.checkpoint()
        api.remove("networking.k8s.io", "ingresses", "shop/app")
        monkeypatch.setattr(counted_route, "_REST", 0.1)
        monkeypatch.setattr(counted_route, "_REST_FACTOR", 0)
        with trio.fail_after(30):
            while NGINX in await subjects_of(bound):
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("target", ["192.0.2.20", "status"])
async def test_with_another_target_there_is_none(tmp_path: Path, target: str) -> None:
    async with served_over_tcp(make_cluster()) as url:
        wanted = cluster_settings(tmp_path, url, ALL, target)
        async with serving(wanted) as bound:  # type: ignore[arg-type]
            assert await until_complete(bound) == SubjectsDocument(subjects=())


async def test_a_server_that_waits_for_its_sources_says_so(tmp_path: Path) -> None:
    async with serving(cluster_settings(tmp_path, "http://127.0.0.1:9")) as bound:  # type: ignore[arg-type]
        document = parse_subjects((await read(bound)).body)
    assert document.subjects == ()
    assert "Ingress" in document.waiting_for
    assert not document.complete
