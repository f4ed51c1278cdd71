"""Real nginx and haproxy as probed controllers: with and without the PROXY header, over HTTP and over TLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.doctor.collect.dial_targets import DialTarget
from dnsproxy.doctor.collect.dialling import dial_all
from dnsproxy.doctor.facts.file import format_facts, parse_facts
from dnsproxy.doctor.facts.model import VERSION, BalancerAddress, Component, Facts, Host, Port, Service
from dnsproxy.doctor.facts.probes import Header, Outcome, ServiceIdentity
from dnsproxy.doctor.judge.header_mode import HeaderMode, header_mode_of, versions_of
from sidecar.values.endpoints import Endpoint
from tests.dnsproxy.doctor.collect.certificates import DAY, NOW, fake, issue, rfc3339
from tests.kit.coredns import answering, running_coredns
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

HOST: Final = "app.example.org"
KINDS: Final = ("http", "http-proxy", "https", "https-proxy")
OTHER_KINDS: Final = ("strict", "mutual", "mutual-1-2")
MODES: Final = {True: HeaderMode.REQUIRES, False: HeaderMode.REJECTS}

END: Final = rfc3339(NOW + 30 * DAY)


def mismatch(*names: str) -> ServiceIdentity:
    """What a certificate of other names is for HOST."""
    return ServiceIdentity("hostname mismatch", names, END)


_NGINX: Final = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    ssl_certificate {pem};
    ssl_certificate_key {pem};
    server {{
        listen 127.0.0.1:{http};
        listen 127.0.0.1:{http_proxy} proxy_protocol;
        listen 127.0.0.1:{https} ssl;
        listen 127.0.0.1:{https_proxy} ssl proxy_protocol;
        return 308 https://$host/;
    }}
    server {{
        listen 127.0.0.1:{mutual} ssl;
        ssl_verify_client on;
        ssl_client_certificate {pem};
        return 308 https://$host/;
    }}
    {more}
    server {{
        # A name that it does not serve is refused in the handshake, which is an answer too.
        listen 127.0.0.1:{strict} ssl proxy_protocol default_server;
        ssl_reject_handshake on;
    }}
}}
"""
_HAPROXY: Final = """\
global
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend judge
    bind 127.0.0.1:{http}
    bind 127.0.0.1:{http_proxy} accept-proxy
    bind 127.0.0.1:{https} ssl crt {pem}
    bind 127.0.0.1:{https_proxy} ssl crt {pem} accept-proxy
    bind 127.0.0.1:{strict} ssl strict-sni crt {pem} accept-proxy
    bind 127.0.0.1:{mutual} ssl crt {pem} ca-file {pem} verify required
    bind 127.0.0.1:{mutual_1_2} ssl crt {pem} ca-file {pem} verify required ssl-max-ver TLSv1.2
    {more}
    http-request return status 404
"""
_MORE: Final = {
    "nginx": "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {pem};\n"
    "    ssl_certificate_key {pem}; return 308 /; }}\n",
    "haproxy": "    bind 127.0.0.1:{port} ssl crt {pem}\n",
}
EXPIRED: Final = ServiceIdentity("has expired", (HOST,), rfc3339(NOW - DAY))
CERTIFICATES: Final = {
    "its name": (issue(HOST), ServiceIdentity("", (HOST,), END)),
    "a wildcard": (issue("*.example.org"), ServiceIdentity("", ("*.example.org",), END)),
    "a wildcard two labels below": (issue("*.app.example.org"), mismatch("*.app.example.org")),
    "another name": (issue("other.example.org"), mismatch("other.example.org")),
    "the default of ingress-nginx": (fake(), mismatch("ingress.local")),
    "expired": (issue(HOST, start=NOW - 9 * DAY, end=NOW - DAY), EXPIRED),
    "not yet valid": (issue(HOST, start=NOW + DAY), ServiceIdentity("is not yet valid", (HOST,), END)),
    "several names": (issue("example.org", HOST), ServiceIdentity("", ("example.org", HOST), END)),
}
STATUS: Final = {"nginx": 308, "haproxy": 404}


@dataclass(frozen=True)
class Controller:
    """A running program with one port of each kind."""

    name: str
    ports: dict[str, int]

    def targets(self, kind: str, hostname: str = HOST) -> list[DialTarget]:
        endpoint = Endpoint("127.0.0.1", self.ports[kind])
        tls = not kind.startswith("http") or kind.startswith("https")
        return [DialTarget(endpoint, hostname, tls, header) for header in Header]


@contextmanager
def running(name: str, folder: Path) -> Iterator[Controller]:
    """Nginx or haproxy with one port of each kind."""
    pem = folder / "certificate.pem"
    issue(HOST).private_key_and_cert_chain_pem.write_to_path(pem)
    kinds = (*KINDS, *OTHER_KINDS)
    numbers = free_ports(len(kinds) + len(CERTIFICATES))
    ports = dict(zip((*kinds, *CERTIFICATES), numbers, strict=True))
    fields = {kind.replace("-", "_"): ports[kind] for kind in kinds}
    more = "".join(_serving(name, folder, which, ports[which]) for which in CERTIFICATES)
    configuration = folder / f"{name}.conf"
    template = {"nginx": _NGINX, "haproxy": _HAPROXY}[name]
    configuration.write_text(template.format(folder=folder, pem=pem, more=more, **fields))
    flags = ["-db", "-f"] if name == "haproxy" else ["-p", str(folder), "-e", str(folder / "error.log"), "-c"]
    log = folder / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen([program(name), *flags, str(configuration)], stdout=output, stderr=output)
    try:
        served = [port for kind, port in ports.items() if name == "haproxy" or kind != "mutual-1-2"]
        wait_for(lambda: all(map(is_listening, served)), process=process, log=log)
        yield Controller(name, ports)
    finally:
        end_process(process)


