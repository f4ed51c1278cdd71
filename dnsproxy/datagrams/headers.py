"""Message headers for recvmmsg(2) and sendmmsg(2): BATCH of them, laid out as the kernel reads them.

The law: layout and nothing else. Headers are made once and touched in bulk through strided views, because a Python
statement per field and datagram would cost as much as a batch saves.
"""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

from dnsproxy.datagrams.port import BATCH


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
    """BATCH message headers, each with `parts` vectors, and views over single fields of all of them.

    Of the vectors the views show each header's last, and the first_... views its first.
    """

    def __init__(self, *, parts: int = 1) -> None:
        self.vectors = (IoVector * (parts * BATCH))()
        self.headers = (MessageHeader * BATCH)()
        vectors = ctypes.addressof(self.vectors)
        for index, header in enumerate(self.headers):
            header.vector = vectors + index * parts * ctypes.sizeof(IoVector)
            header.vector_length = parts
        bases = _field_view(self.vectors, IoVector, "base", "Q")
        sizes = _field_view(self.vectors, IoVector, "length", "Q")
        self.first_bases, self.bases = bases[::parts], bases[parts - 1 :: parts]
        self.first_sizes, self.sizes = sizes[::parts], sizes[parts - 1 :: parts]
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


def mapped(size: int) -> tuple[mmap.mmap, int]:
    """As `pinned`, of whole pages; a slice of it is bytes, and so costs half as much as a copy of a slice of a view."""
    buffer = mmap.mmap(-1, size)
    return buffer, ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def addresses(base: int, size: int) -> memoryview:
    """Where the parts of a buffer begin, each of that size and one for each datagram."""
    return memoryview(array.array("Q", range(base, base + size * BATCH, size)))


def chosen(values: memoryview, places: Sequence[int]) -> Any:
    """The values at some places, ready to be written into a view; a range of places is the first so many."""
    if isinstance(places, range):
        return values[: len(places)]
    return array.array(values.format, map(values.__getitem__, places))
