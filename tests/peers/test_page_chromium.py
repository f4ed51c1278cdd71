"""The status pages in a real browser: what a person sees, types and hears, and the browser's errors."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.kit import messages
from tests.kit.browsing import browser, opened
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.serve_process import Serving, serving

pytestmark = pytest.mark.peer("chromium")
__all__ = ["browser"]

NAMES = 20_000
EVIL = "<script>document.title='stolen'</script>"
PAGES = (
    "",
    "names?q=app-1999",
    "names?q=nowhere",
    "left-out",
    "skipped",
    "why?name=app-1.team-1.example.org",
    "why?name=x.localhost",
    "history",
    "queries",
)
POINTS = re.compile(r"\d+\.\d,\d+\.\d")
LABEL = re.compile("^Replies a second, the last five minutes; now ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("page")
    hosts = folder / "hosts"
    lines = [f"192.0.2.{number % 250 + 1} app-{number}.team-{number % 90}.example.org" for number in range(NAMES)]
    hosts.write_text("\n".join([*lines, "192.0.2.1 x.localhost", f"192.0.2.1 {EVIL}", "192.0.2.1 \u202ea..b", ""]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        upstream = f"127.0.0.1:{silent.getsockname()[1]}"
        with serving(folder, "--hosts-file", str(hosts), "--upstream", upstream) as started:
            yield started


def base_of(server: Serving) -> str:
    return f"http://{server.admin}"


def ask(server: Serving, *names: str) -> None:
    """Send queries without waiting for the replies."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for name in names:
            client.sendto(messages.query(name), ("127.0.0.1", server.port))


def complaints_of(page: Page, **options: Any) -> list[str]:
    """The accessibility problems that axe finds, for screen readers, keyboard use and low vision."""
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"], **options}
    found = Axe().run(page, options={"resultTypes": ["violations"], **rules})
    return [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in found.response["violations"]]


def test_typing_narrows_the_names_and_says_how_many_there_are(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "names") as page:
        expect(page.get_by_role("row")).to_have_count(51)
        field = page.get_by_role("searchbox", name="Find")
        field.press_sequentially("app-19999")
        expect(page.locator("#results caption")).to_contain_text("1 to 1 of 1")
        expect(page.get_by_role("status")).to_have_text("Names, 1 to 1 of 1 with “app-19999”")
        expect(field).to_be_focused()
        assert page.url.endswith("/names?q=app-19999")
        field.fill("nowhere")
        expect(page.locator(".empty")).to_have_text("Nothing contains nowhere.")


def test_the_keyboard_alone_reaches_every_page_and_name(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server)) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#content")).to_be_focused()
        tab_to(page, page.get_by_role("searchbox"))
        page.keyboard.type("app-1")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Names")
        expect(page.locator("#results caption")).to_contain_text("1 to 50 of 11,111")
        tab_to(page, page.get_by_role("link", name="Next"), most=70)
        page.keyboard.press("Enter")
        expect(page.locator("#results caption")).to_contain_text("51 to 100 of 11,111")
        first = page.get_by_role("rowheader").first.inner_text()
        tab_to(page, page.get_by_role("link", name=first, exact=True))
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text(f"{first} is answered with 192.0.2.")


def tab_to(page: Page, wanted: Any, *, most: int = 25) -> None:
    """Press Tab until the element has the focus, which must be visible at each step."""
    for _ in range(most):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
    pytest.fail(f"Tab does not reach {wanted}")


def test_paging_goes_there_and_back(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "names") as page:
        first = page.get_by_role("rowheader").all_inner_texts()
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#results caption")).to_contain_text("51 to 100")
        assert not set(first) & set(page.get_by_role("rowheader").all_inner_texts())
        page.get_by_role("link", name="Previous").click()
        expect(page.locator("#results caption")).to_contain_text("1 to 50")
        assert page.get_by_role("rowheader").all_inner_texts() == first


def test_the_charts_move_when_queries_come(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server)) as page:
        chart = page.locator("figure[data-chart=queries]")
        expect(chart.locator("svg polyline.s1")).to_have_attribute("points", POINTS)
        first = chart.locator("polyline.s1").get_attribute("points")
        ask(server, *["app-1.team-1.example.org"] * 500)
        expect(chart.locator("[data-most=table]")).not_to_have_text(re.compile("^(0|-)$"))
        expect(chart.locator("polyline.s1")).not_to_have_attribute("points", first or "")
        expect(chart.get_by_role("img")).to_have_attribute("aria-label", LABEL)
        box = chart.locator(".plot").bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 40)
        expect(chart.locator("svg line.cursor")).to_have_count(1)


def test_a_silent_upstream_is_shown_at_once(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server)) as page:
        expect(page.locator("[data-live=upstream-0]")).to_have_count(1)
        ask(server, *[f"other-{number}.example.net" for number in range(20)])
        expect(page.locator("[data-live=upstream-0]")).to_contain_text("failing: asked after the others")
        expect(page.locator("[data-live=upstream-0]")).to_have_attribute("data-level", "bad")


