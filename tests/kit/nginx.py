"""A real nginx that requires the PROXY header and logs its contents."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.log_lines import whole_lines
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

LOG_SECONDS = 30.0

BODY = "the page behind the header"

# One process in the foreground, all files in the test's folder; the tests use the default server.
_CONFIGURATION = """\
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 512; }}
http {{
    log_format seen escape=json '{{"proxy_protocol_addr":"$proxy_protocol_addr",'
        '"proxy_protocol_port":"$proxy_protocol_port",'
        '"proxy_protocol_server_addr":"$proxy_protocol_server_addr",'
        '"proxy_protocol_server_port":"$proxy_protocol_server_port",'
        '"remote_addr":"$remote_addr","request":"$request","status":"$status","host":"$host"}}';
    access_log {folder}/access.log seen;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    set_real_ip_from 127.0.0.0/8;
    set_real_ip_from ::1;
    real_ip_header proxy_protocol;
    default_type text/plain;
    server {{
        {listens}
        location / {{ return 200 "{body}\\n$proxy_protocol_addr\\n"; }}
        location /upload {{ client_max_body_size 0; proxy_pass http://127.0.0.1:{sink_port}; }}
    }}
    server {{
        listen 127.0.0.1:{sink_port};
        access_log off;
        client_max_body_size 0;
        location / {{ return 200 "taken\\n"; }}
    }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    """A running nginx."""

    port: int
    access_log: Path
    error_log: Path

    def seen(self) -> list[dict[str, str]]:
        """One entry for each answered request: the fields of the header (proxy_protocol_addr ...), and remote_addr."""
        return [json.loads(line) for line in whole_lines(self.access_log)]

    def wait_for(self, count: int) -> list[dict[str, str]]:
        """All entries, once there are this many; nginx writes them after the response."""
        deadline = time.monotonic() + LOG_SECONDS
        while len(self.seen()) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.seen()

    def clients(self) -> list[str]:
        """The clients' addresses in the headers, one for each answered request."""
        return [entry["proxy_protocol_addr"] for entry in self.seen()]


@contextmanager
def nginx_expecting_proxy(
    folder: Path, *, hosts: Sequence[str] = ("127.0.0.1",), port: int | None = None, proxy_protocol: bool = True
) -> Iterator[Nginx]:
    """Run nginx with `listen HOST:PORT proxy_protocol` on each of the hosts (IPv6 in brackets), all with one port.

    A connection without a header gets no response; without `proxy_protocol`, one with a header gets an error. It ends
    only the process that it started.
    """
    folder = folder / "nginx"
    folder.mkdir()
    free_port, sink_port = free_ports(2)
    port = port or free_port
    configuration = folder / "nginx.conf"
    expecting = " proxy_protocol" if proxy_protocol else ""
    listens = " ".join(f"listen {host}:{port}{expecting};" for host in hosts)
    configuration.write_text(_CONFIGURATION.format(folder=folder, listens=listens, sink_port=sink_port, body=BODY))
    error_log = folder / "error.log"
    arguments = [program("nginx"), "-p", str(folder), "-c", str(configuration), "-e", str(error_log)]
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=output)
    try:
        answering = "127.0.0.1" if "127.0.0.1" in hosts else hosts[0]
        wait_for(lambda: is_listening(port, address=answering), process=process, log=folder / "output.log")
        yield Nginx(port=port, access_log=folder / "access.log", error_log=error_log)
    finally:
        end_process(process)
