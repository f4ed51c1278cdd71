from __future__ import annotations

import socket

import pytest

from tests.bench.dns.checking import NO_REPLY, find_fault, find_fault_at
from tests.bench.dns.workloads import Question
from tests.kit.messages import AAAA, opt_record, query, record, reply_to
from tests.kit.ports import free_port

ASKED = Question("App.example.org", "192.0.2.80")
RIGHT = record(1, socket.inet_aton("192.0.2.80"))
WRONG = record(1, socket.inet_aton("192.0.2.81"))
QUERY = ASKED.message()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(reply_to(QUERY, records=RIGHT, answers=1), None, id="the right answer"),
        pytest.param(reply_to(QUERY, records=WRONG, answers=1), "192.0.2.81", id="another address"),
        pytest.param(reply_to(QUERY, records=RIGHT + WRONG, answers=2), "192.0.2.81", id="one address too many"),
        pytest.param(reply_to(QUERY), "[] instead", id="no data"),
        pytest.param(reply_to(QUERY, flags=0x8183), "rcode 3", id="NXDOMAIN"),
        pytest.param(reply_to(QUERY, flags=0x8185), "rcode 5", id="REFUSED"),
        pytest.param(
            reply_to(query("app.example.org"), records=RIGHT, answers=1), "another question", id="letter case lost"
        ),
        pytest.param(reply_to(query("App.example.org", AAAA)), "another question", id="another type"),
        pytest.param(b"", "cannot read", id="nothing"),
        pytest.param(reply_to(QUERY, records=RIGHT[:-1], answers=1), "cannot read", id="cut off"),
    ],
)
def test_only_the_right_reply_has_no_fault(reply: bytes, expected: str | None) -> None:
    fault = find_fault(reply, ASKED, edns=False)
    if expected is None:
        assert fault is None
    else:
        assert fault is not None
        assert expected in fault


def test_a_query_with_an_opt_wants_one_back() -> None:
    plain = reply_to(QUERY, records=RIGHT, answers=1)
    assert find_fault(plain, ASKED, edns=True) == "no OPT"
    with_opt = plain[:11] + b"\1" + plain[12:] + opt_record(1232)
    assert find_fault(with_opt, ASKED, edns=True) is None


def test_a_server_with_one_address_for_all_is_held_to_that() -> None:
    reply = reply_to(QUERY, records=WRONG, answers=1)
    assert find_fault(reply, ASKED, edns=False, address="192.0.2.81") is None


def test_nobody_there_is_no_reply() -> None:
    assert find_fault_at(free_port(), ASKED, edns=False) == NO_REPLY
