"""Corefiles are read whole, and replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dnsproxy.corefile.files import MAXIMUM_OCTETS, read_text, write_text

OCTETS = b"\xef\xbb\xbf. {\r\n\xff\xfe\n}\0"


def test_octets_that_are_no_text_survive_reading_and_writing(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_bytes(OCTETS)
    write_text(str(path), read_text(str(path)))
    assert path.read_bytes() == OCTETS


def test_the_mode_of_the_file_stays_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.touch()
    path.chmod(0o640)
    write_text(str(path), "new")
    assert path.stat().st_mode & 0o7777 == 0o640
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["Corefile"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "Corefile").symlink_to("real")
    write_text(str(tmp_path / "Corefile"), "new")
    assert (tmp_path / "Corefile").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_write_that_fails_leaves_the_old_text_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "Corefile"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["Corefile"]


def test_what_no_configmap_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_bytes(b"#" * MAXIMUM_OCTETS)
    assert len(read_text(str(path))) == MAXIMUM_OCTETS
    with path.open("ab") as file:
        file.write(b"#")
    with pytest.raises(ValueError, match="larger than"):
        read_text(str(path))
    with pytest.raises(ValueError, match="larger than"):
        read_text("/dev/zero")


def test_only_a_regular_file_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a regular file"):
        write_text(str(tmp_path), "new")
    with pytest.raises(FileNotFoundError):
        write_text(str(tmp_path / "missing"), "new")
