"""An ingress controller of one pod: a real nginx whose PROXY setting changes while it runs, and which logs who came.

The law: a reload is graceful, as that of ingress-nginx: connections that are being served end as they began.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trustme

from tests.kit.log_lines import whole_lines
from tests.kit.networks import Network
from tests.kit.polling import poll_until
from tests.kit.processes import end_process, is_listening, wait_for
from tests.kit.programs import program

_CONFIGURATION: Final = """\
{module}
daemon off;
worker_processes 1;
worker_shutdown_timeout 2s;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 512; }}
{stream}
http {{
    log_format seen escape=json '{{"agent":"$http_user_agent","host":"$host","status":"$status",'
        '"client":"$proxy_protocol_addr","peer":"$remote_addr","connection":$connection,"msec":$msec}}';
    access_log {folder}/access.log seen;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        {listens} {inner}
        ssl_certificate {folder}/host.pem;
        ssl_certificate_key {folder}/host.pem;
        location / {{ return 200 "{name}"; }}
    }}
}}
"""
_MODULE: Final = "load_module /usr/lib/nginx/modules/ngx_stream_module.so;"
_INNER: Final = "127.0.0.1:10443"
_STREAM: Final = """\
stream {{
    map $ssl_preread_server_name $target {{ {down} 127.0.0.1:9; default {inner}; }}
    server {{ {listens} ssl_preread on; proxy_pass $target; proxy_protocol on; }}
}}"""


@dataclass
class Controller:
    """A running controller; `down`: a host that it passes through to an application that is down."""

    folder: Path
    name: str
    addresses: Sequence[str]
    down: str = ""

    def switch(self, *, demands: bool) -> None:
        """Demand the PROXY header from now on, or take plain connections, as after `helm upgrade`."""
        self.configure(demands=demands)
        before = self._reloads()
        os.kill(int((self.folder / "nginx.pid").read_text()), signal.SIGHUP)
        poll_until(lambda: self._reloads() > before, "nginx has reloaded", seconds=20)

    def seen(self) -> list[dict[str, Any]]:
        """One entry for each request."""
        return [json.loads(line) for line in whole_lines(self.folder / "access.log")]

    def _reloads(self) -> int:
        return (self.folder / "error.log").read_bytes().count(b"exited with code 0")

    def configure(self, *, demands: bool) -> None:
        """Write the configuration."""
        option = "proxy_protocol" if demands else ""
        http, https = self._listens(80, option), self._listens(443, option if self.down else f"ssl {option}")
        stream = _STREAM.format(down=self.down, inner=_INNER, listens=https) if self.down else ""
        text = _CONFIGURATION.format(
            folder=self.folder,
            name=self.name,
            module=_MODULE if self.down else "",
            stream=stream,
            listens=http if self.down else f"{http} {https}",
            inner=f"listen {_INNER} ssl proxy_protocol;" if self.down else "",
        )
        (self.folder / "nginx.conf").write_text(text, encoding="utf-8")

    def _listens(self, port: int, options: str) -> str:
        places = (f"[{address}]" if ":" in address else address for address in self.addresses)
        return " ".join(f"listen {place}:{port} {options};" for place in places)


@contextmanager
def running_controller(
    network: Network, folder: Path, *addresses: str, demands: bool = True, name: str = "controller", down: str = ""
) -> Iterator[Controller]:
    """A controller at addresses of its own, from the moment at which it listens until the end of the block."""
    folder.mkdir()
    certificate = trustme.CA().issue_cert("*.example.org", "example.org")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "host.pem")
    one = Controller(folder, name, addresses, down)
    one.configure(demands=demands)
    for address in addresses:
        network.own(address)
    command = [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    log = folder / "output.log"
    with network.entered():
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            wait_for(lambda: all(is_listening(443, address=text) for text in addresses), process=process, log=log)
        except BaseException:
            _end(process)
            raise
    try:
        yield one
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The master ends its worker; SIGKILL would leave it behind."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    end_process(process)
