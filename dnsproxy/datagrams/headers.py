"""recvmmsg(2) and sendmmsg(2), and BATCH message headers for them, laid out as the kernel reads them.

The law: layout and nothing else. Headers are made once and touched in bulk through strided views, because a Python
statement per field and datagram would cost as much as a batch saves. Tested in tests/dnsproxy/datagrams/test_batch.py.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import socket
from collections.abc import Sequence
from typing import Any, Final

from dnsproxy.datagrams.port import BATCH

NAME_SIZES: Final = {socket.AF_INET: 16, socket.AF_INET6: 28}
"""sizeof(struct sockaddr_in) and sizeof(struct sockaddr_in6)."""


def system_calls() -> tuple[Any, Any]:
    """Recvmmsg and sendmmsg. Linux only."""
    # PyDLL keeps the interpreter lock: these calls never wait, and releasing it costs more time than they take.
    library = ctypes.PyDLL(None, use_errno=True)
    return library.recvmmsg, library.sendmmsg


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
    """BATCH message headers, each with `parts` vectors, and views over one field of all headers.

    The views `bases` and `sizes` show the last vector of each header, `first_bases` and `first_sizes` the first.
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
    """Zeros and their address. A view cannot grow, so the memory that the kernel reads and writes never moves."""
    # The kernel makes a page of a mapping when it is first written. A bytearray writes all of its zeros at once: 4.6 MB
    # of a server that answers a few short queries at a time would be resident for nothing.
    buffer = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memoryview(buffer), ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def mapped(size: int) -> tuple[mmap.mmap, int]:
    """As `pinned`, of whole pages. A slice of it is bytes, at half the cost of copying a slice of a view."""
    buffer = mmap.mmap(-1, size)
    return buffer, ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def addresses(base: int, size: int) -> memoryview:
    """The addresses of BATCH parts of a buffer, each of that size."""
    return memoryview(array.array("Q", range(base, base + size * BATCH, size)))


def lengths_of(size: int) -> array.array[int]:
    """One length for each of BATCH parts or datagrams."""
    return array.array("Q", [size] * BATCH)


def chosen(values: memoryview, places: Sequence[int]) -> Any:
    """The values at these places, ready to be written into a view; a range stands for the first places."""
    if isinstance(places, range):
        return values[: len(places)]
    return array.array(values.format, map(values.__getitem__, places))
