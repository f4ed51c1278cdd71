"""The guide in a real browser, opened as a file and from a server: links, search, navigation, the switch of schemes."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from docs.build import build, stage
from tests.kit import browsing
from tests.kit.browsing import browser

pytestmark = pytest.mark.peer("chromium")
__all__ = ["browser"]

GROUPS = ["Start", "Diagnose", "Run", "Programs", "Background"]
PHONE: Any = {"width": 390, "height": 844}
LAPTOP: Any = {"width": 1200, "height": 800}
LINKS = "() => [...document.querySelectorAll('a[href]')].map((one) => one.href)"
IDS = "() => [...document.querySelectorAll('[id]')].map((one) => one.id)"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
GROUND = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
FOUND = [
    ("--hosts-file", "--hosts-file PATH", "serve.html", "dnsproxy-serve--hosts-file"),
    ("PROXY_DRAIN", "--drain SECONDS", "proxy.html", "proxy--drain"),
    ("dnsproxy_forward_joined_total", "dnsproxy_forward_joined_total", "operating.html", "dnsproxy_forward_joined"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that the caller uses
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    stage(folder)
    assert build(folder) == 0
    return folder / "site"


@pytest.fixture(scope="module", params=["file", "served"])
def base(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """The address of the folder with the pages; the server has it below its root, as a forge's pages are."""
    if request.param == "file":
        yield site.as_uri()
        return
    handler = functools.partial(Quiet, directory=str(site.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{site.name}"
        server.shutdown()
        thread.join()


def opened(browser: Browser, base: str, path: str = "index.html", **options: Any) -> AbstractContextManager[Page]:
    """A page, which may neither log errors nor ask for anything outside the folder."""
    return browsing.opened(
        browser,
        base,
        path,
        complains=lambda message: message.type == "error",
        beside=("data:", "about:"),
        **options,
    )


def test_every_link_opens_its_place_on_a_page_that_fits_a_phone(browser: Browser, site: Path) -> None:
    # As files, where a link to a folder opens no page; a server would find its index.
    base = site.as_uri()
    ids: dict[str, set[str]] = {}
    links: dict[str, str] = {}
    with opened(browser, base, viewport=PHONE) as page:
        waiting = [page.url]
        while waiting:
            url = waiting.pop()
            page.goto(url)
            ids[url] = set(page.evaluate(IDS))
            assert page.evaluate(WIDER) <= 0, url
            for link in page.evaluate(LINKS):
                if urlsplit(link)[:2] == urlsplit(base)[:2]:
                    links[link] = url
            waiting = sorted({urldefrag(link).url for link in links} - ids.keys())
    # A folder that was opened instead of a page, or anything outside the guide, would be one more.
    assert sorted(ids) == sorted(f"{base}/{file.name}" for file in site.glob("*.html"))
    for link, origin in links.items():
        place = urldefrag(link)
        assert not place.fragment or unquote(place.fragment) in ids[place.url], f"{origin} links to {link}"


def test_the_search_opens_the_row_of_a_flag_or_metric(browser: Browser, base: str) -> None:
    with opened(browser, base, "how-it-works.html", viewport=LAPTOP) as page:
        for typed, title, file, anchor in FOUND:
            page.get_by_role("button", name="Search").click()
            page.get_by_role("combobox", name="Search").fill(typed)
            page.get_by_role("option", name=title, exact=True).first.click()
            row = page.locator(f"code[id='{anchor}']")
            expect(row).to_be_in_viewport()
            assert page.url.startswith(f"{base}/{file}?h=")
            expect(row.locator("mark").first).to_be_visible()


def test_a_word_that_is_nowhere_finds_nothing(browser: Browser, base: str) -> None:
    with opened(browser, base, viewport=LAPTOP) as page:
        page.get_by_role("button", name="Search").click()
        page.get_by_role("combobox", name="Search").fill("dnsproxy")
        expect(page.get_by_role("option").first).to_be_visible()
        page.get_by_role("combobox", name="Search").fill("xyzzy")
        expect(page.get_by_role("option")).to_have_count(0)


def test_five_groups_and_the_pages_of_one_are_in_sight(browser: Browser, base: str) -> None:
    with opened(browser, base, viewport=LAPTOP) as page:
        tabs = page.get_by_role("navigation", name="Tabs").get_by_role("link")
        expect(tabs).to_have_text(GROUPS)
        for name in GROUPS:
            expect(tabs.filter(has_text=name)).to_be_in_viewport(ratio=1)
        tabs.filter(has_text="Programs").click()
        expect(page.locator(".md-sidebar--primary").get_by_role("link", name="wholeip")).to_be_in_viewport(ratio=1)
        expect(page.locator(".md-sidebar--primary").get_by_role("link", name="Helm")).to_be_hidden()
        page.set_viewport_size(PHONE)
        page.locator("label[for=__drawer].md-header__button").click()
        expect(page.locator(".md-nav--primary").get_by_role("link", name="wholeip")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("first", ["light", "dark"])
def test_the_switch_changes_page_and_picture_and_is_kept(browser: Browser, base: str, first: Any) -> None:
    other = {"light": "dark", "dark": "light"}[first]
    with opened(browser, base, viewport=LAPTOP, color_scheme=first) as page:
        before = check_scheme(page, first)
        page.get_by_title(f"Switch to the {other} scheme").click()
        assert check_scheme(page, other) != before
        page.get_by_role("link", name="Quick start").first.click()
        page.goto(f"{base}/index.html")
        check_scheme(page, other)


def test_the_keyboard_shows_where_it_is_and_leaves_the_closed_drawer_out(browser: Browser, site: Path) -> None:
    outline = "() => getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    outlines = []
    with opened(browser, site.as_uri(), "serve.html", viewport=LAPTOP) as page:
        for _ in range(6):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.classList.contains('md-option')"):
                outlines.append(page.evaluate(outline))
        assert outlines == ["solid"]
        page.set_viewport_size(PHONE)
        page.reload()
        for _ in range(8):
            page.keyboard.press("Tab")
            assert page.evaluate("() => document.activeElement.getBoundingClientRect().right") >= 0


def check_scheme(page: Page, scheme: str) -> bytes:
    """The ground is that of the scheme, and one picture is in sight, whose pixels this returns."""
    picture = page.locator("article img").locator("visible=true")
    expect(picture).to_have_attribute("src", f"pictures/hairpin.svg#only-{scheme}")
    ground = page.evaluate(GROUND)
    assert max(ground) < 60 if scheme == "dark" else min(ground) > 200
    return picture.screenshot()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["index.html", "doctor.html"])
def test_everyone_can_read_it(browser: Browser, site: Path, path: str, scheme: Any) -> None:
    # The theme's own fault: the lists of buttons at blocks of code have no names of their own.
    rules = {"landmark-unique": {"enabled": False}}
    with opened(browser, site.as_uri(), path, viewport=LAPTOP, color_scheme=scheme) as page:
        found = Axe().run(page, options={"resultTypes": ["violations"], "preload": False, "rules": rules})
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found.response["violations"]] == []
