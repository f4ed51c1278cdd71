"""The controllers and load balancers of the stage: real programs at pod addresses, for all states of a module.

The law: each Server is one behaviour on the ports 80 and 443 of its own address; states choose by DNAT who meets it.
nginx and haproxy show what they can; `odd_servers` shows the rest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Final

import trustme

from tests.kit.launched import ROOT
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

POD_NETWORK: Final = "10.244.0.0/24"
"""The network of the pod in which the doctor runs."""


class Server(Enum):
    """A behaviour; the value is the last part of its addresses.

    Those that serve the host answer `*.example.org` with 308 on port 80, with 200 on port 443 behind a certificate for
    the name; they answer other names with 404.
    """

    REQUIRES = 10
    """nginx that requires the PROXY header: it closes other connections."""
    REJECTS = 11
    """nginx without the PROXY protocol: 400 to a header."""
    OTHER = 12
    """Another controller: 404 and a certificate for another name."""
    UNAVAILABLE = 13
    """nginx without the PROXY protocol: 503 for the host."""
    HAPROXY = 14
    """haproxy with accept-proxy: it closes connections without the header."""
    HAPROXY_FOR_PODS = 15
    """haproxy that requires the header from the pods' network, and rejects it from others."""
    HAPROXY_FOR_OTHERS = 16
    """haproxy that requires the header from 192.0.2.0/24, and rejects it from pods."""
    BAD_REQUEST = 17
    """nginx without the PROXY protocol: 400 to everything, and no handshake."""
    EXPIRED = 18
    """As REJECTS, with an expired certificate."""
    MISNAMED = 19
    """As REJECTS, with a certificate for another name."""
    ACCEPTS = 20
    """It takes connections with and without the header."""
    SILENT = 21
    """It takes connections and answers nothing; each dial costs the doctor 4 s."""
    RESETS = 22
    """It takes connections and resets them."""
    BALANCER = 30
    """A load balancer in front of REQUIRES: it adds the header in version 1."""
    BALANCER_V2 = 31
    """The same in version 2."""
    BALANCER_OF_REJECTS = 32
    """A load balancer that adds the header in front of REJECTS."""
    BALANCER_WITHOUT_HEADER = 33
    """A load balancer in front of REQUIRES that adds no header."""
    CDN = 34
    """A proxy that ends TLS for the host and sends requests to REQUIRES with the header."""

    @property
    def ipv4(self) -> str:
        return f"10.244.1.{self.value}"

    @property
    def ipv6(self) -> str:
        return f"2001:db8:244:1::{self.value}"


class Fate(Enum):
    """What becomes of connections to an address that no server has."""

    REFUSED = "reject with tcp reset"
    UNREACHABLE = "reject with icmpx host-unreachable"
    """A router reports it: a dead address without a wait."""
    DROPPED = "drop"
    """Each dial costs the doctor 3 s."""


_NGINX: Final = """\
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""
_NGINX_SERVER: Final = """\
    server {{
        {listens}
        server_name {names};
        ssl_certificate {pem};
        ssl_certificate_key {pem};
        {answer}
    }}
"""
_SERVES: Final = "if ($scheme = http) { return 308 https://$host/; } return 200 ok;"
_HAPROXY: Final = """\
global
    maxconn 400
    log stderr local0 err
