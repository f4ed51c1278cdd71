"""The snapshot's file: complete at every moment, and never a reason not to start or not to answer."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
import trio
from structlog.testing import capture_logs

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.holds import Held, Holds
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Annotations, Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.snapshot.file import (
    Services,
    SnapshotStatus,
    keep_snapshot,
    load_snapshot,
    restore_snapshot,
    write_file,
)
from dnsproxy.snapshot.format import (
    LARGEST,
    SavedRights,
    Snapshot,
    format_snapshot,
    parse_snapshot,
    walk_held,
    walk_objects,
)
from dnsproxy.snapshot.schedule import SnapshotPace
from tests.kit.dns_server import wait_until

SETTINGS: Final = {"ingress classes": "nginx"}
QUICK: Final = SnapshotPace(interval=0.001, share=1.0, empty=0.001, retry=0.001, refresh=3600)
Logs = list[Any]


@pytest.fixture
def logs() -> Iterator[Logs]:
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured


def claim(hostname: str) -> Claim:
    return Claim(hostname, Reach.NAME, Origin("Ingress", "web", "shop"), Terms((), "nginx"))


def store_of(*hostnames: str) -> ClaimStore:
    store = ClaimStore()
    for hostname in hostnames:
        store.replace("Ingress", f"shop/{hostname}", [claim(hostname)])
    return store


SERVICES: Final = {"edge/relay": ("192.0.2.30",)}


def write_snapshot(path: Path, store: ClaimStore, *, taken: float = 1e9) -> None:
    objects = walk_objects(store, ["Ingress"])
    write_file(path, format_snapshot(objects, taken=taken, settings=SETTINGS, services=SERVICES))


def read_back(path: Path) -> Snapshot:
    return parse_snapshot(path.read_bytes(), settings=SETTINGS)


def hosts_in(path: Path) -> set[str]:
    return {one.hostname for row in read_back(path).objects for one in row.claims} if path.exists() else set()


class Keeping:
    """A task that keeps a snapshot of consistent claims, or not."""

    def __init__(self, path: Path, store: ClaimStore, *, consistent: bool = True, pace: SnapshotPace = QUICK) -> None:
        self.path, self.store, self.pace, self.is_consistent = path, store, pace, consistent
        self.status = SnapshotStatus()
        self.looks = 0
        self.services: Services = {}
        self.rights = SavedRights()

    def consistent(self) -> bool:
        self.looks += 1
        return self.is_consistent

    async def run(self) -> None:
        await keep_snapshot(
            self.path,
            self.store,
            sources=["Ingress"],
            settings=SETTINGS,
            consistent=self.consistent,
            services=lambda: self.services,
            rights=lambda: self.rights,
            status=self.status,
            pace=self.pace,
        )

    async def look(self, times: int = 3) -> None:
        """Wait for further checks; by then, the write that the last check but one found due is done."""
        after = self.looks + times
        await wait_until(lambda: self.looks >= after)


async def test_claims_are_written_when_they_change_and_not_otherwise(tmp_path: Path, nursery: trio.Nursery) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"))
    nursery.start_soon(keeping.run)
    await wait_until(lambda: hosts_in(keeping.path) == {"a.example.org"})
    inode = keeping.path.stat().st_ino
    await keeping.look()
    assert keeping.path.stat().st_ino == inode
    keeping.store.replace("Ingress", "shop/b", [claim("b.example.org")])
    await wait_until(lambda: hosts_in(keeping.path) == {"a.example.org", "b.example.org"})
    await wait_until(lambda: keeping.status.written == read_back(keeping.path).taken)


async def test_a_service_that_moved_is_written_too(tmp_path: Path, nursery: trio.Nursery) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"))
    nursery.start_soon(keeping.run)
    await wait_until(keeping.path.exists)
    keeping.services = SERVICES
    await wait_until(lambda: read_back(keeping.path).services == SERVICES)


async def test_rights_that_changed_are_written_too_and_restored(tmp_path: Path, nursery: trio.Nursery) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"))
    nursery.start_soon(keeping.run)
    await wait_until(keeping.path.exists)
    keeping.rights = SavedRights(frozenset({"shop"}), frozenset({"nginx", "b"}), nginx_classes=frozenset({"nginx"}))
    await wait_until(lambda: read_back(keeping.path).rights == keeping.rights)
    registry = Registry(targets=Targets(), guards=Guards(), rights=Rights(Annotations.OFF))
    restore_snapshot(keeping.path, registry, settings=SETTINGS)
    assert registry.rights == Rights(
        Annotations.OFF,
        namespaces=frozenset({"shop"}),
        classes=frozenset({"nginx", "b"}),
        nginx_classes=frozenset({"nginx"}),
    )
    assert hosts_in(keeping.path) == {"a.example.org"}


async def test_unchanged_claims_are_written_again_so_that_their_age_is_known(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"), pace=replace(QUICK, refresh=0.01))
    nursery.start_soon(keeping.run)
    await wait_until(keeping.path.exists)
    first = read_back(keeping.path).taken
    await wait_until(lambda: read_back(keeping.path).taken > first)
    assert hosts_in(keeping.path) == {"a.example.org"}


async def test_nothing_is_written_while_a_source_is_not_consistent(tmp_path: Path, nursery: trio.Nursery) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"), consistent=False)
    nursery.start_soon(keeping.run)
    await keeping.look()
    assert not keeping.path.exists()
    keeping.is_consistent = True
    await wait_until(keeping.path.exists)


async def test_claims_that_are_suddenly_gone_do_not_cost_the_snapshot(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(path, store_of("a.example.org"))
    keeping = Keeping(path, ClaimStore(), pace=replace(QUICK, empty=3600))
    nursery.start_soon(keeping.run)
    await keeping.look()
    assert hosts_in(path) == {"a.example.org"}
    keeping.store.replace("hosts file", "", [claim("static.example.org")])
    await keeping.look()
    assert hosts_in(path) == {"a.example.org"}
    keeping.store.replace("Ingress", "shop/b", [claim("b.example.org")])
    await wait_until(lambda: hosts_in(path) == {"b.example.org"})


async def test_claims_that_stay_gone_are_gone(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(path, store_of("a.example.org"))
    keeping = Keeping(path, ClaimStore())
    nursery.start_soon(keeping.run)
    await wait_until(lambda: not hosts_in(path))
    await keeping.look()
    assert read_back(path).objects == ()


async def test_other_tasks_run_while_a_large_snapshot_is_made(tmp_path: Path, nursery: trio.Nursery) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of(*(f"h{number}.example.org" for number in range(20_000))))
    nursery.start_soon(keeping.run)
    await wait_until(lambda: keeping.looks == 1)
    turns = 0
    # Until the temporary file exists: the rest is the work of a thread.
    while not os.listdir(tmp_path):
        turns += 1
        await trio.lowlevel.checkpoint()
    assert turns >= 90


async def test_a_folder_that_is_gone_is_one_warning_and_a_line_when_it_is_back(
    tmp_path: Path, nursery: trio.Nursery, logs: Logs
) -> None:
    folder = tmp_path / "later"
    keeping = Keeping(folder / "snapshot", store_of("a.example.org"))
    nursery.start_soon(keeping.run)
    await wait_until(lambda: keeping.status.failures >= 3)
    folder.mkdir()
    await wait_until(keeping.path.exists)
    await wait_until(lambda: keeping.status.written is not None)
    assert [(line["log_level"], line["event"]) for line in logs] == [
        ("warning", "cannot write the snapshot"),
        ("info", "snapshot written again"),
    ]
    assert logs[0]["cause"] == "No such file or directory"


async def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(path, store_of("a.example.org"))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    keeping = Keeping(path, store_of("b.example.org"))
    nursery.start_soon(keeping.run)
    await wait_until(lambda: keeping.status.failures >= 2)
    nursery.cancel_scope.cancel()
    monkeypatch.undo()
    assert hosts_in(path) == {"a.example.org"}


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


LIMITED: Final = """
import resource, sys
from pathlib import Path
from dnsproxy.snapshot.file import write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(Path(sys.argv[1]), [b"x" * 600] * 5)
except OSError as error:
    print(error.strerror)
