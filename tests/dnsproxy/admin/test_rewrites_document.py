"""The rewrites document: both ways, and what it refuses."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from dnsproxy.admin import rewrites_document
from dnsproxy.admin.rewritable_names import MOST, MOST_EXEMPT
from dnsproxy.admin.rewrites_document import (
    LARGEST,
    Name,
    RewritesDocument,
    format_rewrites_document,
    parse_rewrites_document,
)
from dnsproxy.dns.names import Reach

RELAY: Final = "switchback/relay"
FULL: Final = RewritesDocument(
    names=(Name("app.example.org", Reach.NAME, RELAY), Name("*.example.org", Reach.ONE_LABEL, RELAY)),
    exempt=(Name("own.example.org", Reach.NAME), Name("*.own.example.org", Reach.ANY_LABELS)),
    plain=3,
    left_out=2,
    waiting_for=("Ingress",),
)


@pytest.mark.parametrize("document", [FULL, RewritesDocument(names=())], ids=["full", "empty"])
def test_a_document_is_read_as_it_was_written(document: RewritesDocument) -> None:
    octets, tag = format_rewrites_document(document)
    assert parse_rewrites_document(octets) == document
    assert format_rewrites_document(document) == (octets, tag)


def test_other_names_have_another_tag() -> None:
    assert format_rewrites_document(FULL)[1] != format_rewrites_document(RewritesDocument(names=FULL.names))[1]


def test_a_document_of_a_newer_server_may_have_more_keys() -> None:
    content = {"names": [["app.example.org", "exact", RELAY, "more"]], "more": 1}
    assert parse_rewrites_document(json.dumps(content).encode()).names == FULL.names[:1]


def document(*names: Any, exempt: Any = ()) -> bytes:
    return json.dumps({"names": names, "exempt": exempt}).encode()


BAD: Final = {
    "nothing": b"",
    "no JSON": b"<html>",
    "another document": b'{"zones": ["example.org"]}',
    "a name without a Service": document(["app.example.org", "exact"]),
    "an exempt name with a Service": document(exempt=[["app.example.org", "exact", RELAY]]),
    "a name of another form": document(["App.example.org", "exact", RELAY]),
    "a name with a line end": document(["app.example.org\nlog", "exact", RELAY]),
    "a Service with a brace": document(["app.example.org", "exact", "a/{1}"]),
    "a wildcard as one name": document(["*.example.org", "exact", RELAY]),
    "an unknown reach": document(["app.example.org", "all", RELAY]),
    "an exempt name of another form": document(exempt=[["{$A}.example.org", "exact"]]),
    "a number as a name": document([1, "exact", RELAY]),
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("octets", BAD.values(), ids=BAD)
def test_any_other_document_is_an_error(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_rewrites_document(octets)


def test_the_limits_hold_also_for_what_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites_document, "MOST", 1)
    with pytest.raises(ValueError, match="more than 1 names"):
        parse_rewrites_document(format_rewrites_document(FULL)[0])


def test_the_largest_document_fits() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    names = tuple(Name(longest, Reach.NAME, f"{'n' * 63}/{'s' * 63}") for _ in range(MOST))
    exempt = tuple(Name(longest, Reach.NAME) for _ in range(MOST_EXEMPT))
    octets, _ = format_rewrites_document(RewritesDocument(names=names, exempt=exempt))
    assert len(octets) < LARGEST
