"""Connects a client to a backend whose endpoints take different PROXY headers.

The law: the endpoint that is dialled decides what it receives first, and whether a header of the client's own reaches
it; everything else is dialling.py. Only a route with such endpoints has this cost, for the minutes in which a
controller is rolled out with another setting.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Iterable
from typing import NamedTuple

from proxy.backends.backend import Address, Backend
from proxy.header.protocol import Beginning, ProxyProtocol, Writer, beginning_of, writer
from proxy.relay.core import Core
from proxy.relay.dialling import Dialling
from proxy.relay.headerless import HeaderlessSocket
from proxy.relay.side import Side
from proxy.tap.ended import Ending, Outcome
from sidecar.values.endpoints import Endpoint


class EndpointHeader(NamedTuple):
    """The header of the connections to an endpoint."""

    write: Writer
    refuses: bool
    """Whether a client that begins with a header of its own is reset before the endpoint sees it."""


class EndpointHeaders:
    """The headers of a route: one for most endpoints, and those of single ones by their address."""

    def __init__(
        self, usual: ProxyProtocol, exceptions: Iterable[tuple[str, ProxyProtocol]], *, checksum: bool
    ) -> None:
        make = functools.partial(_header_of, checksum=checksum)
        self._usual = make(usual)
        self._by_address = {address: make(protocol) for address, protocol in exceptions}

    def of(self, address: Address) -> EndpointHeader:
        """The header of the connections to an address."""
        return self._by_address.get(address.host, self._usual)


def _header_of(protocol: ProxyProtocol, *, checksum: bool) -> EndpointHeader:
    return EndpointHeader(writer(protocol, checksum=checksum), protocol is ProxyProtocol.NONE)


class EndpointDialling(Dialling):
    """A client whose backend is being connected, and whose header depends on the endpoint."""

    __slots__ = ("_destination", "_headers", "_refused", "_refuses")

    def __init__(
        self,
        core: Core,
        backend: Backend,
        client: socket.SocketType,
        headers: EndpointHeaders,
        *,
        source: tuple[str, int],
        destination: Endpoint,
    ) -> None:
        super().__init__(core, backend, client, b"", source=source)
        self._headers = headers
        self._destination = destination
        self._refuses = False
        """Whether the endpoint that was chosen last gets no header of the client's own."""
        self._refused = False
        """Whether that is why the client was reset."""

    def outcome(self) -> Outcome:
        """See Dialling."""
        return Outcome(Ending.HEADER) if self._refused else super().outcome()

    def read_payload(self) -> bool:
        """As of any client; False also for a header that the chosen endpoint must not get."""
        return super().read_payload() and not self._is_refused()

    def _begin_attempt(self, side: Side, address: Address) -> int:
        self._choose(address)
        if self._is_refused():
            side.release(self.core.poller, reset=True)
            self.close(reset=True)
            return 0
        return super()._begin_attempt(side, address)

    def _connected(self, side: Side) -> None:
        self._choose(self._attempts[side])
        super()._connected(side)

    def _establish(self, backend: Side, address: Address, sent: int, *, watched: bool) -> None:
        if self._refuses and beginning_of(self.payload) is Beginning.UNDECIDED:
            client, on_header = self.client, functools.partial(self.core.note_header, self.source[0])
            self.client = HeaderlessSocket(client.family, client.detach(), on_header=on_header, begun=self.payload)
            self.client.setblocking(False)
        super()._establish(backend, address, sent, watched=watched)

    def _choose(self, address: Address) -> None:
        header = self._headers.of(address)
        self.header = header.write(*self.source, self._destination)
        self._refuses = header.refuses

    def _is_refused(self) -> bool:
        if not self._refuses or beginning_of(self.payload) is not Beginning.HEADER:
            return False
        self._refused = True
        self.core.note_header(self.source[0])
        return True
