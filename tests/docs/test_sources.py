"""The guide's table of sources: a row for each value of `--source`, with what the code reads."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module

import pytest

from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.described.kind import DescribedKind
from dnsproxy.sources.described.table import KINDS
from dnsproxy.sources.names import BUILT_IN, OTHERS
from dnsproxy.sources.settings import SourceOptions
from dnsproxy.sources.source_plans import plan_other
from docs.generated import ROOT
from docs.sources import HEAD, WORDS, format_sources
from sidecar.kubernetes.selector import Selector, parse_annotation_selector
from tests import differential
from tests.differential.differences import Reasons

ROWS = {line.split(" | ")[0].removeprefix("| "): line for line in format_sources().splitlines()[2:]}


def test_each_source_is_a_row_in_the_order_of_the_program() -> None:
    assert list(ROWS) == [*(f"`{name}`" for name in (*BUILT_IN, *OTHERS)), "`crd:PLURAL.GROUP:PATH[,PATH]`"]
    assert {row.strip("| ").count(" | ") for row in ROWS.values()} == {len(HEAD) - 1}


def test_no_source_has_words_that_no_row_shows() -> None:
    assert set(WORDS) == {*BUILT_IN, *OTHERS}


@pytest.mark.parametrize("name", OTHERS)
def test_a_row_names_each_kind_and_version_that_is_followed(name: str) -> None:
    for kind in plan_other(ClaimStore(), SourceOptions(name), most=None).kinds:
        assert f"`{kind.resource}`" in ROWS[f"`{name}`"]
        assert f"({', '.join(kind.versions)})" in ROWS[f"`{name}`"]
        assert not kind.group or f"`{kind.group}`" in ROWS[f"`{name}`"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_a_row_has_the_rule_of_wildcards_and_where_the_project_states_it(kind: DescribedKind) -> None:
    row = ROWS[f"`{kind.source}`"]
    assert kind.rule in row
    assert f"]({kind.link})" in row


def test_the_page_has_the_table_and_a_component_for_each_source() -> None:
    page = (ROOT / "docs" / "pages" / "sources.md").read_text(encoding="utf-8")
    assert "*(make docs writes here: sources)*" in page
    components = {one.name for one in (ROOT / "deploy" / "components").iterdir()}
    assert {f"source-{name}" for name in OTHERS} <= components


def explained() -> list[str]:
    """The sentences that explain why a controller serves other names than we claim."""
    modules = [import_module(f"tests.differential.{one.name}") for one in pkgutil.iter_modules(differential.__path__)]
    reasons = [one for module in modules for one in vars(module).values() if isinstance(one, Reasons)]
    return list(dict.fromkeys(sentence for one in reasons for sentence in one.sentences))


def test_each_difference_from_a_controller_is_explained_to_users() -> None:
    page = " ".join((ROOT / "docs/pages/sources.md").read_text(encoding="utf-8").split())
    assert len(explained()) > 10
    assert [sentence for sentence in explained() if sentence not in page] == []


CONTROLLER = "external-dns.alpha.kubernetes.io/controller"


def documented_selector() -> Selector:
    """That of the page's example for objects of another DNS controller."""
    page = (ROOT / "docs" / "pages" / "sources.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"--annotation-filter '({re.escape(CONTROLLER)}[^']*)'", page)
    return parse_annotation_selector(text)


@pytest.mark.parametrize(
    ("annotations", "counts"),
    [
        pytest.param({}, True, id="absent"),
        pytest.param({"example.org/controller": "none"}, True, id="another annotation"),
        pytest.param({CONTROLLER: "dns-controller"}, True, id="dns-controller"),
        pytest.param({CONTROLLER: "none"}, False, id="none"),
        pytest.param({CONTROLLER: "other-controller"}, False, id="other-controller"),
        pytest.param({CONTROLLER: "unnamed"}, True, id="a value that is not named"),
        pytest.param({CONTROLLER: "None"}, True, id="another case"),
        pytest.param({CONTROLLER: ""}, True, id="empty"),
    ],
)
def test_the_documented_annotation_filter_excludes_the_named_values_alone(
    annotations: Mapping[str, str], counts: bool
) -> None:
    assert documented_selector().matches(annotations) is counts


@pytest.mark.parametrize(
    "text", [f"{CONTROLLER}=dns-controller", f"{CONTROLLER} in (dns-controller)", f"{CONTROLLER} in (dns-controller,)"]
)
def test_no_selector_for_the_right_value_takes_an_object_without_the_annotation(text: str) -> None:
    assert parse_annotation_selector(text).matches({CONTROLLER: "dns-controller"})
    assert not parse_annotation_selector(text).matches({})
