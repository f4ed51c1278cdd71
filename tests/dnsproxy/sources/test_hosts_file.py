"""Following a hosts file (hosts_file.py, hosts_lines.py): read at the start and after each change, line by line."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import BinaryIO

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dnsproxy.sources import hosts_file
from dnsproxy.sources.hosts_file import LARGEST, follow_hosts_file, read_hosts_file
from dnsproxy.sources.hosts_lines import LONGEST, numbered_lines
from dnsproxy.sources.static_names import HostsFile, parse_hosts_file
from sidecar.files import follow
from sidecar.files.follow import file_mark
from sidecar.values.errors import StartError
from tests.kit.dns_server import wait_until
from tests.kit.stepping import finish


class Told:
    """The reports of a follower."""

    def __init__(self) -> None:
        self.reports: list[list[str]] = []
        self.more = trio.Event()

    async def __call__(self, found: HostsFile) -> None:
        self.reports.append(list(found.claims))
        self.more.set()
        self.more = trio.Event()


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_text("192.0.2.1 a.example.org\n")
    return path


def replace_atomically(path: Path, content: str) -> None:
    """A mounted ConfigMap changes like this: another file takes the name."""
    other = path.with_suffix(".new")
    other.write_text(content)
    other.replace(path)


async def test_the_claims_name_file_and_line(hosts: Path) -> None:
    (claims, rejections, _), _ = await read_hosts_file(hosts)
    assert [(claim.hostname, claim.origin.name) for claim in claims.values()] == [("a.example.org", f"{hosts}:1")]
    assert rejections == []


async def test_a_line_ends_as_every_system_ends_it_and_at_nothing_else(hosts: Path) -> None:
    hosts.write_bytes(
        "192.0.2.1 unix.example.org\n192.0.2.1 dos.example.org\r\n192.0.2.1 mac.example.org\r"
        "# \u0085192.0.2.1 a.example.org \u2028192.0.2.1 b.example.org \x0c192.0.2.1 c.example.org\n"
        "192.0.2.1 last.example.org".encode()
    )
    (claims, rejections, _), _ = await read_hosts_file(hosts)
    assert {name.partition(".")[0]: claim.origin.name[-1] for name, claim in claims.items()} == {
        "unix": "1",
        "dos": "2",
        "mac": "3",
        "last": "5",
    }
    assert rejections == []


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(lambda path: path.unlink(), "No such file", id="missing"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), "Is a directory", id="a folder"),
        pytest.param(lambda path: os.truncate(path, LARGEST + 1), "larger than", id="too large"),
    ],
)
async def test_a_file_that_cannot_be_read_is_a_start_error_that_names_it(
    hosts: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(hosts)
    with pytest.raises(StartError, match=reason) as caught:
        await read_hosts_file(hosts)
    assert str(hosts) in str(caught.value)


GOOD = b"192.0.2.1 before.example.org\n%b\n192.0.2.2 after.example.org\n"


@pytest.mark.parametrize(
    ("line", "reasons"),
    [
        pytest.param(b"# caf\xe9", [], id="Latin-1 in a comment"),
        pytest.param(b"# \xed\xa0\x80 \xc3", [], id="half characters in a comment"),
        pytest.param(b"192.0.2.3 more.example.org # \xff", [], id="behind a name"),
        pytest.param(b"192.0.2.3 \xff.example.org", ["'\\udcff.example.org' is not UTF-8"], id="in a name"),
        pytest.param(b"\xff\xfe1", ["'\\udcff\\udcfe1' is not UTF-8"], id="in an address"),
        pytest.param(b"192.0.2.3\0 nul.example.org", ["'192.0.2.3\\x00' is not an IP address"], id="NUL"),
        pytest.param(b"\0" * 4096, ["'" + "\\x00" * 80 + "...' is not an IP address"], id="a page of NULs"),
        pytest.param(b"\xef\xbb\xbf192.0.2.3 a", ["'\\ufeff192.0.2.3' is not an IP address"], id="a mark inside"),
        pytest.param(b"x" * 12_000_000, ["the line is longer than 65536 characters"], id="12 MB"),
        pytest.param(b"\xff" * 70_000, ["the line is longer than 65536 characters"], id="long and not text"),
        pytest.param(b"192.0.2.3 a.example.org" * 4000, ["the line is longer than 65536 characters"], id="long names"),
    ],
)
async def test_an_invalid_line_costs_no_other_line(hosts: Path, line: bytes, reasons: list[str]) -> None:
    hosts.write_bytes(GOOD % line)
    (claims, rejections, _), _ = await read_hosts_file(hosts)
    found = {name: claim.origin.name for name, claim in claims.items()}
    assert found.pop("more.example.org", f"{hosts}:2") == f"{hosts}:2"
    assert found == {"before.example.org": f"{hosts}:1", "after.example.org": f"{hosts}:3"}
    assert [rejection.reason for rejection in rejections] == reasons


@given(st.binary(max_size=200) | st.lists(st.sampled_from([b"\xff", b"\r", b"\n", b"#", b"a.b ", b"\0"])).map(b"".join))
def test_any_octets_leave_the_lines_around_them(octets: bytes) -> None:
    claims = finish(parse_hosts_file(numbered_lines(GOOD % octets), path="names")).claims
    assert {"before.example.org", "after.example.org"} <= claims.keys()


@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST], ids=lambda size: str(size - LONGEST))
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_long_line_is_one_line(size: int, end: bytes) -> None:
    lines = list(numbered_lines(b"x" * size + end + b"y" + end))
    assert (lines[0][0], lines[-1]) == (1, (2, "y\n"))
    assert {number for number, _ in lines} == {1, 2}
    assert (len(lines[0][1].rstrip("\n")) > LONGEST) == (size > LONGEST)


async def test_a_byte_order_mark_is_no_part_of_the_first_line(hosts: Path) -> None:
    hosts.write_bytes(b"\xef\xbb\xbf192.0.2.1 a.example.org\r\n")
    (claims, rejections, _), _ = await read_hosts_file(hosts)
    assert (list(claims), rejections) == (["a.example.org"], [])


def test_a_very_long_line_lets_other_tasks_run() -> None:
    """A DNS server must not wait for a line that nobody uses."""
    steps = parse_hosts_file(numbered_lines(b"x" * 12_000_000 + b"\n"), path="names")
    assert sum(1 for _ in steps) > 12_000_000 / LONGEST - 1


@pytest.mark.parametrize("change", [Path.write_text, replace_atomically], ids=["in place", "by rename"])
async def test_a_change_of_the_same_size_and_time_is_reported(
    hosts: Path, nursery: trio.Nursery, change: Callable[[Path, str], object]
) -> None:
    told = Told()
    (_, mark), status = await read_hosts_file(hosts), hosts.stat()
    nursery.start_soon(lambda: follow_hosts_file(hosts, seen=mark, tell=told))
    change(hosts, "192.0.2.1 b.example.org\n")
    os.utime(hosts, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (hosts.stat().st_size, hosts.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    await told.more.wait()
    assert told.reports == [["b.example.org"]]


async def test_a_change_while_the_file_is_read_at_the_start_is_read_again(
    hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was read first, which may be half of each, is not used."""
    readings, read = [], follow._read_up_to

    def read_and_change(file: BinaryIO, largest: int) -> bytes:
        readings.append(read(file, largest))
        if len(readings) == 1:
            hosts.write_text("192.0.2.1 second.example.org\n")
        return readings[-1]

    monkeypatch.setattr(follow, "_read_up_to", read_and_change)
    (claims, *_), mark = await read_hosts_file(hosts)
    assert (list(claims), mark, len(readings)) == (["second.example.org"], file_mark(hosts), 2)


