"""The pages of a DNS server over a real admin port."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dnsproxy.admin.explain import parse_explanation
from dnsproxy.admin.listing import parse_listing
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.static_names import parse_host_flag
from sidecar.admin.asking import ask
from sidecar.values.errors import StartError
from tests.dnsproxy.admin.administering import administered
from tests.kit.serve_inside import get, serving, settings

PAGES = (
    "/",
    "/names",
    "/left-out",
    "/elsewhere",
    "/skipped",
    "/why",
    "/why?name=app.example.org",
    "/history",
    "/queries",
)


async def test_every_page_is_whole_and_knows_where_it_is() -> None:
    async with serving(settings()) as bound:
        for path in PAGES:
            status, page = await get(bound.admin, path)
            assert status == 200
            assert "</html>" in page
            assert page.count('aria-current="page"') == 1
            assert page.count("<h1>") == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/names?q=" + "a" * 256, 400),
        ("/why?name=" + "a" * 1001, 400),
        ("/names?after=" + "a" * 1001, 400),
        ("/names?q=%00%ff%3Cscript%3E", 200),
        ("/why?name=%E2%80%AE%3Cscript%3E", 200),
        ("/names/", 404),
        ("/live?since=%00", 200),
        ("/style.css?q=1", 200),
    ],
)
async def test_whatever_is_asked_is_answered_within_bounds(path: str, status: int) -> None:
    async with serving(settings()) as bound:
        answer = await get(bound.admin, path)
    assert answer[0] == status
    assert "<script>" not in answer[1]


async def test_what_came_from_outside_is_found_as_text(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 x.localhost\n192.0.2.1 <script>\n")
    async with serving(settings(hosts_file=hosts)) as bound:
        assert "x.localhost" in (await get(bound.admin, "/left-out?q=localhost"))[1]
        skipped = (await get(bound.admin, "/skipped"))[1]
    assert "&lt;script&gt;" in skipped
    assert "<script>" not in skipped


async def test_a_large_table_is_searched() -> None:
    hosts = tuple(parse_host_flag(f"h{number}.example.org=192.0.2.1") for number in range(3_000))
    async with serving(settings(hosts=hosts)) as bound:
        assert "1 to 1 of 1" in (await get(bound.admin, "/names?q=h2999."))[1]
        told = json.loads((await get(bound.admin, "/live"))[1])
    assert told["facts"]["names"] == ["3,000", ""]


def registry_of(*hostnames: str) -> Registry:
    registry = Registry(targets=Targets(("192.0.2.10",)), guards=Guards())
    for name in hostnames:
        registry.replace("Ingress", f"shop/{name}", [Claim(name, Reach.NAME, Origin("Ingress", name, "shop"))])
    return registry


async def test_the_table_is_listed_with_what_one_should_know_of_it() -> None:
    notes = ["Ingress is not synced yet"]
    registry = registry_of("a.example.org")
    async with administered(registry, notes=lambda: notes) as endpoint:
        listing = parse_listing(await ask(endpoint, "/table", program="dnsproxy serve"))
        assert ([row.hostname for row in listing.names], listing.notes) == (["a.example.org"], tuple(notes))
        notes.clear()
        registry.replace("Ingress", "shop/a.example.org", [])
        listing = parse_listing(await ask(endpoint, "/table", program="dnsproxy serve"))
        assert (listing.names, listing.notes, listing.ttl) == ((), (), 5)


async def test_a_large_table_arrives_whole() -> None:
    async with administered(registry_of(*(f"h{number}.example.org" for number in range(5000)))) as endpoint:
        assert len(parse_listing(await ask(endpoint, "/table", program="dnsproxy serve")).names) == 5000


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        pytest.param("a.example.org", True, id="in the table"),
        pytest.param("b.example.org", False, id="not in it"),
        pytest.param("a.example.org%00", False, id="with a zero octet"),
        pytest.param("%ff%fe", False, id="no text"),
        pytest.param("a" * 1000, False, id="the longest"),
    ],
)
async def test_any_name_is_explained(name: str, answered: bool) -> None:
    async with administered(registry_of("a.example.org")) as endpoint:
        explanation = parse_explanation(await ask(endpoint, f"/explain?name={name}", program="dnsproxy serve"))
        assert (explanation.answer is not None) is answered


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        pytest.param("", "answers 400: The name is missing", id="no name"),
        pytest.param("?name=", "answers 400: The name is missing", id="an empty name"),
        pytest.param("?name=%20%0a", "answers 400: The name is missing", id="a blank name"),
        pytest.param("?name=" + "a" * 1001, "answers 400: A name has at most 255 octets", id="too long"),
    ],
)
async def test_a_query_without_a_name_is_refused(query: str, complaint: str) -> None:
    async with administered(registry_of()) as endpoint:
        with pytest.raises(StartError, match=complaint):
            await ask(endpoint, f"/explain{query}", program="dnsproxy serve")
