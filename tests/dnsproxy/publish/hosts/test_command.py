"""`dnsproxy publish-hosts` from its command line, with its program and the frame of all publishers (program.py)."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.admin.publication import format_document
from tests.kit.launched import ROOT
from tests.kit.ports import free_ports
from tests.kit.prepared_program import shared
from tests.kit.processes import end_process, wait_for
from tests.kit.publications import many, publication
from tests.kit.scraping import scrape
from tests.kit.serve_process import serving

FOREIGN: Final = "127.0.0.1 localhost"
SECONDS: Final = 60
ZONE: Final = "example.org"


class World:
    """A hosts file, and a file with the table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = folder / "hosts"
        self.hosts.write_text(FOREIGN)
        self.names = folder / "names.json.gz"

    def has(self, *rows: str) -> None:
        self.names.write_bytes(format_document(publication(*rows)).octets)

    def replace_hosts(self, text: str) -> None:
        # Whole: what an editor that truncates first writes into a file that we have just replaced, is lost.
        new = self.folder / "new"
        new.write_text(text)
        new.replace(self.hosts)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "dnsproxy", "publish-hosts", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "DNSPROXY_TO": str(self.hosts), "DNSPROXY_ZONE": ZONE}

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Status, stdout and stderr."""
        done = shared("dnsproxy").run("publish-hosts", *arguments, environment={**self.environment, **environment})
        return done.returncode, done.stdout, done.stderr

    @contextmanager
    def following(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """The process and its admin port."""
        (port,) = free_ports(1)
        log = self.folder / "publish.log"
        with log.open("wb") as stderr:
            flags = ["--admin", f"127.0.0.1:{port}", "--interval", "0.1", "--log-format", "json", *arguments]
            process = subprocess.Popen(self.command(*flags), env=self.environment, stderr=stderr)
        try:
            wait_for(lambda: b'"publishing"' in log.read_bytes(), process=process, log=log)
            yield process, f"127.0.0.1:{port}"
        finally:
            end_process(process)

    def wait_until_written(self, process: subprocess.Popen[bytes], text: str) -> None:
        wait_for(lambda: text in self.hosts.read_text(), process=process, log=self.folder / "publish.log")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_table_in_a_file_is_published_once_and_removed(world: World) -> None:
    world.has("app.example.org 192.0.2.10")
    assert world.run("--once", "--from-file", str(world.names))[0] == 0
    assert "\n192.0.2.10 app.example.org\n" in world.hosts.read_text()
    status, output, errors = world.run("--remove")
    assert (status, output, errors) == (0, "", f"{world.hosts}: removed.\n")
    assert world.hosts.read_text() == FOREIGN
    assert world.run("--remove")[2] == f"{world.hosts}: there was nothing to remove.\n"


def test_a_dry_run_is_a_diff_and_changes_nothing(world: World) -> None:
    world.has("app.example.org 192.0.2.10", "b.example.net 192.0.2.11")
    status, output, _ = world.run("--dry-run", "--from-file", str(world.names), "--zone", "example.org")
    assert status == 0
    assert "\n+192.0.2.10 app.example.org\n" in output
    assert "example.net" not in output
    assert world.hosts.read_text() == FOREIGN
    assert world.run("--dry-run", "--remove") == (0, "", "Nothing would change.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        pytest.param(["--once", "--remove"], 2, "--once and --remove", id="two things at once"),
        pytest.param(["--once", "--remove-on-exit"], 2, "is for a publisher that keeps running", id="exit"),
        pytest.param(["--to", "/etc/passwd", "--once"], 2, "/etc/passwd is not called `hosts`", id="another file"),
        pytest.param(["--from", "nowhere"], 2, "--from: 'nowhere' is not HOST:PORT", id="no port"),
        pytest.param(["--to-configmap", "names"], 2, "'names' is not NAMESPACE/NAME", id="no namespace"),
        pytest.param(["--dry-run", "--to-configmap", "a/b"], 2, "--to-configmap has none", id="a diff of what"),
        pytest.param(["--allow", "a.example.org", "--to-configmap", "a/b"], 2, "--to-configmap has none", id="allowed"),
        pytest.param(["--deny", "a.example.org", "--to-configmap", "a/b"], 2, "--to-configmap has none", id="denied"),
        pytest.param(["--zone", "*.example.org"], 2, "is a wildcard", id="a wildcard"),
        pytest.param(["--max-names", "0"], 2, "--max-names", id="no name at all"),
        pytest.param(["--interval", "0"], 2, "--interval", id="no interval"),
        pytest.param(["--once", "--from", "127.0.0.1:9"], 3, "no server answers there", id="no server"),
        pytest.param(["--once", "--from-file", "/nowhere/names"], 3, "No such file", id="no file"),
        pytest.param(["--dry-run", "--from-file", "/nowhere/names"], 3, "No such file", id="no file for a diff"),
        pytest.param(["--remove", "--to", "/nowhere/hosts"], 1, "No such file", id="no hosts file"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_status(
    world: World, arguments: list[str], status: int, said: str
) -> None:
    code, output, errors = world.run(*arguments)
    assert (code, output) == (status, "")
    assert said in errors
    assert "Traceback" not in errors
    assert world.hosts.read_text() == FOREIGN


@pytest.mark.parametrize("arguments", [(), ("--once",), ("--dry-run",), ("--remove-on-exit",)], ids=" ".join)
@pytest.mark.parametrize("zone", [pytest.param("", id="empty"), pytest.param(" ", id="blank")])
def test_without_a_zone_nothing_is_read_or_written(world: World, arguments: tuple[str, ...], zone: str) -> None:
    world.has("app.example.org 192.0.2.10")
    status, output, errors = world.run("--from-file", str(world.names), *arguments, DNSPROXY_ZONE=zone)
    assert (status, output) == (2, "")
    assert "--zone (DNSPROXY_ZONE) is not set, or empty: a hosts file needs at least one zone" in errors
    assert "DNSPROXY_ZONE=registry.example.org" in errors
    assert "`--zone .` takes all of them" in errors
    assert world.hosts.read_text() == FOREIGN


def test_all_faults_of_the_flags_are_reported_together(world: World) -> None:
    _, _, errors = world.run("--allow-loss", DNSPROXY_ZONE="")
    assert "--zone" in errors
    assert "--allow-loss" in errors


def test_what_was_published_is_removed_without_a_zone(world: World) -> None:
    world.has("app.example.org 192.0.2.10")
    assert world.run("--once", "--from-file", str(world.names))[0] == 0
    assert world.run("--remove", DNSPROXY_ZONE="")[0] == 0
    assert world.hosts.read_text() == FOREIGN


def test_all_names_are_taken_on_request_but_the_nodes_own(world: World) -> None:
    world.has("app.example.net 192.0.2.10", "quay.io 192.0.2.66", "kubernetes.default.svc 192.0.2.66")
    status, _, errors = world.run("--once", "--from-file", str(world.names), DNSPROXY_ZONE=".")
    assert status == 0
    assert "this node accepts any hostname" in errors
    assert "\n192.0.2.10 app.example.net\n" in world.hosts.read_text()
    assert "192.0.2.66" not in world.hosts.read_text()
    world.run("--once", "--from-file", str(world.names), "--allow", "quay.io", DNSPROXY_ZONE=".")
    assert "192.0.2.66 quay.io\n" in world.hosts.read_text()
    assert "kubernetes" not in world.hosts.read_text()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param(
            '["a.example.org\\n192.0.2.66 x.example.org",["192.0.2.1"],"exact"]',
            "is not a host label",
            id="a line in a name",
        ),
        pytest.param(
            '["a.example.org 192.0.2.66",["192.0.2.1"],"exact"]', "is not a host label", id="a blank in a name"
        ),
        pytest.param('["a.example.org#",["192.0.2.1"],"exact"]', "is not a host label", id="a comment in a name"),
        pytest.param('["A.example.org",["192.0.2.1"],"exact"]', "is not in normal form", id="another spelling"),
        pytest.param(
            '["a.example.org",["192.0.2.1\\n192.0.2.66 x"],"exact"]', "does not appear to be", id="a line in an address"
        ),
        pytest.param('["a.example.org",["192.0.2.1 x"],"exact"]', "does not appear to be", id="a blank in an address"),
        pytest.param(
            '["a.example.org",["fe80::1%\\n1"],"exact"]', "is not an address in normal form", id="a line in a scope"
        ),
        pytest.param('["a.example.org",[],"exact"]', "has no address", id="no address"),
    ],
)
def test_a_hostile_table_is_refused_whole(world: World, row: str, said: str) -> None:
    text = f'{{"ttl":5,"names":[["b.example.org",["192.0.2.1"],"exact"],\n{row}]}}'
    world.names.write_bytes(gzip.compress(text.encode()))
    status, output, errors = world.run("--once", "--from-file", str(world.names))
    assert (status, output) == (3, "")
    assert said in errors
    assert "Traceback" not in errors
    assert world.hosts.read_text() == FOREIGN


def test_a_file_that_is_not_understood_is_status_1(world: World) -> None:
    world.has("app.example.org 192.0.2.10")
    world.hosts.write_text("# END switchback\n")
    for arguments in (["--once"], ["--dry-run"], ["--remove"]):
        status, _, errors = world.run(*arguments, "--from-file", str(world.names))
        assert status == 1
        assert "line 1: a marker stands alone" in errors
    assert world.hosts.read_text() == "# END switchback\n"


def test_once_a_table_of_nothing_is_believed_only_if_that_is_allowed(world: World) -> None:
    world.has("app.example.org 192.0.2.10")
    world.run("--once", "--from-file", str(world.names))
    published = world.hosts.read_text()
    world.has()
    status, _, errors = world.run("--once", "--from-file", str(world.names))
    assert (status, world.hosts.read_text()) == (1, published)
    assert "the table has 0 names and 1 are published" in errors
    assert world.run("--once", "--allow-loss", "--from-file", str(world.names))[0] == 0
    assert world.hosts.read_text() == FOREIGN


def test_every_flag_has_a_variable(world: World) -> None:
    world.has("app.example.org 192.0.2.10", "b.example.net 192.0.2.11")
    other = world.folder / "other"
    other.write_text("")
    environment = {
        "DNSPROXY_FROM_FILE": str(world.names),
        "DNSPROXY_TO": str(other),
        "DNSPROXY_FORCE": "1",
        "DNSPROXY_ONCE": "true",
        "DNSPROXY_ZONE": "example.org",
        "DNSPROXY_TO_CONFIGMAP": "",
    }
    assert world.run(**environment)[0] == 0
    assert "app.example.org" in other.read_text()
    assert "example.net" not in other.read_text()
    status, _, errors = world.run(DNSPROXY_FROM="nowhere")
    assert status == 2
    assert "--from (from DNSPROXY_FROM)" in errors


def test_a_real_server_is_followed_until_sigterm_and_the_file_left_as_it_was(world: World) -> None:
    table = world.folder / "table.hosts"
    table.write_text("192.0.2.10 app.example.org\n192.0.2.1 *.wild.example.org\n")
    with (
        serving(world.folder, "--upstream", "127.0.0.1:9", "--hosts-file", str(table)) as server,
        world.following("--from", server.admin.replace("127.0.0.1", "localhost"), "--remove-on-exit") as (ours, admin),
    ):
        world.wait_until_written(ours, "\n192.0.2.10 app.example.org\n")
        table.write_text("192.0.2.11 app.example.org\n192.0.2.1 *.wild.example.org\n")
        world.wait_until_written(ours, "\n192.0.2.11 app.example.org\n")
        world.replace_hosts("192.0.2.1 other\n")
        world.wait_until_written(ours, "\n192.0.2.11 app.example.org\n")
        server.kill()
        log = world.folder / "publish.log"
        wait_for(lambda: b"published names stay" in log.read_bytes(), process=ours, log=log)
        metrics = scrape(admin)
        assert metrics["dnsproxy_publish_names"] == 1
        assert metrics["dnsproxy_publish_left_out_names"] == 1
        assert metrics["dnsproxy_publish_writes_total"] >= 2
        assert "192.0.2.11 app.example.org" in world.hosts.read_text()
        ours.send_signal(signal.SIGTERM)
        assert ours.wait(SECONDS) == 0
    assert world.hosts.read_text() == "192.0.2.1 other\n"


def test_without_being_asked_the_names_outlive_the_publisher(world: World) -> None:
    world.names.write_bytes(format_document(many(3)).octets)
    with world.following("--from-file", str(world.names)) as (ours, _):
        world.wait_until_written(ours, "h2.example.org")
        ours.send_signal(signal.SIGTERM)
        assert ours.wait(SECONDS) == 0
    assert "h2.example.org" in world.hosts.read_text()
