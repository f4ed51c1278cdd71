"""A real nginx reads our header; the tests check its log."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.header.addresses import Header
from proxy.header.v1 import format_v1
from proxy.header.v2 import format_v2
from sidecar.values.endpoints import Endpoint
from tests.kit.log_lines import whole_lines
from tests.kit.nginx import BODY, Nginx, nginx_expecting_proxy
from tests.kit.ports import free_ports
from tests.kit.relays import answer_to, curl, relay_to

pytestmark = pytest.mark.peer("nginx", "curl")


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Nginx]:
    with nginx_expecting_proxy(tmp_path, hosts=["127.0.0.1", "[::1]"]) as running:
        yield running


def test_without_the_header_nginx_refuses(nginx: Nginx) -> None:
    result = curl(f"http://127.0.0.1:{nginx.port}/")
    assert result.returncode != 0
    assert "broken header" in nginx.error_log.read_text()


PROTOCOLS = [
    pytest.param(["--proxy-protocol", "v1"], id="v1"),
    pytest.param(["--proxy-protocol", "v2"], id="v2"),
    pytest.param(["--proxy-protocol", "v2", "--crc32c"], id="v2 with a checksum"),
]


@pytest.mark.parametrize("arguments", PROTOCOLS)
@pytest.mark.parametrize(
    ("client", "relay", "backend"),
    [
        pytest.param("127.0.0.1", "127.0.0.1", "127.0.0.1", id="IPv4"),
        pytest.param("::1", "::1", "[::1]", id="IPv6"),
        pytest.param("127.0.0.5", "127.0.0.1", "[::1]", id="IPv4 client, IPv6 backend"),
        pytest.param("::1", "::1", "127.0.0.1", id="IPv6 client, IPv4 backend"),
        pytest.param("127.0.0.5", "127.0.0.1", "localhost", id="backend by name"),
    ],
)
def test_nginx_logs_the_clients_address_and_port(
    nginx: Nginx, tmp_path: Path, arguments: list[str], client: str, relay: str, backend: str
) -> None:
    with relay_to(f"{backend}:{nginx.port}", tmp_path, *arguments, host=relay) as relayed:
        result = curl("--interface", client, "--write-out", "%{local_port}", f"http://{relayed.listen}/")
    assert result.stdout.splitlines()[:2] == [BODY, client]
    (seen,) = nginx.wait_for(1)
    assert seen["proxy_protocol_addr"] == seen["remote_addr"] == client
    assert seen["proxy_protocol_port"] == result.stdout.splitlines()[2]
    assert seen["proxy_protocol_server_addr"] == relay
    assert seen["proxy_protocol_server_port"] == str(relayed.port)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_listener_on_every_address_reports_ipv4_clients_as_ipv4(nginx: Nginx, tmp_path: Path, version: str) -> None:
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, "--proxy-protocol", version, host="::") as relayed:
        assert curl(f"http://127.0.0.1:{relayed.port}/").stdout.splitlines() == [BODY, "127.0.0.1"]
        assert curl(f"http://[::1]:{relayed.port}/").stdout.splitlines() == [BODY, "::1"]


def test_the_advertised_port_is_what_nginx_reads(nginx: Nginx, tmp_path: Path) -> None:
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, advertise=443) as relayed:
        curl(f"http://{relayed.listen}/")
    assert nginx.wait_for(1)[0]["proxy_protocol_server_port"] == "443"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_requests_on_one_connection_carry_one_header(nginx: Nginx, tmp_path: Path, version: str) -> None:
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, "--proxy-protocol", version) as relayed:
        result = curl(
            *[f"http://{relayed.listen}/{number}" for number in range(20)], "--write-out", "%{num_connects}\n"
        )
    # curl prints 1 for the request that opened the connection, and 0 for requests that reused it.
    assert sorted(re.findall(r"^\d$", result.stdout, re.MULTILINE)) == ["0"] * 19 + ["1"]
    assert [entry["status"] for entry in nginx.wait_for(20)] == ["200"] * 20
    assert "broken header" not in nginx.error_log.read_text()


def test_a_large_upload_arrives_whole(nginx: Nginx, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(bytes(30_000_000))
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path) as relayed:
        result = curl("--data-binary", f"@{upload}", "--write-out", "%{size_upload}", f"http://{relayed.listen}/upload")
    assert result.stdout == "taken\n30000000"


@pytest.mark.parametrize("arguments", PROTOCOLS)
def test_a_readiness_probe_is_no_broken_header(nginx: Nginx, tmp_path: Path, arguments: list[str]) -> None:
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, *arguments) as relayed:
        assert curl("--write-out", "%{http_code}", f"http://{relayed.admin}/readyz").stdout == "ready\n200"
        # nginx has answered a request after the probe, so it has seen the probe.
        assert curl(f"http://{relayed.listen}/").returncode == 0
    assert "broken header" not in nginx.error_log.read_text()


def test_each_route_has_its_own_protocol(nginx: Nginx, tmp_path: Path) -> None:
    first, second, plain, passing = free_ports(4)
    backend = f"127.0.0.1:{nginx.port}"
    arguments = [
        *("--route", f"127.0.0.1:{first}={backend},proxy-protocol=v1"),
        *("--route", f"127.0.0.1:{second}={backend},proxy-protocol=v2"),
        *("--route", f"127.0.0.1:{plain}={backend},proxy-protocol=none"),
        *("--route", f"127.0.0.1:{passing}={backend},proxy-protocol=pass"),
    ]
    with relay_to(backend, tmp_path, *arguments) as relayed:
        for port in (first, second):
            assert curl(f"http://127.0.0.1:{port}/").stdout.splitlines() == [BODY, "127.0.0.1"]
        for port in (plain, passing):
            assert curl(f"http://127.0.0.1:{port}/").returncode != 0
        # curl can send version 1 itself: without our header, its own is the first.
        assert curl("--haproxy-protocol", f"http://127.0.0.1:{plain}/").stdout == ""
        assert curl("--haproxy-protocol", f"http://127.0.0.1:{passing}/").stdout.splitlines() == [BODY, "127.0.0.1"]
        page = curl(f"http://{relayed.admin}/").stdout
        metrics = curl(f"http://{relayed.admin}/metrics").stdout
    assert all(f"<td>{protocol}</td>" in page for protocol in ("v1", "v2", "none", "pass"))
    assert "proxy_headers_refused_total 1.0" in metrics
    assert [entry["proxy_protocol_server_port"] for entry in nginx.wait_for(3)][:2] == [str(first), str(second)]


def test_a_header_of_the_client_is_payload_that_nginx_does_not_take(nginx: Nginx, tmp_path: Path) -> None:
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path) as relayed:
        answer = curl("--haproxy-protocol", "--write-out", "%{http_code}", f"http://{relayed.listen}/").stdout
    assert "400" in answer


def test_while_nginx_is_away_readiness_says_why_and_later_that_it_is_back(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with relay_to(f"127.0.0.1:{port}", tmp_path) as relayed:
        answer = curl("--write-out", "%{http_code}", f"http://{relayed.admin}/readyz").stdout
        assert answer == f"backend unreachable (connection-refused): 127.0.0.1:{port}: Connection refused\n503"
        assert curl(f"http://{relayed.listen}/").returncode != 0
        with nginx_expecting_proxy(tmp_path, port=port):
            assert curl("--write-out", "%{http_code}", f"http://{relayed.admin}/readyz").stdout == "ready\n200"
            assert curl(f"http://{relayed.listen}/").stdout.splitlines() == [BODY, "127.0.0.1"]


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        pytest.param([], 200, id="by default"),
        pytest.param(["--ready-when", "any"], 200, id="any"),
        pytest.param(["--ready-when", "all"], 503, id="all"),
        pytest.param(["--ready-when", "WEB"], 200, id="the port of nginx"),
        pytest.param(["--ready-when", "127.0.0.1:GIT"], 503, id="the port of the dead server"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_dead_server_does_not_take_nginx_away(
    nginx: Nginx, tmp_path: Path, rule: list[str], status: int, workers: str
) -> None:
    web, git, dead = free_ports(3)
    rule = [word.replace("WEB", str(web)).replace("GIT", str(git)) for word in rule]
    # The route of relay_to itself goes to nginx too.
    routes = [
        *("--route", f"127.0.0.1:{web}=127.0.0.1:{nginx.port}"),
        *("--route", f"127.0.0.1:{git}=127.0.0.1:{dead},proxy-protocol=none"),
    ]
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, *routes, *rule, "--workers", workers) as relayed:
        answer = curl("--write-out", "%{http_code}", f"http://{relayed.admin}/readyz").stdout
        failing = f"backend unreachable (connection-refused): 127.0.0.1:{dead}: Connection refused\n"
        assert answer == ("ready, 2 of 3 routes; " if status == 200 else "") + f"{failing}{status}"
        assert curl(f"http://127.0.0.1:{web}/").stdout.splitlines() == [BODY, "127.0.0.1"]
        metrics = curl(f"http://{relayed.admin}/metrics").stdout
        assert f'proxy_route_up{{listen="127.0.0.1:{web}"}} 1.0' in metrics
        assert f'proxy_route_up{{listen="127.0.0.1:{git}"}} 0.0' in metrics
        page = curl(f"http://{relayed.admin}/").stdout
        assert ("relaying, 1 of 3 backends failing" if status == 200 else "not ready, 1 of 3") in page
        (tmp_path / "back").mkdir()
        with nginx_expecting_proxy(tmp_path / "back", port=dead):
            assert curl("--write-out", "%{http_code}", f"http://{relayed.admin}/readyz").stdout == "ready\n200"


FORGED = Header(Endpoint("198.51.100.7", 7), Endpoint("192.0.2.80", 443))


@pytest.mark.parametrize("header", [format_v1(FORGED), format_v2(FORGED)], ids=["v1", "v2"])
def test_nginx_believes_no_header_of_a_client_of_a_route_without_headers(
    nginx: Nginx, tmp_path: Path, header: bytes
) -> None:
    octets = header + b"GET /admin HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"
    (plain,) = free_ports(1)
    backend = f"127.0.0.1:{nginx.port}"
    without = f"127.0.0.1:{plain}={backend},proxy-protocol=none"
    with relay_to(f"{backend},proxy-protocol=pass", tmp_path, "--route", without) as relayed:
        for first in (*range(7), 12, len(header), len(header) + 5):
            assert answer_to(plain, octets[:first], octets[first:]) == b""
        assert nginx.seen() == []
        assert b"198.51.100.7" in answer_to(relayed.port, octets)
    assert nginx.clients() == ["198.51.100.7"]


def test_the_access_log_has_the_clients_port_and_the_octets_that_curl_counted(nginx: Nginx, tmp_path: Path) -> None:
    counts = "%{local_port} %{size_request} %{size_header} %{size_download}"
    with relay_to(f"127.0.0.1:{nginx.port}", tmp_path, "--access-log", host="::") as relayed:
        for _ in range(2):
            result = curl("--write-out", counts, f"http://127.0.0.1:{relayed.port}/")
            port, request, header, body = map(int, result.stdout.splitlines()[-1].split())
        log = tmp_path / "relay.log"
        ended = wait_for_lines(log, 2)[-1]
    assert (ended["client"], ended["port"]) == ("127.0.0.1", port)
    assert (ended["bytes_in"], ended["bytes_out"]) == (request, header + body)
    assert (ended["backend"], ended["end"]) == (f"127.0.0.1:{nginx.port}", "closed")


def wait_for_lines(log: Path, count: int) -> list[dict[str, Any]]:
    """The lines of the access log among those of the relay, once there are so many."""
    deadline = time.monotonic() + 20
    while True:
        lines = [json.loads(line) for line in whole_lines(log) if '"bytes_in"' in line]
        if len(lines) >= count or time.monotonic() > deadline:
            return lines
        time.sleep(0.02)
