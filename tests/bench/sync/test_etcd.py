from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.sync.etcd import MOST_IN_ONE, Etcd
from tests.kit.etcd import EtcdServer
from tests.kit.ports import free_ports

pytestmark = pytest.mark.peer("etcd")


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    port, peer_port = free_ports(2)
    server = EtcdServer(tmp_path, port, peer_port)
    try:
        server.start()
        with Etcd(port) as client:
            yield client
    finally:
        server.kill()


def test_a_value_is_found_as_it_was_put(etcd: Etcd) -> None:
    etcd.put("/registry/one", b"k8s\0\xff")
    assert etcd.get("/registry/one") == b"k8s\0\xff"


def test_a_value_that_is_not_there_is_none_and_an_error_where_it_must_be(etcd: Etcd) -> None:
    etcd.put("/registry/one/more", b"1")
    assert etcd.find("/registry/one") is None
    with pytest.raises(KeyError, match="/registry/one"):
        etcd.get("/registry/one")


def test_many_values_are_put_at_once(etcd: Etcd) -> None:
    etcd.put_all((f"/registry/{number}", bytes([number])) for number in range(MOST_IN_ONE))
    assert [etcd.get(f"/registry/{number}") for number in range(MOST_IN_ONE)] == [
        bytes([number]) for number in range(MOST_IN_ONE)
    ]


def test_more_than_fit_are_an_error_and_none_is_put(etcd: Etcd) -> None:
    with pytest.raises(OSError, match="etcd"):
        etcd.put_all((f"/registry/{number}", b"x") for number in range(MOST_IN_ONE + 1))
    assert etcd.find("/registry/0") is None
