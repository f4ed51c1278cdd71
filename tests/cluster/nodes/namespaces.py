"""Networks, process trees and mounts of their own, each held by one process.

The law: when the holder ends, the kernel ends the rest.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

UNSHARE: Final = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
_SECONDS: Final = 120.0
# A shell reaps orphans, as the first process of a tree must.
_FIRST: Final = ("sh", "-c", "while :; do sleep 5; done")


class NamespacesFailed(Exception):
    """The kernel made none in time."""


@contextmanager
def namespaces() -> Iterator[int]:
    """A separate network, process tree and mounts. Returns the first process there; its end ends all others."""
    holder = subprocess.Popen([*UNSHARE, *_FIRST])
    try:
        deadline = time.monotonic() + _SECONDS
        while not (children := children_of(holder.pid)) or not _is_in_its_own_place(children[0]):
            if time.monotonic() > deadline or holder.poll() is not None:
                raise NamespacesFailed("no first process in its own process tree")
            time.sleep(0.02)
        yield children[0]
    finally:
        holder.kill()
        holder.wait()


def children_of(pid: int) -> list[int]:
    """The children of a process."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def network_of(pid: int) -> str:
    """The identity of a process's network; empty for no process."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""


def _is_in_its_own_place(pid: int) -> bool:
    """Whether a process is in another process tree than ours, and already runs the intended program."""
    with suppress(OSError):
        own = Path("/proc/self/ns/pid").readlink()
        return Path(f"/proc/{pid}/ns/pid").readlink() != own and b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
