"""Builds switchback.pyz: dnsproxy with its dependencies in one file, which `python3 switchback.pyz` runs.

The law: one file for Linux with glibc on amd64 and arm64, and for every Python in PYTHONS. Compiled modules cannot be
imported from a zip file, so shiv unpacks it into ~/.shiv at its first run. uv installs the packages of the lock file,
checked by their hashes, for each pair of Python and processor; the folders are then put over each other, because a
compiled module has both in its name, and all other files are the same. A file that is not is an error. A package whose
wheel is for every platform is installed once. Any other Python, however old, gets one line that says what to do.
"""

from __future__ import annotations

import filecmp
import re
import shutil
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from release.commands import failed, own_program, run

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
_PLATFORMS: Final = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
_PRUNED: Final = ("aiohttp", "aiohttp-retry")
"""Half of the file: the asyncio client of the kubernetes package, which runs credential plugins for us without it."""
_OF_INSTALLER: Final = frozenset({".lock", "INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})
_CHECK: Final = """\
import sys
if sys.version_info[:2] not in {pythons} or not sys.platform.startswith("linux"):
    sys.stderr.write("Error: this needs Linux and Python {first} to {last}, and Python %d.%d on %s runs it; "
        "try: python{first} %s\\n" % (sys.version_info[:2] + (sys.platform, sys.argv[0])))
    sys.exit(3)
"""
"""For every Python from 2.7 on: it must be able to read this file to the end before it runs the first line."""
_MAY_DIFFER: Final = frozenset({"WHEEL"})
"""The tags of the wheel that came first; nothing reads them at run time."""


def build_zipapp(source: Path, wheel: Path, target: Path, *, work: Path, epoch: int) -> None:
    """Build it from the wheel and the lock file in `source`. Raises StartError."""
    requirements, merged = _export(source), work / "merged"
    for python in PYTHONS:
        for platform in _PLATFORMS:
            folder = work / f"{python}-{platform}"
            _install(requirements, folder, python=python, platform=platform)
            merge(folder, merged)
            requirements = without(requirements, pure_packages(folder))
    unpacked = work / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    merge(unpacked, merged)
    # Children, such as those of `dnsproxy demo`, find the packages by PYTHONPATH.
    options = ("--reproducible", "--extend-pythonpath", "--entry-point", "dnsproxy.cli:run_as_called")
    packed = work / "packed.pyz"
    run(own_program("shiv"), *options, "--site-packages", str(merged), "--output-file", str(packed), epoch=epoch)
    begin_with(format_check(PYTHONS), packed, target)


def format_check(pythons: Sequence[str]) -> str:
    """The lines that end any Python but these."""
    numbers = [tuple(map(int, one.split("."))) for one in pythons]
    return _CHECK.format(pythons=numbers, first=pythons[0], last=pythons[-1])


def begin_with(code: str, packed: Path, target: Path) -> None:
    """Write a zipapp that runs this before its own __main__.py, whose imports an old Python could not read."""
    with packed.open("rb") as source, target.open("wb") as file, zipfile.ZipFile(source) as old:
        source.seek(0)
        file.write(source.readline())  # #!/usr/bin/env python3
        with zipfile.ZipFile(file, "w") as new:
            for member in old.infolist():
                content = old.read(member)
                new.writestr(member, code.encode() + content if member.filename == "__main__.py" else content)
    target.chmod(0o755)


def merge(folder: Path, into: Path) -> None:
    """Put the files of a folder of packages into another. Raises StartError if one has other contents there."""
    for file in sorted(_shipped(folder)):
        target = into / file.relative_to(folder)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            # Not the user's umask, which the zip file would have.
            target.chmod(0o644)
        elif (
            file.name not in _MAY_DIFFER
            and file.parent.name != "sboms"
            and not filecmp.cmp(file, target, shallow=False)
        ):
            raise failed(f"{file.relative_to(folder)} differs between platforms, so one zipapp cannot serve them all")


def pure_packages(folder: Path) -> frozenset[str]:
    """The packages in a folder whose wheel is for every platform."""
    wheels = {one.parent.name: one.read_text(encoding="utf-8") for one in folder.glob("*.dist-info/WHEEL")}
    pure = [name for name, text in wheels.items() if re.search("^Root-Is-Purelib: true$", text, re.MULTILINE)]
    return frozenset(re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower() for name in pure)


def without(requirements: str, names: Collection[str]) -> str:
    """Requirements, each with its hashes in indented lines, but for these packages."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", requirements, flags=re.MULTILINE)
    return "".join(one for one in blocks if re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() not in names)


def _export(source: Path) -> str:
    words = ["--frozen", "--no-dev", "--all-extras", "--no-emit-project", "--format=requirements.txt", "--no-header"]
    words += [f"--prune={one}" for one in _PRUNED]
    return run(own_program("uv"), "export", "--quiet", *words, cwd=source)


def _install(requirements: str, folder: Path, *, python: str, platform: str) -> None:
    listed = folder.with_name(f"{folder.name}.txt")
    listed.write_text(requirements, encoding="utf-8")
    words = ["--no-build", "--no-deps", "--require-hashes"]
    words += [f"--target={folder}", f"--python-version={python}", f"--python-platform={platform}"]
    run(own_program("uv"), "pip", "install", "--quiet", *words, f"--requirements={listed}")


def _shipped(folder: Path) -> Iterator[Path]:
    """Files of packages: no scripts, whose first lines have this machine's paths, and no byte code."""
    for file in folder.rglob("*"):
        inside = file.relative_to(folder)
        if (
            file.is_file()
            and inside.parts[0] != "bin"
            and file.name not in _OF_INSTALLER
            and "__pycache__" not in inside.parts
        ):
            yield file
