"""A real nginx that demands the PROXY protocol, for the length of a `with` block: the failing ingress itself.

Only the process started here is ended, by its handle.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.peers.processes import end_process, free_ports, is_listening, wait_for
from tests.peers.programs import program

BODY = "hello from nginx\n"

# The master's own process group dies with it; `daemon off` keeps it our child, one worker keeps the log in order.
_CONFIG = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 1024; }}
http {{
    log_format clients '$proxy_protocol_addr $proxy_protocol_port $remote_addr $server_port';
    access_log {folder}/access.log clients;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        {listens}
        location / {{ default_type text/plain; return 200 '{body}'; }}
    }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    """A running nginx."""

    port: int
    access_log: Path
    error_log: Path

    def lines(self) -> list[str]:
        """The requests so far: the client and its port by the header, the connection's own address, the port."""
        return self.access_log.read_text().splitlines() if self.access_log.exists() else []

    def clients(self) -> list[str]:
        """The clients' addresses as the PROXY headers had them."""
        return [line.split()[0] for line in self.lines()]


@contextmanager
def nginx_expecting_proxy(folder: Path, *, hosts: Sequence[str] = ("127.0.0.1",)) -> Iterator[Nginx]:
    """Run nginx with `listen HOST:PORT proxy_protocol` on each of the hosts (IPv6 in brackets), all with one port."""
    folder = folder / "nginx"
    folder.mkdir()
    (port,) = free_ports(1)
    listens = "\n        ".join(f"listen {host}:{port} proxy_protocol;" for host in hosts)
    body = BODY.replace("\n", "\\n")
    (folder / "nginx.conf").write_text(_CONFIG.format(folder=folder, listens=listens, body=body))
    log = folder / "error.log"
    with (folder / "output.log").open("wb") as output:
        command = [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(log)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: is_listening(port), process=process, log=log)
        yield Nginx(port, folder / "access.log", log)
    finally:
        end_process(process)
