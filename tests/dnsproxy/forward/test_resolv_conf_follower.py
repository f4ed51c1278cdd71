"""A resolv.conf that is read and followed: there is always an upstream to ask."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from dnsproxy.forward.resolv_conf_follower import LARGEST, follow_resolv_conf, follow_search, read_forwarding
from dnsproxy.forward.settings import ForwardSettings
from sidecar.files.follow import LOOK_EVERY
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

PLAIN = ForwardSettings((), outstanding=7, per_client=3)
OURS = Endpoint("127.0.0.1", 53)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\n")
    return path


class Following:
    """A running follower, with its reports and log lines; time passes only in `look`."""

    def __init__(self, path: Path, nursery: trio.Nursery, clock: MockClock, *, may_be_empty: bool = False) -> None:
        self.applied: list[ForwardSettings] = []
        self.search: list[tuple[str, ...]] = []
        self._clock = clock
        used = read_forwarding(path, plain=PLAIN, may_be_empty=may_be_empty)
        start = partial(
            follow_resolv_conf,
            path,
            used=used,
            listening=[OURS],
            apply=self.applied.append,
            apply_search=self.search.append,
        )
        nursery.start_soon(start)

    @property
    def hosts(self) -> list[list[str]]:
        """The nameservers of each report."""
        return [[upstream.host for upstream in settings.upstreams] for settings in self.applied]

    async def look(self) -> list[str]:
        """The causes of the warnings during several checks."""
        with capture_logs() as logs:
            for _ in range(5):
                await wait_all_tasks_blocked()
                self._clock.jump(LOOK_EVERY)
            await wait_all_tasks_blocked()
        return [str(line.get("cause", line["event"])) for line in logs if line["log_level"] == "warning"]


class FollowingSearch(Following):
    """A running follower of the search domains alone."""

    def __init__(self, path: Path, nursery: trio.Nursery, clock: MockClock) -> None:
        self.search = []
        self._clock = clock
        nursery.start_soon(partial(follow_search, path, apply_search=self.search.append))


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        pytest.param(
            lambda path: path.unlink(), "No such file or directory; name servers with --upstream", id="missing"
        ),
        pytest.param(lambda path: path.write_text(""), "has no nameserver; name one with --upstream", id="empty"),
        pytest.param(lambda path: path.write_text("#"), "has no nameserver; name one with --upstream", id="comment"),
        pytest.param(make_folder, "Is a directory", id="a folder"),
    ],
)
def test_at_the_start_there_must_be_a_nameserver(path: Path, spoil: object, complaint: str) -> None:
    assert callable(spoil)
    spoil(path)
    with pytest.raises(StartError, match=complaint) as caught:
        read_forwarding(path, plain=PLAIN)
    assert f"--resolv-conf {path}" in str(caught.value)


async def test_a_node_without_a_nameserver_at_the_start_is_no_fault_and_its_first_one_is_reported(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    path.write_text("# none\n")
    following = Following(path, nursery, mock_clock, may_be_empty=True)
    assert await following.look() == []
    path.write_text("# none yet\n")
    assert await following.look() == []
    path.write_text("nameserver 192.0.2.7\n")
    assert await following.look() == []
    assert following.hosts == [["192.0.2.7"]]
    path.write_text("# lost\n")
    assert await following.look() == ["has no nameserver"]
    assert following.hosts == [["192.0.2.7"]]


def test_at_the_start_it_may_be_a_pipe() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"nameserver 192.0.2.7\n")
        os.close(writing)
        found = read_forwarding(Path(f"/dev/fd/{reading}"), plain=PLAIN)
    finally:
        os.close(reading)
    assert found.upstreams == (Endpoint("192.0.2.7", 53),)


async def test_a_file_as_it_was_at_the_start_is_no_news(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    assert await following.look() == []
    path.write_text("# written anew\nnameserver 192.0.2.1\n")
    assert await following.look() == []
    assert following.applied == []


async def test_a_change_between_reading_and_following_is_reported(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    path.write_text("nameserver 192.0.2.2\n")
    await following.look()
    assert following.hosts == [["192.0.2.2"]]


async def test_new_nameservers_and_options_are_reported_and_the_limits_stay(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    await following.look()
    path.write_text("nameserver 192.0.2.3\nnameserver 192.0.2.1\noptions rotate use-vc attempts:1\n")
    await following.look()
    assert following.applied == [
        ForwardSettings(
            (Endpoint("192.0.2.3", 53), Endpoint("192.0.2.1", 53)),
            outstanding=7,
            per_client=3,
            rotate=True,
            attempts=1,
            use_tcp=True,
        )
    ]


async def test_options_that_are_gone_are_back_at_their_defaults(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    for content in ("nameserver 192.0.2.1\noptions rotate\n", "nameserver 192.0.2.1\n"):
        path.write_text(content)
        await following.look()
    assert [settings.rotate for settings in following.applied] == [True, False]


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        pytest.param(lambda path: path.unlink(), "No such file or directory", id="missing"),
        pytest.param(lambda path: path.write_text(""), "has no nameserver", id="empty"),
        pytest.param(lambda path: path.write_text("#nameserver 192.0.2.2"), "has no nameserver", id="no nameserver"),
        pytest.param(make_folder, "Is a directory", id="a folder"),
        pytest.param(make_pipe, "is no regular file", id="a pipe"),
        pytest.param(lambda path: os.truncate(path, LARGEST + 1), "is larger than", id="too large"),
        pytest.param(
            lambda path: path.write_text("nameserver 127.0.0.1\n"),
            "127.0.0.1:53 is an address that dnsproxy listens on",
            id="a loop",
        ),
    ],
)
async def test_an_unusable_file_is_logged_once_and_the_upstreams_stay(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock, spoil: object, cause: str
) -> None:
    following = Following(path, nursery, mock_clock)
    assert callable(spoil)
    await following.look()
    spoil(path)
    (complaint,) = await following.look()
    assert cause in complaint
    assert await following.look() == []
    assert following.applied == []


@pytest.mark.parametrize("content", ["127.0.0.1 192.0.2.2", "192.0.2.2 127.0.0.1", "0.0.0.0 192.0.2.2"])
async def test_this_server_is_excluded_and_logged_once(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock, content: str
) -> None:
    following = Following(path, nursery, mock_clock)
    path.write_text("".join(f"nameserver {address}\n" for address in content.split()))
    assert await following.look() == ["resolv.conf names dnsproxy itself; it is excluded"]
    path.touch()
    assert await following.look() == []
    assert following.hosts == [["192.0.2.2"]]


async def test_this_server_is_logged_again_after_it_was_gone(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    for own, warnings in (("127.0.0.1", 1), ("192.0.2.1", 0), ("127.0.0.1", 1)):
        path.write_text(f"nameserver 192.0.2.1\nnameserver {own}\n")
        assert len(await following.look()) == warnings
    assert following.applied == []


async def test_after_a_trouble_the_next_good_file_counts(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    following = Following(path, nursery, mock_clock)
    path.write_text("")
    assert len(await following.look()) == 1
    path.write_text("nameserver 192.0.2.5\n")
    assert await following.look() == []
    assert following.hosts == [["192.0.2.5"]]


@pytest.mark.parametrize("follower", [Following, FollowingSearch], ids=["with the upstreams", "alone"])
async def test_changed_search_domains_are_reported(
    path: Path, nursery: trio.Nursery, mock_clock: MockClock, follower: type[Following]
) -> None:
    following = follower(path, nursery, mock_clock)
    contents = ["search EU.example.org. . lan\nnameserver 192.0.2.1\n", "nameserver 192.0.2.1\n"]
    for content in contents:
        path.write_text(content)
        assert await following.look() == []
    assert following.search == [("eu.example.org", "lan"), ()]


@pytest.mark.parametrize("follower", [Following, FollowingSearch], ids=["with the upstreams", "alone"])
@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        pytest.param(lambda path: path.unlink(), "No such file or directory", id="missing"),
        pytest.param(lambda path: path.write_text(""), "has no nameserver", id="empty, as while it is written"),
        pytest.param(lambda path: path.write_text("search example.net\n"), "has no nameserver", id="half a file"),
        pytest.param(make_folder, "Is a directory", id="a folder"),
        pytest.param(make_pipe, "is no regular file", id="a pipe"),
        pytest.param(lambda path: os.truncate(path, LARGEST + 1), "is larger than", id="too large"),
    ],
)
async def test_an_unusable_file_keeps_the_search_domains(
    path: Path,
    nursery: trio.Nursery,
    mock_clock: MockClock,
    spoil: object,
    cause: str,
    follower: type[Following],
) -> None:
    path.write_text("search lan\nnameserver 192.0.2.1\n")
    following = follower(path, nursery, mock_clock)
    assert await following.look() == []
    assert callable(spoil)
    spoil(path)
    (complaint,) = await following.look()
    assert cause in complaint
    assert following.search == [("lan",)]
