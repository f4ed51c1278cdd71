"""Writing a hosts file while other programs append to it, rewrite it or link it; writers.py too."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dnsproxy.publish.hosts import writing
from dnsproxy.publish.hosts.block import foreign_text, plan_block
from dnsproxy.publish.hosts.file import FileError, apply
from dnsproxy.publish.hosts.writers import keep_others_out, wait_for_writers
from dnsproxy.publish.hosts.writing import Rewritten
from tests.dnsproxy.publish.hosts.test_file import FOREIGN, LINES, PUBLISHED, file, interrupted, put, refuse_busy, take
from tests.kit.launched import ROOT
from tests.kit.processes import wait_for

__all__ = ["file"]

CHANGES = 60
APPENDER = """
import os, select, sys
path, number = sys.argv[1], 0
while not select.select([0], [], [], 0.001)[0]:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    for part in ("a", "b", "c")[: 1 + number % 3]:
        os.write(descriptor, f"192.0.2.1 {part}{number}.example.org\\n".encode())
    os.close(descriptor)
    number += 1
print(number)
"""
"""Another program: it opens the file, appends up to three lines and closes it, over and over, until its input ends."""


PUBLISHER = """
import select, sys
from functools import partial
from pathlib import Path
from dnsproxy.publish.hosts.block import plan_block
from dnsproxy.publish.hosts.file import FileError, apply
path, number = Path(sys.argv[1]), 0
while not select.select([0], [], [], 0.001)[0]:
    lines = [f"192.0.2.2 p{each}.example.org" for each in range(number % 3)]
    try:
        apply(path, partial(plan_block, lines=lines))
    except FileError:
        continue
    number += 1
