"""Runs in the client's pod with plain Python: many lookups in the cluster's DNS, or page requests, without retries.

    load.py dns STOP NAMESERVER SUFFIX ADDRESS COUNT    lookups of unique names below SUFFIX, at least COUNT
    load.py http STOP URL                               pages, each over a new connection

It runs until the file STOP exists, so that an action meanwhile is under load from its beginning to its end.
The law: nothing is retried, so that every loss shows. Prints one JSON object.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

WORKERS = 8
LONGEST = 600.0
"""Time limit in seconds, if the file STOP never appears."""
PATIENCE = 6.0
"""Seconds for one lookup: longer than CoreDNS needs for one dead dnsproxy and the next upstream."""


def look_up(nameserver: str, name: str, address: bytes) -> str:
    """`ok`, or the error."""
    ident = struct.unpack("!H", os.urandom(2))[0]
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = struct.pack("!6H", ident, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.connect((nameserver, 53))
        try:
            client.send(query)
            reply = client.recv(4096)
        except OSError as error:
            return type(error).__name__
    if struct.unpack("!H", reply[:2])[0] != ident:
        return "another's reply"
    if reply[3] & 15:
        return f"rcode {reply[3] & 15}"
    return "ok" if reply.endswith(address) else "another address"


def fetch(url: str) -> str:
    """`ok`, or the error."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("GET", parts.path or "/", headers={"connection": "close"})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
    return "ok" if response.status == http.client.OK else str(response.status)


def many(ask: Callable[[int], str], goes_on: Callable[[int], bool], *, workers: int) -> dict[str, object]:
    """Ask from several threads until the end; a failure's first and last time are for comparison with logs."""
    said: Counter[str] = Counter()
    times: dict[str, list[str]] = {}
    slowest = 0.0
    numbers = iter(range(10**9))
    lock = threading.Lock()

    def work() -> None:
        nonlocal slowest
        while True:
            with lock:
                number = next(numbers)
            if not goes_on(number):
                return
            begun = time.monotonic()
            answer = ask(number)
            lasted = time.monotonic() - begun
            with lock:
                said[answer] += 1
                if answer != "ok":
                    now = datetime.now(UTC).isoformat(timespec="milliseconds")
                    times[answer] = [times.get(answer, [now])[0], now]
                slowest = max(slowest, lasted)

    begun = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    return {"said": dict(said), "seconds": round(seconds, 1), "slowest": round(slowest, 2), "first_and_last": times}


def main(what: str, stop: str, *words: str) -> dict[str, object]:
    """Run the command line's command."""
    file, deadline = Path(stop), time.monotonic() + LONGEST

    def goes_on(number: int, least: int) -> bool:
        return number < least or (not file.exists() and time.monotonic() < deadline)

    if what == "dns":
        nameserver, suffix, address, count = words
        run, wanted = os.urandom(3).hex(), socket.inet_aton(address)
        return many(
            lambda number: look_up(nameserver, f"h{run}-{number}.{suffix}", wanted),
            lambda number: goes_on(number, int(count)),
            workers=WORKERS,
        )
    (url,) = words
    return many(lambda _: fetch(url), lambda number: goes_on(number, 0), workers=4)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))  # noqa: T201  # its output is its result