"""

KILLED: Final = """
import os, signal, sys
from pathlib import Path
from dnsproxy.snapshot.file import write_file
def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)
write_file(Path(sys.argv[1]), pieces())
"""


def test_a_write_that_is_cut_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(b"old")
    assert run_python(LIMITED, str(path)).stdout == "File too large\n"
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["snapshot"])


async def test_a_process_killed_while_it_writes_leaves_the_old_file_and_its_litter_is_swept(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(b"old")
    assert run_python(KILLED, str(path)).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (litter,) = (one for one in tmp_path.iterdir() if one != path)
    fresh = litter.with_name(litter.name + "2")
    for one in (fresh, tmp_path / "other"):
        one.touch()
    for one in (litter, tmp_path / "other"):
        os.utime(one, (0, 0))
    nursery.start_soon(Keeping(path, ClaimStore(), consistent=False).run)
    await wait_until(lambda: not litter.exists())
    assert fresh.exists()
    assert (tmp_path / "other").exists()


def test_the_file_is_for_its_owner_alone_and_a_link_to_it_stays(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "snapshot", tmp_path / "link"
    link.symlink_to(target)
    for _ in range(2):
        write_snapshot(link, store_of("a.example.org"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert link.is_symlink()
    assert hosts_in(target) == {"a.example.org"}


async def test_what_came_during_the_pause_is_written_at_the_end(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path / "snapshot", store_of("a.example.org"), pace=SnapshotPace(interval=3600))
    with trio.CancelScope() as ends:
        async with trio.open_nursery() as running:
            running.start_soon(keeping.run)
            await trio.testing.wait_all_tasks_blocked(0.05)
            ends.cancel()
    assert hosts_in(keeping.path) == {"a.example.org"}


@pytest.mark.parametrize("store", [ClaimStore(), store_of("a.example.org")], ids=["empty", "not consistent"])
async def test_what_would_not_be_written_is_not_written_at_the_end_either(tmp_path: Path, store: ClaimStore) -> None:
    keeping = Keeping(tmp_path / "snapshot", store, consistent=not store.hostnames(), pace=SnapshotPace(interval=3600))
    with trio.CancelScope() as ends:
        ends.cancel()
        await keeping.run()
    assert not keeping.path.exists()


def test_a_file_system_that_cannot_sync_a_folder_still_gets_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write_snapshot(tmp_path / "snapshot", store_of("a.example.org"))
    assert hosts_in(tmp_path / "snapshot") == {"a.example.org"}


def make_nothing(_: Path) -> None:
    """No file at all."""


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)


@pytest.mark.parametrize(
    ("make", "level", "reason"),
    [
        pytest.param(make_nothing, "info", None, id="none yet"),
        pytest.param(Path.mkdir, "warning", "Is a directory", id="a folder"),
        pytest.param(os.mkfifo, "warning", "it is no regular file", id="a FIFO that nobody writes into"),
        pytest.param(lambda path: path.symlink_to(path), "warning", "Too many levels", id="a link to itself"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "warning", "it is no regular file", id="a device"),
        pytest.param(make_large, "warning", "it is larger than 1024 MiB", id="too large"),
        pytest.param(Path.touch, "warning", "not a snapshot", id="empty"),
        pytest.param(lambda path: path.write_bytes(b"\0" * 9), "warning", "not a snapshot", id="damaged"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_line_in_the_log_and_no_claims(
    tmp_path: Path, logs: Logs, make: Callable[[Path], object], level: str, reason: str | None
) -> None:
    path = tmp_path / "snapshot"
    make(path)
    registry = Registry(targets=Targets(), guards=Guards())
    assert restore_snapshot(path, registry, settings=SETTINGS) == SnapshotStatus()
    assert list(registry.store.names()) == []
    (line,) = logs
    assert line["log_level"] == level
    assert (reason or "") in line.get("reason", "")


def test_a_snapshot_with_other_settings_is_refused_with_the_setting(tmp_path: Path, logs: Logs) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(path, store_of("a.example.org"))
    assert load_snapshot(path, settings={"ingress classes": "traefik"}) is None
    assert "ingress classes was nginx, and is traefik" in logs[0]["reason"]


def test_restored_names_are_answered_until_their_source_has_reported_all(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    write_snapshot(path, store_of("a.example.org", "b.example.org"))
    registry = Registry(targets=Targets(("service:edge/relay",)), guards=Guards(deny=("b.example.org",)))
    assert restore_snapshot(path, registry, settings=SETTINGS) == SnapshotStatus(restored=1e9)
    assert {host.hostname: host.addresses for host in registry.changes()} == {
        "a.example.org": ("192.0.2.30",),
        "b.example.org": (),
    }
    registry.replace("Ingress", "shop/b.example.org", [claim("b.example.org")])
    for hostnames in registry.store.forget_restored("Ingress"):
        registry.touch(hostnames)
    assert {host.hostname: host.addresses for host in registry.changes()} == {"a.example.org": ()}


@pytest.mark.parametrize("until", [None, 4_000_000_000.0], ids=["a holder", "a hold"])
def test_who_has_a_name_is_restored_and_begins_at_once(tmp_path: Path, until: float | None) -> None:
    path = tmp_path / "snapshot"
    holds = Holds(600)
    row = Held("a.example.org", Reach.NAME, Origin("Ingress", "web", "elsewhere", "2020-01-01T00:00:00Z"), until)
    holds.restore([row], now=4_000_000_000.0 - 600)
    write_file(path, format_snapshot(walk_held(holds), taken=1e9, settings=SETTINGS, services={}))
    registry = Registry(targets=Targets(("192.0.2.30",)), guards=Guards(), holds=Holds(600))
    restore_snapshot(path, registry, settings=SETTINGS)
    registry.replace("Ingress", "shop/web", [claim("a.example.org")])
    assert {host.addresses for host in registry.changes()} == {()}
    (held,) = registry.holds.rows()
    assert held.holder == row.holder


def test_a_link_to_itself_is_no_file_and_becomes_one(tmp_path: Path) -> None:
    """Path.resolve() raises RuntimeError for it, which ended the server."""
    path = tmp_path / "snapshot"
    path.symlink_to(path)
    write_snapshot(path, store_of("a.example.org"))
    assert hosts_in(path) == {"a.example.org"}
