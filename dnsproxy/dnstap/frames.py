"""Frame Streams (https://farsightsec.github.io/fstrm): frames with a length, and control frames around them.

The law: octets in and values out. A control frame of the collector is read within bounds, wherever the network cuts it,
or BadFrame says what is wrong with it. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

CONTENT_TYPE: Final = b"protobuf:dnstap.Dnstap"
LONGEST_CONTROL: Final = 512
"""Octets of a control frame: FSTRM_CONTROL_FRAME_LENGTH_MAX."""
LONGEST_CONTENT_TYPE: Final = 256
"""FSTRM_CONTROL_FIELD_CONTENT_TYPE_LENGTH_MAX."""
_ESCAPE: Final = b"\0\0\0\0"
_CONTENT_TYPE_FIELD: Final = 1
_WORD: Final = 4
_HEAD: Final = 2 * _WORD
"""Octets before a body: escape and length; or before the value of a field: its type and length."""


class BadFrame(ValueError):
    """What came is not a control frame, or not the one that the protocol has there."""


class Kind(IntEnum):
    """The kinds of control frames."""

    ACCEPT = 1
    START = 2
    STOP = 3
    READY = 4
    FINISH = 5


@dataclass(frozen=True, slots=True)
class Control:
    """A control frame."""

    kind: Kind
    content_types: tuple[bytes, ...] = ()

    def accepts(self, content_type: bytes) -> bool:
        """Whether it names this content type, or none, which stands for every one."""
        return not self.content_types or content_type in self.content_types


def format_data(payload: bytes) -> bytes:
    """A data frame."""
    return len(payload).to_bytes(4, "big") + payload


def format_control(control: Control) -> bytes:
    """A control frame with its escape."""
    fields = b"".join(
        _word(_CONTENT_TYPE_FIELD) + _word(len(content_type)) + content_type for content_type in control.content_types
    )
    body = _word(control.kind) + fields
    return _ESCAPE + _word(len(body)) + body


class ControlReader:
    """Reads control frames from pieces of a stream."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, piece: bytes) -> None:
        """Take the next octets of the stream."""
        self._buffer += piece

    def next_control(self) -> Control | None:
        """The next control frame; None until all of it is there. Raises BadFrame as soon as it cannot become one."""
        if self._buffer[:4] != _ESCAPE[: len(self._buffer)]:
            raise BadFrame("a data frame or no Frame Streams at all")
        if len(self._buffer) < _HEAD:
            return None
        size = int.from_bytes(self._buffer[4:8], "big")
        if not _WORD <= size <= LONGEST_CONTROL:
            raise BadFrame(f"a control frame of {size} octets, not of {_WORD} to {LONGEST_CONTROL}")
        if len(self._buffer) < _HEAD + size:
            return None
        body, self._buffer = self._buffer[_HEAD : _HEAD + size], self._buffer[_HEAD + size :]
        return _parse_body(body)


def _parse_body(body: bytes) -> Control:
    number = int.from_bytes(body[:4], "big")
    try:
        kind = Kind(number)
    except ValueError:
        raise BadFrame(f"a control frame of the unknown kind {number}") from None
    return Control(kind, _parse_fields(body[4:]))


def _parse_fields(fields: bytes) -> tuple[bytes, ...]:
    found = []
    while fields:
        field, size = int.from_bytes(fields[:4], "big"), int.from_bytes(fields[4:8], "big")
        end = _HEAD + size
        if len(fields) < _HEAD or len(fields) < end or field != _CONTENT_TYPE_FIELD or size > LONGEST_CONTENT_TYPE:
            raise BadFrame("a control frame with a field that is cut off or not known")
        found.append(fields[_HEAD:end])
        fields = fields[end:]
    return tuple(found)


def _word(number: int) -> bytes:
    return number.to_bytes(_WORD, "big")
