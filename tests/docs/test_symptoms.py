"""The messages that the guide goes by are those of the real programs."""

from __future__ import annotations

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
