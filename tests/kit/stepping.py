"""Work that the programs do in steps, in one go."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from dnsproxy.sources.static_names import HostsFile, parse_hosts_file

Result = TypeVar("Result")


def finish(steps: Generator[None, None, Result]) -> Result:
    """Run all steps; what they return."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: Result = done.value
        return result


def parse_hosts(content: str, *, path: str = "hosts") -> HostsFile:
    """What a hosts file of this content says."""
    return finish(parse_hosts_file(content.split("\n"), path=path))
