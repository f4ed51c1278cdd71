"""The watcher against an API server in memory that allows no watch: regular looks notice all changes.

followers.py and program.py are tested in tests/peers/test_watch_apiserver.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Any

import httpx2
import pytest
import structlog
import trio.testing

from dnsproxy.cluster_dns.exchange import Patience
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.install.run.survey import InstallRequest
from dnsproxy.install.watch.state_machine import HELD_HEARTBEAT, Standing
from dnsproxy.install.watch.watcher import Watcher
from dnsproxy.install.watch.watcher_status import WatchStatus
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.cluster_dns.test_own_service import pods, service
from tests.dnsproxy.cluster_dns.test_rewrite_place import tenant
from tests.dnsproxy.corefile.shapes import installed as stanza_with
from tests.dnsproxy.install.run.test_applying import Meddling, client_of, cluster, corefile, install_request, touch
from tests.dnsproxy.install.run.test_own_rewrites import pod
from tests.dnsproxy.install.run.test_own_zones import serving as admin_ports
from tests.dnsproxy.install.run.test_upstream_comparison import reporting
from tests.kit.faulty_upstream import faulty_upstream, silence
from tests.kit.manifest_api import FakeApi, respond
from tests.kit.manifest_cluster import pick
from tests.kit.rewriting_dns import rewriting
from tests.kit.serve_process import serving

FORBIDDEN = json.dumps({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no rule"}).encode()


@dataclass
class Watched(Meddling):
    """Discovery and writes are answered, the lists and watches of followers are not allowed, and Events are kept."""

    events: list[Any] = field(default_factory=list)
    events_forbidden: bool = False
    away: bool = False
    refused: set[str] = field(default_factory=set)
    """The paths that followers asked for."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        if self.away:
            raise httpx2.ConnectError("away")
        # A follower lists in a task of its own; its requests are otherwise equal to those of discovery.
        if "watch" in request.url.params or trio.lowlevel.current_task().name.endswith(".read_pages"):
            self.refused.add(request.url.path)
            return respond(403, FORBIDDEN)
        if request.url.path.endswith("/events"):
            if self.events_forbidden:
                return respond(403, FORBIDDEN)
            self.events.append(json.loads(request.content))
            return respond(201, b"{}")
        return await super().handle_async_request(request)

    @property
    def reasons(self) -> list[str]:
        return [one["reason"] for one in self.events]


@pytest.fixture(autouse=True)
def no_coredns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has no mock clock."""
    monkeypatch.setenv("PATH", "")


async def ask_on_loopback(
    endpoints: Sequence[Endpoint], zones: Sequence[str], patience: Patience | None = None
) -> tuple[ProbeResult, ...]:
    """Probes, of which only those to loopback leave; all other servers are silent, and that at once."""
    here = [one for one in endpoints if ip_address(one.host).is_loopback]
    there = [ProbeResult(one, zone, ()) for one in endpoints if one not in here for zone in zones]
    return (*await ask_all(here, zones, patience), *there)


@pytest.fixture(autouse=True)
def no_cluster_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses of the corpus may be routed from here, and the mock clock does not wait for packets."""
    monkeypatch.setattr("dnsproxy.install.run.upstream_comparison.ask_all", ask_on_loopback)


Clock = trio.testing.MockClock
HOURS = 50_000
RELAY_NAME = {"relay.switchback.svc.cluster.local.": ["10.96.0.5"]}


@asynccontextmanager
async def watching(transport: Watched, request: InstallRequest | None = None) -> AsyncIterator[WatchStatus]:
    status = WatchStatus(asks=False)
    # The deadline of each test (tests/conftest.py) is a minute of the mock clock, in which no heart beats.
    with trio.fail_after(HOURS) as scope:
        scope.shield = True
        async with client_of(transport) as client, trio.open_nursery() as nursery:
            nursery.start_soon(Watcher(client, request or install_request(), status, dns=None, seconds=0).run)
            yield status
            nursery.cancel_scope.cancel()


