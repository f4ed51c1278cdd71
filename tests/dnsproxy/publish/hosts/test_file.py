"""A hosts file in a folder: replaced with owner and mode, while other programs write to it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dnsproxy.publish.hosts import file as hosts_file
from dnsproxy.publish.hosts.block import Change, HostsFileError, plan_block
from dnsproxy.publish.hosts.file import FileError, FileState, Plan, apply, read, state_of

LINES = ("192.0.2.10 app.example.org",)
FOREIGN = b"127.0.0.1 localhost\n"
PUBLISHED = plan_block(FOREIGN, LINES).new


def put(text: bytes) -> Change:
    return plan_block(text, LINES)


def take(text: bytes) -> Change:
    return plan_block(text, ())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_bytes(FOREIGN)
    return path


def interrupted(plan: Plan, *interruptions: Callable[[], object]) -> Plan:
    """Another program acts while the first change is planned, and then the second one."""
    left = list(interruptions)

    def planned(text: bytes) -> Change:
        change = plan(text)
        if left:
            left.pop(0)()
        return change

    return planned


def test_a_file_is_replaced_whole_and_taken_back(file: Path) -> None:
    inode = file.stat().st_ino
    applied = apply(file, put)
    assert (applied.old, applied.new, file.read_bytes()) == (FOREIGN, PUBLISHED, PUBLISHED)
    assert file.stat().st_ino != inode
    assert os.listdir(file.parent) == ["hosts"]
    assert apply(file, take).new == FOREIGN == file.read_bytes()


def test_what_is_as_planned_is_not_written(file: Path) -> None:
    before = apply(file, put).state
    assert apply(file, put).state == before == state_of(file)


def test_the_state_after_a_write_is_the_one_that_is_found(file: Path) -> None:
    assert apply(file, put).state == state_of(file)


def test_mode_owner_and_attributes_stay(file: Path) -> None:
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 1234, 5678)
    marked = has_attributes(file)
    before = file.stat()
    apply(file, put)
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert not marked or os.getxattr(file, "user.switchback") == b"label"


def has_attributes(file: Path) -> bool:
    try:
        os.setxattr(file, "user.switchback", b"label")
    except OSError:
        return False
    return True


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    link = tmp_path / "etc" / "hosts"
    link.symlink_to(file)
    apply(link, put)
    assert link.is_symlink()
    assert file.read_bytes() == PUBLISHED


def test_what_others_write_before_us_is_planned_on(file: Path) -> None:
    apply(file, interrupted(put, lambda: file.write_bytes(b"192.0.2.1 other\n")))
    assert file.read_bytes() == plan_block(b"192.0.2.1 other\n", LINES).new


def test_who_replaces_the_file_while_ours_is_made_is_planned_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [b"192.0.2.1 other\n"]
    fchmod = os.fchmod

    def chmod_late(descriptor: int, mode: int) -> None:
        fchmod(descriptor, mode)
        if others:
            new = file.with_name("new")
            new.write_bytes(others.pop())
            new.replace(file)

    monkeypatch.setattr(os, "fchmod", chmod_late)
    apply(file, put)
    assert file.read_bytes() == plan_block(b"192.0.2.1 other\n", LINES).new
    assert os.listdir(file.parent) == ["hosts"]


def test_what_changes_right_after_a_write_is_another_state(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the file would not be read again."""
    states: list[FileState] = []

    def noting(path: Path) -> FileState:
        state = state_of(path)
        states.append(state)
        if len(states) == 2:
            file.write_bytes(FOREIGN)
        return state

    monkeypatch.setattr(hosts_file, "state_of", noting)
    assert apply(file, put).state == state_of(file)
    assert file.read_bytes() == PUBLISHED


def test_who_writes_each_time_is_not_fought(file: Path) -> None:
    numbers = iter(range(100))
    disturb = [lambda: file.write_bytes(b"%d\n" % next(numbers))] * hosts_file.ATTEMPTS
    with pytest.raises(FileError, match="changed by another program 5 times"):
        apply(file, interrupted(put, *disturb))
    assert b"switchback" not in file.read_bytes()


