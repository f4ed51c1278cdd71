"""Sockets from systemd: their environment variables, and descriptors of every kind."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from sidecar.sockets.inherited import inherited_count
from tests.kit.handing_over import HasDescriptor, started_with

US = 4321


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        pytest.param({}, 0, id="no variables"),
        pytest.param({"LISTEN_PID": "4321", "LISTEN_FDS": "2"}, 2, id="two"),
        pytest.param({"LISTEN_PID": "4321", "LISTEN_FDS": "0"}, 0, id="none"),
        pytest.param({"LISTEN_PID": "4321", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "dns"}, 1, id="names too"),
        pytest.param({"LISTEN_PID": "04321", "LISTEN_FDS": "02"}, 2, id="zeros in front"),
        pytest.param({"LISTEN_FDS": "2"}, 0, id="no process"),
        pytest.param({"LISTEN_PID": "4321"}, 0, id="no count"),
        pytest.param({"LISTEN_PID": "", "LISTEN_FDS": "2"}, 0, id="empty process"),
        pytest.param({"LISTEN_PID": "4321", "LISTEN_FDS": ""}, 0, id="empty count"),
        pytest.param({"listen_pid": "4321", "listen_fds": "2"}, 0, id="other case"),
    ],
)
def test_descriptors_for_this_process_are_counted(environment: Mapping[str, str], count: int) -> None:
    assert inherited_count(environment, process=US) == count


@pytest.mark.parametrize(
    "value",
    ["x", "-1", "+1", " 1", "1 ", "1\n", "1.0", "1e3", "0x1", "1,2", "\u0661", "\u00b2", "9" * 11, "9" * 5000],
    ids=ascii,
)
def test_what_is_no_number_is_refused(value: str) -> None:
    for name in ("LISTEN_PID", "LISTEN_FDS"):
        environment = {"LISTEN_PID": "4321", "LISTEN_FDS": "1", name: value}
        with pytest.raises(ValueError, match=r"systemd sets both to numbers") as caught:
            inherited_count(environment, process=US)
        assert name in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("pid", ["4320", "1", "0", "9999999999"])
def test_the_descriptors_of_another_process_are_refused(pid: str) -> None:
    with pytest.raises(ValueError, match=rf"for process {int(pid)}, and this is 4321; start it without a wrapper"):
        inherited_count({"LISTEN_PID": pid, "LISTEN_FDS": "1"}, process=US)


TAKE = """
import os, socket
from sidecar.values.errors import StartError
from sidecar.sockets.inherited import take_inherited

def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True

try:
    taken = take_inherited(flag="--listen")
except StartError as error:
    print(error)
    print("open:", *(one for one in range(3, 8) if is_open(one)))
else:
    for kind in taken:
        for one in kind:
            print(one.fileno(), one.family.name, one.type.name, one.getsockname()[1], one.getblocking(),
                  one.get_inheritable())
"""


def take(handed: list[HasDescriptor], **variables: str) -> list[str]:
    """What a process that was handed these prints about what it took."""
    with started_with(handed, "-c", TAKE, variables=variables) as process:
        output, errors = process.communicate(timeout=60)
    assert not errors
    assert process.returncode == 0
    return output.splitlines()


class Opened:
    """Sockets of every kind, all closed with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def tcp(self, family: socket.AddressFamily = socket.AF_INET) -> socket.socket:
        one = self._bound(family, socket.SOCK_STREAM)
        one.listen()
        return one

    def udp(self, family: socket.AddressFamily = socket.AF_INET) -> socket.socket:
        return self._bound(family, socket.SOCK_DGRAM)

    def silent_tcp(self) -> socket.socket:
        """One that does not listen."""
        return self._bound(socket.AF_INET, socket.SOCK_STREAM)

    def connection(self) -> socket.socket:
        """What a unit with Accept=yes is handed."""
        return self._stack.enter_context(socket.create_connection(self.tcp().getsockname()))

    def unbound_udp(self) -> socket.socket:
        return self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def unix(self, kind: int = socket.SOCK_STREAM) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self._stack.enter_context(theirs)
        return self._stack.enter_context(ours)

    def file(self) -> HasDescriptor:
        return self._stack.enter_context(open(__file__, "rb"))

    def _bound(self, family: socket.AddressFamily, kind: socket.SocketKind) -> socket.socket:
        one = self._stack.enter_context(socket.socket(family, kind))
        one.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        return one


