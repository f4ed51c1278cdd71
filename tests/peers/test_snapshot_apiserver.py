"""A snapshot of a real cluster: after a restart without an API server, dnsproxy answers at once and reports the age."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from sidecar.values.endpoints import Endpoint, parse_endpoint
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.dns_server import wait_until
from tests.kit.prepared_program import play
from tests.kit.serve_inside import addresses_in, ask, get

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")


@dataclass
class Server:
    dns: Endpoint
    admin: Endpoint
    process: subprocess.Popen[str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dnsproxy", *arguments, "--admin", str(self.admin)]
        return play(command)


@contextmanager
def serving(api: ApiServer, snapshot: Path, *more: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "dnsproxy", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    command += ["--upstream", "127.0.0.1:9", "--source", "ingress", "--kubeconfig", str(api.kubeconfig)]
    command += ["--target", "192.0.2.10", "--snapshot", str(snapshot), "--log-format", "json"]
    command += ["--lameduck", "0", "--drain", "1", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = ""
            while '"serving"' not in line:
                line = process.stderr.readline()
                assert line, "it ended"
            dns, admin = re.findall(r"127\.0\.0\.1:\d+", line)
            yield Server(parse_endpoint(dns), parse_endpoint(admin), process)
        finally:
            process.terminate()
            process.stderr.read()
            assert process.wait(timeout=20) == 0


async def test_a_restart_without_the_api_server_answers_at_once_and_says_how_old_its_names_are(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    (tmp_path / "api").mkdir()
    with running_apiserver(tmp_path / "api") as api:
        api.create_ingress("shop", ["shop.example.org", "*.shop.example.org"])
        api.create_ingress("gone", ["gone.example.org"])
        with serving(api, snapshot):
            await wait_until(snapshot.exists)
        api.kill()
        with serving(api, snapshot) as server:
            assert addresses_in(await ask(server.dns, "shop.example.org")) == ["192.0.2.10"]
            status, reason = await get(server.admin, "/readyz")
            assert status == 200
            assert reason.startswith("ready")
            assert "the cluster's names are from a snapshot, " in reason
            done = await trio.to_thread.run_sync(server.run, "explain", "x.shop.example.org")
            assert done.returncode == 0
            assert "origin  Ingress default/shop" in done.stdout
            assert "  note  the cluster's names are from a snapshot, " in done.stdout
            await trio.to_thread.run_sync(api.start)
            await trio.to_thread.run_sync(api.delete_ingress, "gone")
            while (await get(server.admin, "/readyz"))[1] != "ready, 2 names\n":  # noqa: ASYNC110  # another process
                await trio.sleep(0.05)
            done = await trio.to_thread.run_sync(server.run, "table")
            assert (done.returncode, done.stderr) == (0, "")
            assert "shop.example.org" in done.stdout
            assert "gone.example.org" not in done.stdout
        with serving(api, snapshot, "--ingress-class", "other") as server:
            while (await get(server.admin, "/readyz"))[0] != 200:  # noqa: ASYNC110  # another process
                await trio.sleep(0.05)
            assert (await get(server.admin, "/readyz"))[1] == "ready, 0 names\n"
        assert b"shop.example.org" in snapshot.read_bytes()
