"""The prober of tests.bench.dns, which here begins with the first answer that it gets; a process of its own.

    python -m tests.bench.sync.probing PORT QUERIES RATE SECONDS

The law: it is started beside a server that is starting, so that the first answer is about the first that this gives.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.bench.dns.prober import is_answer, probe, read_queries

PATIENCE: Final = 60.0
"""Seconds for the first answer."""
_LOOK_SECONDS: Final = 0.002


def wait_for_answer(port: int, query: bytes, *, patience: float = PATIENCE) -> bool:
    """Ask again and again; whether there was an answer in time."""
    deadline = time.monotonic() + patience
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(_LOOK_SECONDS)
        while time.monotonic() < deadline:
            try:
                client.send(query)
                if is_answer(client.recv(4096)):
                    return True
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                time.sleep(_LOOK_SECONDS)
    return False


def main(port: int, queries: Sequence[bytes], rate: int, seconds: float) -> None:
    """The process."""
    if wait_for_answer(port, queries[0]):
        print(json.dumps(asdict(probe(port, queries, rate=rate, seconds=seconds))))  # noqa: T201  # what it is for


if __name__ == "__main__":
    main(int(sys.argv[1]), list(read_queries(Path(sys.argv[2]).read_bytes())), int(sys.argv[3]), float(sys.argv[4]))
