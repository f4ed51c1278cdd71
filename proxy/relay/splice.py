"""Pipes that octets pass through from one socket to another without being copied (splice(2)), and the pool of them.

The law: a pipe belongs to a direction only while it holds octets. An empty one goes back to the pool at once, so an
idle connection never has one, and how many there are is bounded by the descriptors that were set aside for them.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

import structlog

SIZE: Final = 524_288
"""Octets that a pipe is asked to hold: half of what a process may have without privileges (pipe(7),
/proc/sys/fs/pipe-max-size). With half of that a GB costs a tenth more, with twice as much hardly less; and a slow
reader holds up no more than this."""

MOST: Final = 128
"""Pipes at most: with SIZE the pages that one user may have without privileges (pipe(7), pipe-user-pages-soft)."""

# A pipe this small moves fewer octets per call than the buffer does.
_SMALLEST: Final = 65_536

# The kernel, a filter of system calls or a kind of socket does not know splice.
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM})

_FLAGS: Final = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Pipe:
    """Octets on their way between two sockets; false while it is empty."""

    __slots__ = ("held", "sink", "size", "source")

    def __init__(self, *, size: int) -> None:
        """Raises OSError, also where there is no permission for a pipe that is worth it."""
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
        """Take what a socket has to give, once, while nothing is held; 0 is its end. Raises OSError."""
        self.held = os.splice(descriptor, self.sink, self.size, flags=_FLAGS)
        return self.held

    def drain(self, descriptor: int) -> int:
        """Give a socket what it takes, once; how many octets went. Raises OSError."""
        sent = os.splice(self.source, descriptor, self.held, flags=_FLAGS)
        self.held -= sent
        return sent

    def take_back(self) -> bytes:
        """What is held, to be sent another way."""
        octets = bytearray()
        while self.held:
            piece = os.read(self.source, self.held)
            octets += piece
            self.held -= len(piece)
        return bytes(octets)

    def close(self) -> None:
        """What is held is lost."""
        os.close(self.source)
        os.close(self.sink)


class Pipes:
    """The pool; a context manager that owns the pipes in it."""

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
        """An empty pipe; None where there is none to be had, and copying has to do."""
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
        """The direction needs it no more; what it still holds is lost."""
        if pipe.held:
            # Whoever took it next would send a stranger's octets.
            pipe.close()
            self._made -= 1
        else:
            self._free.append(pipe)

    def switch_off(self, error: OSError) -> None:
        """Have no pipes from now on, because splice does not work here."""
        if self._most:
            log.info("copying instead of splicing", error=error.strerror)
        self._most = 0
        for pipe in self._free:
            pipe.close()
        self._free.clear()

    def _limit(self, error: OSError) -> None:
        # Without a descriptor now there may be one later; without the permission for pages there will not.
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            log.info("no more pipes to splice with", pipes=self._made, error=error.strerror)
            self._most = self._made


def pipes_within(descriptors: int) -> int:
    """How many pipes a process may have that is allowed so many descriptors: an eighth of them, two for each."""
    return min(MOST, descriptors // 16)


def _resize(pipe: int, size: int) -> int:
    """The size that a pipe has in the end: the kernel may refuse more than it gave."""
    try:
        return fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
    except PermissionError:
        given = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
        if given < _SMALLEST:
            raise
        return given
