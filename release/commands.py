"""Runs the programs that build a release.

The law: each has the commit's time, UTC and the C locale, so that its output depends on neither the machine nor the
hour. A failure is a StartError with the end of the program's output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

_LAST_OUTPUT = 1000


def run(*command: str, epoch: int = 0, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
    """The output of a command; `more` are further variables. Raises StartError."""
    fixed = {"SOURCE_DATE_EPOCH": str(epoch), "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    # GIT_DIR and its like would have git read another repository.
    other = ("PYTHONPATH", "PYTHONHOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
    kept = {name: value for name, value in os.environ.items() if name not in other}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **fixed, **(more or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip())[-_LAST_OUTPUT:]
        raise failed(f"`{' '.join(command[:3])} ...` failed with status {done.returncode}: {last}")
    return done.stdout


def failed(message: str) -> StartError:
    """The error of a release that could not be built."""
    return StartError(message, status=ExitStatus.UNKNOWN)


def own_program(name: str) -> str:
    """A program of this Python's environment, which `make` fills from the lock file: uv, shiv."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise failed(f"{path} is missing: run this with `make release`, which installs it")
    return str(path)


def peer_program(name: str) -> str:
    """A program that `make release-peers` builds (kubectl, helm), or the one on the PATH. Raises StartError."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("SWITCHBACK_PEERS") or home / "switchback" / "peers")
    built = sorted(cache.glob(f"{name}-v*/{name}"))
    found = str(built[-1]) if built else shutil.which(name)
    if found is None:
        raise failed(f"{name} is missing: run `make release-peers`, or put it on the PATH")
    return found
