"""The lists of a DNS server's pages (lists.py), and how a list is rendered and searched (list_page.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.pages.list_page import LONGEST_PLACE, SIZE, List, format_list, index_of, parse_search
from dnsproxy.admin.pages.lists import LISTS
from dnsproxy.admin.pages.overview import LONGEST_SEARCH
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.hostnames.verdict import LedElsewhere
from sidecar.admin.page.shared import Shared
from tests.kit.rows import failing

KINDS = {which.path: which for which in LISTS}
EVIL = "<script>alert(1)</script>\u202e"


def registry_of(claims: Iterable[Claim], rejections: Iterable[Rejection] = ()) -> Registry:
    registry = Registry(targets=Targets(("192.0.2.10",)), guards=Guards())
    for number, claim in enumerate(claims):
        registry.replace(claim.origin.kind, f"{claim.origin.namespace}/{claim.origin.name}-{number}", [claim])
    for number, rejection in enumerate(rejections):
        registry.replace("Ingress", f"skipped-{number}", [], [rejection, rejection])
    assert list(registry.changes()) is not None
    return registry


def claim(hostname: str, name: str = "web", *, namespace: str = "shop", **more: Any) -> Claim:
    reach = more.pop("reach", Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME)
    return Claim(hostname, reach, Origin("Ingress", name, namespace, more.pop("created", "")), Terms(**more))


def page_of(registry: Registry, path: str, query: Mapping[str, str] | None = None) -> str:
    which = KINDS[path]
    search = parse_search(query or {})
    assert search is not None
    (page,) = _rest_of(format_list(registry, which, search, index_of(registry, which)))
    return str(page)


def rows_of(page: str) -> list[str]:
    return [unescape(re.sub("<[^>]*>", "", one)) for one in re.findall(r'<th scope="row">(.*?)</th>', page)]


def link_of(page: str, rel: str) -> dict[str, str]:
    found = re.search(f'<a rel="{rel}" href="([^"]*)"', page)
    assert found, f"no {rel}"
    fields = unescape(found[1]).partition("?")[2].split("&")
    return dict(one.split("=", 1) for one in fields if one)


def test_names_come_sorted_a_page_at_a_time_there_and_back() -> None:
    registry = registry_of(claim(f"h{number:03}.example.org") for number in reversed(range(SIZE * 2 + 1)))
    first = page_of(registry, "names")
    assert rows_of(first) == [f"h{number:03}.example.org" for number in range(SIZE)]
    assert "Names, 1 to 50 of 101" in first
    second = page_of(registry, "names", link_of(first, "next"))
    last = page_of(registry, "names", link_of(second, "next"))
    assert rows_of(last) == ["h100.example.org"]
    assert 'rel="next"' not in last
    assert rows_of(page_of(registry, "names", link_of(last, "prev"))) == rows_of(second)
    assert link_of(last, "start") == {}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("a.example", ["a.example.org"], id="part of a name"),
        pytest.param("  A.Example  ", ["a.example.org"], id="in any case, with blanks"),
        pytest.param("shop/", ["*.b.example.org", "a.example.org"], id="a namespace"),
        pytest.param("team/API", ["api.example.net"], id="an object"),
        pytest.param("*.", ["*.b.example.org"], id="wildcards"),
        pytest.param("nowhere", [], id="nothing"),
        pytest.param(EVIL, [], id="nonsense"),
        pytest.param("%", [], id="a sign of other search languages"),
    ],
)
def test_a_search_finds_names_and_objects(words: str, expected: list[str]) -> None:
    registry = registry_of(
        [claim("a.example.org"), claim("*.b.example.org"), claim("api.example.net", "api", namespace="team")]
    )
    page = page_of(registry, "names", {"q": words})
    assert rows_of(page) == ([f"{one} (one label)" if one.startswith("*") else one for one in expected])
    assert ("Nothing contains" in page) is (not expected)
    assert "<script>alert" not in page


def test_the_search_goes_with_the_links() -> None:
    registry = registry_of(claim(f"h{number:03}.example.org") for number in range(200))
    page = page_of(registry, "names", {"q": "h1"})
    assert link_of(page, "next") == {"q": "h1", "after": "h149.example.org"}
    assert "of 100 with “h1”" in page


@pytest.mark.parametrize("path", KINDS)
@pytest.mark.parametrize("query", [{}, {"q": "x"}, {"after": "x"}, {"before": "x"}], ids=["", "q", "after", "before"])
def test_an_empty_list_has_a_text(path: str, query: dict[str, str]) -> None:
    page = page_of(registry_of([]), path, query)
    assert 'class="empty"' in page
    assert "<table" not in page


@pytest.mark.parametrize("path", KINDS)
def test_any_place_is_only_compared(path: str) -> None:
    registry = registry_of([claim("a.localhost")], [Rejection(Origin("Ingress", "x"), "bad")])

    def check(name: str, key: str) -> None:
        assert "Find" in page_of(registry, path, {name: key})

    keys = ["\0", "a\0b", "x y", "\ud800", "host NOREACH", "A" * LONGEST_PLACE]
    assert failing(check, ["after", "before"], keys) == []


@pytest.mark.parametrize(
    ("query", "taken"),
    [
        ({"q": "x" * LONGEST_SEARCH}, True),
        ({"q": "x" * (LONGEST_SEARCH + 1)}, False),
        ({"after": "x" * (LONGEST_PLACE + 1)}, False),
        ({"before": "x" * 1_000_000}, False),
        ({"unknown": "x" * 1_000_000}, True),
    ],
    ids=["longest", "too long", "place too long", "megabyte", "a field of others"],
)
def test_a_text_that_is_too_long_is_not_a_search(query: dict[str, str], taken: bool) -> None:
    assert (parse_search(query) is not None) is taken


def test_a_name_shows_its_result() -> None:
    registry = registry_of(
        [
            claim("a.example.org", ingress_class="nginx"),
            claim("a.example.org", "late", created="2026-01-01T00:00:00Z"),
            claim("b.localhost"),
            claim("*.c.example.org", reach=Reach.ONE_LABEL),
            claim("*.c.example.org", "gateway", reach=Reach.ANY_LABELS, addresses=("2001:db8::1",)),
        ]
    )
    page = page_of(registry, "names")
    assert rows_of(page) == [
        "*.c.example.org (one label and one or more labels)",
        "a.example.org",
        "b.localhost",
    ]
    for told in ("answered", "forwarded: localhost names", "192.0.2.10", "2001:db8::1", "nginx", "shop/web"):
        assert told in page


def test_an_excluded_claim_is_shown_with_its_origin_and_reason() -> None:
    registry = registry_of(claim("a.example.org", f"web{number}") for number in range(9))
    page = page_of(registry, "left-out")
    assert rows_of(page) == ["a.example.org"]
    assert "and 3 more" in page
    assert "Ingress shop/web0 has it" in page
    assert rows_of(page_of(registry, "left-out", {"q": "web8"})) == ["a.example.org"]
    assert rows_of(page_of(registry, "left-out", {"q": "web9"})) == []


def test_a_name_that_leads_elsewhere_is_shown_with_the_reason() -> None:
    one = claim("a.example.org")
    registry = registry_of([one, claim("b.example.org")])
    registry.outcomes.set_elsewhere([LedElsewhere("a.example.org", one, ("198.51.100.1",))])
    reason = "its public record leads elsewhere (198.51.100.1): that is left as it is"
    page = page_of(registry, "elsewhere")
    assert rows_of(page) == ["a.example.org"]
    assert ("shop/web" in page, reason in page) == (True, True)
    names = page_of(registry, "names")
    assert (reason in names, names.count("answered")) == (True, 1)
    assert rows_of(page_of(registry, "elsewhere", {"q": "198.51.100.1"})) == ["a.example.org"]
    assert rows_of(page_of(registry, "elsewhere", {"q": "b.example.org"})) == []


def test_a_name_below_a_wildcard_that_leads_elsewhere_is_shown_as_it_was_asked() -> None:
    one = claim("*.example.org")
    registry = registry_of([one])
    registry.outcomes.set_elsewhere([LedElsewhere("mail.example.org", one, ("198.51.100.1",), answered=True)])
    page = page_of(registry, "elsewhere")
    assert rows_of(page) == ["mail.example.org"]
    assert "it is answered all the same" in page
    assert "198.51.100.1" not in page_of(registry, "names")
    registry.outcomes.set_elsewhere([])
    assert rows_of(page_of(registry, "elsewhere")) == []


def test_rejections_are_shown_line_by_line_as_text() -> None:
    origin = Origin("Ingress", EVIL, "shop")
    registry = registry_of([], [Rejection(origin, EVIL), Rejection(Origin("Ingress", "x"), "label", deliberate=True)])
    page = page_of(registry, "skipped")
    assert len(rows_of(page)) == registry.store.rejected_hosts == 4
    assert "<script>alert" not in page
    assert "\\u202e" in page
    assert page.count("it was configured") == 2
    assert len(rows_of(page_of(registry, "skipped", {"q": "LABEL"}))) == 2


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("names", lambda registry: registry.replace("Ingress", "shop/web-0", [])),
        ("left-out", lambda registry: registry.replace("Ingress", "shop/web-0", [])),
        ("skipped", lambda registry: registry.replace("Ingress", "skipped-0", [])),
    ],
)
def test_a_row_that_has_gone_meanwhile_is_none(path: str, gone: Callable[[Registry], None]) -> None:
    registry = registry_of([claim("a.localhost")], [Rejection(Origin("Ingress", "x"), "bad")])
    which: List = KINDS[path]
    search = parse_search({})
    assert search is not None
    steps = format_list(registry, which, search, index_of(registry, which))
    next(steps)
    gone(registry)
    list(registry.changes())
    assert "Find" in "".join(map(str, _rest_of(steps)))


def _rest_of(steps: Any) -> list[object]:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return [done.value]


@pytest.mark.parametrize("changes", [1, 2, 3, 10])
def test_rows_that_change_while_they_are_walked_through_are_walked_through_again(changes: int) -> None:
    registry = registry_of(claim(f"h{number:04}.example.org") for number in range(2_000))
    which, search = KINDS["names"], parse_search({"q": "h1"})
    assert search is not None
    steps = format_list(registry, which, search, index_of(registry, which))
    for number in range(changes):
        next(steps)
        registry.replace("Ingress", f"new-{number}", [claim(f"a{number}.example.org")])
    (page,) = _rest_of(steps)
    assert "Names, 1 to 50 of 1,000" in str(page)


def test_every_list_knows_its_rows_both_ways() -> None:
    registry = registry_of([claim("a.localhost"), claim("b.localhost")], [Rejection(Origin("Ingress", "x"), "bad")])
    for which in LISTS:
        assert list(which.live(registry)) == list(which.copy(registry))


LABELS = st.sampled_from(["a", "b", "ab", "shop", "a-b"])
ORIGINS = st.builds(
    Origin, st.sampled_from(["Ingress", "hosts file"]), LABELS | st.just("/A B:1"), LABELS | st.just("")
)
CLAIMS = st.builds(
    lambda first, label, origin: Claim(
        f"{first}.{label}.example", Reach.ONE_LABEL if first == "*" else Reach.NAME, origin
    ),
    st.sampled_from(["*", "a", "b", "ab"]),
    LABELS,
    ORIGINS,
)


def _is_found(registry: Registry, hostname: str, words: str) -> bool:
    """The definition: in the hostname, the name or the namespace of an object, or its whole origin."""
    origins = [one.origin for one in registry.store.claims_for(hostname)]
    single = not set(" /") & set(words)
    return words in hostname or any(
        words in origin.name or words in origin.namespace
        if single and origin.namespace
        else words in str(origin).lower()
        for origin in origins
    )


@given(
    st.lists(CLAIMS, max_size=8),
    st.lists(st.sampled_from(["a", "b", "*.", ".", "-", "/", " ", "shop", "Ingress", "hosts"]), max_size=4).map(
        "".join
    ),
)
def test_a_search_finds_exactly_what_is_meant_by_it(claims: list[Claim], words: str) -> None:
    registry = registry_of(claims)
    wanted = " ".join(words.split()).lower()
    expected = sorted(one for one in registry.store.names() if _is_found(registry, one, wanted))
    page = page_of(registry, "names", {"q": words})
    assert [row.partition(" ")[0] for row in rows_of(page)] == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | CLAIMS), max_size=30), st.sampled_from(["", "a", "shop/a"]))
def test_after_changes_a_search_finds_the_current_rows(changes: list[tuple[int, Claim | None]], words: str) -> None:
    registry = registry_of([claim("kept.a.example"), claim("b.b.example", "a")])
    which, search = KINDS["names"], parse_search({"q": words})
    assert search is not None
    shared = Shared(
        partial(index_of, registry, which),
        version=partial(which.version, registry),
        changes=partial(which.changes, registry),
    )
    for number, change in [(10, None), *changes]:
        registry.replace("Ingress", str(number), [change] if change else [])
        assert list(registry.changes()) is not None
        (page,) = _rest_of(format_list(registry, which, search, shared.take()))
        expected = sorted(one for one in registry.store.names() if _is_found(registry, one, words))
        assert [row.partition(" ")[0] for row in rows_of(str(page))] == expected
