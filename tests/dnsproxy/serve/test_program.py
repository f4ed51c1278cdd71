"""`dnsproxy serve` as a whole: sockets, sources, admin port and the end, in one process and over loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from dnsproxy.hostnames.targets import Targets
from dnsproxy.serve.program import serve
from dnsproxy.sources.settings import ClusterSettings, IngressOptions
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit import messages
from tests.kit.serve_inside import addresses_in, ask, get, serving, settings


async def test_a_static_name_is_answered_from_the_first_query_on() -> None:
    async with serving(settings()) as bound:
        assert addresses_in(await ask(bound.dns[0], "app.example.org")) == ["192.0.2.10"]
        assert await get(bound.admin, "/readyz") == (200, "ready, 1 names\n")
        assert (await get(bound.admin, "/healthz"))[0] == 200


async def test_metrics_count_what_was_asked_and_name_no_host() -> None:
    async with serving(settings()) as bound:
        await ask(bound.dns[0], "app.example.org")
        status, text = await get(bound.admin, "/metrics")
    assert status == 200
    assert 'dnsproxy_dns_requests_total{proto="udp"} 1.0' in text
    assert 'dnsproxy_dns_responses_total{rcode="NOERROR",source="table"} 1.0' in text
    assert "dnsproxy_table_names 1.0" in text
    assert "dnsproxy_table_synced_timestamp_seconds" in text
    assert "dnsproxy_tasks" in text
    assert "app.example.org" not in text


async def test_a_changed_hosts_file_changes_the_answers(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example.org\n")
    async with serving(settings(hosts_file=hosts)) as bound:
        assert addresses_in(await ask(bound.dns[0], "a.example.org")) == ["192.0.2.1"]
        hosts.write_text("192.0.2.2 a.example.org\nnonsense here\n192.0.2.3 b.example.org\n")
        with trio.fail_after(10):
            while addresses_in(await ask(bound.dns[0], "a.example.org")) != ["192.0.2.2"]:
                pass  # each round waits for its reply
        assert addresses_in(await ask(bound.dns[0], "b.example.org")) == ["192.0.2.3"]


async def test_an_octet_that_is_not_utf_8_ends_no_start_and_no_reload(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"\xef\xbb\xbf192.0.2.1 a.example.org # caf\xe9\n")
    async with serving(settings(hosts_file=hosts)) as bound:
        assert addresses_in(await ask(bound.dns[0], "a.example.org")) == ["192.0.2.1"]
        hosts.write_bytes(b"# caf\xe9\n192.0.2.2 \xff.example.org a.example.org\n")
        with trio.fail_after(10):
            while addresses_in(await ask(bound.dns[0], "a.example.org")) != ["192.0.2.2"]:
                pass  # each round waits for its reply


async def test_a_cluster_that_is_away_leaves_static_names_answered_and_the_server_not_ready(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    )
    cluster = ClusterSettings(IngressOptions(), kubeconfig=str(kubeconfig))
    async with serving(settings(cluster=cluster, targets=Targets(("192.0.2.20",)))) as bound:
        assert addresses_in(await ask(bound.dns[0], "app.example.org")) == ["192.0.2.10"]
        status, reason = await get(bound.admin, "/readyz")
        assert (status, reason) == (503, "waiting for the first sync of: Ingress, rights\n")
        assert (await get(bound.admin, "/healthz"))[0] == 200


@pytest.mark.parametrize("flag", ["--listen", "--admin"])
async def test_a_port_in_use_is_a_start_error_that_names_flag_and_address(flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = Endpoint("127.0.0.1", taken.getsockname()[1])
        wanted = settings(listen=(endpoint,)) if flag == "--listen" else settings(admin=endpoint)
        with pytest.RaisesGroup(pytest.RaisesExc(StartError, match=f"{flag} {endpoint}: "), flatten_subgroups=True):
            await serve(wanted, stopping=trio.Event())


async def test_a_garbage_datagram_and_a_cut_message_end_nothing() -> None:
    async with serving(settings()) as bound:
        server = bound.dns[0]
        with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            await client.connect((server.host, server.port))
            for garbage in (b"", b"\0", b"\xff" * 600, messages.query("app.example.org")[:-1]):
                await client.send(garbage)
        async with await trio.open_tcp_stream(server.host, server.port) as stream:
            await stream.send_all(b"\x00\x30cut")
        assert addresses_in(await ask(server, "app.example.org")) == ["192.0.2.10"]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dnsproxy", "serve", "--upstream", "127.0.0.1:9", "--admin", "off"]
    command += ["--lameduck", "0", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_process_with_its_status_and_no_traceback(number: signal.Signals, status: int) -> None:
    with start("--listen", "127.0.0.1:0", "--log-format", "json") as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and '"serving"' not in lines[-1]:
            lines.append(process.stderr.readline())
        assert lines[-1], lines
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(timeout=20) == status
    assert "Traceback" not in "".join(lines) + rest


def test_a_port_in_use_is_one_line_and_status_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with start("--listen", f"127.0.0.1:{taken.getsockname()[1]}") as process:
            _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert errors.splitlines()[-1].startswith("Error: --listen 127.0.0.1:")
    assert "Traceback" not in errors
