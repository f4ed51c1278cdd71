"""The explanation of a name that a wildcard answers which covers a whole registrable domain."""

from __future__ import annotations

import json

import pytest

from dnsproxy.admin.explain import explain, format_document, format_explanation, parse_explanation
from dnsproxy.admin.pages.explain import format_explanation_page
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.targets import Targets

COVERS = "the wildcard covers the whole domain example.org"


def registry_of(*hostnames: str) -> Registry:
    registry = Registry(targets=Targets(("192.0.2.1",)), guards=Guards())
    for hostname in hostnames:
        reach = Reach.ONE_LABEL if hostname.startswith("*.") else Reach.NAME
        origin = Origin("Ingress", hostname, "shop", "2026-01-01T00:00:00Z")
        registry.replace("Ingress", hostname, [Claim(hostname, reach, origin)])
    list(registry.judgements())
    return registry


@pytest.mark.parametrize("name", ["mail.example.org", "*.example.org"])
def test_it_says_that_the_answering_wildcard_covers_the_whole_domain(name: str) -> None:
    explanation = explain(registry_of("*.example.org"), name, ttl=5)
    assert explanation.wide == "example.org"
    lines = list(format_explanation(explanation))
    assert [line.split(maxsplit=1) for line in lines if "covers the whole" in line] == [["covers", COVERS]]
    assert COVERS in format_explanation_page(explanation)
    assert parse_explanation(format_document(explanation).encode()) == explanation


@pytest.mark.parametrize(
    ("hostnames", "name"),
    [
        pytest.param(["*.apps.example.org"], "a.apps.example.org", id="a wildcard of a part"),
        pytest.param(["*.example.org", "mail.example.org"], "mail.example.org", id="a name of its own"),
        pytest.param(["*.example.org"], "a.b.example.org", id="not below it"),
        pytest.param(["*.example.org"], "not a name", id="no name"),
        pytest.param([], "mail.example.org", id="no wildcard"),
    ],
)
def test_it_does_not_say_so_where_another_row_answers(hostnames: list[str], name: str) -> None:
    explanation = explain(registry_of(*hostnames), name, ttl=5)
    assert explanation.wide == ""
    assert not any("whole domain" in line for line in format_explanation(explanation))


def test_the_document_of_an_older_server_has_no_such_domain() -> None:
    document = json.loads(format_document(explain(registry_of("*.example.org"), "mail.example.org", ttl=5)))
    del document["wide"]
    assert parse_explanation(json.dumps(document).encode()).wide == ""
