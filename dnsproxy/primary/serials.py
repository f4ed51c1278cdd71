"""The serials of a primary that is alone: from the clock, or from a file that has the highest one that may be in use.

The law: no serial is given twice, and none that is older than one before, also not after a crash: the file has a number
that no serial has passed, and is written before one passes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog
import trio

from dnsproxy.zone.serials import MODULUS, following, is_newer, newest
from sidecar.files.follow import read_octets, reason_of
from sidecar.files.replace import replace_file

BLOCK: Final = 1 << 12
"""Serials that one write reserves."""
_DIGITS: Final = 10
_LARGEST: Final = 64
"""Octets of the file: a number and what an editor puts around it."""
_AHEAD: Final = 2
"""Seconds that a serial may be ahead of the clock until the clock counts as set back."""


def clock_serial(now: float) -> int:
    """The serial of a time, in seconds since the epoch: the usual choice (BIND's serial-update-method unixtime)."""
    return int(now) % MODULUS or 1


class ClockSerials:
    """The time of day in seconds, at most one version in each: a process that starts later gives later serials.

    A clock that went back repeats serials. The first second of a process is left out, because the process before may
    have used it.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._begun = int(now())

    def may_publish(self) -> bool:
        """See Serials."""
        return True

    async def next(self, after: int) -> int | None:
        """See Serials; waits for the next second if this one has a version."""
        while True:
            now = self._now()
            serial = clock_serial(now)
            if int(now) != self._begun and (not after or is_newer(serial, after)):
                return serial
            if after and is_newer(after, following(serial, _AHEAD)):
                # A clock that went back: the serials go on without it.
                return following(after)
            await trio.sleep(max(0.001, int(now) + 1 - now))


class FileSerials:
    """Keeps the ceiling in a file: a decimal number and a line end."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._ceiling: int | None = None
        self._warned = False
        self._log = structlog.get_logger("dnsproxy.rpz")

    def may_publish(self) -> bool:
        """See Serials."""
        return True

    async def next(self, after: int) -> int | None:
        """See Serials."""
        if self._ceiling is None:
            ceiling = await trio.to_thread.run_sync(self._read)
            start = clock_serial(self._now()) if ceiling is None else following(ceiling)
            serial = newest(following(after), start) if after else start
            self._ceiling = (serial - 1) % MODULUS
        else:
            serial = following(after)
        if is_newer(serial, self._ceiling):
            self._ceiling = following(serial, BLOCK)
            await trio.to_thread.run_sync(self._write, self._ceiling)
        return serial

    def _read(self) -> int | None:
        try:
            text = read_octets(self._path, largest=_LARGEST).decode("ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._warn("cannot be read", reason_of(error))
            return None
        if not (text.isdigit() and len(text) <= _DIGITS and int(text) < MODULUS):
            self._warn("cannot be read", "it is not a serial; the clock tells the next one")
            return None
        return int(text)

    def _write(self, ceiling: int) -> None:
        # Not Path.resolve(), which raises RuntimeError for a link to itself.
        path = Path(os.path.realpath(self._path))
        try:
            replace_file(path, [b"%d\n" % ceiling], prefix=f".{path.name}.new-")
        except OSError as error:
            self._warn("cannot be written", reason_of(error))

    def _warn(self, what: str, cause: str) -> None:
        if not self._warned:
            self._log.warning(f"the file of --rpz-serial {what}", path=str(self._path), cause=cause)
        self._warned = True


class SameSerials:
    """Gives the serials of another primary on, whose zone is served here too."""

    def __init__(self, serial: Callable[[], int | None]) -> None:
        self._serial = serial

    def may_publish(self) -> bool:
        """See Serials."""
        return self._serial() is not None

    async def next(self, after: int) -> int | None:
        """See Serials."""
        await trio.lowlevel.checkpoint()
        return self._serial() or following(after)
