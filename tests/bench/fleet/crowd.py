"""The process of the secondaries, as the program that measures has it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from dnsproxy.zone.serials import is_newer
from tests.bench.fleet.addresses import PRIMARY
from tests.bench.kit.faults import BadReport
from tests.bench.kit.loads import log_end, running_module
from tests.kit.ports import free_port

_LOOK_SECONDS: Final = 0.02
_START_SECONDS: Final = 30.0
_ORDER_SECONDS: Final = 60.0


class Event(NamedTuple):
    """A secondary has a version."""

    address: str
    serial: int
    at: float
    """time.monotonic."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What happened to the secondaries in some time."""

    events: list[Event]
    counts: dict[str, int]


class Crowd:
    """All secondaries."""

    def __init__(self, count: int, control: socket.socket, *, session: int) -> None:
        self.count = count
        self.session = session
        self._control = control
        self._lines = control.makefile("rb")

    def load(self, count: int | None = None) -> float:
        """Have all of them, or the first so many, transfer the whole zone; when it was said."""
        begun = time.monotonic()
        self._order({"load": self.count if count is None else count})
        return begun

    def take(self) -> Taken:
        """What happened since the last call."""
        found = self._order({"take": True})
        return Taken([Event(*one) for one in found["events"]], found["counts"])

    def count_newer(self, than: int | None) -> int:
        """How many have a newer version than this; any version, if it is None."""
        found = self._order({"serials": True})["serials"]
        return sum(count for serial, count in found if than is None or is_newer(serial, than))

    def wait_newer(self, than: int | None, *, patience: float) -> None:
        """Until all have a newer version. Raises BadReport."""
        deadline = time.monotonic() + patience
        while (found := self.count_newer(than)) < self.count:
            if time.monotonic() > deadline:
                raise BadReport(f"only {found} of {self.count} secondaries have the zone after {patience:g} s")
            time.sleep(_LOOK_SECONDS)

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        self._control.sendall(json.dumps(order).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer


@contextmanager
def running_crowd(zone: str, port: int, count: int, *, folder: Path, cpus: Collection[int]) -> Iterator[Crowd]:
    """So many secondaries of a primary on a port, for the time of a block. Raises BadReport."""
    control, log = free_port(), folder / "crowd.log"
    arguments = (zone, port, count, control)
    with running_module("tests.bench.fleet.secondaries", *arguments, log=log, cpus=cpus) as process:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                opened = socket.create_connection((PRIMARY, control), timeout=_ORDER_SECONDS)
            except OSError:
                if time.monotonic() > deadline:
                    raise BadReport(f"the secondaries did not start{log_end(log)}") from None
                time.sleep(_LOOK_SECONDS)
            else:
                break
        with opened:
            yield Crowd(count, opened, session=process.pid)
