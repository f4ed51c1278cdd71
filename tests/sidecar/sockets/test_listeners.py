"""Sockets that listen, and the messages of failures."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest

from sidecar.sockets import listeners
from sidecar.sockets.listeners import bound_endpoint, claim_tcp, listen_both, listen_tcp, listen_udp
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit.ports import free_port, free_ports

Listen = Callable[..., socket.socket]
both = pytest.mark.parametrize("listen", [listen_tcp, listen_udp])


@both
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_port_0_gives_a_port_and_a_socket_that_does_not_block(listen: Listen, host: str) -> None:
    with listen(Endpoint(host, 0), flag="--listen") as opened:
        assert bound_endpoint(opened).host == host
        assert bound_endpoint(opened).port > 0
        assert not opened.getblocking()


@both
def test_a_port_in_use_names_flag_address_and_what_to_do(listen: Listen) -> None:
    with listen(Endpoint("127.0.0.1", 0), flag="--listen") as first:
        taken = bound_endpoint(first)
        with pytest.raises(StartError, match=rf"^--listen {taken}: the address is in use; stop .* or choose") as caught:
            listen(taken, flag="--listen")
        assert caught.value.status == 2


@both
def test_an_address_that_is_not_here_says_so(listen: Listen) -> None:
    with pytest.raises(StartError, match=r"^--listen 192.0.2.1:53: no network interface here has this address$"):
        listen(Endpoint("192.0.2.1", 53), flag="--listen")


@both
@pytest.mark.parametrize(
    ("number", "advice"),
    [
        pytest.param(errno.EACCES, "choose a port from 1024 up", id="EACCES"),
        pytest.param(errno.EMFILE, "ulimit -n", id="EMFILE"),
        pytest.param(errno.EAFNOSUPPORT, "there is no IPv6 here", id="EAFNOSUPPORT"),
        pytest.param(errno.EIO, "Input/output error", id="another"),
    ],
)
def test_each_failure_has_its_advice(monkeypatch: pytest.MonkeyPatch, listen: Listen, number: int, advice: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "")

    monkeypatch.setattr(listeners, "_bind_one", fail)
    with pytest.raises(StartError, match=advice):
        listen(Endpoint("::1", 53), flag="--listen")


@both
def test_every_address_is_every_ipv4_address_where_there_is_no_ipv6(
    monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    bind_one = listeners._bind_one

    def without_ipv6(endpoint: Endpoint, kind: socket.SocketKind, shared: bool) -> socket.socket:
        if ":" in endpoint.host:
            raise OSError(errno.EAFNOSUPPORT, "")
        return bind_one(endpoint, kind, shared)

    monkeypatch.setattr(listeners, "_bind_one", without_ipv6)
    with listen(Endpoint("::", 0), flag="--listen") as opened:
        assert bound_endpoint(opened).host == "0.0.0.0"


def test_every_address_takes_ipv4_clients_too() -> None:
    with listen_tcp(Endpoint("::", 0), flag="--listen") as opened:
        port = bound_endpoint(opened).port
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, port)) as client:
                assert client.getpeername()[1] == port


def test_one_ipv6_address_leaves_ipv4_alone() -> None:
    with (
        listen_tcp(Endpoint("::1", 0), flag="--listen") as six,
        listen_tcp(Endpoint("127.0.0.1", bound_endpoint(six).port), flag="--listen") as four,
    ):
        assert bound_endpoint(four).port == bound_endpoint(six).port


@both
def test_a_shared_port_can_be_had_twice_but_not_unasked(listen: Listen) -> None:
    with listen(Endpoint("127.0.0.1", 0), flag="--listen", shared=True) as first:
        place = bound_endpoint(first)
        with listen(place, flag="--listen", shared=True) as second:
            assert bound_endpoint(second) == place
        with pytest.raises(StartError, match="in use"):
            listen(place, flag="--listen")


def test_a_claimed_port_is_shared_and_takes_no_connection_itself() -> None:
    with claim_tcp(Endpoint("127.0.0.1", 0), flag="--route", is_first=True) as claimed:
        endpoint = bound_endpoint(claimed)
        with socket.socket() as early:
            assert early.connect_ex((endpoint.host, endpoint.port)) == errno.ECONNREFUSED
        with listen_tcp(endpoint, flag="--route", shared=True) as one, socket.create_connection(one.getsockname()):
            one.setblocking(True)
            one.accept()[0].close()
            with pytest.raises(StartError, match=r"^--route 127\.0\.0\.1:\d+: the address is in use"):
                listen_tcp(endpoint, flag="--route")


def test_a_port_that_others_share_is_not_claimed_by_a_second_program() -> None:
    with claim_tcp(Endpoint("127.0.0.1", 0), flag="--route", is_first=True) as first:
        endpoint = bound_endpoint(first)
        with listen_tcp(endpoint, flag="--route", shared=True):
            with pytest.raises(StartError, match=r"^--route 127\.0\.0\.1:\d+: the address is in use"):
                claim_tcp(endpoint, flag="--route", is_first=True)
            # As a supervisor does for a route that comes back while a worker still has it.
            claim_tcp(endpoint, flag="--route", is_first=False).close()


class ChosenPorts:
    """listen_tcp, with the ports that the system chooses for port 0."""

    def __init__(self, *ports: int) -> None:
        self.ports = list(ports)
        self.opened: list[socket.socket] = []

    def __call__(self, endpoint: Endpoint, *, flag: str, shared: bool = False) -> socket.socket:
        port = endpoint.port or self.ports.pop(0)
        self.opened.append(listen_tcp(Endpoint(endpoint.host, port), flag=flag, shared=shared))
        return self.opened[-1]


def test_another_port_is_tried_if_its_twin_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    free, (first, second) = free_port(), free_ports(2)
    chosen = ChosenPorts(first, second, free)
    monkeypatch.setattr(listeners, "listen_tcp", chosen)
    with listen_udp(Endpoint("127.0.0.1", first), flag="t"), listen_udp(Endpoint("127.0.0.1", second), flag="t"):
        stream, datagram = listen_both(Endpoint("127.0.0.1", 0), flag="--listen")
        with stream, datagram:
            assert bound_endpoint(stream) == bound_endpoint(datagram) == Endpoint("127.0.0.1", free)
            assert [one.fileno() == -1 for one in chosen.opened] == [True, True, False]


def test_the_attempts_for_a_free_pair_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    chosen = ChosenPorts(*[port] * 100)
    monkeypatch.setattr(listeners, "listen_tcp", chosen)
    taken = pytest.raises(StartError, match=f"--listen 127.0.0.1:{port}: the address is in use")
    with listen_udp(Endpoint("127.0.0.1", port), flag="test"), taken:
        listen_both(Endpoint("127.0.0.1", 0), flag="--listen")
    assert len(chosen.opened) == 20
    assert all(one.fileno() == -1 for one in chosen.opened)


def test_a_given_port_is_tried_once() -> None:
    port = free_port()
    taken = pytest.raises(StartError, match="the address is in use")
    with listen_udp(Endpoint("127.0.0.1", port), flag="test"), taken:
        listen_both(Endpoint("127.0.0.1", port), flag="--listen")
    with listen_tcp(Endpoint("127.0.0.1", port), flag="it was closed"):
        pass


@pytest.mark.parametrize("shared", [False, True])
def test_a_pair_on_port_0_has_one_port(shared: bool) -> None:
    stream, datagram = listen_both(Endpoint("::", 0), flag="--listen", shared=shared)
    with stream, datagram:
        assert bound_endpoint(stream) == bound_endpoint(datagram)
