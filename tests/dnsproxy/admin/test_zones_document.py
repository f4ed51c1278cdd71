"""The zones document: it round-trips, and any other document is a ValueError."""

from __future__ import annotations

import pytest

from dnsproxy.admin.zones_document import format_zones, parse_zones


def test_a_document_round_trips_and_equal_zones_have_equal_tags() -> None:
    octets, tag = format_zones(("example.net", "example.org"), left_out=3, waiting_for=("ingress",))
    document = parse_zones(octets)
    assert (document.zones, document.left_out, document.waiting_for) == (
        ("example.net", "example.org"),
        3,
        ("ingress",),
    )
    assert format_zones(("example.net", "example.org"), left_out=3, waiting_for=["ingress"])[1] == tag
    assert format_zones(("example.net", "example.org"))[1] != tag


@pytest.mark.parametrize(
    ("octets", "complete"),
    [
        (b'{"zones":[]}', True),
        (b'{"zones":["example.org"],"new":1}', True),
        (b'{"zones":["example.org"],"waiting_for":["ingress"]}', False),
        (b'{"zones":["example.org"],"left_out":1}', False),
    ],
    ids=["empty", "a newer server", "waiting", "left out"],
)
def test_only_a_complete_document_shows_that_other_zones_are_unwanted(octets: bytes, complete: bool) -> None:
    assert parse_zones(octets).complete is complete


@pytest.mark.parametrize(
    "octets",
    [
        *(b"", b"{}", b"[]", b"null", b'{"zones":null}', b'{"zones":"example.org"}', b'{"zones":[1]}', b"ready\n"),
        *(b'{"zones":["."]}', b'{"zones":[""]}', b'{"zones":["*.example.org"]}', b'{"zones":["EXAMPLE.org"]}'),
        *(b'{"zones":["example.org."]}', b'{"zones":["a b"]}', b'{"zones":["a{}"]}', b'{"zones":["a\\nb"]}'),
        *(b'{"zones":["192.0.2.1"]}', b'{"zones":["-a.org"]}', b'{"zones":["example.org"]', b"[" * 100_000),
        b'{"zones":["a",' + b'"example.org",' * 3_000 + b'"b"]}',
    ],
    ids=lambda octets: ascii(octets[:30]),
)
def test_any_other_document_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any text: the caller adds the context
        parse_zones(octets)
