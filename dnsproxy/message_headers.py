"""Message headers for recvmmsg(2) and sendmmsg(2): BATCH of them, laid out as the kernel reads them.

The law: layout and nothing else. Headers are made once and touched in bulk through strided views, because a Python
statement per field and datagram would cost as much as a batch saves.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any

from dnsproxy.datagrams import BATCH


class IoVector(ctypes.Structure):
    """A struct iovec (readv(2))."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class SingleHeader(ctypes.Structure):
    """A struct msghdr (recvmsg(2))."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vector", ctypes.c_void_p),
        ("vector_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class MessageHeader(ctypes.Structure):
    """A struct mmsghdr (recvmmsg(2))."""

    _anonymous_ = ("single",)
    _fields_ = (("single", SingleHeader), ("length", ctypes.c_uint))


class Headers:
    """BATCH message headers, each with one vector, and views over single fields of all of them."""

    def __init__(self) -> None:
        self.vectors = (IoVector * BATCH)()
        self.headers = (MessageHeader * BATCH)()
        vectors = ctypes.addressof(self.vectors)
        for index, header in enumerate(self.headers):
            header.vector = vectors + index * ctypes.sizeof(IoVector)
            header.vector_length = 1
        self.bases = _field_view(self.vectors, IoVector, "base", "Q")
        self.sizes = _field_view(self.vectors, IoVector, "length", "Q")
        self.names = _field_view(self.headers, MessageHeader, "name", "Q")
        self.name_lengths = _field_view(self.headers, MessageHeader, "name_length", "I")
        self.controls = _field_view(self.headers, MessageHeader, "control", "Q")
        self.control_lengths = _field_view(self.headers, MessageHeader, "control_length", "Q")
        self.lengths = _field_view(self.headers, MessageHeader, "length", "I")


def _field_view(values: Any, structure: type[ctypes.Structure], field: str, code: str) -> memoryview:
    """One field of an array of structures as a strided view."""
    width = array.array(code).itemsize
    offset = getattr(structure, field).offset
    return memoryview(values).cast("B").cast(code)[offset // width :: ctypes.sizeof(structure) // width]  # type: ignore[call-overload, no-any-return]


def pinned(size: int) -> tuple[memoryview, int]:
    """A buffer and its address; a view cannot grow, so nothing can move what the kernel writes to and reads from."""
    buffer = bytearray(size)
    return memoryview(buffer), ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def chosen(values: Any, code: str, places: Sequence[int]) -> array.array[int]:
    """The values at some places, ready to be written into a view."""
    return array.array(code, map(values.__getitem__, places))
