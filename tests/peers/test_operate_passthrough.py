"""Probes of real nginx and haproxy that pass TLS through by its name, while applications behind them are down."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.doctor.judge.header_mode import CLEAR, HeaderMode
from dnsproxy.operate.decide.facts import Probed
from dnsproxy.operate.decide.probing import EndpointProbe
from dnsproxy.operate.probe.endpoint_probe import probe_endpoint
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.certificates import issue
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

DOWN, WELL = "a.example.org", "b.example.org"
KINDS: Final = ("open_proxy", "open_plain", "strict_proxy", "strict_plain", "http_proxy", "http_plain")
"""`open`: it answers unknown names by itself; `strict`: it closes them; `http`: its application is down for all."""
MODES: Final = {"proxy": HeaderMode.REQUIRES, "plain": HeaderMode.REJECTS}

_NGINX: Final = """\
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 256; }}
stream {{
    map $ssl_preread_server_name $open {{ a.example.org 127.0.0.1:{down}; default 127.0.0.1:{tls}; }}
    map $ssl_preread_server_name $strict {{ b.example.org 127.0.0.1:{tls}; default 127.0.0.1:{down}; }}
    ssl_preread on;
    server {{ listen 127.0.0.1:{open_proxy} proxy_protocol; proxy_pass $open; }}
    server {{ listen 127.0.0.1:{open_plain}; proxy_pass $open; }}
    server {{ listen 127.0.0.1:{strict_proxy} proxy_protocol; proxy_pass $strict; }}
    server {{ listen 127.0.0.1:{strict_plain}; proxy_pass $strict; }}
}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {pem};
    ssl_certificate_key {pem};
    server {{ listen 127.0.0.1:{tls} ssl; return 404; }}
    server {{
        listen 127.0.0.1:{http_proxy} proxy_protocol;
        listen 127.0.0.1:{http_plain};
        location / {{ proxy_pass http://127.0.0.1:{down}; }}
    }}
}}
"""
_HAPROXY: Final = """\
global
    maxconn 200
defaults
    mode tcp
    retries 0
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend open
    bind 127.0.0.1:{open_proxy} accept-proxy
    bind 127.0.0.1:{open_plain}
    tcp-request inspect-delay 1s
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    use_backend down if {{ req.ssl_sni -i a.example.org }}
    default_backend itself
frontend strict
    bind 127.0.0.1:{strict_proxy} accept-proxy
    bind 127.0.0.1:{strict_plain}
    tcp-request inspect-delay 1s
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    use_backend down if {{ req.ssl_sni -i a.example.org }}
    use_backend itself if {{ req.ssl_sni -i b.example.org }}
frontend http
    mode http
    bind 127.0.0.1:{http_proxy} accept-proxy
    bind 127.0.0.1:{http_plain}
    default_backend http_down
frontend tls
    mode http
    bind 127.0.0.1:{tls} ssl crt {pem}
    http-request return status 404
backend down
    server one 127.0.0.1:{down}
backend itself
    server one 127.0.0.1:{tls}
backend http_down
    mode http
    server one 127.0.0.1:{down}
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("nginx", marks=pytest.mark.peer("nginx")),
        pytest.param("haproxy", marks=pytest.mark.peer("haproxy")),
    ],
)
def ports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """A running program with one port of each kind."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    pem = folder / "certificate.pem"
    issue("other.example.org").private_key_and_cert_chain_pem.write_to_path(pem)
    found = dict(zip((*KINDS, "tls", "down"), free_ports(len(KINDS) + 2), strict=True))
    configuration = folder / f"{name}.conf"
    configuration.write_text({"nginx": _NGINX, "haproxy": _HAPROXY}[name].format(folder=folder, pem=pem, **found))
    flags = ["-db", "-f"] if name == "haproxy" else ["-p", str(folder), "-e", str(folder / "error.log"), "-c"]
    yield from _serving([program(name), *flags, str(configuration)], found, folder / "output.log")


def _serving(command: list[str], found: dict[str, int], log: Path) -> Iterator[dict[str, int]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        listening = [port for kind, port in found.items() if kind != "down"]
        wait_for(lambda: all(map(is_listening, listening)), process=process, log=log)
        yield found
    finally:
        end_process(process)


async def probed(port: int, *hostnames: str, tls: bool = True) -> Probed:
    place = "ingress/controller", port, Endpoint("127.0.0.1", port)
    return await probe_endpoint(EndpointProbe(place, tls, hostnames, in_turn=False))


@pytest.mark.parametrize("takes", MODES)
@pytest.mark.parametrize(
    ("kind", "hostnames"),
    [
        pytest.param("open", (DOWN,), id="the only application is down"),
        pytest.param("open", (DOWN, WELL), id="the first application is down"),
        pytest.param("strict", (DOWN, WELL), id="the first is down, and unknown names are closed"),
        pytest.param("strict", (WELL, DOWN), id="unknown names are closed"),
    ],
)
async def test_an_application_that_is_down_takes_no_header_from_the_port_that_leads_to_it(
    ports: dict[str, int], kind: str, hostnames: tuple[str, ...], takes: str
) -> None:
    found = await probed(ports[f"{kind}_{takes}"], *hostnames)
    assert found.mode is MODES[takes], found.detail


@pytest.mark.parametrize("takes", MODES)
async def test_a_port_that_answers_no_name_is_unknown(ports: dict[str, int], takes: str) -> None:
    assert (await probed(ports[f"strict_{takes}"], DOWN)).mode not in CLEAR


@pytest.mark.parametrize("takes", MODES)
async def test_over_http_the_controller_answers_for_an_application_that_is_down(
    ports: dict[str, int], takes: str
) -> None:
    found = await probed(ports[f"http_{takes}"], DOWN, tls=False)
    assert found.mode is MODES[takes], found.detail
