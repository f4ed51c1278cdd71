"""How each relay is told where to listen and where to relay to, and the nginx behind them. Pure text.

The law: one process or thread that relays, pinned like the others; no log of connections, and what its author
recommends for relaying. A peer that is set up worse than that proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.kit.launched import ROOT

BODY: Final = (
    "an answer of the usual size for a health check or a small page, which is to say a few hundred octets. " * 4
)
OPEN_FILES: Final = 20_000
"""The descriptors that a relay and nginx may have open."""
STREAM_MODULE: Final = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
"""Debian's nginx has `stream` as a module of its own package, libnginx-mod-stream."""
_NGINX_CONNECTIONS: Final = 9_000


@dataclass(frozen=True, slots=True)
class Site:
    """Where a relay is to run: its program and folder, its port and its backend's, all on loopback."""

    program: str
    folder: Path
    port: int
    backend: int
    processes: int = 1
    """Or threads, with which it relays."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What starts a relay: its command, run in the site's folder, and the files there."""

    command: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def setup_ours(site: Site) -> Setup:
    """The command that users run."""
    route = f"127.0.0.1:{site.port}=127.0.0.1:{site.backend}"
    # All load comes from one address, which by default may have a quarter of the connections.
    options = ("--admin", "off", "--workers", str(site.processes), "--max-connections-per-client", "5000")
    return Setup((site.program, "-m", "proxy", "--route", route, *options), {}, {"PYTHONPATH": str(ROOT)})


def setup_haproxy(site: Site) -> Setup:
    """Haproxy with one thread, which splices where it thinks that it pays."""
    return _setup_haproxy(site, "splice-auto")


def setup_haproxy_splice(site: Site) -> Setup:
    """The same, but it splices whatever it sees."""
    return _setup_haproxy(site, "splice-request", "splice-response")


def setup_haproxy_pipes(site: Site) -> Setup:
    """The same with larger pipes: its manual says that this can help where it splices much."""
    return _setup_haproxy(site, "splice-request", "splice-response", tuning=("  tune.pipesize 1048576",))


def _setup_haproxy(site: Site, *options: str, tuning: Iterable[str] = ()) -> Setup:
    rows = [
        *("global", f"  nbthread {site.processes}", *tuning),
        *("defaults", "  mode tcp", *(f"  option {option}" for option in options)),
        *("  timeout connect 5s", "  timeout client 10m", "  timeout server 10m"),
        *("listen relay", f"  bind 127.0.0.1:{site.port}", f"  server behind 127.0.0.1:{site.backend} send-proxy"),
    ]
    return Setup((site.program, "-db", "-q", "-f", "haproxy.cfg"), {"haproxy.cfg": _lines(rows)})


def setup_nginx(site: Site) -> Setup:
    """Nginx with its `stream` module in one process."""
    rows = [
        f"load_module {STREAM_MODULE};",
        *_nginx_head(site.folder),
        "stream {",
        "  access_log off;",
        f"  server {{ listen 127.0.0.1:{site.port} backlog=4096; proxy_protocol on; proxy_timeout 10m;",
        f"    proxy_pass 127.0.0.1:{site.backend}; }}",
        "}",
    ]
    return _setup_nginx(site, rows)


def setup_go(site: Site) -> Setup:
    """The relay in tests/bench/relay/go."""
    arguments = ("-listen", f"127.0.0.1:{site.port}", "-backend", f"127.0.0.1:{site.backend}")
    return Setup((site.program, *arguments), {}, {"GOMAXPROCS": str(site.processes)})


def setup_limit(site: Site) -> Setup:
    """The C program in tests/bench/limit, which makes our system calls."""
    return Setup((site.program, f"127.0.0.1:{site.port}", f"127.0.0.1:{site.backend}"))


def setup_backend(site: Site) -> Setup:
    """The nginx behind the relays: with the header demanded on the port, without it on the next one (site.backend)."""
    rows = [
        *_nginx_head(site.folder),
        "http {",
        *(f"  {kind}_temp_path {site.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")),
        *("  access_log off;", "  keepalive_requests 1000000000;", "  keepalive_timeout 1h;"),
        "  default_type text/plain;",
        f"  server {{ listen 127.0.0.1:{site.port} proxy_protocol backlog=4096;",
        f"    listen 127.0.0.1:{site.backend} backlog=4096;",
        f'    location / {{ return 200 "$proxy_protocol_addr {BODY}"; }} }}',
        "}",
    ]
    return _setup_nginx(site, rows)


def _nginx_head(folder: Path) -> list[str]:
    return [
        *("daemon off;", "master_process off;", "worker_processes 1;", f"pid {folder}/nginx.pid;"),
        f"error_log {folder}/error.log error;",
        f"events {{ worker_connections {_NGINX_CONNECTIONS}; multi_accept on; }}",
    ]


def _setup_nginx(site: Site, rows: Iterable[str]) -> Setup:
    command = (site.program, "-p", str(site.folder), "-c", "nginx.conf", "-e", str(site.folder / "error.log"))
    return Setup(command, {"nginx.conf": _lines(rows)})


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
