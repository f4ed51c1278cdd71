"""The subjects document: it round-trips, and any other document is a ValueError."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.subjects_document import LARGEST, format_subjects, parse_subjects
from dnsproxy.hostnames.claimed_subjects import MOST, MOST_EXAMPLES, MOST_POINTS, ClaimedSubject
from dnsproxy.hostnames.outcomes import MOST_WIDE
from dnsproxy.hostnames.public_addresses import UnknownAddress
from dnsproxy.hostnames.wide_wildcards import WideWildcard
from docs.fences import find_fences
from tests.kit.laws import ROOT

NGINX: Final = ClaimedSubject(
    subject="ingressclass/nginx",
    hostnames=12,
    examples=("app.example.org", "*.example.org"),
    status=("192.0.2.10", "2001:db8::1", "lb.example.org"),
)
ROUTER: Final = UnknownAddress(
    address="198.51.100.1", hostnames=2, asked=3, examples=("app.example.org",), subject="ingressclass/nginx"
)
WIDE: Final = WideWildcard(hostname="*.example.org", origin="Ingress shop/web", verified=True)
GATE: Final = ClaimedSubject(subject="gateway/infra/gate", hostnames=1, examples=("web.example.org",), status=())


def test_a_document_round_trips_and_equal_subjects_have_equal_tags() -> None:
    octets, tag = format_subjects((GATE, NGINX), left_out=3, waiting_for=("Ingress",))
    document = parse_subjects(octets)
    assert (document.subjects, document.left_out, document.waiting_for) == ((GATE, NGINX), 3, ("Ingress",))
    assert format_subjects([GATE, NGINX], left_out=3, waiting_for=["Ingress"])[1] == tag
    assert format_subjects((GATE, NGINX))[1] != tag


def test_the_example_of_the_guide_is_a_document_with_all_keys_and_no_other() -> None:
    page = (ROOT / "docs" / "pages" / "serve.md").read_text(encoding="utf-8")
    (example,) = (fence.body for fence in find_fences(page) if '"subjects"' in fence.body)
    document = parse_subjects(example.encode())
    sent, _ = format_subjects(
        document.subjects,
        left_out=document.left_out,
        waiting_for=document.waiting_for,
        unknown_addresses=document.unknown_addresses,
        wide=document.wide,
    )
    assert json.loads(sent) == json.loads(example)


def test_its_keys_are_a_promise() -> None:
    document = json.loads(
        format_subjects((NGINX,), left_out=1, waiting_for=("Ingress",), unknown_addresses=[ROUTER], wide=[WIDE])[0]
    )
    assert document == {
        "subjects": [
            {
                "subject": "ingressclass/nginx",
                "hostnames": 12,
                "examples": ["app.example.org", "*.example.org"],
                "status": ["192.0.2.10", "2001:db8::1", "lb.example.org"],
            }
        ],
        "left_out": 1,
        "waiting_for": ["Ingress"],
        "unknown_addresses": [
            {
                "address": "198.51.100.1",
                "hostnames": 2,
                "asked": 3,
                "examples": ["app.example.org"],
                "subject": "ingressclass/nginx",
            }
        ],
        "wide": [{"hostname": "*.example.org", "origin": "Ingress shop/web", "verified": True}],
    }


def test_a_document_of_an_older_server_has_no_hints() -> None:
    document = parse_subjects(b'{"subjects":[],"left_out":0,"waiting_for":[]}')
    assert (document.unknown_addresses, document.wide) == ((), ())
    sent, _ = format_subjects((), unknown_addresses=[ROUTER], wide=[WIDE])
    assert (parse_subjects(sent).unknown_addresses, parse_subjects(sent).wide) == ((ROUTER,), (WIDE,))


def address(**changes: Any) -> dict[str, Any]:
    made = {"address": "198.51.100.1", "hostnames": 2, "asked": 3, "examples": ["app.example.org"], "subject": ""}
    return made | changes


def wildcard(**changes: Any) -> dict[str, Any]:
    return {"hostname": "*.example.org", "origin": "Ingress shop/web", "verified": True} | changes


@pytest.mark.parametrize(
    "hints",
    [
        *({"unknown_addresses": [address(**one)]} for one in cast("list[dict[str, Any]]", [
            {"address": ""}, {"address": "router"}, {"address": "198.51.100.0/24"}, {"address": "2001:DB8::1"},
            {"address": "0.0.0.0"}, {"address": 1}, {"hostnames": 0}, {"hostnames": 4}, {"hostnames": -1},
            {"asked": 0}, {"asked": 10**30}, {"asked": "3"}, {"examples": []}, {"examples": ["a"] * 4},
            {"examples": ["APP.example.org"]}, {"examples": ["a b"]}, {"examples": None}, {"subject": "nginx"},
            {"subject": "ingressclass/a,ingressclass/b"}, {"subject": None},
        ])),
        *({"wide": [wildcard(**changes)]} for changes in (
            {"hostname": "example.org"}, {"hostname": "*"}, {"hostname": ""}, {"hostname": "*.EXAMPLE.org"},
            {"hostname": "*.a b.org"}, {"hostname": None}, {"origin": ""}, {"origin": "a" * 1_001}, {"origin": 1},
            {"verified": "yes"},
        )),
        {"unknown_addresses": [address()] * 6},
        {"wide": [wildcard()] * (MOST_WIDE + 1)},
        {"unknown_addresses": None},
        {"unknown_addresses": {}},
        {"wide": "*.example.org"},
        {"wide": [[]]},
    ],
    ids=lambda hints: ascii(hints)[:300],
)  # fmt: skip
def test_a_hint_that_no_server_sends_refuses_the_whole_document(hints: dict[str, Any]) -> None:
    good = {"subjects": [one()], "unknown_addresses": [address()], "wide": [wildcard()]}
    assert len(parse_subjects(json.dumps(good).encode()).wide) == 1
    with pytest.raises(ValueError):  # noqa: PT011  # any text: the caller adds the context
        parse_subjects(json.dumps(good | hints).encode())


@pytest.mark.parametrize(
    ("octets", "complete"),
    [
        (b'{"subjects":[]}', True),
        (b'{"subjects":[],"new":1}', True),
        (b'{"subjects":[],"waiting_for":["Ingress"]}', False),
        (b'{"subjects":[],"left_out":1}', False),
    ],
    ids=["empty", "a newer server", "waiting", "left out"],
)
def test_only_a_complete_document_shows_that_other_subjects_have_no_names(octets: bytes, complete: bool) -> None:
    assert parse_subjects(octets).complete is complete


def one(**changes: Any) -> dict[str, Any]:
    made = {"subject": "ingressclass/nginx", "hostnames": 1, "examples": ["app.example.org"], "status": []}
    return made | changes


@pytest.mark.parametrize(
    "octets",
    [b"", b"{}", b"[]", b"null", b"ready\n", b'{"subjects":null}', b'{"subjects":{}}', b'{"subjects":["a"]}',
     b'{"subjects":[{}]}', b'{"subjects":[]', b"[" * 100_000, b'{"subjects":' + b"[" * 100_000, b"\xff",
     b'{"subjects":[],"left_out":-1}', b'{"subjects":[],"left_out":1.5}', b'{"subjects":[],"left_out":"1"}',
     b'{"subjects":[],"left_out":1e400}', b'{"subjects":[],"left_out":%d}' % 10**30,
     b'{"subjects":[],"waiting_for":"Ingress"}', b'{"subjects":[],"waiting_for":[1]}'],
    ids=lambda octets: ascii(octets[:40]),
)  # fmt: skip
def test_any_other_document_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any text: the caller adds the context
        parse_subjects(octets)


@pytest.mark.parametrize(
    "changes",
    [
        *({"subject": text} for text in (
            "", "nginx", "ingressclass/", "ingressclass/A", "ingressclass/a,ingressclass/b", " ingressclass/a",
            "ingressclass/a\n", "gateway/gate", "gateway/a/b/c", "service/a/b", "ingressclass/" + "a" * 300,
        )),
        *({"hostnames": number} for number in (0, -1, 10**30, 1.5, "1", None)),
        *({"examples": examples} for examples in (
            [], ["APP.example.org"], ["app.example.org."], [""], ["*"], ["a b"], ["192.0.2.1"], ["a\nb.example.org"],
            ["app.example.org"] * (MOST_EXAMPLES + 1), "app.example.org", [None],
        )),
        *({"status": status} for status in (
            [""], ["0.0.0.0"], ["2001:DB8::1"], ["192.0.2.0/24"], ["LB.example.org"], ["lb.example.org."], ["a b"],
            ["169.254.169.254"], ["192.0.2.1:80"], [1], ["192.0.2.1"] * (MOST_POINTS + 1), "192.0.2.1", None,
        )),
    ],
    ids=lambda changes: ascii(changes)[:60],
)  # fmt: skip
def test_a_subject_that_no_server_sends_refuses_the_whole_document(changes: dict[str, Any]) -> None:
    good = one(subject="ingressclass/good")
    assert len(parse_subjects(json.dumps({"subjects": [good, one()]}).encode()).subjects) == 2
    with pytest.raises(ValueError):  # noqa: PT011  # any text: the caller adds the context
        parse_subjects(json.dumps({"subjects": [good, one(**changes)]}).encode())


@pytest.mark.parametrize("key", ["subject", "hostnames", "examples", "status"])
def test_a_subject_without_one_of_its_keys_refuses_it_too(key: str) -> None:
    made = one()
    del made[key]
    with pytest.raises(ValueError, match=key):
        parse_subjects(json.dumps({"subjects": [made]}).encode())


def test_a_subject_that_is_there_twice_and_too_many_of_them_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_subjects(json.dumps({"subjects": [one(), one()]}).encode())
    many = [one(subject=f"ingressclass/a{number}") for number in range(MOST + 1)]
    with pytest.raises(ValueError, match="more than 1,000 subjects"):
        parse_subjects(json.dumps({"subjects": many}).encode())
    assert len(parse_subjects(json.dumps({"subjects": many[1:]}).encode()).subjects) == MOST


def test_the_largest_document_is_within_the_limit_of_its_readers() -> None:
    label = "a" * 49
    name = ".".join(["a" * 50] * 4 + [label])
    assert len(name) == 253
    full = [
        ClaimedSubject(
            subject=f"gateway/{'n' * 63}/{number:03}.{name[4:]}",
            hostnames=500_000,
            examples=(name,) * MOST_EXAMPLES,
            status=(name,) * MOST_POINTS,
        )
        for number in range(MOST)
    ]
    octets, _ = format_subjects(full)
    assert len(octets) < LARGEST
    assert len(parse_subjects(octets).subjects) == MOST


@given(st.binary() | st.text().map(str.encode))
def test_any_octets_are_a_document_or_a_value_error(octets: bytes) -> None:
    try:
        document = parse_subjects(octets)
    except ValueError:
        return
    assert parse_subjects(format_subjects(document.subjects)[0]).subjects == document.subjects
