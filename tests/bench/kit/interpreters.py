"""Other Pythons of this computer that ours is measured with, each with the packages of uv.lock in a folder of its own.

The law: what ours costs depends on how its Python was built, so a row says which one it was. By default those are
measured that were optimised with a profile: those that say so (--enable-optimizations), and the system's own, which
Debian builds so and strips of the flags that would say it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.cli.options import StartError
from tests.bench.kit.command import COULD_NOT
from tests.kit.launched import ROOT
from tests.kit.programs import peers_cache

_LEAST: Final = (3, 11)
_ASK: Final = (
    "import platform, sys, sysconfig;"
    "print(*sys.version_info[:2], platform.python_version(), sys.base_prefix,"
    " '--enable-optimizations' in (sysconfig.get_config_var('CONFIG_ARGS') or ''))"
)
_SYSTEM_PREFIX: Final = "/usr"


class CannotUse(Exception):
    """An interpreter cannot run ours; the message says why."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python as it describes itself."""

    program: str
    minor: tuple[int, int]
    version: str
    prefix: str
    says_optimised: bool

    @property
    def is_optimised(self) -> bool:
        """With a profile of its own running, as far as can be known."""
        return self.says_optimised or self.prefix == _SYSTEM_PREFIX

    @property
    def label(self) -> str:
        """What its rows are called by."""
        return f"ours, {self.program} ({self.version})"


def parse_description(program: str, text: str) -> Interpreter:
    """What _ASK prints. Raises CannotUse."""
    try:
        major, minor, version, prefix, optimised = text.split()
        found = Interpreter(program, (int(major), int(minor)), version, prefix, optimised == "True")
    except ValueError:
        raise CannotUse(f"{program} is no Python: {text[:100]!r}") from None
    if found.minor < _LEAST:
        raise CannotUse(f"{program} is Python {version}, and ours needs 3.11")
    return found


def describe(program: str) -> Interpreter:
    """Ask a Python for what it is. Raises CannotUse."""
    try:
        asked = subprocess.run([program, "-c", _ASK], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotUse(f"{program}: {error}") from None
    return parse_description(program, asked.stdout)


def find_optimised(folders: Iterable[str] | None = None) -> Iterator[Interpreter]:
    """Those on the PATH that were optimised, each once, without the one that runs this."""
    known = {os.path.realpath(sys.executable)}
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folders is None else folders:
        for path in sorted(Path(folder).glob("python3.[0-9][0-9]")):
            real = os.path.realpath(path)
            if real in known:
                continue
            known.add(real)
            try:
                found = describe(str(path))
            except CannotUse:
                continue
            if found.is_optimised:
                yield found


def prepare_named(programs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The labels of Pythons that a command names, and their prepared programs. Raises StartError."""
    for program in programs:
        try:
            found = describe(program)
            yield found.label, prepare(found)
        except CannotUse as error:
            raise StartError(f"--python: {error}", status=COULD_NOT) from None


def prepare(found: Interpreter) -> str:
    """The Python of an environment with what uv.lock names, made on first use. Raises CannotUse."""
    lock = (ROOT / "uv.lock").read_bytes()
    key = hashlib.sha256(lock + f"{found.program} {found.version}".encode()).hexdigest()[:12]
    folder = peers_cache() / f"python-v{key}"
    program, done = folder / "bin" / "python", folder / ".done"
    if not done.exists():
        uv = Path(sys.executable).with_name("uv")
        command = [
            str(uv),
            "sync",
            "--frozen",
            "--no-dev",
            "--no-install-project",
            "--quiet",
            "--python",
            found.program,
        ]
        environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder), "UV_PYTHON_DOWNLOADS": "never"}
        try:
            made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CannotUse(f"{uv}: {error.strerror}") from None
        if made.returncode:
            raise CannotUse(f"{found.program}: uv sync failed: {' '.join(made.stderr.split())[-300:]}")
        done.touch()
    return str(program)
