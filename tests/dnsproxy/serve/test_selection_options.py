"""The flags that select objects, from the command line to the settings of the cluster."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from dnsproxy.cli import main
from dnsproxy.serve import command
from dnsproxy.serve.settings import ServeSettings
from dnsproxy.sources.selection import ALL, Selection
from sidecar.kubernetes.selector import parse_annotation_selector, parse_selector

UPSTREAM = ("--upstream", "192.0.2.53")
CLUSTER = (*UPSTREAM, "--source", "ingress", "--target", "192.0.2.20")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """The settings that the command would have run with."""
    made: list[ServeSettings] = []

    def run(_: object, settings: ServeSettings, __: object, **_more: object) -> None:
        made.append(settings)

    monkeypatch.setattr(command, "run_program", run)
    return made


def invoke(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(main, ["serve", *arguments], env=environment)


def selection(made: list[ServeSettings]) -> Selection:
    (settings,) = made
    assert settings.cluster is not None
    return settings.cluster.selection


def test_without_the_flags_every_object_counts(made: list[ServeSettings]) -> None:
    assert invoke(*CLUSTER).exit_code == 0
    assert selection(made) == ALL


def test_the_flags_become_a_selection(made: list[ServeSettings]) -> None:
    result = invoke(
        *CLUSTER,
        *("--namespace", "shop", "--namespace", "blog", "--namespace", "shop"),
        *("--label-selector", "team in (web, api), !internal"),
        *("--annotation-filter", "kubernetes.io/ingress.class=a/b"),
    )
    assert result.exit_code == 0, result.output
    labels = parse_selector("team in (web,api),!internal")
    annotations = parse_annotation_selector("kubernetes.io/ingress.class=a/b")
    assert selection(made) == Selection(("shop", "blog"), labels, annotations)


def test_variables_do_too(made: list[ServeSettings]) -> None:
    variables = {
        "DNSPROXY_NAMESPACE": "shop blog",
        "DNSPROXY_LABEL_SELECTOR": "team in (web, api)",
        "DNSPROXY_ANNOTATION_FILTER": "a = b",
    }
    assert invoke(*CLUSTER, **variables).exit_code == 0
    assert selection(made).snapshot_settings() == {
        "namespaces": "blog,shop",
        "label selector": "team in (api,web)",
        "annotation filter": "a=b",
    }


def test_empty_selectors_select_everything(made: list[ServeSettings]) -> None:
    assert invoke(*CLUSTER, "--label-selector", " ", "--annotation-filter", "").exit_code == 0
    assert selection(made) == ALL


@pytest.mark.parametrize(
    ("flag", "value", "complaint"),
    [
        pytest.param("--namespace", "Shop", "--namespace: 'Shop' is not the name of a namespace", id="capitals"),
        pytest.param("--namespace", "a/../b", "--namespace: 'a/../b' is not the name", id="a path"),
        pytest.param("--namespace", "", "--namespace: '' is not the name", id="no name"),
        pytest.param("--label-selector", "team web", "--label-selector: one of = == != in notin", id="no operator"),
        pytest.param("--label-selector", "team>1", "--label-selector: one of = == != in notin", id="greater"),
        pytest.param("--label-selector", "team=a/b", "--label-selector: 'a/b' is not the value", id="a bad value"),
        pytest.param("--label-selector", "team\n=\nx,", "--label-selector: a key is missing", id="several lines"),
        pytest.param("--annotation-filter", "a in (b", "--annotation-filter: a comma or ) is missing", id="open"),
        pytest.param("--annotation-filter", "a//b", "--annotation-filter: 'a//b' is not the key", id="a bad key"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_flag(flag: str, value: str, complaint: str) -> None:
    result = invoke(*CLUSTER, flag, value)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("flag", ["--namespace", "--label-selector", "--annotation-filter"])
@pytest.mark.parametrize(
    "sources",
    [
        pytest.param((), id="static names"),
        pytest.param(("--source", "rpz:example.org@192.0.2.1:53"), id="the table of another dnsproxy"),
    ],
)
def test_they_are_refused_where_no_objects_are_read(flag: str, sources: tuple[str, ...]) -> None:
    result = invoke(*UPSTREAM, *sources, flag, "shop")
    assert result.exit_code == 2
    assert f"{flag} is for objects of a cluster, and no --source names any" in result.stderr
