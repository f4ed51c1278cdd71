"""Builds the wheel and the source archive.

The law: uv builds the source archive, and the wheel from it, so the archive is enough to build the same wheel.
"""

from __future__ import annotations

from pathlib import Path

from release.artefacts import sdist_name, wheel_name
from release.commands import failed, own_program, run


def build_wheel(source: Path, out: Path, *, version: str, epoch: int) -> tuple[Path, Path]:
    """The wheel and the source archive in `out`. Raises StartError."""
    run(own_program("uv"), "build", "--quiet", "--no-create-gitignore", "--out-dir", str(out), str(source), epoch=epoch)
    built = (out / wheel_name(version), out / sdist_name(version))
    for file in built:
        if not file.exists():
            raise failed(f"uv built no {file.name}, but {sorted(one.name for one in out.iterdir())}")
    return built
