"""The page of `make bench` in a real browser: nothing overlaps or is cut off, wide and narrow, in light and dark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from docs.speed.page import format_page
from docs.speed.run import Figure
from tests.docs.speed.runs import make_row, make_run
from tests.kit.browsing import browser

pytestmark = pytest.mark.peer("chromium")
__all__ = ["browser"]

OVERLAPS = """() => [...document.querySelectorAll('figure')].flatMap((figure) => {
  const outer = figure.getBoundingClientRect();
  const texts = [...figure.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const cut = texts.filter(([, box]) => box.left < outer.left || box.right > outer.right).map(([text]) => text);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4;
  const over = texts.filter(([, a], at) => texts.slice(at + 1).some(([, b]) => meet(a, b))).map(([text]) => text);
  return [...cut, ...over];
})"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
FIGURES = {
    "Switchback": Figure(480_000, 1, 499_000, 3),
    "Switchback, optimised Python 3.11.2": Figure(123_456, 100_000, 130_000, 3),
    "haproxy, always splice": Figure(10_000, 9_000, 11_000, 3),
    "a program with a long name": Figure(500_000, 500_000, 500_000, 3),
}
ROWS = [
    make_row(),
    make_row(id="relay-new-cpu", figures=FIGURES, better="lower", goal=450_000.0, about="a few words " * 12),
    make_row(id="dns-none", figures={}),
]


@contextlib.contextmanager
def opened(browser: Browser, folder: Path, **options: Any) -> Iterator[Page]:
    """The page from a file, without scripts of its own; it may ask for nothing else."""
    path = folder / "index.html"
    path.write_text(format_page(make_run(*ROWS)), encoding="utf-8")
    asked: list[str] = []
    with contextlib.closing(browser.new_context(**options)) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        yield page
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 380, 360], ids=str)
def test_nothing_overlaps_or_is_cut_off_and_everyone_can_read_it(
    browser: Browser, tmp_path: Path, scheme: Any, width: int
) -> None:
    viewport = {"width": width, "height": 900}
    with opened(browser, tmp_path, viewport=viewport, color_scheme=scheme) as page:
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate(WIDE) <= 0
        found = Axe().run(page, options={"resultTypes": ["violations"]})
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found.response["violations"]] == []


def test_it_prints_on_white(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, tmp_path, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="light")
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
