"""DNS rebinding in a real browser: a page whose name leads to our admin port reads nothing that hosts.py protects."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.kit.browsing import chromium
from tests.kit.serve_process import serving

pytestmark = pytest.mark.peer("chromium")

ATTACKER = "attacker.example.org"
SCRIPT = """async () => {
  const headers = {'X-Forwarded-For': '192.0.2.1', 'Host': 'localhost', 'Connection': ''};
  const answer = await fetch('/table', {headers});
  return [answer.status, await answer.text()];
}"""


@pytest.fixture(scope="module")
def rebound() -> Iterator[Browser]:
    """A browser for which the attacker's name has the address of this computer."""
    with chromium(f"--host-resolver-rules=MAP {ATTACKER} 127.0.0.1") as started:
        yield started


def test_a_page_of_another_name_does_not_read_the_table(rebound: Browser, tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--host", "secret.example.org=192.0.2.1") as server,
        contextlib.closing(rebound.new_page()) as page,
    ):
        port = server.admin_endpoint.port
        # A path that any name may ask, so that the script runs in a page of this port.
        page.goto(f"http://{ATTACKER}:{port}/metrics")
        status, text = page.evaluate(SCRIPT)
        assert status == 421
        assert "secret" not in text
        page.goto(f"http://127.0.0.1:{port}/metrics")
        assert "secret.example.org" in page.evaluate(SCRIPT)[1], "by its address it is read, forged headers or not"


def test_no_page_can_take_off_the_header_that_a_proxy_takes_off(rebound: Browser) -> None:
    heard: dict[str, list[str]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard[self.path] = [name.lower() for name in self.headers]
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with contextlib.closing(rebound.new_page()) as page:
                page.goto(f"http://{ATTACKER}:{server.server_port}/")
                assert page.evaluate(SCRIPT)[0] == 200
        finally:
            server.shutdown()
            thread.join()
    # The browser also asks for the icon of the page, before or after.
    assert "x-forwarded-for" in heard["/table"]
    assert all("connection" in one for one in heard.values())
