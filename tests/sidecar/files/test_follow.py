"""Following a file: reported at first and after each change; an unusable file changes nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from sidecar.files.follow import LOOK_EVERY, Reloads, follow_file, read_regular_file


def read(path: Path) -> str:
    content = path.read_text()
    if "bad" in content:
        raise ValueError("has a bad word")
    return content


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("first")
    return path


class Following:
    """A follower under way, what it has told and what it has complained of; time passes only in `look`."""

    def __init__(
        self, path: Path, nursery: trio.Nursery, clock: MockClock, *, read: Callable[[Path], str] = read
    ) -> None:
        self.told: list[str] = []
        self._clock = clock
        self._read = read
        self.reloads = Reloads()
        nursery.start_soon(partial(follow_file, path, read=self._read_soon, on_change=self._tell, reloads=self.reloads))

    async def _read_soon(self, path: Path) -> str:
        return self._read(path)

    async def _tell(self, value: str) -> None:
        self.told.append(value)

    async def look(self, times: int = 5) -> list[str]:
        """The causes of the complaints during some looks."""
        with capture_logs() as logs:
            for _ in range(times):
                await wait_all_tasks_blocked()
                self._clock.jump(LOOK_EVERY)
            await wait_all_tasks_blocked()
        return [line["cause"] for line in logs]


async def follow(path: Path, nursery: trio.Nursery, clock: MockClock) -> Following:
    """A follower that has told what the file says now."""
    following = Following(path, nursery, clock)
    assert await following.look() == []
    return following


def replace_atomically(path: Path, content: str) -> None:
    """As a mounted ConfigMap changes: another file takes the name."""
    other = path.with_suffix(".new")
    other.write_text(content)
    other.replace(path)


async def test_what_the_file_says_now_is_told_once(path: Path, nursery: trio.Nursery, mock_clock: MockClock) -> None:
    following = await follow(path, nursery, mock_clock)
    await following.look()
    assert following.told == ["first"]


@pytest.mark.parametrize("change", [Path.write_text, replace_atomically], ids=["in place", "by rename"])
async def test_a_change_is_told(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock, change: Callable[[Path, str], object]
) -> None:
    following = await follow(path, nursery, mock_clock)
    change(path, "second, and longer")
    assert await following.look() == []
    assert following.told == ["first", "second, and longer"]


async def test_a_swapped_link_is_a_change(tmp_path: Path, nursery: trio.Nursery, mock_clock: MockClock) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "link"
    link.symlink_to("one")
    following = Following(link, nursery, mock_clock)
    await following.look()
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(link)
    await following.look()
    assert following.told == ["one", "two"]


async def test_a_file_that_is_still_being_written_is_left_until_it_rests(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    for size in range(1, 8):
        path.write_text("x" * 10 * size)
        await following.look(1)
    assert following.told == ["first"]
    await following.look()
    assert following.told == ["first", "x" * 70]


async def test_a_file_that_is_replaced_all_the_time_is_told_all_the_same(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    del following.told[:]
    for number in range(20):
        replace_atomically(path, f"content {number}")
        await following.look(1)
    # From the third look on that finds another file.
    every = [f"content {number}" for number in range(2, 20)]
    assert following.told == every
    await following.look()
    assert following.told == every


async def test_what_was_written_over_while_it_was_read_is_not_told(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock, read=read_and_write_over)
    await following.look()
    assert following.told == ["second"]


def read_and_write_over(path: Path) -> str:
    """What the file said; what it said first, it says no longer."""
    content = path.read_text()
    if content == "first":
        path.write_text("second")
    return content


def remove(path: Path) -> None:
    path.unlink()


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def spoil(path: Path) -> None:
    path.write_text("a bad thing")


def break_text(path: Path) -> None:
    path.write_bytes(b"\xff")


@pytest.mark.parametrize(
    ("break_it", "cause"),
    [
        pytest.param(remove, "No such file or directory", id="missing"),
        pytest.param(make_folder, "Is a directory", id="a folder"),
        pytest.param(spoil, "has a bad word", id="refused"),
        pytest.param(break_text, "can't decode byte 0xff", id="not text"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_of_once_and_changes_nothing(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock, break_it: Callable[[Path], None], cause: str
) -> None:
    following = await follow(path, nursery, mock_clock)
    break_it(path)
    (complaint,) = await following.look()
    assert cause in complaint
    assert await following.look() == []
    assert following.told == ["first"]


async def test_another_trouble_is_told_of_as_well(path: Path, nursery: trio.Nursery, mock_clock: MockClock) -> None:
    following = await follow(path, nursery, mock_clock)
    spoil(path)
    await following.look()
    remove(path)
    assert await following.look() == ["No such file or directory"]


async def test_a_file_that_can_be_used_again_is_told_also_where_it_is_as_before(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    away = path.with_suffix(".away")
    path.rename(away)
    await following.look()
    away.rename(path)
    assert await following.look() == []
    assert following.told == ["first", "first"]


async def test_the_same_trouble_after_a_recovery_is_told_of_again(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    for _ in range(2):
        spoil(path)
        assert await following.look() == ["has a bad word"]
        path.write_text("fine")
        assert await following.look() == []
    assert following.told == ["first", "fine", "fine"]


async def test_a_file_that_is_missing_from_the_start_is_told_of_and_followed(
    tmp_path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(tmp_path / "later", nursery, mock_clock)
    assert await following.look() == ["No such file or directory"]
    (tmp_path / "later").write_text("here")
    await following.look()
    assert following.told == ["here"]


async def test_a_mounted_file_that_was_replaced_is_logged_once(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    with path.open("rb+", buffering=0) as file:
        # Like a mount of the file alone, this path shows the file whatever becomes of its name.
        following = await follow(Path(f"/proc/self/fd/{file.fileno()}"), nursery, mock_clock)
        replace_atomically(path, "second")
        assert [cause.split(",")[0] for cause in await following.look()] == ["another file took its name"]
        file.write(b"again")
        assert await following.look() == []
    assert following.told == ["first", "first", "again"]


async def test_a_request_reads_the_file_again_whatever_its_mark_says(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    await following.look()
    status = path.stat()
    path.write_text("FIRST")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    await following.look()
    before = list(following.told)
    following.reloads.request()
    following.reloads.request()
    await following.look()
    assert following.told == [*before, "FIRST"]


async def test_a_request_logs_the_trouble_of_a_file_again(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = await follow(path, nursery, mock_clock)
    path.write_text("bad")
    assert len(await following.look()) == 1
    following.reloads.request()
    assert len(await following.look()) == 1
    path.write_text("good")
    await following.look()
    assert following.told[-1] == "good"


def test_a_regular_file_is_read_up_to_its_last_octet(path: Path) -> None:
    assert read_regular_file(path, largest=5) == "first"


def test_octets_that_are_no_text_are_replaced(path: Path) -> None:
    path.write_bytes(b"a\xffb")
    assert read_regular_file(path, largest=5) == "a\ufffdb"


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def make_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("become", "complaint"),
    [
        pytest.param(make_pipe, "no regular file", id="a pipe without writer"),
        pytest.param(make_device, "no regular file", id="an endless device"),
        pytest.param(make_socket, "No such device or address", id="a socket"),
        pytest.param(make_folder, "Is a directory", id="a folder"),
        pytest.param(remove, "No such file", id="missing"),
        pytest.param(lambda path: os.truncate(path, 6), "larger than 5 octets", id="too large"),
    ],
)
def test_what_is_no_regular_file_is_refused_without_waiting(
    path: Path, become: Callable[[Path], None], complaint: str
) -> None:
    become(path)
    with pytest.raises((OSError, ValueError), match=complaint):
        read_regular_file(path, largest=5)


def test_refusing_a_file_leaves_no_descriptor_open(path: Path) -> None:
    make_folder(path)
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            read_regular_file(path, largest=5)
    assert len(os.listdir("/proc/self/fd")) == len(before)