@pytest.mark.parametrize("cause", [errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM])
def test_where_no_other_file_can_take_its_name_it_is_written_in_place(
    file: Path, monkeypatch: pytest.MonkeyPatch, cause: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(cause, os.strerror(cause))

    monkeypatch.setattr(os, "replace", refuse)
    inode = file.stat().st_ino
    apply(file, put)
    assert (file.read_bytes(), file.stat().st_ino) == (PUBLISHED, inode)
    apply(file, take)
    assert file.read_bytes() == FOREIGN
    assert os.listdir(file.parent) == ["hosts"]


def test_a_full_disk_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(FileError, match="No space left"):
        apply(file, put)
    assert file.read_bytes() == FOREIGN
    assert os.listdir(file.parent) == ["hosts"]


@pytest.mark.parametrize("below", [b"", b"192.0.2.9 below\n" * 99], ids=["last", "above lines of others"])
@pytest.mark.parametrize("room", [0, 7, 300])
def test_a_disk_that_gets_full_in_place_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch, below: bytes, room: int
) -> None:
    file.write_bytes(PUBLISHED + below)
    file.with_name("second").hardlink_to(file)
    limit = len(PUBLISHED + below) + room
    pwrite = os.pwrite

    def write_up_to_limit(descriptor: int, data: memoryview, at: int) -> int:
        if not data[: limit - at]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, data[: limit - at], at)

    many = [f"192.0.2.10 h{number}.example.org" for number in range(200)]
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", write_up_to_limit)
        with pytest.raises(FileError, match="No space left"):
            apply(file, lambda text: plan_block(text, many))
    assert file.read_bytes() == PUBLISHED + below
    assert apply(file, lambda text: plan_block(text, many)).new == plan_block(FOREIGN, many).new + below


@pytest.mark.parametrize(
    ("lines", "foreign_end"),
    [
        pytest.param(3, b"", id="more lines"),
        pytest.param(0, b"", id="fewer lines"),
        pytest.param(3, b"192.0.2.9 below\n", id="more lines above those of others"),
        pytest.param(0, b"192.0.2.9 below\n", id="fewer lines above those of others"),
    ],
)
def test_in_place_nothing_before_the_first_difference_is_touched(
    file: Path, monkeypatch: pytest.MonkeyPatch, lines: int, foreign_end: bytes
) -> None:
    monkeypatch.setattr(os, "replace", refuse_busy)
    file.write_bytes(PUBLISHED + foreign_end)
    starts: list[int] = []
    pwrite = os.pwrite

    def write_some(descriptor: int, data: memoryview, at: int) -> int:
        starts.append(at)
        return pwrite(descriptor, data[:7], at)

    monkeypatch.setattr(os, "pwrite", write_some)
    wanted = [*LINES, *(f"192.0.2.{number} h.example.org" for number in range(lines))][: lines + 1 if lines else 0]
    apply(file, lambda text: plan_block(text, wanted))
    assert file.read_bytes() == plan_block(PUBLISHED + foreign_end, wanted).new
    assert min(starts) >= len(FOREIGN)


def refuse_busy(*_: object) -> None:
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def test_who_is_killed_before_the_cut_leaves_blank_lines_and_no_half_ones(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    file.write_bytes(plan_block(FOREIGN, [f"192.0.2.{number} h.example.org" for number in range(9)]).new)
    monkeypatch.setattr(os, "replace", refuse_busy)
    with monkeypatch.context() as during:
        during.setattr(os, "ftruncate", kill)
        with pytest.raises(Killed):
            apply(file, put)
    assert file.read_bytes().rstrip(b"\n") == PUBLISHED.rstrip(b"\n")
    assert apply(file, put).new == file.read_bytes()


def test_what_somebody_wrote_while_we_wrote_in_place_is_planned_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", refuse_busy)
    fsync = os.fsync
    others = [b"192.0.2.1 other\n"]

    def sync_late(descriptor: int) -> None:
        fsync(descriptor)
        if others and os.path.samestat(os.fstat(descriptor), file.stat()):
            file.write_bytes(others.pop())

    monkeypatch.setattr(os, "fsync", sync_late)
    apply(file, put)
    assert file.read_bytes() == plan_block(b"192.0.2.1 other\n", LINES).new


def test_a_file_that_is_not_understood_is_left_alone(file: Path) -> None:
    file.write_bytes(b"# END switchback\n")
    with pytest.raises(HostsFileError, match="line 1"):
        apply(file, put)
    assert file.read_bytes() == b"# END switchback\n"


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(Path.unlink, "No such file", id="gone"),
        pytest.param(make_fifo, "is no regular file", id="a pipe"),
        pytest.param(make_folder, "directory|no regular file", id="a folder"),
        pytest.param(make_loop, "Too many levels", id="a link to itself"),
    ],
)
def test_what_is_no_file_is_said(file: Path, spoil: Callable[[Path], None], reason: str) -> None:
    spoil(file)
    with pytest.raises(FileError, match=reason):
        apply(file, put)


def test_a_file_that_is_too_large_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_file, "LARGEST", 10)
    for use in (lambda: apply(file, put), lambda: read(file)):
        with pytest.raises(FileError, match="larger than"):
            use()


def test_there_is_no_state_of_what_is_not_there(tmp_path: Path) -> None:
    assert state_of(tmp_path / "hosts") == FileState()
