"""Looks names up with socket.getaddrinfo, as ../README.md describes."""

from __future__ import annotations

import json
import platform
import socket
import sys
import time

FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6, "any": socket.AF_UNSPEC}
OUTCOMES = {
    socket.EAI_NODATA: "no data",
    socket.EAI_NONAME: "no such name",
    socket.EAI_AGAIN: "try again",
}


def lookup(family: str, name: str) -> dict[str, object]:
    """The outcome of a lookup."""
    try:
        found = socket.getaddrinfo(name, 443, FAMILIES[family], socket.SOCK_STREAM)
    except socket.gaierror as error:
        return {"outcome": OUTCOMES.get(error.errno or 0, "error"), "addresses": [], "detail": str(error)}
    return {"outcome": "found", "addresses": [address[0] for *_, address in found]}


def main() -> None:
    """Answer each line of stdin."""
    say({"version": platform.python_version()})
    for line in sys.stdin:
        family, name = line.split()
        start = time.monotonic()
        answer = lookup(family, name)
        say({**answer, "seconds": time.monotonic() - start})


def say(line: dict[str, object]) -> None:
    """One line of JSON, at once."""
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
