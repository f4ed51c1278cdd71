"""The agent as a program: its admin port, its start and its exit, with a kernel in memory."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from sidecar.admin.asking import ask
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit.faulty_api import SILENCE, Answer, client_in_memory, failure
from tests.kit.wholeip_kernel import FakeKernel
from tests.wholeip.agent.test_reconciler import LB, POD, make_api, put_service, put_slice
from wholeip.agent.document import Document, parse_document
from wholeip.agent.program import serve
from wholeip.ruleset.ended_flows import NewEgress
from wholeip.ruleset.nft_errors import NotPermitted
from wholeip.ruleset.ruleset import Ruleset, make_ruleset
from wholeip.settings import ClusterSettings, RunSettings

HERE = Endpoint("127.0.0.1", 0)


class Judged:
    """By which changes flows were judged."""

    def __init__(self) -> None:
        self.changes: list[tuple[Ruleset | None, Ruleset]] = []
        self.egress: list[NewEgress] = []
        self.judged = trio.Event()
        self.slow: trio.Event | None = None
        """Where given, set by the next look at the flows, which does not end."""

    async def end(self, before: Ruleset | None, after: Ruleset, egress: NewEgress, _between: Sequence[Ruleset]) -> int:
        if self.slow is not None and not self.slow.is_set():
            self.slow.set()
            await trio.sleep_forever()
        self.egress.append(egress)
        await trio.lowlevel.checkpoint()
        self.changes.append((before, after))
        self.judged.set()
        return 0


@asynccontextmanager
async def serving(kernel: FakeKernel, *, flows: Judged | None = None, **options: Any) -> AsyncIterator[Endpoint]:
    """An agent that follows a cluster with one Service; its end is waited for."""
    api, stopping = make_api(), trio.Event()
    put_service(api)
    put_slice(api)
    settings = RunSettings(ClusterSettings(node_name="n1"), admin=HERE, **options)

    async def run(task_status: trio.TaskStatus[Endpoint | None]) -> None:
        await serve(
            settings, client, kernel, stopping=stopping, end_flows=(flows or Judged()).end, task_status=task_status
        )

    async with client_in_memory(api) as outer, trio.open_nursery() as nursery:
        client = outer
        yield await nursery.start(run)
        stopping.set()


async def ready(admin: Endpoint) -> Document:
    while True:
        document = parse_document(await ask(admin, "/mappings", program="wholeip run"))
        if document.ready:
            return document


async def test_the_admin_port_tells_what_there_is() -> None:
    async with serving(FakeKernel()) as admin:
        document = await ready(admin)
        assert [(one.service, one.address, one.endpoint) for one in document.mappings] == [("default/vm", LB, POD)]
        answers = {
            path: await ask(admin, path, program="wholeip run") for path in ("/", "/healthz", "/readyz", "/metrics")
        }
    assert answers["/healthz"] == b"ok\n"
    assert answers["/readyz"].startswith(b"1 mappings of 1 Services")
    assert b"\nwholeip_mappings 1.0\n" in answers["/metrics"]
    assert b"default/vm" in answers["/"]


@pytest.mark.parametrize("remove", [False, True], ids=["stay", "are removed"])
async def test_at_the_end_the_rules_stay_or_go_as_was_said(remove: bool) -> None:
    kernel = FakeKernel()
    async with serving(kernel, remove_on_exit=remove) as admin:
        await ready(admin)
        assert kernel.ruleset is not None
    assert (kernel.ruleset is None) is remove


async def test_rules_that_cannot_be_removed_do_not_hold_up_the_end() -> None:
    kernel = FakeKernel()
    with capture_logs() as logs:
        async with serving(kernel, remove_on_exit=True) as admin:
            await ready(admin)
            kernel.failures = [NotPermitted("no more")] * 3
    assert logs[-1] == {"event": "cannot remove the rules", "cause": "no more", "log_level": "warning"}


async def test_flows_are_judged_at_the_start_even_where_the_rules_are_right() -> None:
    kernel, flows = FakeKernel(), Judged()
    async with serving(kernel) as admin:
        await ready(admin)
    async with serving(kernel, flows=flows) as admin:
        await ready(admin)
        await flows.judged.wait()
    assert flows.changes == [(kernel.ruleset, kernel.ruleset)]
    assert flows.egress[0].addresses == {POD: LB}, "an earlier run may have ended between rules and flows"
    assert not flows.egress[0].connections


async def test_flows_of_the_last_change_are_judged_also_if_the_agent_is_stopped_meanwhile() -> None:
    """The next run does not know what the table no longer has."""
    kernel, flows = FakeKernel(), Judged()
    async with serving(kernel, flows=flows) as admin:
        await ready(admin)
        await flows.judged.wait()
        flows.slow = trio.Event()
        kernel.change(None)
        await flows.slow.wait()
    assert flows.changes[-1] == (kernel.ruleset, kernel.ruleset)


async def test_connections_are_judged_too_if_asked_for() -> None:
    flows = Judged()
    async with serving(FakeKernel(), flows=flows, end_connections=True) as admin:
        await ready(admin)
        await flows.judged.wait()
    assert flows.egress[0].connections


async def test_flows_are_kept_where_that_was_asked_for() -> None:
    flows = Judged()
    async with serving(FakeKernel(), flows=flows, end_flows=False) as admin:
        await ready(admin)
    assert flows.changes == []


async def test_a_kernel_that_is_not_ours_to_write_keeps_it_from_starting() -> None:
    kernel = FakeKernel(make_ruleset([]), failures=[NotPermitted("Operation not permitted")])
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match="nftables: Operation not"), flatten_subgroups=True):
        async with serving(kernel):
            pytest.fail("it has started")


EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT_ANSWERS = {
    "made": Answer([b"{}"], 201),
    "exists": failure(409, "AlreadyExists"),
    "not allowed": failure(403, "Forbidden"),
    "fails": failure(500, "InternalError"),
    "never comes": Answer([SILENCE], 201),
}


@pytest.mark.parametrize("answer", EVENT_ANSWERS.values(), ids=EVENT_ANSWERS)
async def test_rules_do_not_wait_for_events(answer: Answer, autojump_clock: MockClock) -> None:
    api, kernel, stopping = make_api(), FakeKernel(), trio.Event()
    api.faults[EVENTS] = answer
    put_service(api)
    settings = RunSettings(ClusterSettings(node_name="n1"), events=True)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        run = partial(serve, settings, client, kernel, stopping=stopping, end_flows=Judged().end)
        nursery.start_soon(run)
        while not api.asked_for(EVENTS):  # noqa: ASYNC110  # the server gives no signal; the clock jumps
            await trio.sleep(1)
        put_slice(api)
        await trio.sleep(0.1)
        assert kernel.ruleset is not None
        assert kernel.ruleset.elements["whole_v4"] == {LB: POD}
        stopping.set()


async def test_without_the_flag_there_are_no_events(autojump_clock: MockClock) -> None:
    api, stopping = make_api(), trio.Event()
    put_service(api)
    async with client_in_memory(api) as client, trio.open_nursery() as nursery:
        settings = RunSettings(ClusterSettings(node_name="n1"))
        nursery.start_soon(partial(serve, settings, client, FakeKernel(), stopping=stopping, end_flows=Judged().end))
        await trio.sleep(50)
        assert api.asked_for(EVENTS) == 0
        stopping.set()
