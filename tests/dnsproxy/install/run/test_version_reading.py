"""Which build each running program states: asked directly, or through the API server."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.install.run.version_reading import MOST_PODS, parse_build, read_versions
from sidecar.admin.answers import Readiness
from sidecar.admin.port import open_admin_port
from sidecar.values.build import UNKNOWN, Build, own_build
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.cluster_api import Api
from tests.kit.ports import free_port

OWN = ObjectRef("switchback", "dnsproxy")
SLICES = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices"
OLDER = Build("0.9.0", "f" * 40, "3.13.1")


def metrics(prefix: str, build: Build = OLDER) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in build.labels().items())
    return f'# TYPE {prefix}_build_info gauge\n{prefix}_build_info{{{labels}}} 1.0\nother{{a="b"}} 1.0\n'


def pods(service: str, *names: str, port: int, ready: bool = True, named: str = "admin") -> dict[str, Any]:
    """A slice of pods that nothing answers for directly, unless something listens on the port here."""
    return {
        "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [{"name": named, "port": port}],
        "endpoints": [
            {"addresses": ["127.0.0.1"], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": name}}
            for name in names
        ],
    }


def proxied(pod: str, port: int) -> str:
    return f"/api/v1/namespaces/switchback/pods/{pod}:{port}/proxy/metrics"


async def read(slices: list[dict[str, Any]], answers: Mapping[str, str] | None = None, **more: Any) -> Any:
    api = Api({SLICES: slices, **(answers or {})}, **more)
    async with api.client() as client:
        return await read_versions(client, OWN)


@pytest.fixture
def port() -> int:
    """A port on which nothing listens."""
    return free_port()


async def test_each_program_is_asked_for_its_own_metric(port: int) -> None:
    slices = [
        pods("dnsproxy", "dnsproxy-1", port=port),
        pods("operate", "operate-1", port=port),
        pods("relay-nginx", "relay-1", "shop-1", port=port),
        pods("relay-traefik", "relay-1", port=port),
        pods("dnsproxy-metrics", "dnsproxy-1", port=port),
    ]
    answers = {
        proxied("dnsproxy-1", port): metrics("dnsproxy"),
        proxied("operate-1", port): metrics("dnsproxy", own_build()),
        proxied("relay-1", port): metrics("proxy"),
    }
    versions = await read(slices, answers)
    assert versions.command == own_build()
    assert [(one.program, one.pods, dict(one.builds), dict(one.unread)) for one in versions.programs] == [
        ("dnsproxy operate", 1, {"operate-1": own_build()}, {}),
        ("dnsproxy serve", 1, {"dnsproxy-1": OLDER}, {}),
        ("proxy", 1, {"relay-1": OLDER}, {}),
    ]


async def test_a_pod_that_can_be_reached_is_asked_directly() -> None:
    with open_admin_port(Endpoint("127.0.0.1", 0)) as admin:
        assert admin.endpoint is not None
        serve = functools.partial(admin.serve, prefix="dnsproxy", readiness=lambda: Readiness(True, ""), page=str)
        async with trio.open_nursery() as nursery:
            await nursery.start(serve)
            versions = await read([pods("dnsproxy", "dnsproxy-1", port=admin.endpoint.port)])
            nursery.cancel_scope.cancel()
    (one,) = versions.programs
    assert one.builds == {"dnsproxy-1": own_build()}


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        pytest.param(None, 403, "403", id="no right to ask through the API server"),
        pytest.param("up 1\n", None, "its metrics have no dnsproxy_build_info", id="an older version"),
        pytest.param(metrics("proxy"), None, "its metrics have no dnsproxy_build_info", id="another program"),
        pytest.param("<html>", None, "its metrics have no dnsproxy_build_info", id="a page"),
    ],
)
async def test_a_pod_without_a_build_is_a_reason(answer: str | None, code: int | None, reason: str, port: int) -> None:
    path = proxied("dnsproxy-1", port)
    answers = {} if answer is None else {path: answer}
    versions = await read([pods("dnsproxy", "dnsproxy-1", port=port)], answers, status={path: code} if code else {})
    (one,) = versions.programs
    assert (one.pods, one.builds) == (1, {})
    assert reason in one.unread["dnsproxy-1"]


async def test_pods_that_are_not_ready_are_not_asked(port: int) -> None:
    assert (await read([pods("dnsproxy", "dnsproxy-1", port=port, ready=False)])).programs == ()


async def test_of_many_pods_a_few_are_asked(port: int) -> None:
    names = [f"dnsproxy-{number}" for number in range(9)]
    answers = {proxied(name, port): metrics("dnsproxy") for name in names}
    (one,) = (await read([pods("dnsproxy", *names, port=port)], answers)).programs
    assert (one.pods, len(one.builds)) == (9, MOST_PODS)


@pytest.mark.parametrize(("code", "said"), [(403, "not allowed to list endpointslices"), (404, "")])
async def test_without_a_list_of_pods_nothing_is_stated(code: int, said: str) -> None:
    versions = await read([], status={SLICES: code})
    assert versions.programs == ()
    assert said in versions.unknown
    assert bool(versions.unknown) is bool(said)


@pytest.mark.parametrize(
    "labels", ['version="1.0.0"', 'version="1.0.0",revision=""', 'version="1.0.0",revision="0a', 'x="",version="1.0.0"']
)
def test_a_label_that_is_missing_is_unknown(labels: str) -> None:
    assert parse_build(f"proxy_build_info{{{labels}}} 1", "proxy") == Build("1.0.0", UNKNOWN, UNKNOWN)
