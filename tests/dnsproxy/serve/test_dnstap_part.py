"""What a server shows of its collector: nothing without the flag; with it counts, and a note while it is away."""

from __future__ import annotations

from pathlib import PurePosixPath

from dnsproxy.answers.counters import Counters
from dnsproxy.dnstap.settings import DnstapSettings
from dnsproxy.serve.dnstap_part import DnstapPart
from dnsproxy.tap.hub import Tap

SETTINGS = DnstapSettings(PurePosixPath("/run/dnstap.sock"), "pod-7")


def part(settings: DnstapSettings | None, counters: Counters) -> DnstapPart:
    return DnstapPart(settings, Tap(), counters=lambda: counters, drain=5)


def values(made: DnstapPart) -> dict[str, float]:
    return {sample.name: sample.value for family in made.metrics() for sample in family.samples}


async def test_without_the_flag_it_shows_and_does_nothing() -> None:
    made = part(None, Counters())
    await made.run()
    assert (values(made), made.notes()) == ({}, [])


def test_queries_over_udp_and_tcp_are_dropped_while_there_is_no_collector() -> None:
    counters = Counters()
    made = part(SETTINGS, counters)
    counters.requests_udp, counters.requests_tcp = 3, 4
    assert values(made) == {
        "dnsproxy_dnstap_sent_total": 0,
        "dnsproxy_dnstap_dropped_total": 7,
        "dnsproxy_dnstap_connected": 0,
    }
    assert made.notes() == ["--dnstap unix:/run/dnstap.sock: not connected, queries are not sent there"]


def test_with_a_collector_there_is_no_note() -> None:
    made = part(SETTINGS, Counters())
    made.numbers.note_connected(int)
    assert made.notes() == []
    assert values(made)["dnsproxy_dnstap_connected"] == 1
