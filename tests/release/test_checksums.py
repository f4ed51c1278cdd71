"""SHA256SUMS."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from release.checksums import format_checksums


def test_coreutils_checks_it(tmp_path: Path) -> None:
    contents = {"b c": b"two", "a": b"one"}
    for name, octets in contents.items():
        (tmp_path / name).write_bytes(octets)
    sums = {name: hashlib.sha256(octets).hexdigest() for name, octets in contents.items()}
    (tmp_path / "SHA256SUMS").write_text(format_checksums(sums))
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, check=True, capture_output=True, text=True).stdout == "a: OK\nb c: OK\n"
    (tmp_path / "a").write_bytes(b"other")
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 1


@pytest.mark.parametrize("name", ["", "a\nb", "a\\b", "a/b"])
def test_a_name_that_coreutils_would_escape_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no plain file name"):
        format_checksums({name: "0" * 64})
