"""A client's socket from which no PROXY header can be read, for routes without a header of the relay.

The law: every octet of such a client is read here, whoever asks for it and however late or split it comes. The backend
of such a route may be a port that takes headers: it trusts the relay's address, and a header of the client's own would
state any address. A read that would complete the beginning of a header fails as if the client had sent RST, which the
relay passes on. What was read before is at most four octets, and no header.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from proxy.header.protocol import LONGEST_BEGINNING, Beginning, beginning_of

# The number without its enum, as in listener.py.
_STREAM: Final = int(socket.SOCK_STREAM)


class HeaderlessSocket(socket.SocketType):
    """A stream socket that is reset when its peer begins with a PROXY header."""

    refused = False
    """Whether that has happened."""

    def __init__(self, family: int, descriptor: int, *, on_header: Callable[[], None], begun: bytes = b"") -> None:
        """Takes over the descriptor; `on_header` is called at most once. `begun`: what was read before."""
        super().__init__(family, _STREAM, 0, descriptor)
        self._begun: bytes | None = begun
        """The first octets; None if they are no header."""
        self._on_header = on_header

    def recv_into(self, buffer: bytearray, nbytes: int = 0, flags: int = 0) -> int:  # type: ignore[override]
        """As of any socket. Raises ConnectionResetError if this is the beginning of a header, and ever after."""
        if self._begun is None:
            return super().recv_into(buffer, nbytes, flags)
        if self.refused:
            raise ConnectionResetError
        count = super().recv_into(buffer, nbytes, flags)
        begun = self._begun + buffer[: min(count, LONGEST_BEGINNING)]
        beginning = beginning_of(begun)
        if beginning is Beginning.HEADER:
            self.refused = True
            self._on_header()
            raise ConnectionResetError
        self._begun = None if beginning is Beginning.NO_HEADER else begun
        return count
