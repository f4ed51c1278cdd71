"""Messages in a stream: two octets of length before each (RFC 1035 section 4.2.2).

The law: octets in, octets out; the reader of the stream owns the buffer.
"""

from __future__ import annotations

from typing import Final

_PREFIX: Final = 2


def is_whole(received: bytearray) -> bool:
    """Whether the buffer starts with a whole message."""
    return len(received) >= _PREFIX and len(received) >= _PREFIX + int.from_bytes(received[:_PREFIX], "big")


def take_message(received: bytearray) -> bytes:
    """Remove the whole message at the start of the buffer."""
    end = _PREFIX + int.from_bytes(received[:_PREFIX], "big")
    message = bytes(received[_PREFIX:end])
    del received[:end]
    return message


def format_message(message: bytes) -> bytes:
    """Length and message, for one write (RFC 7766 section 8)."""
    return len(message).to_bytes(_PREFIX, "big") + message