def test_an_upstream_that_is_new_gets_its_row(browser: Browser, tmp_path: Path) -> None:
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.53\n")
    with (
        serving(tmp_path, "--host", "a.example.org=192.0.2.1", "--resolv-conf", str(resolv_conf)) as started,
        opened(browser, base_of(started)) as page,
    ):
        expect(page.locator("#upstreams tbody tr")).to_have_count(1)
        resolv_conf.write_text("nameserver 192.0.2.53\nnameserver 192.0.2.54\n")
        expect(page.locator("#upstreams tbody tr")).to_have_count(2)
        expect(page.get_by_role("rowheader", name="192.0.2.54:53")).to_be_visible()
        assert page.locator("figure svg").count() == 3, "the charts keep their earlier values"


def test_paused_it_asks_for_nothing(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server)) as page:
        page.clock.install()
        page.reload()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/live" in request.url else None)
        button = page.get_by_role("button", name="Pause")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        asked.clear()
        page.clock.run_for(60_000)
        assert asked == []
        button.click()
        with page.expect_request("**/live?since=*"):
            page.clock.run_for(10_000)


def test_without_script_all_is_there(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), java_script_enabled=False) as page:
        expect(page.locator("[data-live=names]")).to_have_text(f"{NAMES:,}")
        expect(page.locator("figure table")).to_have_count(3)
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        page.get_by_role("searchbox").fill("app-12.")
        page.get_by_role("button", name="Find").click()
        page.get_by_role("link", name="app-12.team-12.example.org").click()
        expect(page.locator(".verdict")).to_contain_text("192.0.2.13")


@pytest.mark.parametrize("path", PAGES)
def test_the_page_is_accessible(browser: Browser, server: Serving, path: str) -> None:
    with opened(browser, base_of(server), path) as page:
        assert complaints_of(page) == []
        page.emulate_media(color_scheme="dark")
        assert complaints_of(page, runOnly=["color-contrast"]) == []
        page.set_viewport_size({"width": 320, "height": 700})
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider == 0, "the page must scroll in one direction only, even at 320 pixels (WCAG 1.4.10)"


def test_dark_is_dark_and_light_is_light(browser: Browser, server: Serving) -> None:
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    with opened(browser, base_of(server), color_scheme="dark") as page:
        assert max(page.evaluate(ground)) < 60
        page.emulate_media(color_scheme="light")
        assert min(page.evaluate(ground)) > 200


def test_reduced_motion_is_respected(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "names", reduced_motion="reduce") as page:
        moving = "[...document.querySelectorAll('*')].filter(one => getComputedStyle(one).transitionDuration !== '0s')"
        assert page.evaluate(f"{moving}.length") == 0


def test_hostile_names_stay_text(browser: Browser, server: Serving) -> None:
    with opened(browser, base_of(server), "skipped") as page:
        expect(page.get_by_text("document.title")).to_have_count(1)
        expect(page.get_by_text("\\u202ea..b")).to_have_count(1)
        assert page.title() == "Rejected · dnsproxy"
        page.get_by_role("searchbox").fill(EVIL)
        expect(page.locator("#results caption")).to_contain_text("1 to 1 of 1")
        assert page.title() == "Rejected · dnsproxy"


def test_a_lost_server_is_shown_and_its_return_too(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "a.example.org=192.0.2.1") as first:
        context = browser.new_context()
        with contextlib.closing(context):
            page = context.new_page()
            page.goto(base_of(first))
            first.hang()
            expect(page.get_by_role("status")).to_have_text("No answer: what is shown is old.")
            first.resume()
            expect(page.get_by_role("status")).to_contain_text("This page is up to date again.")


def test_the_relays_page_is_of_the_same_kind(browser: Browser, tmp_path: Path) -> None:
    port, admin, backend = free_ports(3)
    log = tmp_path / "proxy.log"
    where = ["--route", f"127.0.0.1:{port}=127.0.0.1:{backend}", "--admin", f"127.0.0.1:{admin}"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-m", "proxy", *where], stderr=stderr)
    try:
        wait_for(lambda: b"relaying" in log.read_bytes(), process=process, log=log)
        with opened(browser, f"http://127.0.0.1:{admin}") as page:
            expect(page.locator("figure svg polyline").first).to_be_attached()
            for _ in range(3):
                # The connection is reset as soon as the relay has found no backend.
                with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)) as client:
                    client.sendall(b"x")
            expect(page.locator("[data-live=route-0]")).to_contain_text("connection-refused")
            expect(page.locator("[data-live=connections]")).to_have_text("3")
            assert complaints_of(page) == []
    finally:
        end_process(process)
