"""Pipes that move bytes from one socket to another without a copy (splice(2)), and the pool of pipes.

The law: a pipe belongs to a direction only while it holds bytes. An empty pipe returns to the pool at once, so an idle
connection has none, and the descriptors reserved for pipes bound their number (limits.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

import structlog

SIZE: Final = 524_288
"""Bytes that a pipe should hold: half of what a process may have without privileges (pipe(7),
/proc/sys/fs/pipe-max-size). With half of this size, a GB costs a tenth more; with twice this size, hardly less. It is
also the most that a slow reader holds up."""

# A smaller pipe moves fewer bytes per call than the buffer does.
_SMALLEST: Final = 65_536

# The kernel, a seccomp filter or a type of socket does not support splice.
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})

_FLAGS: Final = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Pipe:
    """Bytes in transit between two sockets; false while empty."""

    __slots__ = ("held", "sink", "size", "source")

    def __init__(self, *, size: int) -> None:
        """Raises OSError, also if the permitted size is too small to be useful."""
        self.source, self.sink = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.held = 0
        try:
            self.size = _resize(self.sink, size)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self.held

    def fill(self, descriptor: int) -> int:
        """Read once from a socket into the empty pipe; returns the number of bytes, 0 at FIN. Raises OSError."""
        self.held = os.splice(descriptor, self.sink, self.size, flags=_FLAGS)
        return self.held

    def drain(self, descriptor: int) -> int:
        """Write once from the pipe to a socket; returns the number of bytes. Raises OSError."""
        sent = os.splice(self.source, descriptor, self.held, flags=_FLAGS)
        self.held -= sent
        return sent

    def take_back(self) -> bytes:
        """Empty the pipe and return its bytes, to be sent without splice."""
        octets = bytearray()
        while self.held:
            piece = os.read(self.source, self.held)
            octets += piece
            self.held -= len(piece)
        return bytes(octets)

    def close(self) -> None:
        """Close the pipe; its bytes are lost."""
        os.close(self.source)
        os.close(self.sink)


class Pipes:
    """The pool of pipes; a context manager that closes the free ones."""

    def __init__(self, *, most: int) -> None:
        self._free: list[Pipe] = []
        self._made = 0
        self._most = most

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._free:
            pipe.close()
        self._free.clear()

    def take(self) -> Pipe | None:
        """An empty pipe; None if there is none, so that the caller has to copy."""
        if self._free:
            return self._free.pop()
        if self._made >= self._most:
            return None
        try:
            pipe = Pipe(size=SIZE)
        except OSError as error:
            self._limit(error)
            return None
        self._made += 1
        return pipe

    def give_back(self, pipe: Pipe) -> None:
        """Return a pipe; bytes that it still holds are lost."""
        if pipe.held:
            # Its next user would send the bytes of another connection.
            pipe.close()
            self._made -= 1
        else:
            self._free.append(pipe)

    def switch_off(self, error: OSError) -> None:
        """Hand out no more pipes, because splice does not work here."""
        if self._most:
            log.info("copying instead of splicing", error=error.strerror)
        self._most = 0
        for pipe in self._free:
            pipe.close()
        self._free.clear()

    def _limit(self, error: OSError) -> None:
        # A descriptor may be free later; a missing permission for pages does not change.
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            log.info("no more pipes to splice with", pipes=self._made, error=error.strerror)
            self._most = self._made


def _resize(pipe: int, size: int) -> int:
    """Resize a pipe; returns its size, which stays as it was if the kernel refuses."""
    try:
        return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
    except PermissionError:
        given = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
        if given < _SMALLEST:
            raise
        return given
