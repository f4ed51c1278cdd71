"""All pods of a Service through the API server: who is listened to, what fails alone, and what ends the command.

pod_stream.py is tested here too. The API server is in memory; tests/peers has the real one.
"""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock

from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.tap.event import TapEvent, format_dropped_json, format_event_json
from dnsproxy.tap.filters import TapFilter
from dnsproxy.tap_command import service
from dnsproxy.tap_command.request import ServicePods
from dnsproxy.tap_command.screen import Screen
from dnsproxy.tap_command.service import ServiceWatch
from dnsproxy.tap_command.viewer import Viewer
from sidecar.values.errors import StartError
from sidecar.values.tally import Tally
from tests.kit.faulty_api import CUT, SILENCE, Answer, Part, client_in_memory, failure, status_object
from tests.kit.live_api import LiveApi

NAMESPACE: Final = "switchback"
SLICES: Final = ("discovery.k8s.io", "endpointslices")
PATHS: Final = "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices"
SERVICE: Final = "/api/v1/namespaces/switchback/services/dnsproxy"


class Seen(Viewer):
    """Keeps what would be shown."""

    def __init__(self) -> None:
        super().__init__(Screen(json=False), Tally(), lambda: None)
        self.events: list[TapEvent] = []
        self.notes: list[str] = []

    def show(self, event: TapEvent) -> None:
        self.events.append(event)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(one.pod, one.qname) for one in self.events]


def line(second: int, name: str) -> bytes:
    time = f"2026-11-26T12:00:{second:02}.000000Z"
    return format_event_json(TapEvent(time, "192.0.2.7", 53, "udp", name, "A", "table", 0.001))


def slice_of(*pods: str, name: str = "dnsproxy-x") -> dict[str, Any]:
    endpoints = [
        {
            "addresses": [f"192.0.2.{number}"],
            "conditions": {"ready": True},
            "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": pod},
        }
        for number, pod in enumerate(pods, 1)
    ]
    labels = {"kubernetes.io/service-name": "dnsproxy"}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []}


def path_of(pod: str, port: int = 8081) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:{port}/proxy/tap"


def cluster_of(*pods: str, **lines: Any) -> LiveApi:
    """A Service with these pods; each says its lines."""
    api = LiveApi()
    api.provide("discovery.k8s.io/v1", "endpointslices")
    api.put(*SLICES, slice_of(*pods))
    api.faults[SERVICE] = Answer([json.dumps({"metadata": {"name": "dnsproxy"}, "spec": {}}).encode()])
    for pod, parts in lines.items():
        api.faults[path_of(pod)] = parts if isinstance(parts, Answer) else Answer((b"\n", *parts))
    return api


@asynccontextmanager
async def watching(api: LiveApi, wanted: TapFilter | None = None) -> AsyncIterator[tuple[Seen, ServiceWatch]]:
    seen = Seen()
    watch = ServiceWatch(ServicePods(ObjectRef(NAMESPACE, "dnsproxy")), wanted or TapFilter(), seen)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        nursery.start_soon(watch.watch, client)
        yield seen, watch
        nursery.cancel_scope.cancel()


async def test_all_pods_are_merged_by_time(autojump_clock: MockClock) -> None:
    api = cluster_of(
        "a", "b", a=[line(1, "one"), 0.2, line(4, "four"), SILENCE], b=[0.1, line(2, "two") + line(3, "three"), SILENCE]
    )
    async with watching(api) as (seen, watch):
        await trio.sleep(2)
        assert watch.unheard == ""
    assert seen.names == [("a", "one"), ("b", "two"), ("b", "three"), ("a", "four")]
    assert seen.notes == []


async def test_the_end_shows_what_still_waits(autojump_clock: MockClock) -> None:
    async with watching(cluster_of("a", a=[line(1, "one"), SILENCE])) as (seen, _):
        await trio.sleep(0.3)
        assert seen.names == []
    assert seen.names == [("a", "one")]


async def test_the_filter_goes_to_each_pod(autojump_clock: MockClock) -> None:
    api = cluster_of("a", a=[SILENCE])
    async with watching(api, TapFilter(names=("*.example.org",), types=(28,))):
        await trio.sleep(1)
    (asked,) = [one for one in api.asked if one.path == path_of("a")]
    assert asked.params == {"name": "*.example.org", "type": "AAAA"}


async def test_pods_that_come_are_listened_to_and_those_that_go_are_not(autojump_clock: MockClock) -> None:
    api = cluster_of("a", a=[line(1, "one"), 10.0, line(9, "gone"), SILENCE], b=[line(2, "two"), SILENCE])
    async with watching(api) as (seen, _):
        await trio.sleep(2)
        api.put(*SLICES, slice_of("b"))
        await trio.sleep(20)
    assert seen.names == [("a", "one"), ("b", "two")]
    assert api.asked_for(path_of("a")) == 1


async def test_a_service_without_a_ready_pod_is_noted_and_waited_for(autojump_clock: MockClock) -> None:
    api = cluster_of(b=[line(2, "two"), SILENCE])
    async with watching(api) as (seen, watch):
        await trio.sleep(2)
        assert seen.notes == ["no pod of switchback/dnsproxy is ready"]
        assert watch.unheard == "--service switchback/dnsproxy: no pod of switchback/dnsproxy is ready"
        api.put(*SLICES, slice_of("b"))
        await trio.sleep(2)
        assert watch.unheard == ""
    assert seen.names == [("b", "two")]


