"""Own zones: several pods, some of them silent, foreign or not synced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from prometheus_client import CollectorRegistry

from dnsproxy.admin import pod_documents
from dnsproxy.admin.zones_document import PATH, format_zones
from dnsproxy.install.run.own_zones import OwnZones, ZonesReader
from sidecar.admin.answers import JSON, Answer
from sidecar.admin.server import Readiness, serve_admin
from sidecar.sockets.listeners import bound_endpoint, listen_tcp
from sidecar.values.endpoints import Endpoint


class Pod:
    """An admin port whose zones a test sets, and how many documents it made."""

    def __init__(self, *zones: str, waiting_for: tuple[str, ...] = (), left_out: int = 0, body: bytes = b"") -> None:
        self.zones = zones
        self.waiting_for = waiting_for
        self.left_out = left_out
        self.body = body
        self.hangs = False

    async def show(self, _: Mapping[str, str]) -> Answer:
        if self.hangs:
            await trio.sleep_forever()
        octets, tag = format_zones(self.zones, left_out=self.left_out, waiting_for=self.waiting_for)
        return Answer(200, self.body or octets, JSON, {"ETag": f'"{tag}"'})

    async def ready(self) -> Readiness:
        return Readiness(ready=True, reason="")


@asynccontextmanager
async def serving(*pods: Pod, paths: tuple[str, ...] = (PATH,)) -> AsyncIterator[list[Endpoint]]:
    endpoints = []
    async with trio.open_nursery() as nursery:
        for pod in pods:
            listener = listen_tcp(Endpoint("127.0.0.1", 0), flag="--admin")
            routes = dict.fromkeys(paths, pod.show)
            registry = CollectorRegistry()
            serve = partial(serve_admin, [listener], readiness=pod.ready, registry=registry, page=str, routes=routes)
            endpoints.append(Endpoint("127.0.0.1", bound_endpoint(listener).port))
            await nursery.start(serve)
        yield endpoints
        nursery.cancel_scope.cancel()


async def test_the_zones_are_those_of_all_pods() -> None:
    async with serving(Pod("example.org"), Pod("example.net", "example.org")) as pods:
        assert await ZonesReader().read(pods) == OwnZones(("example.net", "example.org"), 2)


async def test_unchanged_zones_are_remembered_and_changed_ones_are_read() -> None:
    pod, reader = Pod("example.org"), ZonesReader()
    async with serving(pod) as pods:
        assert (await reader.read(pods)).zones == ("example.org",)
        pod.body = b"not read, because the tag is the same"
        assert (await reader.read(pods)).zones == ("example.org",)
        pod.zones, pod.body = ("example.net",), b""
        assert (await reader.read(pods)).zones == ("example.net",)


@pytest.mark.parametrize(
    ("other", "answered", "doubt"),
    [
        (Pod("example.net", waiting_for=("Ingress",)), 2, "waiting for the first sync of: Ingress"),
        (Pod("example.net", left_out=3), 2, "the zones of 3 hostnames are left out"),
        (Pod(body=b'{"zones":["*"]}'), 1, "the answer is not that of a `dnsproxy serve`"),
        (Pod(body=b"<html>"), 1, "the answer is not that of a `dnsproxy serve`"),
    ],
    ids=["waiting", "too many", "no zone", "another program"],
)
async def test_a_pod_in_doubt_takes_no_zone_away(other: Pod, answered: int, doubt: str) -> None:
    async with serving(Pod("example.org"), other) as pods:
        found = await ZonesReader().read(pods)
    assert "example.org" in found.zones
    assert found.answered == answered
    assert doubt in found.doubt


async def test_a_pod_that_hangs_delays_no_answer_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_documents, "SECONDS", 0.3)
    hung = Pod()
    hung.hangs = True
    async with serving(Pod("example.org"), hung) as pods:
        found = await ZonesReader().read(pods)
    assert (found.zones, found.answered) == (("example.org",), 1)
    assert "no complete answer" in found.doubt


async def test_an_older_server_and_none_at_all_are_named() -> None:
    async with serving(Pod(), paths=()) as pods:
        assert "older" in (await ZonesReader().read(pods)).doubt
    assert await ZonesReader().read([]) == OwnZones(doubt="no pod is ready")
    assert "no server answers" in (await ZonesReader().read([Endpoint("127.0.0.1", 9)])).doubt


async def test_a_long_answer_of_another_program_is_not_repeated_whole() -> None:
    zone = " " * 200_000 + "example.org"
    async with serving(Pod(body=b'{"zones":["%b"]}' % zone.encode())) as pods:
        assert len((await ZonesReader().read(pods)).doubt) < 500
