"""Requests for routes, and answers as the kernel writes them; kernel/test_conntrack.py asks a kernel."""

from __future__ import annotations

import struct

import pytest

from wholeip.ruleset.rtnetlink import format_route_request, is_local_route


def answer(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


def route(kind: int) -> bytes:
    return answer(24, struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 255, 2, 0, kind, 0))


@pytest.mark.parametrize(
    ("address", "family", "bits", "packed"),
    [("10.0.0.1", 2, 32, "0a000001"), ("2001:db8::1", 10, 128, "20010db8000000000000000000000001")],
)
def test_a_request_asks_for_one_address(address: str, family: int, bits: int, packed: str) -> None:
    request = format_route_request(address)
    assert struct.unpack_from("=IHH", request) == (len(request), 26, 1)
    assert tuple(request[16:18]) == (family, bits)
    assert request.endswith(bytes.fromhex(packed))


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        pytest.param(route(2), True, id="local"),
        pytest.param(route(1), False, id="to another host"),
        pytest.param(route(3), False, id="broadcast"),
        pytest.param(answer(2, struct.pack("=i", -101)), False, id="no route"),
    ],
)
def test_only_a_route_that_ends_here_is_local(datagram: bytes, expected: bool) -> None:
    assert is_local_route(datagram) is expected


@pytest.mark.parametrize("datagram", [b"", answer(24, b"\x02"), answer(3, b""), route(2)[:-1]])
def test_an_answer_that_is_cut_off_is_refused(datagram: bytes) -> None:
    with pytest.raises(struct.error):
        is_local_route(datagram)
