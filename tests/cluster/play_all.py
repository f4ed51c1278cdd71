"""`python -m tests.cluster.play_all [NAME...]`: play the combinations of matrix.toml, and note in docs/played.json.

The law: a row's note is written as soon as it has ended, whatever its end; notes of other rows stay. The log of a row
that failed is kept. Exit status: 0 all succeeded, 1 one failed, 3 one could not be played.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from tests.cluster.matrix import Combination, load_matrix
from tests.cluster.nodes import node
from tests.cluster.nodes.cluster import TOOLS
from tests.cluster.scenes import needed_by
from tests.deploy.image import PROJECT
from tests.kit.programs import peers_cache

PLAYED: Final = PROJECT / "docs" / "played.json"
LONGEST: Final = 3600.0
"""Seconds for one combination."""
_COULD_NOT: Final = 3
_VERSION: Final = re.compile(r"(?P<name>.+)-v(?P<version>\d+\.[\d.]+)(-.*)?")
"""A folder of the cache; our own programs have no dotted version."""
_STEP: Final = re.compile(rb"^\d+\. (?P<sentence>.+)$", re.MULTILINE)


class Note(msgspec.Struct, frozen=True):
    """How a combination ended."""

    date: str
    result: str
    """`passed`, or `failed at: ` and the step's sentence, or why it could not be played."""
    seconds: int
    steps: int
    """How many steps began."""


class Played(msgspec.Struct, frozen=True):
    """The whole file."""

    combinations: Mapping[str, Note]
    programs: Mapping[str, str]
    """The versions of the last run, by peer."""


def main() -> int:
    """Play the chosen rows, or all."""
    matrix = load_matrix()
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.play_all", description=__doc__)
    names = [one.name for one in matrix.combination]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {'; '.join(names)}")
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {'; '.join(names)}")
    ends = [play(matrix.find(name)) for name in chosen]
    return max(ends, default=0)


def play(one: Combination) -> int:
    """Play one row, and note its end. Returns the exit status of the scene."""
    sys.stdout.write(f"{one.name} ... ")
    sys.stdout.flush()
    begun = time.monotonic()
    log = Path(tempfile.mkstemp(prefix="switchback-played-", suffix=".log")[1])
    with log.open("wb") as said:
        command = [sys.executable, "-m", "tests.cluster", *one.flags]
        done = subprocess.run(command, stdout=said, stderr=said, check=False, cwd=PROJECT, timeout=LONGEST)
    told = log.read_bytes()
    found = note(told, status=done.returncode, seconds=time.monotonic() - begun)
    keep(one.name, found)
    sys.stdout.write(f"{found.result}, {found.seconds} s{'' if done.returncode == 0 else f', see {log}'}\n")
    if done.returncode == 0:
        log.unlink()
    return done.returncode


def note(told: bytes, *, status: int, seconds: float) -> Note:
    """What a scene's log says of its end."""
    sentences = [found["sentence"].decode(errors="replace") for found in _STEP.finditer(told)]
    if status == 0:
        result = "passed"
    elif status == _COULD_NOT:
        result = told.decode(errors="replace").strip().splitlines()[0]
    else:
        result = f"failed at: {sentences[-1] if sentences else 'its start'}"
    return Note(datetime.now(UTC).date().isoformat(), result, round(seconds), len(sentences))


def keep(name: str, found: Note) -> None:
    """Write a row's note into the file, beside those of other rows."""
    before = msgspec.json.decode(PLAYED.read_bytes(), type=Played).combinations if PLAYED.exists() else {}
    played = Played({**before, name: found}, dict(sorted(versions().items())))
    PLAYED.write_bytes(msgspec.json.format(msgspec.json.encode(played), indent=1) + b"\n")


def versions() -> dict[str, str]:
    """The newest built version of each program of others that a combination plays with."""
    played = {*node.PROGRAMS, *TOOLS}.union(*(needed_by(one.plan) for one in load_matrix().combination))
    found = (_VERSION.fullmatch(one.name) for one in sorted(peers_cache().glob("*-v*")))
    return {one["name"]: one["version"] for one in found if one is not None and one["name"] in played}


if __name__ == "__main__":
    sys.exit(main())
