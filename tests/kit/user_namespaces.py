"""A user namespace as a pod with `hostUsers: false` has, and mounts whose owners are mapped into it.

The law: uid 0 inside is an unprivileged user outside. Owners outside the mapped mounts are nobody inside. A mount is
mapped once, so a file is mounted before the folder above it. Linux 5.12 and root only (mount_setattr(2)).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conftest import refuse
from tests.kit.mounts import MountNamespace
from tests.kit.processes import end_process, wait_for

FIRST: Final = 100_000
"""The user outside that is root inside."""
_OURS: Final = Path("/proc/self/ns/user")
_MAP: Final = f"0 {FIRST} 65536"

# No program of Debian 12 mounts with mapped owners. The numbers are the same on all architectures.
_BIND_MAPPED: Final = """
import ctypes, os, sys
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR, AT_FDCWD = 428, 429, 442, -100
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH, AT_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 4, 0x1000, 0x100000
syscall = ctypes.CDLL(None, use_errno=True).syscall
def call(*arguments):
    done = syscall(*arguments)
    if done < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    return done
source, target, namespace = sys.argv[1:]
tree = call(OPEN_TREE, AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE | os.O_CLOEXEC)
attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_IDMAP, 0, 0, os.open(namespace, os.O_RDONLY))
call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, ctypes.sizeof(attributes))
call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)
"""


@dataclass(frozen=True)
class UserNamespace:
    """Runs programs as its root."""

    holder: subprocess.Popen[bytes]

    def command(self, *arguments: str) -> list[str]:
        """The command prefix that runs a program as root inside."""
        return ["nsenter", f"--user={self._file}", "--setuid", "0", "--setgid", "0", *arguments]

    def bind(self, mounts: MountNamespace, source: Path, target: Path) -> None:
        """Mount a file or a folder over another, with the owners mapped. Skips the test if the kernel cannot."""
        words = (sys.executable, "-c", _BIND_MAPPED, str(source), str(target), self._file)
        done = mounts.run(*words)
        if done.returncode:
            refuse(f"this needs mounts with mapped owners: {done.stderr}")

    @property
    def _file(self) -> str:
        return f"/proc/{self.holder.pid}/ns/user"


@contextmanager
def user_namespace() -> Iterator[UserNamespace]:
    """A user namespace for the duration of the block."""
    with ExitStack() as stack:
        holder = subprocess.Popen(["unshare", "--user", "sleep", "infinity"])
        stack.callback(end_process, holder)
        folder = Path(f"/proc/{holder.pid}")
        wait_for(lambda: (folder / "ns/user").readlink() != _OURS.readlink(), process=holder, log=Path("/dev/null"))
        for one in ("uid_map", "gid_map"):
            (folder / one).write_text(_MAP)
        yield UserNamespace(holder)


def closed_folders(*paths: Path) -> list[Path]:
    """The folders above these paths that other users cannot enter, and that have no such folder above them."""
    closed: dict[Path, None] = {}
    for path in paths:
        above = [one for one in reversed(path.resolve().parents) if not one.stat().st_mode & 0o001]
        closed.update(dict.fromkeys(above[:1]))
    return list(closed)
