from __future__ import annotations

import json
import socket
import threading
from dataclasses import asdict

import pytest

from tests.bench.dns import prober
from tests.bench.dns.prober import LOST_MS, Probe, is_answer, parse_probe, probe, summarise
from tests.kit.messages import query, record, reply_to

QUERY = query("app.example.org")
ANSWER = reply_to(QUERY, records=record(1, bytes(4)), answers=1)


def test_lost_queries_count_as_slow_ones() -> None:
    assert summarise([1.0] * 98, sent=100, errors=0) == Probe(100, 2, 0, 1.0, LOST_MS, LOST_MS)
    assert summarise([1.0] * 99, sent=100, errors=0) == Probe(100, 1, 0, 1.0, 1.0, LOST_MS)


def test_no_query_has_no_latency() -> None:
    assert summarise([], sent=0, errors=0) == Probe(0, 0, 0, None, None, None)


def test_what_is_printed_reads_back() -> None:
    found = Probe(100, 1, 2, 0.5, 3.5, LOST_MS)
    assert parse_probe(json.dumps(asdict(found))) == found


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(ANSWER, True, id="an answer"),
        pytest.param(reply_to(QUERY), False, id="no data"),
        pytest.param(reply_to(QUERY, flags=0x8182), False, id="SERVFAIL"),
        pytest.param(reply_to(QUERY, flags=0x8380), False, id="cut off"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_only_an_answer_is_one(reply: bytes, expected: bool) -> None:
    assert is_answer(reply) is expected


def test_a_probe_counts_what_is_answered_lost_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten queries one gets no reply, one SERVFAIL, one an answer twice."""
    # The thread of the server is late if the machine stands still; the other replies are not lost for that.
    lost_ms = 8 * LOST_MS
    monkeypatch.setattr(prober, "LOST_MS", lost_ms)

    def serve(server: socket.socket) -> None:
        for number in range(10):
            message, client = server.recvfrom(512)
            reply = ANSWER if number != 2 else reply_to(QUERY, flags=0x8182)
            for _ in range({3: 0, 4: 2}.get(number, 1)):
                server.sendto(message[:2] + reply[2:], client)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        found = probe(server.getsockname()[1], [QUERY], rate=100, seconds=0.1)
        thread.join()
    assert (found.sent, found.lost, found.errors, found.worst) == (10, 1, 1, lost_ms)
    assert found.p50 is not None
    assert 0 < found.p50 < lost_ms
