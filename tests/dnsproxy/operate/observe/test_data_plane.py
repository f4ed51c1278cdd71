"""What carries connections, read again and again: a failed reading changes nothing, and says what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.doctor.collect.reader import REQUEST_SECONDS
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.operate.observe import data_plane
from dnsproxy.operate.observe.data_plane import DataPlaneReader
from dnsproxy.operate.observe.observation import Observation, Places
from tests.dnsproxy.doctor.collect.cluster_api import DAEMON_SETS, MAPS, Api, workload

FELIX: Final = "/apis/crd.projectcalico.org/v1/felixconfigurations/default"
CILIUM_CONFIG: Final = f"{MAPS}/cilium-config"
ANTREA_CONFIG: Final = f"{MAPS}/antrea-config"
PROXY: Final = workload("kube-proxy", image="registry.k8s.io/kube-proxy:v1.34.4")


def config(name: str, **data: str) -> Any:
    return {"metadata": {"name": name}, "data": {key.replace("_", "-"): value for key, value in data.items()}}


def antrea() -> Api:
    settings = {"antrea-agent.conf": "antreaProxy:\n  proxyLoadBalancerIPs: false\n"}
    daemon_sets = [workload("antrea-agent", image="antrea/antrea-agent-ubuntu:v2.1.0")]
    return Api({DAEMON_SETS: daemon_sets, ANTREA_CONFIG: {"metadata": {"name": "x"}, "data": settings}})


def cilium() -> Api:
    """A version that ignores ipMode only with this setting, beside the kube-proxy that it replaces."""
    settings = config("cilium-config", kube_proxy_replacement="true", enable_experimental_lb="true")
    daemon_sets = [workload("cilium", image="quay.io/cilium/cilium:v1.17.5"), PROXY]
    return Api({DAEMON_SETS: daemon_sets, CILIUM_CONFIG: settings, f"{MAPS}/kube-proxy": config("kube-proxy")})


def calico() -> Api:
    felix = {"metadata": {"name": "default"}, "spec": {"bpfEnabled": True}}
    return Api({DAEMON_SETS: [workload("calico-node", image="calico/node:v3.30.1"), PROXY], FELIX: felix})


def k3s() -> Api:
    return Api({"/version": {"gitVersion": "v1.34.4+k3s1"}, DAEMON_SETS: []})


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has its deadline on the same clock."""
    monkeypatch.setattr(data_plane, "EVERY", 1.0)
    monkeypatch.setattr(data_plane, "RETRY", 1.0)


async def next_reading(*, silent: bool = False) -> None:
    """Wait until the API server was read again, or has not answered in time."""
    await trio.sleep(2.0 + (REQUEST_SECONDS if silent else 0.0))


@asynccontextmanager
async def reading(api: Api, *, silent: bool = False) -> AsyncIterator[DataPlaneReader]:
    """A reader after its first reading."""
    async with api.client() as client, trio.open_nursery() as nursery:
        reader = DataPlaneReader(client, lambda: None)
        nursery.start_soon(reader.run)
        await next_reading(silent=silent)
        yield reader
        nursery.cancel_scope.cancel()


def break_with(api: Api, path: str, fault: int | str) -> None:
    """An answer with this status, this body, or `silence`."""
    if isinstance(fault, int):
        api.status[path] = fault
    elif fault == "silence":
        api.delay = lambda asked: 100.0 if asked == path else 0.0
    else:
        api.objects[path] = fault


class Part(NamedTuple):
    """One request of a reading."""

    make: Callable[[], Api]
    """The cluster."""
    path: str
    what: str
    """As a failure names it."""


PARTS: Final = [
    pytest.param(Part(antrea, DAEMON_SETS, "list daemonsets.apps"), id="the DaemonSets"),
    pytest.param(
        Part(antrea, ANTREA_CONFIG, "get configmaps antrea-config in namespace kube-system"), id="Antrea's settings"
    ),
    pytest.param(Part(cilium, DAEMON_SETS, "list daemonsets.apps"), id="the DaemonSets of Cilium"),
    pytest.param(
        Part(cilium, CILIUM_CONFIG, "get configmaps cilium-config in namespace kube-system"), id="Cilium's settings"
    ),
    pytest.param(
        Part(cilium, f"{MAPS}/kube-proxy", "get configmaps kube-proxy in namespace kube-system"),
        id="kube-proxy's settings",
    ),
    pytest.param(Part(calico, FELIX, "get felixconfigurations default"), id="Calico's settings"),
    pytest.param(Part(k3s, DAEMON_SETS, "list daemonsets.apps"), id="no DaemonSets"),
]
ANSWERS: Final = (403, 429, 500, 503, "<html>a proxy</html>", "{}", '{"metadata": 5}')
# Silence lasts: beside the others it would meet the deadline of a test.
with_every_fault = pytest.mark.parametrize("faults", [ANSWERS, ("silence",)], ids=["bad answers", "silence"])


