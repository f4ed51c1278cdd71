from __future__ import annotations

import itertools
import socket

import pytest

from tests.kit.ports import NoPort, free_port, free_ports, is_free, port_share, walk

KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM)
WORKERS = ("gw0", "gw1", "gw2", "gw3", "")


@pytest.mark.parametrize("kind", KINDS, ids=["tcp", "udp"])
def test_a_free_port_can_be_bound(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", free_port()))


@pytest.mark.parametrize("kind", KINDS, ids=["tcp", "udp"])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "0.0.0.0"])
def test_a_port_in_use_is_not_free(kind: socket.SocketKind, host: str) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind((host, free_port()))
        assert not is_free(taken.getsockname()[1])


def test_ports_that_are_not_bound_yet_differ() -> None:
    assert len(set(free_ports(100))) == 100


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(WORKERS, 2)])
def test_workers_do_not_share_a_port(one: str, other: str) -> None:
    assert not set(port_share(one)) & set(port_share(other))


def test_all_are_outside_the_range_that_clients_are_given() -> None:
    assert max(max(port_share(worker)) for worker in WORKERS) < 32_768


def test_a_port_that_is_taken_is_passed_over_and_none_at_all_is_an_error() -> None:
    free, taken = free_ports(2)
    with socket.socket() as held:
        held.bind(("127.0.0.1", taken))
        both = walk(range(min(free, taken), max(free, taken) + 1, abs(taken - free)))
        assert [next(both), next(both)] == [free, free]
        with pytest.raises(NoPort):
            next(walk(range(taken, taken + 1)))