@contextmanager
def real_servers(clock: Clock, *, rate: float) -> Iterator[None]:
    """The mock clock does not jump while the servers of a test answer, and passes at this rate.

    They have to outlive the minute that a test has of this clock: without them, the watcher would wait for hours.
    """
    clock.autojump_threshold, clock.rate = inf, rate
    with trio.fail_after(HOURS) as scope:
        scope.shield = True
        yield


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(HOURS):
        while not condition():  # noqa: ASYNC110  # of the mock clock, and the watcher tells nobody
            await trio.sleep(0.5)


def is_standing(status: WatchStatus, standing: Standing) -> Callable[[], bool]:
    return lambda: status.state.standing is standing


async def test_it_installs_and_mends_and_writes_no_more_than_that(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster()))
    stock = corefile(transport.api)
    async with watching(transport) as status:
        await until(is_standing(status, Standing.INSTALLED))
        assert (transport.writes, status.state.repairs, status.why_not_ready()) == (1, 0, "")
        installed = corefile(transport.api)
        await trio.sleep(1000)
        assert transport.writes == 1
        touch(transport.api, Corefile=stock)
        await until(lambda: corefile(transport.api) == installed)
        await until(is_standing(status, Standing.INSTALLED))
    assert (transport.writes, status.state.repairs, status.state.undone) == (2, 1, 1)
    assert transport.reasons == ["StanzaInstalled", "StanzaRepaired"]
    assert transport.events[0]["regarding"]["name"] == "coredns"
    # No follower listed anything: regular looks noticed all of this.
    assert any(path.endswith("/deployments") for path in transport.refused)


