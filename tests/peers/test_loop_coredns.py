"""The misconfiguration `dnsPolicy: ClusterFirst` with a real CoreDNS: our upstream is the server that asks us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dns.rcode
import pytest
import trio
from structlog.testing import capture_logs

from dnsproxy.dns.wire import Query
from dnsproxy.forward.deadlines import LOOPING_EVERY
from dnsproxy.forward.loop import CameBack
from sidecar.values.endpoints import Endpoint
from tests.kit import messages
from tests.kit.coredns import CoreDns, running_coredns
from tests.kit.dns_server import OURS, OURS_AT, TRUSTING, Running, running, wait_until
from tests.kit.faulty_upstream import faulty_upstream

pytestmark = pytest.mark.peer("coredns")

UPSTREAM_AT = "198.51.100.7"
WATCHFUL = replace(TRUSTING, detect_loops=True)
COREFILE = """\
. {{
    bind 127.0.0.1
    errors
    forward . {server} {{
        {option}
    }}
}}
"""
every_transport = pytest.mark.parametrize("option", ["policy sequential", "force_tcp"], ids=["UDP", "TCP"])


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that a busy machine lets time out is not followed by another one for as long as a test waits."""
    monkeypatch.setattr("dnsproxy.forward.upstream.LOOP_EVERY", LOOPING_EVERY)


async def ask(front: CoreDns, name: str) -> tuple[int, list[str]]:
    reply = await trio.to_thread.run_sync(front.ask, name)
    return reply.rcode(), [str(record) for answer in reply.answer for record in answer]


def lead_back(world: Running, front: CoreDns, *others: Endpoint) -> Endpoint:
    """Make the server's upstream the CoreDNS that asks it."""
    looping = Endpoint("127.0.0.1", front.port)
    world.server.replace_upstreams(replace(WATCHFUL, upstreams=(looping, *others)))
    return looping


@every_transport
async def test_a_loop_through_coredns_is_found_and_the_other_upstream_answers(tmp_path: Path, option: str) -> None:
    async with faulty_upstream() as there, running(forwarding=WATCHFUL) as world:
        with running_coredns(tmp_path, COREFILE.format(server=world.endpoint, option=option)) as front:
            lead_back(world, front, there.endpoint)
            await wait_until(lambda: world.forwarder.upstreams.used[0].looping)
            for number in range(5):
                assert await ask(front, f"h{number}.example.net") == (dns.rcode.NOERROR, [UPSTREAM_AT])
            assert await ask(front, OURS) == (dns.rcode.NOERROR, [OURS_AT])


@every_transport
async def test_a_loop_that_is_not_found_ends_and_does_not_grow(tmp_path: Path, option: str) -> None:
    """Before the first probe, and without loop detection: a looping query waits for itself."""
    async with running() as world:
        with running_coredns(tmp_path, COREFILE.format(server=world.endpoint, option=option)) as front:
            world.server.replace_upstreams(replace(TRUSTING, upstreams=(Endpoint("127.0.0.1", front.port),)))
            code, _ = await ask(front, "www.example.net")
            assert code == dns.rcode.SERVFAIL
            assert await ask(front, OURS) == (dns.rcode.NOERROR, [OURS_AT])
            await wait_until(lambda: len(world.forwarder) == 0)
            counters = world.server.counters
            assert counters.requests_udp + counters.requests_tcp < 200


async def test_a_loop_that_was_mended_is_used_again(tmp_path: Path) -> None:
    async with faulty_upstream() as there, running(forwarding=WATCHFUL) as world:
        looping_to_us = COREFILE.format(server=world.endpoint, option="policy sequential")
        with running_coredns(tmp_path, looping_to_us) as front:
            looping = lead_back(world, front)
            await wait_until(lambda: world.forwarder.upstreams.used[0].looping)
            assert (await ask(front, "www.example.net"))[0] == dns.rcode.SERVFAIL
        mended = COREFILE.format(server=there.endpoint, option="policy sequential")
        with running_coredns(tmp_path, mended, port=looping.port) as front:
            await wait_until(lambda: not world.forwarder.upstreams.used[0].looping)
            assert messages.read_dnspython(await world.ask(messages.query("www.example.net"))).answers


async def test_a_loop_over_two_servers_is_seen_by_both_and_let_in_again_by_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CoreDNS stands for the Service of two pods: every second probe comes to the other one."""
    monkeypatch.setattr("dnsproxy.forward.loop._is_local", lambda _: False)
    monkeypatch.setattr("dnsproxy.forward.upstream.LOOPING_EVERY", 0.1)
    with capture_logs() as logs:
        async with (
            faulty_upstream() as there,
            running(forwarding=WATCHFUL) as one,
            running(forwarding=WATCHFUL) as other,
        ):
            servers = f"{one.endpoint} {other.endpoint}"
            with running_coredns(tmp_path, COREFILE.format(server=servers, option="policy round_robin")) as front:
                for world in (one, other):
                    lead_back(world, front, there.endpoint)
                probed = [count_probes(world) for world in (one, other)]
                await wait_until(lambda: all(len(times) >= 20 for times in probed))
                for world in (one, other):
                    assert world.forwarder.upstreams.used[0].looping
    told = [line["event"] for line in logs if "queries back" in line["event"]]
    assert len(told) == 2, "found once by each, and never let in again"


def count_probes(world: Running) -> list[Endpoint]:
    """The upstreams of the loop probes from now on, one for each."""
    loops, probed = world.forwarder.loops, list[Endpoint]()
    make = loops.make

    def counted(upstream: Endpoint, came_back: CameBack) -> Query:
        probed.append(upstream)
        return make(upstream, came_back)

    loops.make = counted  # type: ignore[method-assign]
    return probed
