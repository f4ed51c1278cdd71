"""An API server with a few objects that never change: each collection is a list, each watch stays silent.

The law: what a program at rest needs of a cluster, and nothing more; a real API server takes longer to start than all
that is measured.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

Objects = Mapping[str, Sequence[Mapping[str, Any]]]
"""The objects of each path; other paths are empty lists."""
_VERSION: Final = "1000"


@contextmanager
def still_api(objects: Objects, folder: Path) -> Iterator[Path]:
    """Serve it on the loopback of this thread's network; the kubeconfig in the folder."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if "watch" in parse_qs(url.query):
                self._send_head("Transfer-Encoding", "chunked")
                ended.wait()
                self.close_connection = True
                return
            items = objects.get(url.path, ())
            octets = json.dumps({"metadata": {"resourceVersion": _VERSION}, "items": items}).encode()
            self._send_head("Content-Length", str(len(octets)))
            self.wfile.write(octets)

        def _send_head(self, name: str, value: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing: the log of a run is the program's."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield _write_kubeconfig(folder / "kubeconfig", server.server_port)
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def _write_kubeconfig(path: Path, port: int) -> Path:
    config = {
        "clusters": [{"name": "still", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "us", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "still", "user": "us"}}],
        "current-context": "here",
    }
    path.write_text(json.dumps(config))
    return path