@with_every_fault
@pytest.mark.parametrize("part", PARTS)
async def test_what_was_read_last_stays_after_any_failure(
    part: Part,
    faults: tuple[int | str, ...],
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    api = part.make()
    async with reading(api) as reader:
        before = reader.plane
        assert (before is not None, reader.reason) == (True, "")
        objects = dict(api.objects)
        for fault in faults:
            break_with(api, part.path, fault)
            await next_reading(silent=fault == "silence")
            assert reader.plane == before, fault
            assert part.what in reader.reason, fault
            assert ("operate's account needs this right" in reader.reason) is (fault == 403), fault
            api.status, api.objects, api.delay = {}, dict(objects), lambda _: 0.0
            await next_reading(silent=fault == "silence")
            assert (reader.plane, reader.reason) == (before, ""), fault


@with_every_fault
@pytest.mark.parametrize("part", PARTS)
async def test_there_is_no_plane_before_a_whole_reading(
    part: Part,
    faults: tuple[int | str, ...],
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    for fault in faults:
        api = part.make()
        break_with(api, part.path, fault)
        async with reading(api, silent=fault == "silence") as reader:
            assert reader.plane is None, fault
            assert part.what in reader.reason, fault


@pytest.mark.parametrize("fault", [403, 404, 500, 503, "silence", "<html>a proxy</html>", "{}", '{"gitVersion": 5}'])
@pytest.mark.parametrize("make", [k3s, cilium])
async def test_a_version_that_was_not_read_is_a_failure_too(
    make: Callable[[], Api],
    fault: int | str,
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    api = make()
    async with reading(api) as reader:
        before = reader.plane
        break_with(api, "/version", fault)
        await next_reading(silent=fault == "silence")
        assert reader.plane == before
        assert reader.reason


@pytest.mark.parametrize("path", ["/version", DAEMON_SETS, CILIUM_CONFIG])
async def test_credentials_that_are_refused_change_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # In real time: the credentials are read again in a thread.
    monkeypatch.setattr(data_plane, "EVERY", 0.01)
    api = cilium()
    async with api.client() as client, trio.open_nursery() as nursery:
        reader = DataPlaneReader(client, lambda: None)
        nursery.start_soon(reader.run)
        while reader.reason:  # noqa: ASYNC110  # it gives no signal
            await trio.sleep(0.01)
        before = reader.plane
        assert before is not None
        api.status = {path: 401}
        while "could not be asked" not in reader.reason:  # noqa: ASYNC110  # it gives no signal
            await trio.sleep(0.01)
        assert reader.plane == before
        nursery.cancel_scope.cancel()


async def test_a_404_is_an_answer(autojump_clock: trio.testing.MockClock) -> None:  # noqa: ARG001
    api = antrea()
    takes: list[Answer] = []
    async with reading(api) as reader:
        for missing in ([], [ANTREA_CONFIG]):
            api.status = dict.fromkeys(missing, 404)
            await next_reading()
            assert (reader.plane is not None, reader.reason) == (True, "")
            takes += [reader.plane.takes_addresses] if reader.plane is not None else []
    assert takes == [Answer.NO, Answer.YES]


async def test_a_tenants_daemon_set_changes_nothing_and_its_settings_are_not_read(
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    theirs = "/api/v1/namespaces/tenant-a/configmaps/antrea-config"
    api = Api({DAEMON_SETS: [PROXY]})
    async with reading(api) as reader:
        before = reader.plane
        api.objects[DAEMON_SETS] = [PROXY, workload("antrea-agent", namespace="tenant-a", image="localhost/x:v2")]
        settings = {"antrea-agent.conf": "proxyLoadBalancerIPs: false\n"}
        api.objects[theirs] = {"metadata": {"name": "antrea-config"}, "data": settings}
        # Even one that cannot be read is none of ours.
        for status in (200, 403, 503):
            api.status = {theirs: status} if status != 200 else {}
            await next_reading()
            assert (reader.plane, reader.reason) == (before, "")
    assert theirs not in {path for _, path in api.asked}


async def test_a_lasting_failure_is_logged_once_and_a_change_is_told(
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    api = cilium()
    api.status = {CILIUM_CONFIG: 403}
    with capture_logs() as logs:
        async with reading(api) as reader:
            await next_reading()
            api.status = {}
            await next_reading()
            assert reader.plane is not None
    assert [(one["log_level"], one["event"]) for one in logs] == [
        ("warning", "the data plane was not read, what was read last stays"),
        ("info", "data plane"),
    ]
    assert "cilium-config" in logs[0]["cause"]


async def test_what_was_not_read_is_missing_in_the_status_but_hides_no_deletion(
    autojump_clock: trio.testing.MockClock,  # noqa: ARG001
) -> None:
    api = antrea()
    api.status = {ANTREA_CONFIG: 403}
    async with api.client() as client, trio.open_nursery() as nursery:
        seen = Observation(client, Places(ObjectRef("switchback", "dnsproxy"), "switchback", ()), lambda: None)
        assert "the data plane: not read yet" in seen.missing
        nursery.start_soon(seen.plane.run)
        await next_reading()
        (told,) = [one for one in seen.missing if one.startswith("the data plane: ")]
        assert "get configmaps antrea-config in namespace kube-system: forbidden: " in told
        assert told.endswith("operate's account needs this right")
        assert (seen.facts().plane, seen.facts().why_no_plane) == (None, told.removeprefix("the data plane: "))
        for one in seen.statuses:
            one.synced = True
        seen.subjects.doubt = ""
        assert list(seen.missing) == [told]
        assert seen.facts().complete
        api.status = {}
        await next_reading()
        assert list(seen.missing) == []
        assert seen.facts().plane is not None
        nursery.cancel_scope.cancel()
