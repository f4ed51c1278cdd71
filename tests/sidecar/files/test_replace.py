"""Replacing a file; the tests of each caller (snapshot, Corefile, hosts file) have its guarantees."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.files.replace import copy_owner_and_mode, replace_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def test_the_pieces_are_the_new_content(path: Path) -> None:
    assert replace_file(path, [b"n", b"", b"ew"], prefix=".new-")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


def test_a_file_that_does_not_exist_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    assert replace_file(tmp_path / "file", [b"new"], prefix=".new-")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_the_mode_stays_where_that_is_asked_for(path: Path) -> None:
    status = path.stat()
    replace_file(path, [b"new"], prefix=".new-", prepare=lambda new: copy_owner_and_mode(status, new))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_old_file_stays_when_the_new_one_is_no_longer_wanted(path: Path) -> None:
    assert not replace_file(path, [b"new"], prefix=".new-", still_wanted=lambda: False)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["file"]


def test_the_old_file_stays_when_the_content_cannot_be_made(path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"new"
        assert len(os.listdir(path.parent)) == 2
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        replace_file(path, broken(), prefix=".new-")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_stays(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match="is no regular file"):
        replace_file(tmp_path / "file", [b"new"], prefix=".new-")
    assert os.listdir(tmp_path) == ["file"]
    assert not (tmp_path / "file").is_file()
