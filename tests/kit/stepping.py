"""Runs work at once that the programs do in steps."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from dnsproxy.sources.hosts_lines import numbered_lines
from dnsproxy.sources.static_names import HostsFile, parse_hosts_file

Result = TypeVar("Result")


def finish(steps: Generator[None, None, Result]) -> Result:
    """Run all steps. Returns their result."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: Result = done.value
        return result


def parse_hosts(content: str, *, path: str = "hosts") -> HostsFile:
    """The result of reading a hosts file with this content."""
    return finish(parse_hosts_file(numbered_lines(content.encode("utf-8", "surrogatepass")), path=path))
