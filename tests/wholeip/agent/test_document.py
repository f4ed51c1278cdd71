"""The document of mappings and reports, written and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wholeip.agent.test_status import status
from wholeip.agent.document import Document, ShownReport, describe_opened, format_json, parse_document, show


def test_the_document_travels_whole() -> None:
    document = show(status())
    assert parse_document(format_json(document).encode()) == document
    assert document.ready
    assert document.mappings[0].opened == ("80/tcp", "53/udp")
    assert document.mappings[0].here is False
    assert document.reports == (ShownReport("default/x", "no-endpoint", "no pod is ready"),)


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"node": 1}',
        b"\xff",
        b"[" * 100_000,
        b'{"node":null,"ready":true,"state":"","mappings":{}',
    ],
)
def test_what_is_no_document_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_document(octets)


@given(st.text())
def test_no_text_in_a_document_can_drive_a_terminal(text: str) -> None:
    document = Document(None, True, text, (), (ShownReport(text, text, text),))
    shown = format_json(document)
    assert shown.isascii()
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert parse_document(shown.encode()) == document or "\ud800" <= max(text) <= "\udfff"


@pytest.mark.parametrize(
    ("opened", "icmp", "described"),
    [
        pytest.param(None, True, "everything", id="whole"),
        pytest.param(("80/tcp", "53/udp"), False, "80/tcp 53/udp", id="ports"),
        pytest.param(("80/tcp",), True, "80/tcp icmp", id="ports and ICMP"),
        pytest.param((), True, "icmp", id="ICMP alone"),
        pytest.param((), False, "nothing", id="nothing"),
    ],
)
def test_what_comes_in_is_said_in_few_words(opened: tuple[str, ...] | None, icmp: bool, described: str) -> None:
    assert describe_opened(opened, icmp=icmp) == described
