from __future__ import annotations

import dns.message
import dns.opcode
import dns.rcode
import pytest

from dnsproxy.dns.names import to_wire
from dnsproxy.zone.requests import format_notify
from tests.bench.fleet.requests import answer_notify, format_frame

ZONE = to_wire("rpz.example.org")


@pytest.mark.parametrize(
    ("zone", "known", "rcode", "is_new"),
    [
        pytest.param("rpz.example.org", None, "NOERROR", True, id="it has nothing"),
        pytest.param("rpz.example.org", 9, "NOERROR", True, id="newer"),
        pytest.param("rpz.example.org", 10, "NOERROR", False, id="what it has"),
        pytest.param("rpz.example.org", 11, "NOERROR", False, id="older"),
        pytest.param("rpz.example.org", 0xFFFF_FFFF, "NOERROR", True, id="beyond the end of the circle"),
        pytest.param("other.example.org", 9, "NOTAUTH", False, id="another zone"),
    ],
)
def test_a_notify_is_answered_and_brings_a_look_if_it_tells_something(
    zone: str, known: int | None, rcode: str, *, is_new: bool
) -> None:
    notify = format_notify(to_wire(zone), serial=10, ttl=5, ident=77)
    reply, found = answer_notify(notify, zone=ZONE, known=known)
    assert found is is_new
    assert reply is not None
    answer = dns.message.from_wire(reply)
    assert (answer.id, answer.opcode(), dns.rcode.to_text(answer.rcode())) == (77, dns.opcode.NOTIFY, rcode)


@pytest.mark.parametrize("message", [b"", b"\0" * 11, format_frame(ZONE, serial=1, ident=2)[2:]])
def test_no_other_message_is_answered(message: bytes) -> None:
    assert answer_notify(message, zone=ZONE, known=1) == (None, False)


@pytest.mark.parametrize(("serial", "rtype"), [(None, "AXFR"), (5, "IXFR")])
def test_a_request_is_framed_for_tcp(serial: int | None, rtype: str) -> None:
    frame = format_frame(ZONE, serial=serial, ident=3)
    assert int.from_bytes(frame[:2], "big") == len(frame) - 2
    question = dns.message.from_wire(frame[2:]).question[0]
    assert f"rpz.example.org. IN {rtype}" in str(question)