def _serving(name: str, folder: Path, which: str, port: int) -> str:
    """The lines with which a program serves one of CERTIFICATES."""
    pem = folder / f"{port}.pem"
    CERTIFICATES[which][0].private_key_and_cert_chain_pem.write_to_path(pem)
    return _MORE[name].format(port=port, pem=pem)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("nginx", marks=pytest.mark.peer("nginx")),
        pytest.param("haproxy", marks=pytest.mark.peer("haproxy")),
    ],
)
def controller(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as one:
        yield one


@pytest.mark.parametrize("kind", KINDS)
async def test_a_port_is_known_by_its_answers(controller: Controller, kind: str) -> None:
    probes = (await dial_all(controller.targets(kind))).results
    wants = kind.endswith("proxy")
    assert header_mode_of(probes) is MODES[wants], [(probe.outcome, probe.detail) for probe in probes]
    assert versions_of(probes) == (("v1", "v2") if wants else ())


async def test_a_handshake_that_is_refused_behind_the_header_was_read(controller: Controller) -> None:
    probes = (await dial_all(controller.targets("strict", "nobody.example.net"))).results
    assert [probe.outcome for probe in probes if probe.header is not Header.PLAIN] == [Outcome.ALERT] * 2
    assert header_mode_of(probes) is HeaderMode.REQUIRES


@pytest.mark.parametrize("which", list(CERTIFICATES))
async def test_a_certificate_is_judged_and_the_port_answers_all_the_same(controller: Controller, which: str) -> None:
    plain, *headed = (await dial_all(controller.targets(which))).results
    assert plain.identity == CERTIFICATES[which][1]
    assert (plain.outcome, plain.status) == (Outcome.ANSWERED, STATUS[controller.name])
    assert [probe.identity for probe in headed] == [None, None]


async def test_the_status_and_the_certificate_are_seen_behind_a_header(controller: Controller) -> None:
    plain, *headed = (await dial_all(controller.targets("https-proxy"))).results
    assert (plain.status, plain.identity) == (0, None)
    for probe in headed:
        assert (probe.status, probe.identity) == (STATUS[controller.name], CERTIFICATES["its name"][1])


async def test_a_demand_for_a_client_certificate_is_an_answer(controller: Controller) -> None:
    (probe,) = (await dial_all(controller.targets("mutual")[:1])).results
    assert probe.outcome is Outcome.ANSWERED
    # nginx says it in a response, haproxy in an alert that the end of the connection may overtake.
    said = {"nginx": ("400 Bad Request",), "haproxy": ("demands a client certificate", "then reset")}[controller.name]
    assert any(text in probe.detail for text in said), probe.detail
    assert probe.identity == CERTIFICATES["its name"][1]


@pytest.mark.peer("haproxy")
async def test_a_demand_for_a_client_certificate_in_tls_1_2_is_an_alert(tmp_path: Path) -> None:
    with running("haproxy", tmp_path) as controller:
        (probe,) = (await dial_all(controller.targets("mutual-1-2")[:1])).results
    assert probe.outcome is Outcome.ALERT, probe.detail


def _facts(controller: Controller, http: str, https: str) -> Facts:
    """The facts of a cluster whose addresses are those of the running program."""
    ports = (Port(controller.ports[http], "http"), Port(controller.ports[https], "https"))
    annotations = {"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
    one = Service("web/ingress", "LoadBalancer", ("127.0.0.1",), ports, (BalancerAddress(ip="127.0.0.2"),), annotations)
    return Facts(
        VERSION,
        server_version="v1.34.4",
        hosts=(Host(HOST, "Ingress web/shop", "nginx", ("127.0.0.2",)),),
        services=(one,),
        components=(Component("kube-proxy", version="v1.34.4"),),
    )


@pytest.fixture(scope="module")
def public_dns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_coredns(tmp_path_factory.mktemp("coredns"), answering("127.0.0.2")) as server:
        yield f"127.0.0.1:{server.port}"


@pytest.mark.peer("coredns")
@pytest.mark.parametrize(
    ("http", "https", "expected"),
    [
        # No server listens on the load balancer's address here.
        ("http-proxy", "https-proxy", {"balancer-unserved"}),
        ("http", "https", {"header-unwanted", "balancer-unserved"}),
    ],
    ids=["wants the header", "takes none"],
)
def test_the_command_judges_a_real_controller_by_a_file_from_elsewhere(
    controller: Controller, public_dns: str, tmp_path: Path, http: str, https: str, expected: set[str]
) -> None:
    seen, looked = tmp_path / "seen.json", tmp_path / "looked.json"
    seen.write_bytes(format_facts(_facts(controller, http, https)))
    arguments = ["--from", "-", "--probe", "--save", str(looked), "--public-dns", public_dns]
    done = _doctor(*arguments, "--output", "json", stdin=seen.read_bytes())
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    wrong = {finding["id"] for finding in document["findings"] if finding["severity"] in ("problem", "warning")}
    assert wrong == expected
    again = _doctor("--from", str(looked), "--output", "json")
    assert (json.loads(again.stdout), again.returncode) == (document, 1)
    assert len(parse_facts(looked.read_bytes()).probes) == 8


def _doctor(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dnsproxy", "doctor", *arguments]
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, input=stdin, capture_output=True, check=False, env=environment)