async def test_who_undoes_each_write_is_told_and_not_fought(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    stock = corefile(FakeApi(cluster()))

    def undo(api: FakeApi, request: httpx2.Request) -> None:
        if request.method == "PATCH":
            touch(api, Corefile=stock)

    transport = Watched(FakeApi(cluster()), after=undo)
    async with watching(transport) as status:
        await until(is_standing(status, Standing.UNDONE))
        assert "undone: " in status.why_not_ready()
        await trio.sleep(1800)
        assert transport.writes <= 4 + 7 + 1800 / 300
        transport.after = None
        await until(is_standing(status, Standing.INSTALLED))
    assert "StanzaUndone" in transport.reasons


async def test_a_watcher_whose_twin_has_put_the_stanza_in_shows_that_it_stands(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    stock = corefile(FakeApi(cluster()))
    installed: list[str] = []

    def undo(api: FakeApi, request: httpx2.Request) -> None:
        if request.method == "PATCH":
            installed.append(corefile(api))
            touch(api, Corefile=stock)

    transport = Watched(FakeApi(cluster()), after=undo)
    async with watching(transport) as status:
        await until(lambda: status.state.standing is Standing.UNDONE and status.state.held > 60)
        assert status.loaded is None
        writes, begun = transport.writes, trio.current_time()
        transport.after = None
        touch(transport.api, Corefile=installed[-1])
        await until(is_standing(status, Standing.INSTALLED))
    assert trio.current_time() - begun <= HELD_HEARTBEAT + 1
    assert (transport.writes, status.why_not_ready()) == (writes, "")


async def test_a_config_map_that_was_deleted_and_created_anew_is_not_made_to_wait(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    stock = corefile(FakeApi(cluster()))

    def undo(api: FakeApi, request: httpx2.Request) -> None:
        if request.method == "PATCH":
            touch(api, Corefile=stock)

    transport = Watched(FakeApi(cluster()), after=undo)
    pick(transport.api.objects, "ConfigMap", "coredns")["metadata"]["uid"] = "first"
    async with watching(transport) as status:
        await until(lambda: status.state.standing is Standing.UNDONE and status.state.held > 60)
        begun, transport.after = trio.current_time(), None
        pick(transport.api.objects, "ConfigMap", "coredns")["metadata"]["uid"] = "second"
        await until(is_standing(status, Standing.INSTALLED))
    assert trio.current_time() - begun <= HELD_HEARTBEAT + 1


async def test_an_owner_that_would_undo_it_is_a_state_that_says_print_and_no_end(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster()))
    async with watching(transport) as status:
        await until(is_standing(status, Standing.INSTALLED))
        written = transport.writes
        pick(transport.api.objects, "ConfigMap", "coredns")["metadata"]["managedFields"] = [
            {"manager": "eks", "operation": "Apply", "time": "2026-01-01T00:00:00Z"}
        ]
        pick(transport.api.objects, "ConfigMap", "coredns")["metadata"]["labels"] = {
            "eks.amazonaws.com/component": "coredns"
        }
        await until(is_standing(status, Standing.REFUSED))
        assert "dnsproxy install --method print" in status.why_not_ready()
        assert transport.writes == written
        metadata = pick(transport.api.objects, "ConfigMap", "coredns")["metadata"]
        del metadata["managedFields"], metadata["labels"]
        await until(is_standing(status, Standing.INSTALLED))
    assert "StanzaRefused" in transport.reasons


async def test_what_is_not_allowed_is_a_state_that_names_it_until_it_is_allowed(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster(), forbidden_writes=["/configmaps/coredns"]))
    async with watching(transport) as status:
        await until(is_standing(status, Standing.UNKNOWN))
        assert "not allowed to patch configmaps coredns in namespace kube-system" in status.why_not_ready()
        transport.api.forbidden_writes = []
        await until(is_standing(status, Standing.INSTALLED))
        assert status.why_not_ready() == ""
    assert transport.reasons[0] == "InstallFailed"
    assert transport.events[0]["regarding"]["name"] == "coredns"
    assert "not allowed to patch configmaps coredns" in transport.events[0]["note"]


async def test_a_failure_before_anything_was_read_is_an_event_about_dnsproxys_service(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster(), forbidden=["/services/kube-dns"]))
    async with watching(transport) as status:
        await until(is_standing(status, Standing.UNKNOWN))
        # The API server deletes an Event after an hour, so there is a new one while the failure lasts.
        await until(lambda: len(transport.reasons) >= 3)
    assert set(transport.reasons) == {"InstallFailed"}
    regarding = transport.events[0]["regarding"]
    assert (regarding["kind"], regarding["namespace"], regarding["name"]) == ("Service", "switchback", "dnsproxy")
    assert "not allowed to get services kube-dns" in transport.events[0]["note"]


async def test_an_api_server_that_is_away_changes_nothing(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster()))
    async with watching(transport) as status:
        await until(is_standing(status, Standing.INSTALLED))
        transport.away = True
        await until(is_standing(status, Standing.UNKNOWN))
        assert status.why_not_ready() == ""
        transport.away = False
        await until(is_standing(status, Standing.INSTALLED))
    assert (transport.writes, status.state.repairs) == (1, 0)


