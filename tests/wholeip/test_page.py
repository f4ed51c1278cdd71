"""The status page."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tests.wholeip.test_status import status
from wholeip.page import SHOWN, render_page
from wholeip.status import Document, ShownMapping, ShownReport, show


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.data += data


def test_mappings_and_reports_are_on_the_page() -> None:
    text = Tags(render_page(show(status()), repaired=4)).data
    for part in (
        *("Ready1 mappings of 2 Services", "Noden1", "undone4", "default/vm", "192.0.2.1", "10.0.0.1"),
        *("80/tcp 53/udp icmp", "elsewhere", "no-endpoint", "no pod is ready"),
    ):
        assert part in text


def test_why_it_is_not_ready_is_on_the_page() -> None:
    assert "Not readystopping" in Tags(render_page(show(status(stopping=True)), repaired=0)).data


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_of_the_cluster_becomes_markup(text: str) -> None:
    mapping = ShownMapping(text, text, text, (text,), True, True, True)
    plain, odd = (
        Tags(render_page(Document(one, True, one, (mapping,), (ShownReport(one, one, one),)), repaired=0))
        for one in ("x", text)
    )
    assert plain.tags == odd.tags


def test_a_long_table_is_cut_and_says_so() -> None:
    mapping = ShownMapping("a/b", "192.0.2.1", "10.0.0.1", None, True, True, True)
    page = render_page(Document("n", True, "s", (mapping,) * (SHOWN + 3), ()), repaired=0)
    assert page.count('<th scope="row">a/b</th>') == SHOWN
    assert "3 more." in page
