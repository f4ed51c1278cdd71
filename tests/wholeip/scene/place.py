"""A place: a network namespace for a test, with a process in it that executes requests.

The law: it exists as long as its block, and the test itself stays outside.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kit.processes import end_process
from tests.kit.programs import program

_INSIDE: Final = Path(__file__).with_name("inside.py")


class Failed(Exception):
    """A socket in there failed; the message is the kernel's."""


@dataclass(frozen=True)
class Place:
    """What can be done inside stands in `inside.py`, by name."""

    process: subprocess.Popen[bytes]

    def do(self, name: str, **arguments: object) -> Any:
        """Have it done, and wait for it. Raises Failed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")
        self.process.stdin.flush()
        fine, answer = json.loads(self.process.stdout.readline())
        if not fine:
            raise Failed(answer)
        return answer

    def command(self, name: str) -> tuple[str, ...]:
        """How a program is run in there."""
        return (program("nsenter"), f"--net=/proc/{self.process.pid}/ns/net", program(name))

    def run(self, name: str, *arguments: str, script: str = "") -> str:
        """Run a program in there and give what it prints."""
        done = subprocess.run(
            [*self.command(name), *arguments], input=script, text=True, check=False, capture_output=True
        )
        assert done.returncode == 0, f"{name} {arguments}: {done.stderr}"
        return done.stdout

    def ip(self, script: str) -> None:
        """Change something in there with iproute2, a command a line."""
        self.run("ip", "-batch", "-", script=script)

    def sysctl(self, **values: int) -> None:
        """Set what stands in /proc/sys/net, which shows the network of who looks."""
        writes = "".join(f"echo {value} >/proc/sys/net/{name}\n" for name, value in values.items())
        self.run("sh", "-e", script=writes)


@contextmanager
def place() -> Iterator[Place]:
    """A new one, where nothing but loopback is."""
    process = subprocess.Popen(
        [program("unshare"), "--net", sys.executable, str(_INSIDE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        here = Place(process)
        here.do("ready")
        yield here
    finally:
        end_process(process)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