async def test_events_that_are_not_allowed_are_told_once_and_cost_nothing_else(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    transport = Watched(FakeApi(cluster()), events_forbidden=True)
    stock = corefile(transport.api)
    with structlog.testing.capture_logs() as logs:
        async with watching(transport) as status:
            await until(is_standing(status, Standing.INSTALLED))
            touch(transport.api, Corefile=stock)
            await until(lambda: status.state.repairs == 1)
            await until(is_standing(status, Standing.INSTALLED))
    assert len([one for one in logs if one["event"] == "cannot make an Event"]) == 1


async def test_hostnames_of_the_running_dnsproxy_outside_the_named_zones_are_on_the_page(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    hosts = ("--host", "a.example.net=192.0.2.1", "--host", "a.example.org=192.0.2.1")
    with real_servers(autojump_clock, rate=1.0), serving(tmp_path, *hosts) as own:
        request = install_request(None, "example.org", admin=own.admin_endpoint)
        async with watching(Watched(FakeApi(cluster())), request) as status:
            await until(is_standing(status, Standing.INSTALLED))
            assert (status.zones, status.coverage.hosts) == ("example.org", ("a.example.net",))


async def test_of_many_hostnames_outside_the_named_zones_a_few_are_logged(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    hosts = [argument for number in range(50) for argument in ("--host", f"a{number}.example.net=192.0.2.1")]
    with (
        structlog.testing.capture_logs() as logs,
        real_servers(autojump_clock, rate=1.0),
        serving(tmp_path, *hosts) as own,
    ):
        request = install_request(None, "example.org", admin=own.admin_endpoint)
        async with watching(Watched(FakeApi(cluster())), request) as status:
            await until(is_standing(status, Standing.INSTALLED))
    (line,) = (one for one in logs if one["event"] == "hostnames outside the zones")
    assert (len(line["hosts"]), line["count"]) == (20, 50)


async def test_the_names_of_a_tenant_follow_the_table_without_a_fight(autojump_clock: Clock) -> None:
    own = pod("a.example.org")
    transport = Watched(FakeApi([*tenant(), service(), pods(True)]))

    def names() -> list[str]:
        text = (pick(transport.api.objects, "ConfigMap", "coredns-custom").get("data") or {}).get("switchback.override")
        return [line.split()[4] for line in (text or "").splitlines() if " exact " in line]

    def shows(some: list[str]) -> bool:
        return names() == [f"{one}." for one in some]

    with real_servers(autojump_clock, rate=4.0):
        async with (
            admin_ports(own, paths=("/rewrites",)) as admins,
            faulty_upstream(rewriting((), RELAY_NAME)) as server,
            watching(transport, install_request(admin=admins[0], dns=server.endpoint)) as status,
        ):
            await until(is_standing(status, Standing.INSTALLED))
            assert (names(), status.names) == (["a.example.org."], "1 names, each to its Service")
            for some in (["a.example.org", "b.example.org"], ["b.example.org"], [], ["c.example.org"]):
                own.body, own.zones = pod(*some).body, tuple(some)
                await until(partial(shows, some))
            await until(is_standing(status, Standing.INSTALLED))
            assert (status.state.undone, status.left_out, status.why_not_ready()) == (0, 0, "")
    assert set(transport.reasons) == {"StanzaInstalled", "StanzaMoved"}
    assert transport.events[1]["note"].startswith("the rewrite lines follow dnsproxy's table: 2 names, each to its")


async def test_a_stanza_with_both_addresses_is_changed_once_and_stays(autojump_clock: Clock) -> None:
    del autojump_clock  # nobody waits for the heartbeat
    api = FakeApi(cluster())
    data = pick(api.objects, "ConfigMap", "coredns")["data"]
    data["Corefile"] = stanza_with(data["Corefile"], "10.96.0.53", "fd00::53").new
    transport = Watched(api)
    async with watching(transport) as status:
        await until(is_standing(status, Standing.INSTALLED))
        await trio.sleep(1000)
        assert (transport.writes, status.state.repairs, status.state.undone) == (1, 0, 0)
    assert "forward . 10.96.0.53 /etc/resolv.conf" in corefile(api)


@pytest.mark.parametrize("accepts", [False, True])
async def test_upstreams_that_differ_are_refused_before_the_write_unless_accepted(
    autojump_clock: Clock, accepts: bool
) -> None:
    transport = Watched(FakeApi(cluster()))
    with real_servers(autojump_clock, rate=20.0):
        async with (
            faulty_upstream(reporting(". 192.0.2.9"), silence) as own,
            watching(transport, install_request(addresses=(own.endpoint,), accepts_upstreams=accepts)) as status,
        ):
            await until(is_standing(status, Standing.INSTALLED if accepts else Standing.REFUSED))
            assert transport.writes == accepts
            why = "names of . went to /etc/resolv.conf, and dnsproxy forwards them to 192.0.2.9"
            assert accepts or why in status.why_not_ready()
    assert transport.reasons == ["StanzaInstalled" if accepts else "StanzaRefused"]
