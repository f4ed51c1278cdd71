"""The route `/zones` of a whole server, over its admin port."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from dnsproxy.admin import counted_route
from dnsproxy.admin.zones_document import PATH, ZonesDocument, parse_zones
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.admin.asking import Reply, get
from sidecar.values.endpoints import Endpoint
from tests.kit.serve_inside import serving, settings


async def read(admin: Endpoint | None, tag: str = "") -> Reply:
    assert admin is not None
    return await get(admin, PATH, program="dnsproxy serve", headers={"If-None-Match": tag} if tag else {})


async def zones_of(admin: Endpoint | None) -> ZonesDocument:
    return parse_zones((await read(admin)).body)


async def test_the_zones_of_a_table_have_a_tag_and_are_not_sent_again_while_they_stay() -> None:
    async with serving(settings()) as bound:
        first = await read(bound.admin)
        assert parse_zones(first.body) == ZonesDocument(zones=("example.org",))
        again = await read(bound.admin, first.tag)
        assert (again.modified, again.body) == (False, b"")


async def test_a_new_zone_is_there_at_once_and_one_that_vanished_after_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The count of all names that ends the moment comes later than the new zone, however busy the machine is.
    monkeypatch.setattr(counted_route, "_REST", 1000)
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example.net\n")
    async with serving(settings(hosts_file=hosts)) as bound:
        first = await read(bound.admin)
        assert parse_zones(first.body).zones == ("example.net", "example.org")
        hosts.write_text("192.0.2.1 a.example.com\n")
        with trio.fail_after(20):
            while "example.com" not in (found := (await zones_of(bound.admin)).zones):
                pass  # each round waits for its reply
            assert found == ("example.com", "example.net", "example.org")
            monkeypatch.setattr(counted_route, "_REST", 0.1)
            monkeypatch.setattr(counted_route, "_REST_FACTOR", 0)
            while "example.net" in (await zones_of(bound.admin)).zones:
                await trio.lowlevel.checkpoint()
        assert (await read(bound.admin, first.tag)).modified


async def test_a_server_that_waits_for_its_sources_says_so(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )
    cluster = ClusterSettings(IngressOptions(), kubeconfig=str(kubeconfig))
    async with serving(settings(cluster=cluster, targets=Targets(("192.0.2.20",)))) as bound:
        document = await zones_of(bound.admin)
    assert document.zones == ("example.org",)
    assert document.waiting_for
    assert not document.complete
