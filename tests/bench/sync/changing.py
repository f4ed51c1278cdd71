"""A thousand changes a second, written into etcd beneath the API server; a process of its own.

    python -m tests.bench.sync.changing ETCD_PORT COUNT RATE SECONDS

The law: each change gives one Ingress another host of the same length, in the octets that the API server itself stored,
and goes out on its time; whoever asked for them has to restore() the hosts. The API server can't take so many writes on
the processors of a small machine; what it has to send to those who watch is the same.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from tests.bench.sync.etcd import Etcd
from tests.bench.sync.filling import ZONE, name_of, namespace_of

BEGUN: Final = "begun"
_THREADS: Final = 4
_CHANGED: Final = 2000
"""Objects that are changed in turn."""
_LATEST: Final = 10.0
"""Seconds after the end in which changes that are late are still made."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was done."""

    done: int
    seconds: float
    last: str
    """The host that the last change gave."""


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


def change(port: int, *, count: int, rate: float, seconds: float, tell: Callable[[], None]) -> Changes:
    """Make so many changes a second, in turn among the first of `count` objects; `tell` is called when they begin."""
    threads = min(_THREADS, count)
    # A multiple of the threads, so that each object is in the hands of one.
    objects = min(count, _CHANGED) // threads * threads
    with Etcd(port) as etcd:
        values = [etcd.get(key_of(number)) for number in range(objects)]
    tell()
    begun = time.monotonic()
    turns = range(round(rate * seconds))
    with ThreadPoolExecutor(threads) as pool:
        shares = [
            pool.submit(_take_turns, port, values, turns[first::threads], begun=begun, rate=rate, seconds=seconds)
            for first in range(threads)
        ]
    found = [share.result() for share in shares]
    return Changes(sum(len(one) for one in found), time.monotonic() - begun, max(one[-1] for one in found if one)[1])


def _take_turns(
    port: int, values: list[bytes], turns: range, *, begun: float, rate: float, seconds: float
) -> list[tuple[int, str]]:
    """Each of these turns on its time, as far as they get; the turns that were taken, and the hosts."""
    taken = []
    with Etcd(port) as etcd:
        for turn in turns:
            time.sleep(max(0.0, begun + turn / rate - time.monotonic()))
            if time.monotonic() - begun > seconds + _LATEST:
                break
            number = turn % len(values)
            values[number], host = flipped(values[number], number)
            etcd.put(key_of(number), values[number])
            taken.append((turn, host))
    return taken


def restore(port: int, *, count: int) -> None:
    """Give every object its own host again."""
    with Etcd(port) as etcd:
        for number in range(min(count, _CHANGED)):
            value = etcd.get(key_of(number))
            if f"x{number}.{ZONE}".encode() in value:
                etcd.put(key_of(number), flipped(value, number)[0])


def main() -> None:
    """The process."""
    port, count, rate, seconds = sys.argv[1:]
    tell = partial(print, BEGUN, flush=True)
    found = change(int(port), count=int(count), rate=float(rate), seconds=float(seconds), tell=tell)
    print(json.dumps(asdict(found)))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main()
