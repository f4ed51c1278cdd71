"""`dnsproxy serve --ownership` as a whole: an API server, an upstream, the table, and reports of unverified names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.hostnames.ownership import Mode, OwnershipSettings
from dnsproxy.hostnames.ownership_schedule import OwnershipPace
from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.service import Bound
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.serve.test_ownership_watch import reply_to
from tests.kit.faulty_upstream import FaultyUpstream, Step, faulty_upstream
from tests.kit.live_api import LiveApi
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings

BALANCER, ELSEWHERE, RELAY = "192.0.2.1", "198.51.100.9", "10.96.7.7"
QUICK: Final = OwnershipPace(gap=0.001, every=0.1, confirm=0.01, doubted=0.02)
OWN, STOLEN = "own.example.org", "login.example.com"


def public(asked: bytes) -> list[Step]:
    return [reply_to(asked, [ELSEWHERE] if b"\x05login" in asked else [BALANCER])]


def ingress(name: str, *hosts: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": host} for host in hosts]},
        "status": {"loadBalancer": {"ingress": [{"ip": BALANCER}]}},
    }


@asynccontextmanager
async def api_server(tmp_path: Path) -> AsyncIterator[tuple[LiveApi, str]]:
    """The API server over TCP, and a kubeconfig for it."""
    api = LiveApi()
    api.provide("networking.k8s.io/v1", "ingresses", "ingressclasses")
    api.put("networking.k8s.io", "ingresses", ingress("own", OWN))
    api.put("networking.k8s.io", "ingresses", ingress("thief", STOLEN))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, api.serve, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
        )
        yield api, str(kubeconfig)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def running_server(tmp_path: Path, mode: Mode, **rest: Any) -> AsyncIterator[tuple[Bound, FaultyUpstream]]:
    async with api_server(tmp_path) as (_, kubeconfig), faulty_upstream(public, public) as upstream:
        wanted = wanted_settings(kubeconfig, upstream.endpoint, mode, **rest)
        async with serving(wanted) as bound:
            # Enforced, the server is ready after the first lookups.
            await until(bound, "/readyz", f"ready, {2 if mode is Mode.ENFORCE and not rest else 3} names")
            yield bound, upstream


def wanted_settings(kubeconfig: str, upstream: Endpoint, mode: Mode, **rest: Any) -> ServeSettings:
    return settings(
        cluster=ClusterSettings(IngressOptions(), kubeconfig=kubeconfig),
        forwarding=ForwardSettings((upstream,), detect_loops=False),
        targets=Targets((RELAY,)),
        ownership=OwnershipSettings(mode, pace=QUICK, **rest),
    )


async def until(bound: Bound, path: str, text: str) -> str:
    """Wait until a page contains the text; each round waits for its answer."""
    with trio.fail_after(10):
        while True:
            page = (await get(bound.admin, path))[1]
            if text in page:
                return page


async def test_enforced_the_stolen_name_is_answered_as_in_public_and_the_own_one_through_the_relay(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, Mode.ENFORCE) as (bound, _):
        page = await until(bound, "/left-out", "--ownership enforce")
        assert "Excluded, 1 to 1 of 1" in page
        assert addresses_in(await ask(bound.dns[0], STOLEN)) == [ELSEWHERE]
        assert addresses_in(await ask(bound.dns[0], OWN)) == [RELAY]
        explanation = (await get(bound.admin, f"/explain?name={STOLEN}"))[1]
        assert f"its public record points elsewhere ({ELSEWHERE}), --ownership enforce" in explanation


async def test_warned_it_is_answered_and_shown_everywhere(tmp_path: Path) -> None:
    async with running_server(tmp_path, Mode.WARN) as (bound, _):
        await until(bound, "/in-doubt", "Unverified, 1 to 1 of 1")
        assert addresses_in(await ask(bound.dns[0], STOLEN)) == [RELAY]
        for path in ("/in-doubt", "/names", "/table", f"/explain?name={STOLEN}"):
            assert f"its public record points elsewhere ({ELSEWHERE})" in (await get(bound.admin, path))[1]
        metrics = await until(bound, "/metrics", "dnsproxy_ownership_doubted_names 1.0")
        assert 'dnsproxy_ownership_looks_total{result="record"}' in metrics
        assert STOLEN not in metrics


async def test_off_no_record_is_looked_up(tmp_path: Path) -> None:
    async with running_server(tmp_path, Mode.OFF) as (bound, upstream):
        assert addresses_in(await ask(bound.dns[0], STOLEN)) == [RELAY]
        await ask(bound.dns[0], "other.example.net")
        assert [len(upstream.asked_datagrams), len(upstream.asked_streams)] == [1, 0]
        assert "ownership" not in (await get(bound.admin, "/metrics"))[1]


@pytest.mark.parametrize("mode", [Mode.WARN, Mode.ENFORCE], ids=lambda mode: mode.value)
async def test_a_trusted_zone_is_let_be(mode: Mode, tmp_path: Path) -> None:
    async with running_server(tmp_path, mode, zones=("example.com",)) as (bound, upstream):
        await upstream.wait_asked(streams=20)
        assert addresses_in(await ask(bound.dns[0], STOLEN)) == [RELAY]
        assert b"\x05login" not in b"".join(asked.message for asked in upstream.asked_streams)