FAILURES: Final = [
    pytest.param(
        Answer([b"the tap is off (--tap off)\n"], 403), "pod bad: the tap is off (--tap off)", id="the tap is off"
    ),
    pytest.param(
        Answer([b"There is nothing here; try / /healthz\n"], 404),
        "pod bad: its server has no /tap; it is no `dnsproxy serve`, or an older one",
        id="an older server",
    ),
    pytest.param(failure(404, "NotFound"), "pod bad: 404: so it goes", id="no such pod"),
    pytest.param(failure(503, "ServiceUnavailable"), "pod bad: 503: so it goes", id="no route"),
    pytest.param(Answer([b"hello\n"]), "the answer is not that of a `dnsproxy serve`", id="no JSON"),
    pytest.param(Answer([b"[" * 100_000 + b"\n"]), "the answer is not that of a `dnsproxy serve`", id="deep JSON"),
    pytest.param(Answer([b"\n"]), "pod bad: its server ended the answer", id="it ends"),
    pytest.param(Answer([b"\n", CUT]), "pod bad: ", id="it is cut"),
    pytest.param(Answer([b"\n", SILENCE]), "pod bad: nothing came for 20 s", id="it is silent"),
]


@pytest.mark.parametrize(("answer", "said"), FAILURES)
async def test_a_pod_that_fails_is_noted_and_the_others_go_on(
    answer: Answer, said: str, autojump_clock: MockClock
) -> None:
    """The other one says something every four seconds."""
    parts: list[Part] = [part for second in range(6) for part in (4.0, line(second, f"n{second}"))]
    api = cluster_of("bad", "good", bad=answer, good=[*parts, SILENCE])
    async with watching(api) as (seen, watch):
        await trio.sleep(28)
        assert watch.unheard == ""
    assert [name for pod, name in seen.names if pod == "good"] == [f"n{second}" for second in range(6)]
    assert said in seen.notes[0]
    assert 2 <= api.asked_for(path_of("bad")) <= 28


async def test_a_pod_that_keeps_failing_is_noted_once_and_asked_less_and_less(autojump_clock: MockClock) -> None:
    api = cluster_of("bad", bad=failure(503, "ServiceUnavailable"))
    async with watching(api) as (seen, watch):
        await trio.sleep(40)
        assert watch.unheard == "--service switchback/dnsproxy: pod bad: 503: so it goes"
    assert seen.notes == ["pod bad: 503: so it goes"]
    times = [one.time for one in api.asked if one.path == path_of("bad")]
    pauses = [round(later - earlier) for earlier, later in itertools.pairwise(times)]
    assert pauses == [1, 2, 4, 8, 15]


async def test_drops_of_a_pod_are_noted_with_its_name(autojump_clock: MockClock) -> None:
    async with watching(cluster_of("a", a=[format_dropped_json(3), SILENCE])) as (seen, _):
        await trio.sleep(1)
    assert seen.notes == ["3 queries are missing here, of pod a: there were more than can be shown"]


async def test_of_very_many_pods_only_some_are_listened_to(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(service, "MOST_PODS", 3)
    pods = ["a", "b", "c", "d", "e"]
    api = cluster_of(*pods, **{pod: [SILENCE] for pod in pods})
    async with watching(api) as (seen, _):
        await trio.sleep(2)
    assert seen.notes == ["only 3 of 5 pods are shown"]
    assert [api.asked_for(path_of(pod)) for pod in pods] == [1, 1, 1, 0, 0]


def forbidden(message: str) -> Answer:
    return Answer([json.dumps(status_object(403, "Forbidden", message)).encode()], 403)


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        pytest.param(
            path_of("a"),
            forbidden('pods "a:8081" is forbidden: User "u" cannot get resource "pods/proxy"'),
            "--service switchback/dnsproxy: the right to get pods/proxy in the namespace switchback is missing",
            id="no right to pods/proxy",
        ),
        pytest.param(
            PATHS, forbidden("endpointslices is forbidden"), "403: endpointslices is forbidden", id="no right to list"
        ),
        pytest.param(
            SERVICE,
            failure(404, "NotFound"),
            "--service switchback/dnsproxy: there is no such Service",
            id="no Service",
        ),
        pytest.param(PATHS, failure(500, "InternalError"), "could not be asked", id="the API server fails"),
    ],
)
async def test_what_the_user_must_mend_ends_it_with_3(
    path: str, answer: Answer, said: str, autojump_clock: MockClock
) -> None:
    api = cluster_of("a", a=[SILENCE])
    api.faults[path] = answer
    with pytest.RaisesGroup(pytest.RaisesExc(StartError), flatten_subgroups=True, allow_unwrapped=True) as raised:
        async with watching(api):
            await trio.sleep(5)
    errors: list[BaseException] = [raised.value]
    while isinstance(errors[0], BaseExceptionGroup):
        errors = list(errors[0].exceptions)
    (error,) = errors
    assert isinstance(error, StartError)
    assert said in str(error)
    assert error.status == 3


async def test_without_the_right_to_the_service_itself_it_works(autojump_clock: MockClock) -> None:
    api = cluster_of("a", a=[line(1, "one"), SILENCE])
    api.faults[SERVICE] = failure(403, "Forbidden")
    async with watching(api) as (seen, _):
        await trio.sleep(2)
    assert (seen.names, seen.notes) == ([("a", "one")], [])
