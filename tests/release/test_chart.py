"""A chart is packed again so that only its files count. The chart itself: test_build.py."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

from release.chart import normalise

FILES = {"switchback/Chart.yaml": b"name: switchback\n", "switchback/templates/a.yaml": b"a: 1\n", "switchback/b": b""}


def packed(files: Mapping[str, bytes], *, time: int, mode: int, owner: str) -> bytes:
    """As helm writes it: in any order, with the hour of the run."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, octets in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode, entry.uname = len(octets), time, mode, owner
            tar.addfile(entry, io.BytesIO(octets))
    return gzip.compress(archive.getvalue(), mtime=time)


def test_order_times_owners_and_modes_leave_no_trace() -> None:
    first = packed(FILES, time=1, mode=0o644, owner="a")
    other = packed(dict(reversed(FILES.items())), time=2, mode=0o600, owner="b")
    assert first != other
    assert normalise(first, epoch=9) == normalise(other, epoch=9)


def test_names_contents_and_the_time_of_the_commit_count() -> None:
    one = packed(FILES, time=1, mode=0o644, owner="")
    changed = packed({**FILES, "switchback/b": b"b"}, time=1, mode=0o644, owner="")
    renamed = packed({**FILES, "switchback/c": b""}, time=1, mode=0o644, owner="")
    results = [normalise(archive, epoch=9) for archive in (one, changed, renamed)] + [normalise(one, epoch=10)]
    assert len(set(results)) == 4


def test_all_files_are_kept() -> None:
    again = normalise(packed(FILES, time=1, mode=0o600, owner="a"), epoch=9)
    with tarfile.open(fileobj=io.BytesIO(again), mode="r:gz") as tar:
        found = {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar}
        facts = {(entry.mtime, entry.mode, entry.uname, entry.uid) for entry in tar}
    assert found == FILES
    assert facts == {(9, 0o644, "", 0)}
