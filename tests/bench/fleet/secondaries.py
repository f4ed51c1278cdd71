"""Thousands of secondaries of one zone in one process, each with an address and sockets of its own.

    python -m tests.bench.fleet.secondaries ZONE PRIMARY-PORT COUNT CONTROL-PORT

The law: it does what it is told over the control connection, a JSON object a line, and answers each with one.
"""

from __future__ import annotations

import json
import socket
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from dnsproxy.dns.names import parse_zone, to_wire
from tests.bench.fleet.addresses import PRIMARY, address_of
from tests.bench.fleet.loop import Loop
from tests.bench.fleet.secondary import Record, Secondary

_LINE: Final = 1 << 16


class Fleet:
    """All of them."""

    def __init__(self, loop: Loop, zone: bytes, *, port: int, count: int) -> None:
        self._record = Record()
        self._secondaries = [
            Secondary(loop, self._record, address_of(number), zone=zone, primary=(PRIMARY, port))
            for number in range(count)
        ]

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """`load`: the first so many forget the zone and transfer it whole. `take`: what happened since the last one."""
        match order:
            case {"load": int(count)}:
                for one in self._secondaries[:count]:
                    one.load()
                return {}
            case {"take": _}:
                events, counts = self._record.events, dict(self._record.counts)
                self._record.events, self._record.counts = [], Counter()
                return {"events": events, "counts": counts}
            case _:
                serials = Counter(one.serial for one in self._secondaries)
                return {"serials": [[serial, count] for serial, count in serials.items() if serial is not None]}


def serve_control(loop: Loop, port: int, obey: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Obey the program that measures."""
    listener = socket.create_server((PRIMARY, port))

    def accept() -> None:
        connection, _ = listener.accept()
        received = bytearray()

        def receive() -> None:
            octets = connection.recv(_LINE)
            if not octets:
                loop.close(connection)
                return
            received.extend(octets)
            while b"\n" in received:
                line, _, rest = bytes(received).partition(b"\n")
                received[:] = rest
                connection.sendall(json.dumps(obey(json.loads(line))).encode() + b"\n")

        loop.watch(connection, receive)

    loop.watch(listener, accept)


def main(zone: str, port: int, count: int, control: int) -> None:
    """The process."""
    loop = Loop()
    fleet = Fleet(loop, to_wire(parse_zone(zone)), port=port, count=count)
    serve_control(loop, control, fleet.obey)
    loop.run()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