defaults
    mode tcp
    timeout connect 5s
    timeout client 20s
    timeout server 20s
{sections}
"""


@contextmanager
def running_servers(folder: Path) -> Iterator[None]:
    """All servers, in the network of this thread, which has their addresses."""
    pems = _certificates(folder)
    with ExitStack() as stack:
        for name, command, servers in (
            ("nginx", _nginx(folder, pems), _NGINX_SERVERS),
            ("haproxy", _haproxy(folder, pems), _HAPROXY_SERVERS),
            ("odd", [sys.executable, "-m", "tests.kit.doctor_stage.odd_servers", str(pems["host"])], _ODD_SERVERS),
        ):
            stack.enter_context(_running(command, servers, folder / f"{name}.log"))
        yield


@contextmanager
def _running(command: Sequence[str], servers: Sequence[Server], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT)
    try:
        wait_for(lambda: all(is_listening(443, address=one.ipv4) for one in servers), process=process, log=log)
        yield
    finally:
        end_process(process)


def _certificates(folder: Path) -> dict[str, Path]:
    """The files of keys and certificates: for the host, for another name, and expired."""
    authority = trustme.CA()
    past = datetime.now(UTC) - timedelta(days=3)
    made = {
        "host": authority.issue_cert("*.example.org", "example.org"),
        "other": authority.issue_cert("ingress.local"),
        "expired": authority.issue_cert("*.example.org", not_before=past - timedelta(days=90), not_after=past),
    }
    for name, certificate in made.items():
        certificate.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
    return {name: folder / f"{name}.pem" for name in made}


def _nginx(folder: Path, pems: dict[str, Path]) -> list[str]:
    kinds = {
        Server.REQUIRES: ("proxy_protocol", "host", _SERVES),
        Server.REJECTS: ("", "host", _SERVES),
        Server.UNAVAILABLE: ("", "host", "return 503;"),
        Server.EXPIRED: ("", "expired", _SERVES),
        Server.MISNAMED: ("", "other", _SERVES),
        Server.OTHER: ("", "other", "return 404;"),
        Server.BAD_REQUEST: ("", "host", "return 400;"),
    }
    servers = ""
    for server, (option, pem, answer) in kinds.items():
        tls = "" if server is Server.BAD_REQUEST else "ssl"
        listens = " ".join(
            f"listen {address}:{port} {secure} {option};"
            for address in (server.ipv4, f"[{server.ipv6}]")
            for port, secure in ((80, ""), (443, tls))
        )
        serving = (("_", "other" if pem == "host" else pem, "return 404;"), (".example.org", pem, answer))
        for names, shown, said in serving:
            servers += _NGINX_SERVER.format(listens=listens, names=names, pem=pems[shown], answer=said)
    configuration = folder / "nginx.conf"
    configuration.write_text(_NGINX.format(folder=folder, servers=servers))
    return [program("nginx"), "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")]


_NGINX_SERVERS: Final = (
    Server.REQUIRES, Server.REJECTS, Server.UNAVAILABLE, Server.EXPIRED, Server.MISNAMED, Server.OTHER,
    Server.BAD_REQUEST,
)  # fmt: skip
_ODD_SERVERS: Final = (Server.ACCEPTS, Server.SILENT, Server.RESETS)


def _haproxy(folder: Path, pems: dict[str, Path]) -> list[str]:
    expects = "    tcp-request connection expect-proxy layer4 if {{ src {} }}\n"
    sections = [
        _frontend(Server.HAPROXY, pems["host"], "accept-proxy"),
        _frontend(Server.HAPROXY_FOR_PODS, pems["host"], "", expects.format("10.244.0.0/16 2001:db8:244::/48")),
        _frontend(Server.HAPROXY_FOR_OTHERS, pems["host"], "", expects.format("192.0.2.0/24")),
        _balancer(Server.BALANCER, Server.REQUIRES, "send-proxy"),
        _balancer(Server.BALANCER_V2, Server.REQUIRES, "send-proxy-v2"),
        _balancer(Server.BALANCER_OF_REJECTS, Server.REJECTS, "send-proxy"),
        _balancer(Server.BALANCER_WITHOUT_HEADER, Server.REQUIRES, ""),
        _cdn(pems["host"]),
    ]
    configuration = folder / "haproxy.cfg"
    configuration.write_text(_HAPROXY.format(sections="\n".join(sections)))
    return [program("haproxy"), "-db", "-f", str(configuration)]


_HAPROXY_SERVERS: Final = (
    Server.HAPROXY, Server.HAPROXY_FOR_PODS, Server.HAPROXY_FOR_OTHERS, Server.BALANCER, Server.BALANCER_V2,
    Server.BALANCER_OF_REJECTS, Server.BALANCER_WITHOUT_HEADER, Server.CDN,
)  # fmt: skip


def _binds(server: Server, port: int, options: str) -> str:
    return "".join(f"    bind {address}:{port} {options}\n" for address in (server.ipv4, server.ipv6))


def _frontend(server: Server, pem: Path, options: str, rules: str = "") -> str:
    return (
        f"frontend {server.name}\n    mode http\n"
        f"{_binds(server, 80, options)}{_binds(server, 443, f'{options} ssl crt {pem}')}{rules}"
        "    http-request redirect scheme https code 308 if !{ ssl_fc }\n"
        "    http-request return status 200 content-type text/plain string ok\n"
    )


def _balancer(server: Server, backend: Server, option: str) -> str:
    return "".join(
        f"listen {server.name}-{port}\n{_binds(server, port, '')}    server one {backend.ipv4}:{port} {option}\n"
        for port in (80, 443)
    )


def _cdn(pem: Path) -> str:
    to = Server.REQUIRES.ipv4
    return (
        f"listen CDN-80\n    mode http\n{_binds(Server.CDN, 80, '')}    server one {to}:80 send-proxy\n"
        f"listen CDN-443\n    mode http\n{_binds(Server.CDN, 443, f'ssl crt {pem}')}"
        f"    server one {to}:443 send-proxy ssl verify none sni str(app.example.org)\n"
    )
