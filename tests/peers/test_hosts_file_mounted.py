"""`dnsproxy publish-hosts` with a hosts file mounted as in a DaemonSet; glibc itself reads the file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dnsproxy.admin.publication import format_document
from tests.kit.launched import ROOT
from tests.kit.mounts import MountNamespace, mount_namespace
from tests.kit.processes import end_process, wait_for
from tests.kit.publications import publication
from tests.kit.user_namespaces import FIRST, closed_folders, user_namespace

pytestmark = pytest.mark.peer("unshare", "nsenter", "mount", "getent", "setpriv")

FOREIGN = "127.0.0.1\tlocalhost\r\n192.0.2.9\tforeign.example.org"
ETC_HOSTS = Path("/etc/hosts")
SECONDS = 60
BARE = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
"""As the manifest starts a program: no capability, and none to gain."""
OTHER = ("--reuid=65532", "--clear-groups")


class Node:
    """A node's /etc/hosts, and a container in which it is mounted over the container's own."""

    def __init__(self, folder: Path, namespace: MountNamespace) -> None:
        self.folder = folder
        self.namespace = namespace
        self.hosts = folder / "hosts"
        self.hosts.write_text(FOREIGN, newline="")
        self.names = folder / "names.json.gz"

    def has(self, *rows: str) -> None:
        # Replaced atomically, like a mounted ConfigMap.
        new = self.folder / "new"
        new.write_bytes(format_document(publication(*rows)).octets)
        new.replace(self.names)

    def publish(self, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        return self.namespace.run(*prefix, *self._command(*arguments), environment=self._environment)

    def run(self, *prefix: str, script: str) -> subprocess.CompletedProcess[str]:
        return self.namespace.run(*prefix, "sh", "-c", script)

    @contextmanager
    def publishing(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        log = self.folder / "publish.log"
        command = self.namespace.command(*self._command("--interval", "0.1", *arguments))
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=self._environment, stderr=output)
        try:
            yield process
        finally:
            end_process(process)

    def wait_until(self, text: str, process: subprocess.Popen[bytes]) -> None:
        wait_for(lambda: text in self.hosts.read_text(), process=process, log=self.folder / "publish.log")

    def ask(self, database: str, name: str) -> list[str]:
        """The addresses that glibc finds for a name with files as the only source."""
        done = self.namespace.run("getent", "-s", "files", database, name)
        return list(dict.fromkeys(line.split()[0] for line in done.stdout.splitlines()))

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DNSPROXY_FROM_FILE": str(self.names),
            "DNSPROXY_ADMIN": "off",
            "DNSPROXY_ZONE": "example.org",
        }

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "dnsproxy", "publish-hosts", *arguments]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with mount_namespace() as namespace:
        one = Node(tmp_path, namespace)
        namespace.bind(one.hosts, ETC_HOSTS)
        yield one


def test_a_mounted_file_is_written_in_place_and_glibc_reads_it(node: Node) -> None:
    node.has(
        "app.example.org 192.0.2.10 2001:db8::10",
        "registry.example.org 192.0.2.11",
        "*.wild.example.org 192.0.2.1",
        "foreign.example.org 192.0.2.66",
    )
    inode = node.hosts.stat().st_ino
    done = node.publish("--once")
    assert done.returncode == 0, done.stderr
    assert node.hosts.stat().st_ino == inode
    assert node.ask("ahosts", "app.example.org") == ["192.0.2.10", "2001:db8::10"]
    assert node.ask("ahostsv4", "registry.example.org") == ["192.0.2.11"]
    assert node.ask("ahosts", "foreign.example.org") == ["192.0.2.9"]
    assert node.ask("ahosts", "x.wild.example.org") == []
    assert node.hosts.read_text().startswith("127.0.0.1\tlocalhost\n192.0.2.9\tforeign.example.org\n# BEGIN switchback")
    assert node.publish("--remove").returncode == 0
    assert node.hosts.read_bytes() == FOREIGN.encode()
    assert ETC_HOSTS.read_bytes() != node.hosts.read_bytes()


def test_no_other_file_can_take_the_name_of_a_mounted_one(node: Node) -> None:
    """The reason for writing in place: rename(2) returns EBUSY."""
    other = node.folder / "other"
    other.write_text("other")
    script = f"import os; os.rename({str(other)!r}, {str(node.hosts)!r})"
    node.namespace.bind(node.hosts, node.hosts)
    done = node.namespace.run(sys.executable, "-c", script)
    assert "Device or resource busy" in done.stderr


def test_glibc_finds_the_right_address_at_every_moment_of_a_change(node: Node) -> None:
    """Lines of other owners come first and are never rewritten, so concurrent readers find them."""
    tables = [[f"h{number}.example.org 192.0.2.{size}" for number in range(size)] for size in (3, 200, 7, 120)]
    node.has(*tables[0])
    with node.publishing() as process:
        for table in tables:
            node.has(*table)
            _, address = table[-1].split()
            while node.ask("ahostsv4", "h2.example.org") != [address]:
                assert node.ask("hosts", "foreign.example.org") == ["192.0.2.9"]
                assert process.poll() is None
            assert node.ask("hosts", "foreign.example.org") == ["192.0.2.9"]


def test_a_read_only_mount_is_said_and_tried_again(node: Node) -> None:
    node.namespace.bind(node.hosts, ETC_HOSTS)
    assert node.namespace.run("mount", "-o", "remount,bind,ro", str(ETC_HOSTS)).returncode == 0
    node.has("app.example.org 192.0.2.10")
    done = node.publish("--once")
    assert done.returncode == 1
    assert "/etc/hosts: Read-only file system" in done.stderr
    assert node.hosts.read_bytes() == FOREIGN.encode()


def test_a_publisher_of_a_replaced_file_ends_and_a_new_container_gets_the_new_file(node: Node) -> None:
    node.has("app.example.org 192.0.2.10")
    with node.publishing() as process:
        node.wait_until("app.example.org", process)
        new = node.folder / "of the node"
        new.write_text("192.0.2.8 new.example.org\n")
        new.replace(node.hosts)
        assert process.wait(SECONDS) == 1
    assert "the node has another file in its place now" in (node.folder / "publish.log").read_text()
    assert "app.example.org" not in node.hosts.read_text()
    done = node.publish("--once")
    assert done.returncode == 1
    assert "the node has another file in its place now" in done.stderr
    assert node.namespace.run("umount", str(ETC_HOSTS)).returncode == 0
    node.namespace.bind(node.hosts, ETC_HOSTS)
    assert node.publish("--once").returncode == 0
    assert node.ask("hosts", "app.example.org") == ["192.0.2.10"]
    assert node.ask("hosts", "new.example.org") == ["192.0.2.8"]


def test_a_folder_that_is_mounted_has_its_file_replaced_whole(node: Node) -> None:
    etc = node.folder / "etc"
    etc.mkdir()
    (etc / "hosts").write_text(FOREIGN, newline="")
    host = node.folder / "host"
    host.mkdir()
    node.namespace.bind(etc, host)
    node.has("app.example.org 192.0.2.10")
    inode = (etc / "hosts").stat().st_ino
    assert node.publish("--once", "--to", str(host / "hosts")).returncode == 0
    assert (etc / "hosts").stat().st_ino != inode
    assert os.listdir(etc) == ["hosts"]


def test_a_read_only_root_with_a_mounted_file_is_as_in_the_manifest(node: Node) -> None:
    """No file can be created beside the hosts file; only the file itself is writable."""
    host = node.folder / "root"
    host.mkdir()
    (host / "hosts").touch()
    node.namespace.bind(host, host)
    assert node.namespace.run("mount", "-o", "remount,bind,ro", str(host)).returncode == 0
    node.namespace.bind(node.hosts, host / "hosts")
    node.has("app.example.org 192.0.2.10")
    assert node.publish("--once", "--to", str(host / "hosts")).returncode == 0
    assert "192.0.2.10 app.example.org" in node.hosts.read_text()


@pytest.mark.parametrize("group", ["65532", "0"], ids=["its own group", "the group root"])
def test_no_other_user_than_root_can_write_the_file(node: Node, group: str) -> None:
    """The reason for uid 0 in the manifest: mode 0644 gives a group nothing, whichever it is."""
    node.hosts.chmod(0o644)
    done = node.run(*BARE, *OTHER, f"--regid={group}", script="echo 192.0.2.66 example.org >> /etc/hosts")
    assert done.returncode != 0
    assert "Permission denied" in done.stderr
    assert node.hosts.read_bytes() == FOREIGN.encode()


def test_root_without_a_capability_publishes_and_can_do_little_else(node: Node) -> None:
    node.hosts.chmod(0o644)
    private = node.folder / "of another user"
    private.write_text("")
    private.chmod(0o600)
    os.chown(private, 65532, 65532)
    node.has("app.example.org 192.0.2.10")
    done = node.publish("--once", prefix=BARE)
    assert done.returncode == 0, done.stderr
    assert node.ask("hosts", "app.example.org") == ["192.0.2.10"]
    for script in (f"cat '{private}'", f"chown 0 '{private}'", "mount -t tmpfs none /mnt", "umount /etc/hosts"):
        assert node.run(*BARE, script=script).returncode != 0, script
    assert node.publish("--remove", prefix=BARE).returncode == 0
    assert node.hosts.read_bytes() == FOREIGN.encode()


def test_the_root_of_a_user_namespace_writes_the_mapped_file_and_no_other_of_roots(node: Node) -> None:
    """The component node-hosts-user-namespace; the folders of the program are mapped like a container's root."""
    node.hosts.chmod(0o644)
    beside = Path("/etc/hostname")
    before = beside.read_bytes()
    node.has("app.example.org 192.0.2.10")
    with user_namespace() as users:
        as_root = users.command(*BARE)
        refused = node.run(*as_root, script="echo 192.0.2.66 example.org >> /etc/hosts")
        assert "Permission denied" in refused.stderr
        users.bind(node.namespace, node.hosts, ETC_HOSTS)
        for folder in closed_folders(Path(sys.executable), Path(sys.base_prefix), ROOT / "dnsproxy", node.names):
            users.bind(node.namespace, folder, folder)
        done = node.publish("--once", prefix=as_root)
        assert done.returncode == 0, done.stderr
        assert node.run(*as_root, script=f"cat /proc/self/uid_map; : >> {beside}").stdout.split()[:2] == [
            "0",
            str(FIRST),
        ]
        assert "Permission denied" in node.run(*as_root, script=f"echo x >> {beside}").stderr
    assert "192.0.2.10 app.example.org" in node.hosts.read_text()
    assert (node.hosts.stat().st_uid, beside.read_bytes()) == (0, before)
