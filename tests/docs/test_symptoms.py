"""The messages that the guide goes by are those of the real programs."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from docs.build import HERE
from tests.kit.nginx import nginx_expecting_proxy
from tests.kit.ports import free_port
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program
from tests.kit.relays import relay_to

PAGE: Final = (HERE / "pages" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES: Final = [
    row.split("`")[1] for row in PAGE.partition("<!-- symptoms -->")[2].partition("\n## ")[0].splitlines() if "`" in row
]
PYTHON: Final = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"
HAPROXY: Final = """
defaults
    mode http
    timeout connect 30s
    timeout client 30s
    timeout server 30s
    log stdout format raw local0
    option httplog
frontend web
    bind 127.0.0.1:{port} accept-proxy
    http-request return status 200
"""
TLS: Final = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info; events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{
        listen 127.0.0.1:{port} ssl proxy_protocol; location / {{ return 200 ok; }}
        ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;
    }}
}}
"""
PLAIN: Final = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info; events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} }}
}}
"""


def said(*command: str) -> str:
    """What a client says, however it ends."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def curl(url: str) -> str:
    return said(program("curl"), "--silent", "--show-error", "--include", "--max-time", "30", url)


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield
    finally:
        end_process(process)


@pytest.mark.peer("nginx", "curl", "openssl")
def test_nginx_with_tls_resets_and_without_tls_replies_nothing(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "tls"
    folder.mkdir()
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    said(program("openssl"), *make, "-subj", "/CN=app.example.org", "-keyout", str(key), "-out", str(certificate))
    (folder / "nginx.conf").write_text(TLS.format(folder=folder, port=port))
    command = [program("nginx"), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    with running(command, port, tmp_path / "tls.log"):
        assert "Recv failure: Connection reset by peer" in curl(f"https://127.0.0.1:{port}/")
        assert "while reading PROXY protocol" in (folder / "error.log").read_text(errors="replace")
    with nginx_expecting_proxy(tmp_path) as plain:
        assert "(52) Empty reply from server" in curl(f"http://127.0.0.1:{plain.port}/")


def test_the_first_page_names_messages_that_the_table_has() -> None:
    page = (HERE / "pages" / "index.md").read_text(encoding="utf-8")
    for wrong in ("400 Bad Request", "wrong version number"):
        assert wrong not in page, "the message of another fault"
    for message in ("Empty reply from server", "Connection reset by peer"):
        assert message in page
        assert any(message in one for one in MESSAGES)


@pytest.mark.peer("nginx", "curl")
def test_a_client_of_a_controller_that_trusts_every_address_states_any_address(tmp_path: Path) -> None:
    """The warning of remedies.md: a client states the address of another one."""
    forged = "203.0.113.9"
    with nginx_expecting_proxy(tmp_path) as wanting, socket.create_connection(("127.0.0.1", wanting.port)) as client:
        client.sendall(f"PROXY TCP4 {forged} 192.0.2.1 1 80\r\nGET / HTTP/1.0\r\n\r\n".encode())
        with client.makefile("rb") as received:
            assert forged.encode() in received.read()


@pytest.mark.peer("nginx", "haproxy", "curl")
def test_every_message_of_the_guide_is_what_a_program_says(tmp_path: Path) -> None:
    seen: list[str] = []
    with nginx_expecting_proxy(tmp_path) as wanting:
        web = f"//127.0.0.1:{wanting.port}/"
        seen += [curl(f"http:{web}"), curl(f"https:{web}"), said(sys.executable, "-c", PYTHON, f"http:{web}")]
    seen.append((tmp_path / "nginx" / "error.log").read_text(errors="replace"))
    plain, port = tmp_path / "plain", free_port()
    plain.mkdir()
    (plain / "nginx.conf").write_text(PLAIN.format(folder=plain, port=port))
    command = [program("nginx"), "-c", str(plain / "nginx.conf"), "-e", str(plain / "error.log")]
    with running(command, port, tmp_path / "plain.log"), relay_to(f"127.0.0.1:{port}", tmp_path) as relay:
        seen.append(curl(f"http://{relay.listen}/"))
    seen.append((plain / "error.log").read_text(errors="replace"))
    port = free_port()
    (tmp_path / "haproxy.cfg").write_text(HAPROXY.format(port=port))
    with running([program("haproxy"), "-f", str(tmp_path / "haproxy.cfg")], port, tmp_path / "haproxy.log"):
        seen.append(curl(f"http://127.0.0.1:{port}/"))
    seen.append((tmp_path / "haproxy.log").read_text(errors="replace"))
    assert [message for message in MESSAGES if not any(message in one for one in seen)] == [], seen
    assert len(MESSAGES) >= 8
    assert 'request: "PROXY TCP4' in seen[5]
    assert "broken header: " in seen[3]
