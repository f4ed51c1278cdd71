"""HTML from values."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.admin.page.markup import LONGEST, html, joined, shortened


def tags_of(page: str) -> list[str]:
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]  # noqa: ARG005
    parser.feed(page)
    return tags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<script>", "&lt;script&gt;", id="a tag"),
        pytest.param("\"' onload=x", "&#34;&#39; onload=x", id="quotes"),
        pytest.param("&amp;", "&amp;amp;", id="an entity"),
        pytest.param("a\u202eb", "a\\u202eb", id="right to left override"),
        pytest.param("a\x00\x1b[2Jb\n", "a\\x00\\x1b[2Jb\\n", id="controls"),
        pytest.param("\u2028\ud800", "\\u2028\\ud800", id="line separator and half a character"),
        pytest.param("{0} {x}", "{0} {x}", id="braces"),
        pytest.param("grün \u05d0", "grün \u05d0", id="letters of any script"),
    ],
)
def test_whatever_comes_from_outside_stays_text(text: str, expected: str) -> None:
    assert html("<td>{}</td>", text) == f"<td>{expected}</td>"
    assert html("<td>{x}</td>", x=text) == f"<td>{expected}</td>"


@given(st.text())
def test_no_text_brings_in_a_tag_or_leaves_its_attribute(text: str) -> None:
    page = html('<p title="{}">{}</p>', text, text)
    assert tags_of(page) == ["p"]
    page.encode()


def test_markup_is_not_escaped_again() -> None:
    assert html("<p>{}</p>", joined((html("<b>{}</b>", "&"), html("{}", 7)), ", ")) == "<p><b>&amp;</b>, 7</p>"


def test_a_text_without_end_is_cut() -> None:
    assert shortened("x" * LONGEST) == "x" * LONGEST
    assert shortened("x" * 1_000_000) == "x" * LONGEST + "…"
