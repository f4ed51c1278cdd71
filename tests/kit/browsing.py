"""A real Chromium for the tests of pages, and pages that must not complain or ask for what is not theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.kit.programs import program

PATIENCE: Final = 30_000
"""Milliseconds; longer than any action takes on a busy machine."""


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A browser for the duration of the block."""
    # Without the sandbox: tests may run as root in a container, where it is not available.
    options: dict[str, Any] = {"executable_path": program("chromium"), "args": ["--no-sandbox", *flags]}
    # The time-out of a context is not that of `expect`, which would be five seconds.
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright, closing(playwright.chromium.launch(**options)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module. Import it where it is used."""
    with chromium() as started:
        yield started


@contextmanager
def opened(
    browser: Browser,
    base: str,
    path: str = "",
    *,
    complains: Callable[[ConsoleMessage], bool] = lambda _: True,
    beside: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Page]:
    """A page, which may neither log anything that `complains` nor ask for anything but what is below `base`.

    `beside` are beginnings of other addresses that it may ask for.
    """
    complaints: list[str] = []
    asked: list[str] = []
    with closing(browser.new_context(**options)) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if complains(message) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{base}/{path}")
        yield page
    assert complaints == []
    assert [url for url in asked if not url.startswith((f"{base}/", *beside))] == []
