"""Abuse of a server on loopback, each kind bounded in count and time; a process of its own.

The law: it goes to loopback alone, and ends by itself. When it does, it prints how much it did, because a disturbance
that did nothing would make every server look calm.

    python -m tests.bench.dns.abuse KIND PORT SECONDS [HOSTS_FILE]
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.bench.dns import bombs
from tests.bench.dns.crowd import Crowd
from tests.bench.dns.workloads import SUFFIX
from tests.kit.messages import query, question

TORTURE_RATE: Final = 10_000
"""Forwarded queries a second: in two seconds more than may be under way."""
FOREIGN: Final = "random.example.net"
_OURS: Final = f"app-00001.{SUFFIX}"
_SWAPS_EVERY: Final = 1.2
"""Seconds: the file must have rested for a moment before it is read."""
_STREAM_BOMBS_EVERY: Final = 0.01


def ticks(every: float, seconds: float) -> Iterator[int]:
    """Numbers on a steady clock; what a busy machine is late with is left out, so that there are no bursts."""
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        number = int(now / every)
        yield number
        time.sleep(max(0.0, begun + (number + 1) * every - time.monotonic()))


class Datagrams:
    """A connected UDP socket that sends, and throws away what comes back."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(("127.0.0.1", port))
        self.sent = 0

    def send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.send(message)
            self.sent += 1

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.socket.recv(65535)


def send_bombs(port: int, seconds: float) -> int:
    """2,000 datagrams and up to 100 stream messages a second, and queries that answer_bombs replies to."""
    shapes = [bombs.query_bomb(size) for size in bombs.SIZES]
    shapes += [bombs.masked_bomb(question(_OURS), size) for size in bombs.SIZES]
    framed = _framed(bombs.query_bomb(bombs.STREAM_SIZE)) * 16
    udp, chance, shape = Datagrams(port), random.Random(1), itertools.cycle(shapes)  # noqa: S311
    with Crowd(port, size=4, octets=lambda: framed) as crowd:
        for _ in ticks(_STREAM_BOMBS_EVERY, seconds):
            for message in itertools.islice(shape, 20):
                udp.send(message)
            for _ in range(5):
                udp.send(_foreign(chance))
            udp.discard()
            crowd.press(bombs.STREAM_SIZE // 4)
        return udp.sent + crowd.opened


def answer_bombs(port: int, seconds: float) -> int:
    """An upstream at `port` whose replies are bombs."""
    size, answered = itertools.cycle(bombs.SIZES), 0
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as upstream:
        upstream.bind(("127.0.0.1", port))
        while (left := deadline - time.monotonic()) > 0:
            upstream.settimeout(left)
            with contextlib.suppress(OSError, ValueError):
                message, client = upstream.recvfrom(4096)
                upstream.sendto(bombs.reply_bomb(message, next(size)), client)
                answered += 1
    return answered


def send_torture(port: int, seconds: float, *, rate: int = TORTURE_RATE) -> int:
    """Random labels, which all must be forwarded."""
    udp, chance, every = Datagrams(port), random.Random(2), 0.005  # noqa: S311
    for _ in ticks(every, seconds):
        for _ in range(round(rate * every)):
            udp.send(_foreign(chance))
        udp.discard()
    return udp.sent


def use_descriptors(port: int, seconds: float) -> int:
    """More idle connections than the server has descriptors, and names to forward."""
    udp, chance = Datagrams(port), random.Random(3)  # noqa: S311
    with Crowd(port, size=200, octets=lambda: b"") as crowd:
        for _ in ticks(0.05, seconds):
            crowd.press(0)
            for _ in range(25):
                udp.send(_foreign(chance))
            udp.discard()
        return udp.sent + crowd.opened


def send_slowly(port: int, seconds: float) -> int:
    """200 connections that send an octet a second each."""
    with Crowd(port, size=200, octets=lambda: _framed(query(_OURS))) as crowd:
        for _ in ticks(1.0, seconds):
            crowd.press(1)
        return crowd.opened


def read_nothing(port: int, seconds: float) -> int:
    """20 connections that each send 10,000 queries as fast as they are taken, and read no reply."""
    flood = _framed(query(_OURS)) * 10_000
    with Crowd(port, size=20, octets=lambda: flood, most=1_000) as crowd:
        for _ in ticks(0.005, seconds):
            crowd.press(1 << 16)
        return crowd.opened


def swap_table(path: Path, seconds: float) -> int:
    """Another address for every name, again and again; the file is replaced whole."""
    content, count = path.read_text(), 0
    versions = itertools.cycle((content.replace("192.0.2.", "198.51.100."), content))
    for _ in ticks(_SWAPS_EVERY, seconds):
        fresh = path.with_suffix(".new")
        fresh.write_text(next(versions))
        os.replace(fresh, path)
        count += 1
    return count


KINDS: Final[Mapping[str, Callable[[int, float], int]]] = {
    "bombs": send_bombs,
    "answer-bombs": answer_bombs,
    "torture": send_torture,
    "descriptors": use_descriptors,
    "slow": send_slowly,
    "unread": read_nothing,
}
SWAP: Final = "swap"


def _foreign(chance: random.Random) -> bytes:
    return query(f"{chance.getrandbits(48):012x}.{FOREIGN}", ident=chance.getrandbits(16))


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


def main() -> None:
    """The process."""
    kind, port, seconds, *hosts = sys.argv[1:]
    if kind == SWAP:
        count = swap_table(Path(hosts[0]), float(seconds))
    else:
        count = KINDS[kind](int(port), float(seconds))
    print(json.dumps(count))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main()
