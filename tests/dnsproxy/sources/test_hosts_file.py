"""Following a hosts file: read at the start and after each change; kept while it is unreadable."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from dnsproxy.sources import hosts_file
from dnsproxy.sources.hosts_file import LARGEST, follow_hosts_file, read_hosts_file
from dnsproxy.sources.static_names import HostsFile, parse_hosts_file
from sidecar.files.follow import file_mark
from sidecar.values.errors import StartError
from tests.kit.dns_server import wait_until


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
    claims, rejections = await read_hosts_file(hosts)
    assert [(claim.hostname, claim.origin.name) for claim in claims.values()] == [("a.example.org", f"{hosts}:1")]
    assert rejections == []


async def test_a_line_ends_as_every_system_ends_it_and_at_nothing_else(hosts: Path) -> None:
    hosts.write_bytes(
        "192.0.2.1 unix.example.org\n192.0.2.1 dos.example.org\r\n192.0.2.1 mac.example.org\r"
        "# \u0085192.0.2.1 a.example.org \u2028192.0.2.1 b.example.org \x0c192.0.2.1 c.example.org\n"
        "192.0.2.1 last.example.org".encode()
    )
    claims, rejections = await read_hosts_file(hosts)
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
        pytest.param(lambda path: path.write_bytes(b"\n192.0.2.1 \xff\n"), "line 2 is not UTF-8", id="not text"),
        pytest.param(lambda path: path.write_bytes(b"#\xed\xa0\x80"), "line 1 is not UTF-8", id="a lone surrogate"),
        pytest.param(lambda path: path.write_bytes(b"#\n" * 99_999 + b"\xc3"), "line 100000", id="cut in a character"),
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

    def parse_while_it_changes(lines: Iterable[str], *, path: str) -> Generator[None, None, HostsFile]:
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
