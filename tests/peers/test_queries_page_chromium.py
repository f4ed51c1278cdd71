"""The page of live queries in a real browser: paused at first, with filters, for the keyboard, safe and bounded."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit import messages
from tests.kit.browsing import browser, opened
from tests.kit.polling import poll_until
from tests.kit.scraping import scrape
from tests.kit.serve_process import Serving, serving
from tests.peers.test_page_chromium import ask, base_of, complaints_of, tab_to

pytestmark = pytest.mark.peer("chromium")
__all__ = ["browser"]

NAME = "app.example.org"
PATIENCE = 30.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    hosts = ("--host", f"{NAME}=192.0.2.10", "--host", "*.wild.example.org=192.0.2.11")
    with serving(tmp_path, *hosts, "--upstream", "127.0.0.1:9") as started:
        yield started


def rows(page: Page) -> Any:
    return page.locator("#stream tbody tr")


def start(page: Page) -> None:
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#stream-said")).to_have_text("Live.")


def send(server: Serving, *questions: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for one in questions:
            client.sendto(one, ("127.0.0.1", server.port))


def listeners(server: Serving) -> int:
    """Connections that wait for a live answer, by what the kernel knows of the admin port."""
    port = f":{int(server.admin.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(one[1].endswith(port) and one[3] == "01" for one in lines)


def test_it_is_paused_until_the_user_starts_it_and_pausing_ends_the_connection(
    browser: Browser, server: Serving
) -> None:
    with opened(browser, base_of(server), "queries") as page:
        ask(server, NAME)
        expect(page.locator("#stream-said")).to_have_text("Paused.")
        expect(rows(page)).to_have_count(0)
        start(page)
        assert listeners(server) == 1
        ask(server, NAME)
        expect(rows(page)).to_have_count(1)
        expect(rows(page).first).to_contain_text(f"{NAME}A")
        expect(rows(page).first).to_contain_text(f"tableNOERROR{NAME}")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#stream-said")).to_have_text("Paused.")
        poll_until(lambda: listeners(server) == 0, "the listener has not left", seconds=PATIENCE)
        ask(server, NAME)
        expect(rows(page)).to_have_count(1)


def test_it_is_live_from_the_first_line_and_not_from_the_head_of_the_answer(browser: Browser, server: Serving) -> None:
    """Between the two the server does not listen yet."""
    with late_line(base_of(server)) as (base, line), opened(browser, base, "queries") as page:
        with page.expect_response(lambda answer: "/tap" in answer.url):
            page.get_by_role("button", name="Start").click()
        expect(page.locator("#stream-said")).to_have_text("Waiting for queries.")
        line.set()
        expect(page.locator("#stream-said")).to_have_text("Live.")


@contextlib.contextmanager
def late_line(base: str) -> Iterator[tuple[str, Event]]:
    """The pages of a server, whose live answer has its head at once and its first line after the Event."""
    line, end = Event(), Event()

    class Late(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if self.path.startswith("/tap"):
                self.end_headers()
                line.wait()
                self.wfile.write(b"\n")
                end.wait()
                return
            with urlopen(f"{base}{self.path}") as answer:  # noqa: S310  # our own, on loopback
                self.send_header("content-type", answer.headers["content-type"])
                self.end_headers()
                self.wfile.write(answer.read())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Late) as late:
        serving = Thread(target=late.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{late.server_port}", line
        finally:
            line.set()
            end.set()
            late.shutdown()
            serving.join()


def test_the_keyboard_alone_starts_filters_and_pauses(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "queries") as page:
        tab_to(page, page.get_by_label("Name"))
        page.keyboard.type("*.wild.example.org")
        page.keyboard.press("Enter")
        expect(page.locator("#stream-said")).to_have_text("Live.")
        ask(server, NAME, "x.wild.example.org")
        expect(rows(page)).to_have_count(1)
        expect(rows(page).first).to_contain_text("*.wild.example.org")
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(NAME)
        page.keyboard.press("Enter")
        expect(page.locator("#stream-said")).to_have_text("Live.")
        ask(server, NAME, "y.wild.example.org")
        expect(rows(page)).to_have_count(2)
        expect(rows(page).first).to_contain_text(NAME)
        tab_to(page, page.get_by_role("button", name="Pause"))
        page.keyboard.press("Space")
        expect(page.locator("#stream-said")).to_have_text("Paused.")


def test_a_bad_filter_shows_the_sentence_of_the_server(browser: Browser, server: Serving) -> None:
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(f"{base_of(server)}/queries")
        page.get_by_label("Client").fill("nowhere")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#stream-said")).to_contain_text("Not started: 'nowhere' is not an address or network")
        expect(page.get_by_role("button", name="Start")).to_be_visible()


def test_an_outcome_is_chosen(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "queries") as page:
        page.get_by_label("Outcome").select_option("refused")
        start(page)
        send(server, messages.query(NAME), messages.header(0x2000) + messages.question(NAME))
        expect(rows(page)).to_have_count(1)
        expect(rows(page).first).to_contain_text("refusedNOTIMP")


def test_hostile_names_stay_text(browser: Browser, server: Serving) -> None:
    evil = b"\x1a<img src=x onerror=alert(1)\x0b\xe2\x80\xae<script>\x00"
    with opened(browser, base_of(server), "queries") as page:
        start(page)
        send(server, messages.query(evil[:27] + b"\x00"), messages.query(b"\x08<script>\x00"))
        expect(rows(page).filter(has_text="<script>")).to_have_count(1)
        assert page.locator("#stream img, #stream script").count() == 0


def test_of_many_queries_the_last_200_are_kept_and_the_page_stays_usable(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "queries") as page:
        start(page)
        height = page.locator("#stream").bounding_box()
        for _ in range(20):
            ask(server, *[NAME] * 50)
        poll_until(
            lambda: scrape(server.admin)["dnsproxy_dns_requests_total"] >= 900,
            "they are not answered",
            seconds=PATIENCE,
        )
        expect(rows(page)).to_have_count(200)
        assert page.locator("#stream").bounding_box() == height, "the layout moves"
        ask(server, "last.wild.example.org")
        expect(rows(page).first).to_contain_text("last.wild.example.org")
        expect(page.locator("#stream-count")).to_contain_text("seen")


def test_a_server_that_ends_is_told_and_start_connects_again(browser: Browser, tmp_path: Path) -> None:
    with contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        with serving(
            tmp_path, "--host", f"{NAME}=192.0.2.10", "--upstream", "127.0.0.1:9", "--lameduck", "0"
        ) as server:
            page.goto(f"{base_of(server)}/queries")
            start(page)
        expect(page.locator("#stream-said")).to_contain_text("Start connects again.")
        expect(page.get_by_role("button", name="Start")).to_be_visible()


def test_with_the_tap_off_there_is_no_button(browser: Browser, tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--host", f"{NAME}=192.0.2.10", "--upstream", "127.0.0.1:9", "--tap", "off") as server,
        opened(browser, base_of(server), "queries") as page,
    ):
        expect(page.locator("#queries")).to_contain_text("This server shows no queries: it was started with --tap off.")
        assert page.locator("form").count() == 0


def test_without_script_it_names_the_command(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "queries", java_script_enabled=False) as page:
        expect(page.get_by_text("dnsproxy tap shows the same in a terminal")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_while_it_is_live(browser: Browser, server: Serving, scheme: Any) -> None:
    with opened(browser, base_of(server), "queries", color_scheme=scheme) as page:
        start(page)
        ask(server, NAME)
        expect(rows(page)).to_have_count(1)
        assert complaints_of(page) == []
