"""A thousand changes a second, written into etcd beneath the API server; a process of its own.

    python -m tests.bench.sync.changing ETCD_PORT COUNT RATE SECONDS

The law: each change gives one Ingress another host of the same length, in the octets that the API server itself stored,
and goes out on its time. The API server can't take so many writes on the processors of a small machine; what it has to
send to those who watch is the same.
"""

from __future__ import annotations

import base64
import http.client
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.bench.sync.filling import ZONE, name_of, namespace_of

_THREADS: Final = 4
_CHANGED: Final = 2000
"""Objects that are changed in turn."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was done."""

    done: int
    seconds: float
    last: str
    """The host that the last change gave."""


class Etcd:
    """Its JSON interface (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/) over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def get(self, key: str) -> bytes:
        """A value that is there."""
        (row,) = self._ask("range", {"key": _encode(key.encode())})["kvs"]
        return base64.b64decode(row["value"])

    def put(self, key: str, value: bytes) -> None:
        """Set a value."""
        self._ask("put", {"key": _encode(key.encode()), "value": _encode(value)})

    def _ask(self, method: str, body: dict[str, str]) -> Any:
        self._connection.request("POST", f"/v3/kv/{method}", json.dumps(body))
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != http.client.OK:
            raise OSError(f"etcd: {answer}")
        return answer


def key_of(number: int) -> str:
    """Where the API server keeps an Ingress."""
    return f"/registry/ingress/{namespace_of(number)}/{name_of(number)}"


def flipped(value: bytes, number: int) -> tuple[bytes, str]:
    """The value with the other one of two hosts, and that host.

    The name of both is of the same length, so that the lengths in the protobuf stay right.
    """
    old, new = (f"{letter}{number}.{ZONE}" for letter in "hx")
    if new.encode() in value:
        old, new = new, old
    if old.encode() not in value:
        raise ValueError(f"no host of ours in the value of Ingress {number}")
    return value.replace(old.encode(), new.encode()), new


def change(port: int, *, count: int, rate: float, seconds: float) -> Changes:
    """Make so many changes a second among the first `count` objects; every object has its own host again in the end."""
    numbers = range(min(count, _CHANGED))
    etcd = Etcd(port)
    values = {number: etcd.get(key_of(number)) for number in numbers}
    total = round(rate * seconds)
    begun = time.monotonic()
    done = [0] * _THREADS
    last: list[tuple[int, str]] = [(-1, "")] * _THREADS

    def run(thread: int) -> None:
        mine = Etcd(port)
        for turn in range(thread, total, _THREADS):
            time.sleep(max(0.0, begun + turn / rate - time.monotonic()))
            if time.monotonic() - begun > 1.5 * seconds:
                return
            number = turn % len(numbers)
            values[number], host = flipped(values[number], number)
            mine.put(key_of(number), values[number])
            done[thread] += 1
            last[thread] = turn, host

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    return Changes(sum(done), took, max(last)[1])


def restore(port: int, *, count: int) -> None:
    """Give every object its own host again."""
    etcd = Etcd(port)
    for number in range(min(count, _CHANGED)):
        value = etcd.get(key_of(number))
        if f"x{number}.{ZONE}".encode() in value:
            etcd.put(key_of(number), flipped(value, number)[0])


def _encode(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def main() -> None:
    """The process."""
    port, count, rate, seconds = sys.argv[1:]
    found = change(int(port), count=int(count), rate=float(rate), seconds=float(seconds))
    print(json.dumps(asdict(found)))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main()
