"""What every command that measures does: look at the machine it is on, end in order, write all figures to a file."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from sidecar.cli.options import StartError
from sidecar.cli.program import INTERRUPTED
from tests.kit.programs import find_program

COULD_NOT: Final = 3
"""The exit status where nothing was found out."""
_CROWDED: Final = 0.5
"""The load average per processor above which a machine has other things to do."""


def look_around() -> dict[str, Any]:
    """What the figures depend on, and a word where it is no good."""
    cpus, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if load > _CROWDED * cpus:
        click.echo(f"this machine is busy (load {load:.1f} on {cpus} processors): the figures will be rough", err=True)
    return {"python": sys.version.split()[0], "cpus": cpus, "load": load}


def demand(*peers: str, root: bool = False) -> None:
    """Raises StartError where one of these programs is not here, or we are not root and have to be."""
    if missing := [name for name in peers if find_program(name) is None]:
        raise StartError(f"not installed: {', '.join(missing)} (`make peers` brings them)", status=COULD_NOT)
    if root and os.geteuid() != 0:
        raise StartError("network namespaces take root", status=COULD_NOT)


def tell_missing(missing: Sequence[str]) -> None:
    """Report peers that are not installed. Raises StartError if REQUIRE_PEERS is 1."""
    if not missing:
        return
    text = f"not installed and excluded: {', '.join(missing)} (`make peers` brings them)"
    if os.environ.get("REQUIRE_PEERS") == "1":
        raise StartError(text, status=COULD_NOT)
    click.echo(text, err=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM end all servers in order, and then the command."""
    try:
        with ending_on_sigterm():
            yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write the figures and say where they are. Raises StartError."""
    try:
        path.write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise StartError(f"--json {path}: {error.strerror}", status=COULD_NOT) from error
    click.echo(f"\nall figures: {path}")


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C does, so that no server is left behind."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
