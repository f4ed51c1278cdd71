"""The numbers of a pool: how many claimed names were asked, as far as the workers know."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dnsproxy.replace.verdicts import Led
from dnsproxy.server.dns_server import DnsServer
from dnsproxy.workers.member import Member
from dnsproxy.workers.numbers import Place, PoolNumbers

SOCKETS: tuple[list[socket.socket], list[socket.socket]] = ([], [])


def pool_of(*workers: tuple[int, tuple[bytes, ...]]) -> PoolNumbers:
    """Each worker with how many names it was asked, and those of them that lead elsewhere."""
    numbers = PoolNumbers(cast("DnsServer", None))
    for asked, names in workers:
        place = Place(0, SOCKETS)
        led = [Led(name, rtype, (b"\xc6\x33\x64\x01",)) for name in names for rtype in (1, 28)]
        made: Any = SimpleNamespace(asked_names=asked, led=(1, led))
        place.member = cast("Member", made)
        numbers.places.append(place)
    return numbers


@pytest.mark.parametrize(
    ("workers", "asked"),
    [
        pytest.param((), 0, id="no worker lives"),
        pytest.param([(0, ())], 0, id="nothing was asked"),
        pytest.param([(5, (b"a", b"b"))], 5, id="one worker"),
        pytest.param([(5, (b"a", b"b")), (9, (b"a", b"b"))], 9, id="the one with the most"),
        pytest.param([(3, (b"a", b"b")), (4, (b"b", b"c"))], 5, id="each knows others that lead elsewhere"),
        pytest.param([(1, (b"a", b"b"))], 2, id="a sign of life that is older than the names"),
    ],
)  # fmt: skip
def test_names_of_several_workers_count_once_and_never_fewer_than_lead_elsewhere(
    workers: list[tuple[int, tuple[bytes, ...]]], asked: int
) -> None:
    assert pool_of(*workers).asked_names() == asked
