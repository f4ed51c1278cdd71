"""The judge of Envoy's tables against rows by hand: a judge that is always content would find no difference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.envoy_tables import best_match, read_tables


def chain(*server_names: str, table: str | None = "web") -> dict[str, Any]:
    config = {"rds": {"route_config_name": table}} if table is not None else {"cluster": "backend"}
    match = {"filter_chain_match": {"server_names": list(server_names)}} if server_names else {}
    return {**match, "filters": [{"typed_config": config}]}


def table(*domains: str, routes: Any = ({"match": {"prefix": "/"}},), name: str = "web") -> dict[str, Any]:
    return {"name": name, "virtual_hosts": [{"domains": [domain], "routes": list(routes)} for domain in domains]}


def route_for(pattern: str) -> dict[str, Any]:
    return {"match": {"headers": [{"name": ":authority", "string_match": {"safe_regex": {"regex": pattern}}}]}}


@pytest.mark.parametrize(
    ("domains", "name", "expected"),
    [
        pytest.param(["a.example", "*.example", "*"], "a.example", "a.example", id="the name itself"),
        pytest.param(["*.example", "*.a.example", "*"], "b.a.example", "*.a.example", id="the longest wildcard"),
        pytest.param(["*.a.example", "*"], "a.example", "*", id="a wildcard is not its base"),
        pytest.param(["*.a.example"], "c.b.a.example", "*.a.example", id="a wildcard has any number of labels"),
        pytest.param(["*.a.example"], "ba.example", None, id="a wildcard ends at a dot"),
        pytest.param([], "a.example", None, id="nothing"),
    ],
)
def test_the_most_specific_domain_is_taken(domains: list[str], name: str, expected: str | None) -> None:
    assert best_match(domains, name) == expected


@pytest.mark.parametrize(
    ("chains", "tables", "is_served"),
    [
        pytest.param([chain()], [table("a.example")], True, id="by a virtual host"),
        pytest.param([chain()], [table("*.example")], True, id="by a wildcard"),
        pytest.param([chain()], [table("*")], False, id="as every name"),
        pytest.param([chain()], [table("b.example")], False, id="another name"),
        pytest.param([chain()], [table("a.example", routes=())], False, id="without a route"),
        pytest.param([chain()], [], False, id="without a table"),
        pytest.param([chain()], [table("a.example", name="other")], False, id="in a table that no listener has"),
        pytest.param([], [table("a.example")], False, id="without a listener"),
        pytest.param([chain(table=None)], [], False, id="every connection to one backend"),
        pytest.param([chain("a.example", table=None)], [], True, id="by its server name"),
        pytest.param([chain("a.example")], [table("*")], True, id="by its server name, to every virtual host"),
        pytest.param([chain("a.example", table="none"), chain()], [table("a.example")], False, id="narrower elsewhere"),
        pytest.param([chain("b.example")], [table("a.example")], False, id="by another server name"),
        pytest.param([chain(), chain(table=None)], [table("a.example")], True, id="before the default chain"),
        pytest.param([chain()], [table("*.example", routes=[route_for("[a-z]+.example")])], True, id="pattern"),
        pytest.param([chain()], [table("*.example", routes=[route_for("b.example")])], False, id="another pattern"),
    ],
)
def test_a_name_is_served(chains: list[Any], tables: list[Any], *, is_served: bool) -> None:
    assert read_tables([{"filter_chains": chains}], tables).serves("a.example") is is_served
