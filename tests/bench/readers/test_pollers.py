"""Readers of a benchmark: each learns of a table once."""

from __future__ import annotations

from tests.bench.readers.pollers import Summary, parse_summary, poll
from tests.dnsproxy.publish.test_source import Server, serving
from tests.kit.messages import table_of


async def test_each_reader_is_sent_a_table_once_and_then_told_that_it_is_the_same() -> None:
    server = Server()
    server.table = table_of("app.example.org 192.0.2.10")
    async with serving(server) as source:
        await source.read()
        polled = await poll(server.name.port, readers=5, interval=0.01, seconds=2)
    assert polled.failed == 0
    assert 1 <= polled.new <= 5
    assert polled.same + polled.new == len(polled.milliseconds)
    assert polled.octets % polled.new == 0


def test_a_summary_reads_back() -> None:
    assert parse_summary('{"same": 1, "new": 2, "failed": 0, "octets": 9, "p99": null}') == Summary(1, 2, 0, 9, None)