async def test_a_file_that_never_rests_is_used_at_the_start_and_read_again_by_the_follower(
    hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = follow._read_up_to

    def read_and_change(file: BinaryIO, largest: int) -> bytes:
        found = read(file, largest)
        with hosts.open("a") as more:
            more.write("# more\n")
        return found

    monkeypatch.setattr(follow, "_read_up_to", read_and_change)
    (claims, *_), mark = await read_hosts_file(hosts)
    assert (list(claims), mark) == (["a.example.org"], ())


async def test_a_pipe_is_read_at_the_start(tmp_path: Path, nursery: trio.Nursery) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    nursery.start_soon(trio.Path(pipe).write_text, "192.0.2.1 a.example.org\n")
    (claims, *_), _ = await read_hosts_file(pipe)
    assert list(claims) == ["a.example.org"]


@pytest.mark.parametrize("change", [Path.write_text, replace_atomically], ids=["in place", "by rename"])
async def test_a_change_is_reported(hosts: Path, nursery: trio.Nursery, change: object) -> None:
    assert callable(change)
    told = Told()
    mark = file_mark(hosts)
    nursery.start_soon(lambda: follow_hosts_file(hosts, seen=mark, tell=told))
    change(hosts, "192.0.2.1 b.example.org\n192.0.2.2 c.example.org\n")
    await told.more.wait()
    assert told.reports == [["b.example.org", "c.example.org"]]


async def test_a_change_between_reading_and_following_is_reported_too(hosts: Path, nursery: trio.Nursery) -> None:
    told = Told()
    mark = file_mark(hosts)
    hosts.write_text("192.0.2.1 later.example.org\n")
    nursery.start_soon(lambda: follow_hosts_file(hosts, seen=mark, tell=told))
    await told.more.wait()
    assert told.reports == [["later.example.org"]]


async def test_a_file_that_is_written_while_it_is_read_is_reported_once_it_is_stable(
    hosts: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, readings = Told(), 0

    def parse_while_it_changes(lines: Iterable[tuple[int, str]], *, path: str) -> Generator[None, None, HostsFile]:
        nonlocal readings
        readings += 1
        yield
        if readings == 1:
            hosts.write_text("192.0.2.1 whole.example.org\n192.0.2.1 also.example.org\n")
        return (yield from parse_hosts_file(lines, path=path))

    monkeypatch.setattr(hosts_file, "parse_hosts_file", parse_while_it_changes)
    nursery.start_soon(lambda: follow_hosts_file(hosts, seen=(), tell=told))
    await told.more.wait()
    assert (told.reports, readings) == ([["whole.example.org", "also.example.org"]], 2)


async def test_a_file_that_goes_away_changes_nothing_until_it_is_back(hosts: Path, nursery: trio.Nursery) -> None:
    told = Told()
    mark = file_mark(hosts)
    hosts.unlink()
    nursery.start_soon(lambda: follow_hosts_file(hosts, seen=mark, tell=told))
    with trio.move_on_after(1.3):
        await told.more.wait()
    assert told.reports == []
    hosts.write_text("192.0.2.1 back.example.org\n")
    await told.more.wait()
    assert told.reports == [["back.example.org"]]


async def test_a_file_that_became_a_pipe_is_not_waited_for(hosts: Path, nursery: trio.Nursery) -> None:
    """Opening a FIFO waits for its writer, and every answer would wait too."""
    told = Told()
    mark = file_mark(hosts)
    hosts.unlink()
    os.mkfifo(hosts)
    with capture_logs() as logs:
        nursery.start_soon(lambda: follow_hosts_file(hosts, seen=mark, tell=told))
        await wait_until(lambda: bool(logs))
    assert [line["cause"] for line in logs] == ["is no regular file"]
    replace_atomically(hosts, "192.0.2.1 back.example.org\n")
    await told.more.wait()
    assert told.reports == [["back.example.org"]]
