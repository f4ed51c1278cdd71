"""Serials: never twice and never backwards, over restarts and crashes, around the circle, with any file."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog.testing
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from dnsproxy.primary.serials import BLOCK, ClockSerials, FileSerials, clock_serial
from dnsproxy.zone.serials import MODULUS, following, is_newer, newest

NOW = 1_700_000_000
SERIAL = st.integers(1, MODULUS - 1)


@given(SERIAL, st.integers(1, (1 << 31) - 1))
def test_what_follows_is_newer_and_never_zero(serial: int, step: int) -> None:
    later = following(serial, step)
    assert later != 0
    if (serial + step) % MODULUS:
        assert is_newer(later, serial)
        assert not is_newer(serial, later)
        assert newest(serial, later) == newest(later, serial) == later


@pytest.mark.parametrize(
    ("serial", "than", "newer"),
    [
        (2, 1, True),
        (1, 2, False),
        (1, 1, False),
        (1, MODULUS - 1, True),
        (MODULUS - 1, 1, False),
        (1 << 31, 1, True),
        ((1 << 31) + 1, 1, False),
        (1, (1 << 31) + 1, False),
    ],
)
def test_serials_are_compared_in_their_circle(serial: int, than: int, newer: bool) -> None:
    assert is_newer(serial, than) is newer


async def test_the_clock_gives_each_second_once_and_never_the_first(autojump_clock: MockClock) -> None:  # noqa: ARG001
    begun = trio.current_time()
    serials = ClockSerials(now=lambda: NOW + 0.5 + trio.current_time() - begun)
    given_out = [await serials.next(0)]
    for _ in range(3):
        given_out.append(await serials.next(given_out[-1] or 0))
    assert given_out == [NOW + 1, NOW + 2, NOW + 3, NOW + 4]


async def test_a_clock_that_went_back_a_day_does_not_stop_the_serials() -> None:
    serials = ClockSerials(now=lambda: NOW)
    assert await serials.next(NOW + 86_400) == NOW + 86_401
    assert clock_serial(MODULUS) == 1


@given(st.lists(st.tuples(st.integers(1, BLOCK + 3), st.integers(-100_000, 100_000)), min_size=1, max_size=4))
def test_serials_from_a_file_go_up_over_crashes_and_clocks_that_go_back(lives: list[tuple[int, int]]) -> None:
    async def live(path: Path) -> None:
        last = 0
        for changes, skew in lives:
            serials, known = FileSerials(path, now=partial(sum, (NOW, skew))), 0
            for _ in range(min(changes, 3)):
                known = await serials.next(known) or 0
                assert not last or is_newer(known, last)
                last = known
            if changes > 3:
                last = known = await serials.next(following(known, changes)) or 0

    with TemporaryDirectory() as folder:
        trio.run(live, Path(folder) / "serial")


async def test_a_file_at_the_end_of_the_circle_leads_around_it(tmp_path: Path) -> None:
    path = tmp_path / "serial"
    path.write_text(f"{MODULUS - 1}\n", encoding="ascii")
    serials = FileSerials(path, now=lambda: NOW)
    assert [await serials.next(0), await serials.next(1)] == [1, 2]
    assert path.read_text(encoding="ascii") == f"{1 + BLOCK}\n"


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"-1", id="a negative number"),
        pytest.param(b"12x", id="no number"),
        pytest.param(b"%d" % MODULUS, id="2^32"),
        pytest.param(b"9" * 5_000, id="thousands of digits"),
        pytest.param(b"\xc2\xb2", id="a digit that is not ASCII"),
        pytest.param(b"\xff" * 9, id="no text"),
    ],
)
async def test_a_file_that_is_no_serial_is_told_and_the_clock_counts(octets: bytes, tmp_path: Path) -> None:
    path = tmp_path / "serial"
    path.write_bytes(octets)
    with structlog.testing.capture_logs() as logged:
        assert await FileSerials(path, now=lambda: NOW).next(0) == NOW
    assert len(logged) == 1
    assert int(path.read_bytes()) >= NOW


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="a folder"),
        pytest.param(lambda path: path.symlink_to(path), id="a link to itself"),
        pytest.param(lambda path: path.symlink_to(path.parent / "gone" / "serial"), id="in a folder that is gone"),
    ],
)
async def test_a_place_where_no_file_can_be_is_told_once(make: object, tmp_path: Path) -> None:
    assert callable(make)
    path = tmp_path / "serial"
    make(path)
    with structlog.testing.capture_logs() as logged:
        serials = FileSerials(path, now=lambda: NOW)
        assert [await serials.next(0), await serials.next(NOW + 2 * BLOCK)] == [NOW, NOW + 2 * BLOCK + 1]
    assert len(logged) == 1


async def test_what_is_no_regular_file_is_neither_waited_for_nor_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "null").symlink_to("/dev/null")
    for path in (fifo, tmp_path / "null", Path("/dev/zero")):
        serials = FileSerials(path, now=lambda: NOW)
        with structlog.testing.capture_logs() as logs:
            assert await serials.next(0) == NOW
        assert [(line["event"], line["cause"]) for line in logs] == [
            ("the file of --rpz-serial cannot be read", "is no regular file")
        ]
        assert not path.is_file()
