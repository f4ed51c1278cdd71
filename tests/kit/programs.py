"""The real programs of the tests: those that `make peers` recorded, and the guard that a test starts no other.

A program on the PATH may have any version, or a computer's own settings; a test that took it would judge by luck.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]

BASIC: Final = frozenset(
    (
        *("bash", "cat", "env", "false", "git", "head", "ldconfig", "ls", "make", "mkdir", "nohup", "rm", "sed"),
        *("chroot", "flock", "nsenter", "unshare"),
        *("setsid", "sh", "sha256sum", "sleep", "sort", "tail", "tar", "true", "uname"),
    )
)
"""What each Linux computer with make, git and Python has. A test may start these without naming them; a test that
judges by one of them names it like every other."""

_NUMBERS: Final = re.compile(r"(?<=-v)\d+(\.\d+)*(?=$|-)")

_TEMPORARY: Final = Path(tempfile.gettempdir())
"""Of the process, whatever a test sets."""


class UnnamedProgram(AssertionError):
    """A test starts a real program that its marker does not name."""


def peers_cache() -> Path:
    """The folder of the programs that scripts/peers.sh builds and records."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SWITCHBACK_PEERS") or home / "switchback" / "peers")


def find_program(name: str) -> str | None:
    """The path of a peer, or None if `make peers` neither built nor recorded it.

    A folder `system` of the cache has a link for each program of a Debian package. `gateway-api` is a folder: the
    custom resource definitions, in `standard` and `experimental`; `prometheus-operator` and each `...-crds` and
    `...-manifests` are folders too, and `contour-crds` holds all manifests of Contour's installation; so are
    `debian-base` and `debian-base-arm64`, with a small Debian in `root.tar`, and `systemd-resolved`, with the files of
    its Debian packages, and `python3.13` and newer, programs in `usr/bin`. `coredns-old` is the oldest supported
    CoreDNS that still builds; each `...-new` is newer than the version that the tests otherwise take.
    """
    built = [*built_versions(name).values()]
    if built:
        return built[-1]
    recorded = peers_cache() / "system" / name
    # A program that was removed after `make peers` is missing.
    return str(recorded.readlink()) if recorded.exists() else None


def built_versions(name: str) -> dict[str, str]:
    """The paths of all versions of a peer that `make peers` built, by version (`v1.36.3`), the oldest first.

    A version without numbers, the hash of a source, says nothing of its age: the one that was built last is the newest.
    """

    def age(path: Path) -> tuple[list[int], float]:
        numbers = _NUMBERS.search(path.parent.name)
        return [int(one) for one in numbers[0].split(".")] if numbers else [], path.parent.stat().st_mtime

    found = sorted(peers_cache().glob(f"{name}-v*/{name}"), key=age)
    return {path.parent.name.removeprefix(f"{name}-"): str(path) for path in found}


def program(name: str) -> str:
    """The path of a peer that the test's marker requires, or of a basic program."""
    path = find_program(name) or (shutil.which(name) if name in BASIC else None)
    assert path is not None, f"mark the test with @pytest.mark.peer({name!r})"
    return path


class ProgramGuard:
    """Refuses programs that the marker of the running test does not name. One for a process, which audits its starts.

    It sees what the process itself starts, by `subprocess` or `trio`. What a program starts in turn is seen where no
    peer is installed: CI runs the suite there, too.
    """

    def __init__(self) -> None:
        self.peers: frozenset[str] | None = None
        """The programs that the running test names; None between tests."""
        self.refused: list[str] = []
        """What the running test tried to start, in case that it caught the error."""

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """For `sys.addaudithook`.

        Raises:
            UnnamedProgram: The running test's marker does not name the program.
        """
        if event != "subprocess.Popen" or self.peers is None:
            return
        executable, _, folder, environment = arguments
        if not _is_allowed(os.fsdecode(executable), folder, environment, self.peers):
            message = (
                f"the test starts {executable!r}: name it with @pytest.mark.peer, and take it from tests.kit.programs"
            )
            self.refused.append(message)
            raise UnnamedProgram(message)


GUARD: Final = pytest.StashKey[ProgramGuard]()
"""The guard of this process, in pytest's configuration."""


def _is_allowed(executable: str, folder: Any, environment: Mapping[Any, Any] | None, peers: frozenset[str]) -> bool:
    if Path(executable).name in BASIC:
        return True
    if os.sep not in executable:
        path = (os.environ if environment is None else environment).get("PATH", os.defpath)
        found = shutil.which(executable, path=path)
        if found is None:
            return True  # The start fails, and the test sees that.
        executable = found
    file = Path(folder or ".", executable).resolve()
    ours = (ROOT, Path(sys.prefix), _TEMPORARY)
    if file.name.startswith("python") or any(file.is_relative_to(one.resolve()) for one in ours):
        return True
    named = (one for peer in peers for one in (find_program(peer), *built_versions(peer).values()))
    return any(file.is_relative_to(Path(one).resolve()) for one in named if one is not None)
