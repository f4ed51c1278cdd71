from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.sync.changing import change, flipped, key_of, restore
from tests.bench.sync.etcd import Etcd
from tests.bench.sync.filling import hostname_of
from tests.kit.etcd import EtcdServer
from tests.kit.ports import free_ports


def value_of(number: int) -> bytes:
    """A host among octets that are no text, twice, as a rule and a TLS section have it."""
    host = hostname_of(number).encode()
    return b"k8s\0\xff" + bytes([len(host)]) + host + b"\x12\0" + bytes([len(host)]) + host


def test_a_value_is_given_another_host_of_the_same_length_and_back() -> None:
    once, host = flipped(value_of(7), 7)
    assert (host, len(once), once.count(host.encode())) == ("x7.bench.example.org", len(value_of(7)), 2)
    assert flipped(once, 7) == (value_of(7), hostname_of(7))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="empty"),
        pytest.param(value_of(8), id="of another object"),
        pytest.param(value_of(71), id="of an object whose number begins with it"),
    ],
)
def test_a_value_without_the_host_is_an_error(value: bytes) -> None:
    with pytest.raises(ValueError, match="Ingress 7"):
        flipped(value, 7)


@pytest.fixture
def etcd_port(tmp_path: Path) -> Iterator[int]:
    port, peer_port = free_ports(2)
    server = EtcdServer(tmp_path, port, peer_port)
    try:
        server.start()
        yield server.port
    finally:
        server.kill()


@pytest.mark.peer("etcd")
@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_a_real_etcd_has_the_changes_and_then_what_was_there_before(etcd_port: int, count: int) -> None:
    """Also where the objects cannot be dealt out evenly."""
    begun = []
    with Etcd(etcd_port) as etcd:
        for number in range(count):
            etcd.put(key_of(number), value_of(number))
        found = change(etcd_port, count=count, rate=1000, seconds=0.021, tell=lambda: begun.append(True))
        assert (found.done, begun) == (21, [True])
        hosts = {number: etcd.get(key_of(number)) for number in range(count)}
        assert any(found.last.encode() in value for value in hosts.values())
        restore(etcd_port, count=count)
        assert [etcd.get(key_of(number)) for number in range(count)] == [value_of(number) for number in range(count)]
