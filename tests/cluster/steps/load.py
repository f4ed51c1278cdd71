"""Runs in the client's pod with plain Python: many lookups in the cluster's DNS, or page requests, without retries.

    load.py dns STOP NAMESERVER SUFFIX ADDRESS COUNT    lookups of unique names below SUFFIX, at least COUNT
    load.py http STOP URL                               pages, each over a new connection, PAGES a second
    load.py paced-dns STOP NAMESERVER SUFFIX ADDRESS    lookups, PACE a second; ADDRESS may be NXDOMAIN
    load.py paced-http STOP URL [ADDRESS]               pages, PACE a second; no name is resolved if ADDRESS is given

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
A, AAAA = 1, 28
NXDOMAIN = "NXDOMAIN"
LATE = 1.0
"""Seconds after which an answer counts as late."""
PACE = 10.0
"""Lookups or requests per second of a paced load."""
PAGES = 200.0
"""Enough for one to begin every 5 ms of an action; more would only take the processors from what is tested."""
PACED_WORKERS = 100
"""As many as wait at once if every one waits until its end."""
LONGEST = 600.0
"""Time limit in seconds, if the file STOP never appears."""
PATIENCE = 6.0
"""Seconds for one lookup: longer than CoreDNS needs for one dead dnsproxy and the next upstream."""


def look_up(nameserver: str, name: str, wanted: str) -> str:
    """`ok`, or the error; the record that is asked for has the family of the wanted address."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    record = AAAA if ":" in wanted else A
    query = os.urandom(2) + struct.pack("!5H", 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, record, 1)
    family = socket.AF_INET6 if ":" in nameserver else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((nameserver, 53))
        try:
            client.send(query)
            reply = receive_reply(client, query)
        except OSError as error:
            return type(error).__name__
    if reply[3] & 15:
        return "ok" if (reply[3] & 15, wanted) == (3, NXDOMAIN) else f"rcode {reply[3] & 15}"
    return "ok" if wanted != NXDOMAIN and reply.endswith(packed(wanted)) else "another address"


def receive_reply(client: socket.socket, query: bytes) -> bytes:
    """The reply to this query. Replies to an earlier owner of our port are dropped, as every resolver does."""
    until = time.monotonic() + PATIENCE
    while (left := until - time.monotonic()) > 0:
        client.settimeout(left)
        reply = client.recv(4096)
        if reply[:2] == query[:2] and reply[12 : len(query)] == query[12:]:
            return reply
    raise TimeoutError


def packed(address: str) -> bytes:
    """An address as a record has it."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def fetch(url: str, address: str = "") -> str:
    """`ok`, or the error; the connection is to an address if it is given, else to the URL's host."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(address or parts.hostname or "", parts.port or 80, timeout=10)
    try:
        connection.request("GET", parts.path or "/", headers={"connection": "close", "host": parts.netloc})
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
    return "ok" if response.status == http.client.OK else str(response.status)


def many(
    ask: Callable[[int], str], goes_on: Callable[[int], bool], *, workers: int, pace: float = 0.0
) -> dict[str, object]:
    """Ask from several threads until the end, at most `pace` times a second if it is given.

    A failure's first and last time are for comparison with logs.
    """
    said: Counter[str] = Counter()
    times: dict[str, list[str]] = {}
    slowest, late = 0.0, 0
    numbers = iter(range(10**9))
    lock = threading.Lock()

    def work() -> None:
        nonlocal slowest, late
        while True:
            with lock:
                number = next(numbers)
            if pace:
                time.sleep(max(0.0, begun + number / pace - time.monotonic()))
            if not goes_on(number):
                return
            asked = time.monotonic()
            answer = ask(number)
            lasted = time.monotonic() - asked
            with lock:
                said[answer] += 1
                if answer != "ok":
                    now = datetime.now(UTC).isoformat(timespec="milliseconds")
                    times[answer] = [times.get(answer, [now])[0], now]
                slowest = max(slowest, lasted)
                late += lasted > LATE

    begun = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    took = {"seconds": round(seconds, 1), "slowest": round(slowest, 2), "late": late}
    return {"said": dict(said), **took, "first_and_last": times}


def lookups(nameserver: str, suffix: str, wanted: str) -> Callable[[int], str]:
    """A lookup of a name by its number, which no cache has; `wanted` is an address, or NXDOMAIN."""
    run = os.urandom(3).hex()
    return lambda number: look_up(nameserver, f"h{run}-{number}.{suffix}", wanted)


def paced(ask: Callable[[int], str], goes_on: Callable[[int], bool]) -> dict[str, object]:
    """Ask at a fixed rate, however long each answer takes: what is slow hides nothing of what follows."""
    return many(ask, goes_on, workers=PACED_WORKERS, pace=PACE)


def main(what: str, stop: str, *words: str) -> dict[str, object]:
    """Run the command line's command."""
    file, deadline = Path(stop), time.monotonic() + LONGEST

    def goes_on(number: int, least: int) -> bool:
        return number < least or (not file.exists() and time.monotonic() < deadline)

    if what == "dns":
        *where, count = words
        return many(lookups(*where), lambda number: goes_on(number, int(count)), workers=WORKERS)
    if what == "paced-dns":
        return paced(lookups(*words), lambda number: goes_on(number, 0))
    if what == "paced-http":
        return paced(lambda _: fetch(*words), lambda number: goes_on(number, 0))
    (url,) = words
    return many(lambda _: fetch(url), lambda number: goes_on(number, 0), workers=WORKERS, pace=PAGES)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))  # noqa: T201  # its output is its result
