"""The control groups of a node's programs and pods.

The law: they exist below each hierarchy as long as the node does, and are removed with their contents.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HIERARCHIES: Final = Path("/sys/fs/cgroup")
"""The folder of all of version 1, or the root of version 2."""
_SECONDS: Final = 120
_SHARES: Final = {"cpu.shares": 8192, "cpu.weight": 800}
"""Eight times the default, in version 1 and in 2. The kernel gives each session beside it (sched(7), autogroup) as much
processor time as all pods of a node together, and a server that gets too little loses lookups."""


@contextmanager
def control_groups(name: str) -> Iterator[None]:
    """A control group for the pods, below each hierarchy; removed with its contents at the end."""
    hierarchies = [one for one in HIERARCHIES.iterdir() if one.is_dir() and not one.is_symlink()]
    if (HIERARCHIES / "cgroup.controllers").exists():
        hierarchies = [HIERARCHIES]
    groups = [one / name.lstrip("/") for one in hierarchies]
    for group in groups:
        group.mkdir()
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # A new group of version 1 is empty, and accepts no process.
            if (group / "tasks").exists() and (group / setting).exists():
                (group / setting).write_text((group.parent / setting).read_text())
        for setting, shares in _SHARES.items():
            if (group / setting).exists():
                (group / setting).write_text(str(shares))
    try:
        yield
    finally:
        for group in groups:
            remove_group(group)


@contextmanager
def member_of(name: str) -> Iterator[None]:
    """Puts this process, and so the node's programs, into a leaf of a control group of version 2; back at the end."""
    root, former = unified_group(""), own_group()
    leaf = unified_group(name) / "programs"
    leaf.mkdir()
    (leaf / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (root / former / "cgroup.procs").write_text(str(os.getpid()))


def unified_group(name: str) -> Path:
    """The folder of a control group of version 2, which some machines have beside version 1."""
    beside = HIERARCHIES / "unified"
    return (beside if beside.exists() else HIERARCHIES) / name.lstrip("/")


def elsewhere(*words: str) -> list[str]:
    """The command line that runs a command in the machine's group of version 2, as programs outside of the node."""
    return ["sh", "-c", f'echo 0 > {unified_group("")}/cgroup.procs && exec "$@"', "sh", *words]


def own_group() -> str:
    """The path of this process's group of version 2, below its root."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next(line for line in lines if line.startswith("0::")).removeprefix("0::/")


def remove_group(group: Path) -> None:
    """The kernel needs a moment until a group of killed processes is empty."""
    deadline = time.monotonic() + _SECONDS
    for folder, _, _ in os.walk(group, topdown=False):
        while Path(folder).exists():
            try:
                os.rmdir(folder)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