@pytest.fixture
def opened() -> Iterator[Opened]:
    with ExitStack() as stack:
        yield Opened(stack)


def port(one: socket.socket) -> int:
    return int(one.getsockname()[1])


def test_both_kinds_are_taken_in_order_and_are_ready_for_an_event_loop(opened: Opened) -> None:
    first, second, third, fourth = opened.udp(), opened.tcp(), opened.tcp(socket.AF_INET6), opened.udp(socket.AF_INET6)
    assert take([first, second, third, fourth]) == [
        f"4 AF_INET SOCK_STREAM {port(second)} False False",
        f"5 AF_INET6 SOCK_STREAM {port(third)} False False",
        f"3 AF_INET SOCK_DGRAM {port(first)} False False",
        f"6 AF_INET6 SOCK_DGRAM {port(fourth)} False False",
    ]


@pytest.mark.parametrize("kind", [Opened.tcp, Opened.udp], ids=["TCP", "UDP"])
def test_one_kind_alone_is_enough(opened: Opened, kind: Callable[[Opened], socket.socket]) -> None:
    (line,) = take([kind(opened)])
    assert line.startswith("3 AF_INET ")


def test_only_as_many_as_are_counted_are_taken(opened: Opened) -> None:
    (line,) = take([opened.tcp(), opened.udp()], LISTEN_FDS="1")
    assert line.startswith("3 AF_INET SOCK_STREAM ")


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        pytest.param({"LISTEN_FDS": "0"}, "no socket was passed; start it with a .socket unit", id="none"),
        pytest.param({"LISTEN_FDS": ""}, "no socket was passed; start it with a .socket unit", id="no count"),
        pytest.param({"LISTEN_PID": ""}, "no socket was passed; start it with a .socket unit", id="no process"),
        pytest.param({"LISTEN_PID": "1"}, "the sockets are for process 1, and this is ", id="another process"),
        pytest.param({"LISTEN_FDS": "many"}, "LISTEN_FDS='many': systemd sets both to numbers", id="no number"),
        pytest.param({"LISTEN_FDS": "2"}, "descriptor 4 is not a socket: Bad file descriptor", id="one too many"),
        pytest.param({"LISTEN_FDS": "9999999999"}, "descriptor 4 is not a socket", id="thousands of millions"),
    ],
)
def test_variables_that_cannot_be_are_a_start_error(opened: Opened, variables: dict[str, str], complaint: str) -> None:
    message, _ = take([opened.tcp()], **variables)
    assert message.startswith("--listen systemd: ")
    assert complaint in message


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        pytest.param(Opened.file, "is not a socket: Socket operation on non-socket", id="a file"),
        pytest.param(Opened.unix, "is neither IPv4 nor IPv6", id="a local socket"),
        pytest.param(lambda opened: opened.unix(socket.SOCK_DGRAM), "is neither IPv4 nor IPv6", id="local datagrams"),
        pytest.param(Opened.silent_tcp, "does not listen; the .socket unit needs Accept=no", id="not listening"),
        pytest.param(Opened.connection, "does not listen; the .socket unit needs Accept=no", id="a connection"),
        pytest.param(Opened.unbound_udp, "is not bound to a port", id="not bound"),
    ],
)
def test_what_cannot_be_served_is_left_as_it_is_and_the_rest_is_closed(
    opened: Opened, make: Callable[[Opened], HasDescriptor], complaint: str
) -> None:
    assert take([opened.tcp(), make(opened)]) == [f"--listen systemd: descriptor 4 {complaint}", "open: 4"]
