"""The C programs of this folder, compiled with the computer's own compiler on first use.

The law: a build is named by its source and command, so that an old one is never measured. They are never part of what
users run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Final

from tests.kit.programs import ROOT, find_program

LIMIT: Final = "C loop"
"""The label of their rows."""
COMPILER: Final = "cc"
_FOLDER: Final = Path(__file__).parent
_BUILT: Final = ROOT / "build" / "limit"
_OPTIONS: Final = ("-O2", "-Wall", "-Wextra", "-Werror")


def limit_program(name: str) -> str | None:
    """The path of a program by the name of its source; None if no compiler is installed, or it cannot compile."""
    source, compiler = _FOLDER / f"{name}.c", find_program(COMPILER)
    version = hashlib.sha256(source.read_bytes() + " ".join(_OPTIONS).encode()).hexdigest()[:12]
    built = _BUILT / f"{name}-{version}"
    if built.exists():
        return str(built)
    if compiler is None:
        return None
    built.parent.mkdir(parents=True, exist_ok=True)
    # Renamed at the end: another run may compile the same, and must not find half a program.
    part = built.with_name(f"{name}.{os.getpid()}")
    made = subprocess.run([compiler, *_OPTIONS, "-o", str(part), str(source)], capture_output=True, check=False)
    if made.returncode:
        return None
    part.rename(built)
    return str(built)
