"""A real CoreDNS in front of dnsproxy: its forward, health probe and fallback work with our server. Asked with dig."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from dnsproxy.forward.deadlines import GIVE_UP
from sidecar.values.endpoints import Endpoint
from tests.kit import upstream_replies
from tests.kit.coredns import running_coredns
from tests.kit.dns_server import OURS, OURS_AT, running, wait_until
from tests.kit.faulty_upstream import faulty_upstream, silence
from tests.kit.lag import measured_lag
from tests.kit.messages import NS, question
from tests.kit.polling import pause
from tests.kit.ports import free_port
from tests.kit.programs import program

pytestmark = pytest.mark.peer("coredns", "dig")

UPSTREAM_AT, FALLBACK_AT = "198.51.100.7", "198.51.100.9"
RETURN_SECONDS = 30
SPARE = 2.0 - GIVE_UP
"""Seconds from our reply to the end of CoreDNS's patience with a server, for whatever the machine does meanwhile."""
_PROGRAMS = 2
"""The programs of which each may be scheduled late in this time: this one and CoreDNS."""
_PROBE = question("", NS)

COREFILE = """\
. {{
    bind 127.0.0.1
    errors
    forward . {servers} {{
        policy sequential
        max_fails 2
        health_check 0.2s
    }}
}}
"""


def fallback_reply(asked: bytes) -> list[bytes]:
    """The answer of the resolver after dnsproxy in CoreDNS's list."""
    return [upstream_replies.right(asked)[:-1] + bytes([9])]


class Front:
    """A running CoreDNS, asked with dig."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def dig(self, *arguments: str) -> str:
        command = [program("dig"), "@127.0.0.1", "-p", str(self._port), "+tries=1", "+time=6", *arguments]
        return (await trio.run_process(command, capture_stdout=True, check=False)).stdout.decode()

    async def short(self, *arguments: str) -> list[str]:
        """Only the answers."""
        return (await self.dig("+short", *arguments)).split()


@contextmanager
def coredns_before(folder: Path, *servers: Endpoint) -> Iterator[Front]:
    """CoreDNS with a forward to these servers; it asks the first healthy one."""
    with running_coredns(folder, COREFILE.format(servers=" ".join(map(str, servers)))) as started:
        yield Front(started.port)


async def test_what_we_answer_and_forward_reaches_its_clients_over_both_transports(tmp_path: Path) -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world:
        with coredns_before(tmp_path, world.endpoint) as front:
            for transport in ("+notcp", "+tcp"):
                assert await front.short(transport, OURS) == [OURS_AT]
                assert await front.short(transport, "www.example.net") == [UPSTREAM_AT]
            empty = await front.dig(OURS, "AAAA")
            assert "status: NOERROR" in empty
            assert "AUTHORITY: 1" in empty
            assert world.server.counters.requests_tcp == 2


@pytest.mark.parametrize("rcode", ["FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"])
async def test_an_upstreams_verdict_reaches_its_clients(tmp_path: Path, rcode: str) -> None:
    number = getattr(upstream_replies, rcode)
    async with (
        faulty_upstream(lambda asked: [upstream_replies.right(asked, rcode=number, answers=0)]) as there,
        running(there.endpoint) as world,
    ):
        with coredns_before(tmp_path, world.endpoint) as front:
            assert f"status: {rcode}" in await front.dig("www.example.net")


async def test_dead_upstreams_are_an_answer_in_time_and_do_not_make_us_look_dead(tmp_path: Path) -> None:
    async with (
        faulty_upstream(silence, silence) as there,
        faulty_upstream(fallback_reply) as fallback,
        running(there.endpoint) as world,
    ):
        with coredns_before(tmp_path, world.endpoint, fallback.endpoint) as front:
            answered = 0
            while answered < 3:
                before = len(fallback.asked_datagrams)
                async with measured_lag() as lag:
                    verdict, ours = await front.dig("www.example.net"), await front.short(OURS)
                if _PROGRAMS * lag.longest > SPARE:
                    # The machine made the reply late, not the server.
                    await wait_answered_by_us(front)
                    continue
                # If it had been late, CoreDNS would have asked the fallback and counted a failure.
                assert "status: SERVFAIL" in verdict
                assert ours == [OURS_AT]
                assert len(fallback.asked_datagrams) == before
                answered += 1


async def test_while_we_are_gone_the_fallback_answers_and_its_probe_finds_us_when_we_are_back(tmp_path: Path) -> None:
    """After the restart our upstreams are dead; the probe must be answered all the same."""
    async with (
        faulty_upstream(silence, silence) as there,
        faulty_upstream(fallback_reply, fallback_reply) as fallback,
    ):
        # Not a port of the kernel's choice, which another program could get while nothing is bound there.
        address = Endpoint("127.0.0.1", free_port())
        with coredns_before(tmp_path, address, fallback.endpoint) as front:
            async with running(there.endpoint, at=address):
                assert await front.short(OURS) == [OURS_AT]
            for _ in range(5):
                assert await front.short(OURS) == [FALLBACK_AT]
                assert await front.short("www.example.net") == [FALLBACK_AT]
            async with running(there.endpoint, at=address) as second_life:
                await wait_until(lambda: second_life.server.counters.forward_timeouts > 0)
                await wait_answered_by_us(front)
        assert any(_PROBE in asked.message for asked in there.asked_datagrams), "the probe asks through us"


async def wait_answered_by_us(front: Front) -> None:
    with trio.fail_after(RETURN_SECONDS):
        while await front.short(OURS) != [OURS_AT]:  # each dig is a wait
            await pause()


async def test_a_burst_is_answered_whole(tmp_path: Path) -> None:
    async with faulty_upstream() as there, running(there.endpoint) as world:
        with coredns_before(tmp_path, world.endpoint) as front:
            names = [name for number in range(100) for name in (OURS, f"h{number}.example.net")]
            assert sorted(await front.short(*names)) == sorted([OURS_AT, UPSTREAM_AT] * 100)
