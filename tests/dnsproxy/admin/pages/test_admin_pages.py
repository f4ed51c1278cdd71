"""`/table` and `/explain` on the admin port of a server, over a real connection."""

from __future__ import annotations

import pytest

from dnsproxy.admin.explain import parse_explanation
from dnsproxy.admin.listing import parse_listing
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets
from sidecar.asking import ask
from sidecar.errors import StartError
from tests.dnsproxy.admin.administering import administered


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
        pytest.param("", "answers 400: Say which name", id="no name"),
        pytest.param("?name=", "answers 400: Say which name", id="an empty name"),
        pytest.param("?name=%20%0a", "answers 400: Say which name", id="a blank name"),
        pytest.param("?name=" + "a" * 1001, "answers 400: A name has at most 255 octets", id="too long"),
    ],
)
async def test_a_query_without_a_name_is_refused(query: str, complaint: str) -> None:
    async with administered(registry_of()) as endpoint:
        with pytest.raises(StartError, match=complaint):
            await ask(endpoint, f"/explain{query}", program="dnsproxy serve")
