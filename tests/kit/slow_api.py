"""A slow API server: a proxy before a real one that delays each request, or never answers some.

The law: requests and responses pass unchanged, each connection by itself; only time is added.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import yaml

from tests.kit.apiserver import ApiServer

_KEPT = ("authorization", "accept", "user-agent")


@dataclass
class SlowApi:
    """A running proxy."""

    kubeconfig: Path
    """Of an administrator, through the proxy."""
    asked: list[tuple[str, float, float]] = field(default_factory=list)
    """The path of each answered request, and the seconds of its arrival and its answer."""

    @property
    def seconds(self) -> float:
        """From the first request to the last answer."""
        return max(end for _, _, end in self.asked) - min(start for _, start, _ in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, api: ApiServer, slow: SlowApi, delay: float, silent: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api, self.slow, self.delay, self.silent = api, slow, delay, silent
        self.trust = ssl.create_default_context(cafile=str(api.ca_file))
        self.ended = Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        start, path = time.monotonic(), self.path.partition("?")[0]
        self.server.ended.wait(None if path == self.server.silent else self.server.delay)
        if self.server.ended.is_set():
            self.close_connection = True
            return
        status, kind, body = self._pass_on()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.slow.asked.append((path, start, time.monotonic()))

    def _pass_on(self) -> tuple[int, str, bytes]:
        kept = {name: self.headers[name] for name in _KEPT if name in self.headers}
        to = http.client.HTTPSConnection("127.0.0.1", self.server.api.port, context=self.server.trust, timeout=30)
        try:
            to.request("GET", self.path, headers=kept)
            response = to.getresponse()
            return response.status, response.getheader("content-type", ""), response.read()
        finally:
            to.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the standard library
        """No log on stderr."""


@contextmanager
def slow_api(api: ApiServer, folder: Path, *, delay: float = 0.0, silent: str = "") -> Iterator[SlowApi]:
    """The proxy for the duration of the block; `delay`: seconds before each answer, `silent`: a path without one."""
    slow = SlowApi(folder / "slow.kubeconfig")
    with _Server(api, slow, delay, silent) as server:
        config = yaml.safe_load(api.kubeconfig.read_text(encoding="utf-8"))
        config["clusters"] = [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}]
        slow.kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield slow
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()
