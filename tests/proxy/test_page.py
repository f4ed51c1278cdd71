"""The status page."""

from __future__ import annotations

from html.parser import HTMLParser

from proxy.page import RouteStatus, render_page

EVIL = "<script>alert(1)</script>\"'&"


def test_the_page_shows_each_route() -> None:
    route = RouteStatus(
        listen="[::]:8080", backend="example.org:80", protocol="v2", addresses=["192.0.2.1:80"], state="no fault seen"
    )
    page = render_page([route], active=3, limit=100, total=10)
    told = (
        "[::]:8080",
        "example.org:80",
        "v2",
        "192.0.2.1:80",
        "no fault seen",
        "3 connections open of 100",
        "10 since",
    )
    for text in told:
        assert text in page


def test_whatever_a_route_holds_stays_text() -> None:
    page = render_page(
        [RouteStatus(listen=EVIL, backend=EVIL, protocol=EVIL, addresses=[EVIL], state=EVIL)],
        active=0,
        limit=1,
        total=0,
    )
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]  # noqa: ARG005
    parser.feed(page)
    assert "script" not in tags
    assert "html" in tags