"""
"""Another publisher, of another table."""


@pytest.mark.parametrize("linked", [False, True], ids=["replaced", "in place"])
def test_two_publishers_at_once_leave_one_block_and_the_lines_of_others(file: Path, linked: bool) -> None:
    if linked:
        file.with_name("second").hardlink_to(file)
    pipe = subprocess.PIPE
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(file)], cwd=ROOT, stdin=pipe, stdout=pipe)
        for code in (PUBLISHER, APPENDER)
    ]
    wait_for(lambda: b" p0." in file.read_bytes(), process=others[0], log=Path(os.devnull))
    changed = 0
    while changed < CHANGES:
        # Without a block now and then: two publishers that add one at once may make two.
        lines = [f"192.0.2.1 h{number}.example.org" for number in range(changed % 3)]
        try:
            apply(file, partial(plan_block, lines=lines))
        except FileError:
            continue  # the others were faster each time
        changed += 1
    counts = [one.communicate()[0] for one in others]
    assert [one.returncode for one in others] == [0, 0]
    apply(file, take)
    left = file.read_bytes().splitlines()
    assert len(left) == len(set(left))
    assert sum(line.startswith(b"192.0.2.1 a") for line in left) == int(counts[1])


def test_a_block_that_another_publisher_added_meanwhile_is_not_appended_to(file: Path) -> None:
    apply(file, interrupted(put, lambda: apply(file, partial(plan_block, lines=["192.0.2.1 b.example.org"]))))
    assert file.read_bytes() == PUBLISHED


def test_a_lock_that_another_program_keeps_delays_a_write_and_does_not_prevent_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dnsproxy.publish.hosts.writing._WRITERS_SECONDS", 0.01)
    with file.open("rb") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        apply(file, put)
    assert file.read_bytes() == PUBLISHED


@pytest.mark.parametrize("in_place", [False, True], ids=["replaced", "in place"])
def test_no_line_is_lost_while_a_program_appends_and_the_block_changes(
    file: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    if in_place:
        monkeypatch.setattr(os, "replace", refuse_busy)
    appender = subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    changed = 0
    while changed < CHANGES:
        assert appender.poll() is None
        # Longer and shorter by turns, and gone at times.
        lines = [f"192.0.2.{number} h{number}.example.org" for number in range(changed % 30)]
        try:
            apply(file, partial(plan_block, lines=lines))
        except FileError:
            continue  # the program was faster each time, and the publisher tries again
        changed += 1
    count, _ = appender.communicate()
    apply(file, put)
    left = file.read_bytes()
    expected = [
        f"192.0.2.1 {part}{number}.example.org".encode()
        for number in range(int(count))
        for part in ("a", "b", "c")[: 1 + number % 3]
    ]
    assert sorted(line for line in foreign_text(left).splitlines() if line) == sorted([*expected, FOREIGN.strip()])
    assert plan_block(left, LINES).new == left


def around_the_rename(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], after: Callable[[], object]
) -> None:
    """Another program acts directly before the first rename, and directly after it."""
    replace, left = os.replace, [before, after]

    def replace_between(source: str, target: Path) -> None:
        if left:
            left.pop(0)()
        replace(source, target)
        if left:
            left.pop(0)()

    monkeypatch.setattr(os, "replace", replace_between)


def append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line)


@pytest.mark.parametrize("lines_before", [0, 1])
def test_lines_that_others_append_before_and_after_the_rename_are_all_there(
    file: Path, monkeypatch: pytest.MonkeyPatch, lines_before: int
) -> None:
    """A program that has opened the file before the rename appends to a file that has no name any more."""
    opened: list[int] = []

    def before() -> None:
        opened.append(os.open(file, os.O_WRONLY | os.O_APPEND))
        for _ in range(lines_before):
            os.write(opened[0], b"192.0.2.1 first\n")

    def after() -> None:
        os.write(opened[0], b"192.0.2.2 second\n")
        os.close(opened[0])
        append(file, b"192.0.2.3 third\n")

    around_the_rename(monkeypatch, before, after)
    apply(file, put)
    first = [b"192.0.2.1 first"][:lines_before]
    left = file.read_bytes()
    foreign = sorted(foreign_text(left).splitlines())
    assert foreign == [b"127.0.0.1 localhost", *first, b"192.0.2.2 second", b"192.0.2.3 third"]
    assert plan_block(left, LINES).new == left


def test_a_program_that_still_has_the_replaced_file_open_is_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    looks = iter(range(100))
    sleep = time.sleep

    def write_late(seconds: float) -> None:
        if next(looks) == 3:
            os.write(opened[0], b"192.0.2.1 late\n")
            os.close(opened[0])
        sleep(seconds)

    monkeypatch.setattr(writing, "_WRITERS_SECONDS", 20.0)
    monkeypatch.setattr(time, "sleep", write_late)
    around_the_rename(monkeypatch, lambda: opened.append(os.open(file, os.O_WRONLY | os.O_APPEND)), lambda: None)
    apply(file, put)
    assert b"192.0.2.1 late\n" in file.read_bytes()


def test_a_program_that_keeps_the_file_open_keeps_its_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_WRITERS_SECONDS", 0.01)
    inode = file.stat().st_ino
    with file.open("ab", buffering=0) as kept:
        apply(file, put)
        assert file.stat().st_ino == inode
        kept.write(b"192.0.2.1 other\n")
    assert file.read_bytes() == PUBLISHED + b"192.0.2.1 other\n"


def test_without_leases_lines_that_others_append_are_still_there(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    around_the_rename(
        monkeypatch, lambda: append(file, b"192.0.2.1 first\n"), lambda: append(file, b"192.0.2.2 second\n")
    )
    apply(file, put)
    assert sorted(foreign_text(file.read_bytes()).splitlines()) == [
        b"127.0.0.1 localhost",
        b"192.0.2.1 first",
        b"192.0.2.2 second",
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(None, b"192.0.2.1 rewritten\n", id="nothing after it"),
        pytest.param(b"192.0.2.2 second\n", FOREIGN + b"192.0.2.2 second\n192.0.2.1 rewritten\n", id="and an append"),
    ],
)
def test_a_rewrite_of_the_replaced_file_is_planned_on(
    file: Path, monkeypatch: pytest.MonkeyPatch, after: bytes | None, expected: bytes
) -> None:
    around_the_rename(
        monkeypatch,
        lambda: file.write_bytes(b"192.0.2.1 rewritten\n"),
        lambda: append(file, after) if after else None,
    )
    apply(file, put)
    assert foreign_text(file.read_bytes()) == expected


def test_a_file_with_a_second_name_is_written_under_both(file: Path) -> None:
    second = file.with_name("second")
    os.link(file, second)
    apply(file, put)
    assert file.samefile(second)
    assert second.read_bytes() == PUBLISHED
    apply(file, take)
    assert (file.read_bytes(), second.read_bytes(), file.samefile(second)) == (FOREIGN, FOREIGN, True)


def test_a_second_name_that_comes_meanwhile_is_not_split(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second, fchmod = file.with_name("second"), os.fchmod

    def chmod_late(descriptor: int, mode: int) -> None:
        fchmod(descriptor, mode)
        os.link(file, second)

    monkeypatch.setattr(os, "fchmod", chmod_late)
    apply(file, put)
    assert file.samefile(second)
    assert second.read_bytes() == PUBLISHED
    assert sorted(os.listdir(file.parent)) == ["hosts", "second"]


@pytest.mark.parametrize(
    ("there", "theirs", "merged"),
    [
        pytest.param(b"a\n", b"b\n", b"a\nb\n", id="a line that is new"),
        pytest.param(b"a", b"b", b"a\nb\n", id="without line ends"),
        pytest.param(b"a\n", b"a\nold\n", b"a\n", id="lines that are there or were there before"),
        pytest.param(b"", b"", b"", id="nothing"),
        pytest.param(b"", b"b\n", b"b\n", id="into nothing"),
        pytest.param(b"ours\n", b"b\n", b"b\n", id="into what we have written"),
    ],
)
def test_lines_of_a_rewritten_file_are_added_once(there: bytes, theirs: bytes, merged: bytes) -> None:
    rewritten = Rewritten(b"old\n", theirs=theirs, ours=b"ours\n")
    assert rewritten.merge_into(there) == merged
    assert rewritten.merge_into(merged) == merged


def test_a_line_that_is_appended_during_a_removal_is_a_line_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line end in front of the block was ours, and goes with it."""
    file.write_bytes(b"127.0.0.1 localhost")
    apply(file, put)
    opened: list[int] = []

    def close() -> None:
        os.write(opened[0], b"192.0.2.1 other\n")
        os.close(opened[0])

    around_the_rename(monkeypatch, lambda: opened.append(os.open(file, os.O_WRONLY | os.O_APPEND)), close)
    apply(file, take)
    assert file.read_bytes() == b"127.0.0.1 localhost\n192.0.2.1 other\n"


def test_a_file_without_writers_is_known_at_once_and_one_with_a_writer_is_waited_for(file: Path) -> None:
    with file.open("rb") as reading:
        assert wait_for_writers(reading.fileno(), seconds=0)
        with file.open("ab"):
            assert not wait_for_writers(reading.fileno(), seconds=0.01)
        assert wait_for_writers(reading.fileno(), seconds=0)


def test_another_program_cannot_open_a_file_that_is_kept_and_can_afterwards(file: Path) -> None:
    with file.open("r+b") as ours:
        with keep_others_out(ours.fileno(), seconds=5), pytest.raises(BlockingIOError):
            os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))


def test_a_file_that_others_have_open_is_not_kept_for_ever(file: Path) -> None:
    with file.open("r+b") as ours, file.open("rb"), keep_others_out(ours.fileno(), seconds=0.01):
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
