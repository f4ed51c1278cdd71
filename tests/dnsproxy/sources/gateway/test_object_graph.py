"""The indexes of the graph."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.gateway.facts import Facts, read_facts
from dnsproxy.sources.gateway.kinds import GATEWAY, HTTP_ROUTE, LISTENER_SET, Ref
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.gateway.objects import TO_GATEWAY, TO_SET, gateway, listener_set, route

MAIN, EXTRA, APP = Ref(GATEWAY, "infra", "main"), Ref(LISTENER_SET, "web", "extra"), Ref(HTTP_ROUTE, "web", "app")
BROKEN = read_facts(HTTP_ROUTE, Unreadable(ObjectMeta("app", "web"), "broken"))

VERSIONS: dict[Ref, list[Facts | None]] = {
    MAIN: [None, read_facts(GATEWAY, gateway()), read_facts(GATEWAY, gateway(class_name="other"))],
    EXTRA: [
        None,
        read_facts(LISTENER_SET, listener_set()),
        read_facts(LISTENER_SET, listener_set(parent={"name": "other"})),
    ],
    APP: [
        None,
        BROKEN,
        read_facts(HTTP_ROUTE, route("a")),
        read_facts(HTTP_ROUTE, route("a", parents=[TO_SET])),
        read_facts(HTTP_ROUTE, route("a", parents=[TO_SET, TO_GATEWAY, TO_GATEWAY | {"sectionName": "b"}])),
    ],
}

steps = st.sampled_from([MAIN, EXTRA, APP]).flatmap(lambda ref: st.tuples(st.just(ref), st.sampled_from(VERSIONS[ref])))


def contents(graph: ObjectGraph) -> dict[str, set[Ref]]:
    parents = {str(ref): set(graph.children(ref)) for ref in (MAIN, EXTRA, Ref(GATEWAY, "web", "other"))}
    return parents | {name: set(graph.residents(name)) for name in ("web", "infra")}


def test_what_names_a_parent_is_found_from_it() -> None:
    graph = ObjectGraph()
    for ref in (APP, EXTRA, MAIN):
        assert graph.put(ref, VERSIONS[ref][-1])
    assert graph.children(EXTRA) == [APP]
    assert graph.children(MAIN) == [APP]
    assert set(graph.residents("web")) == {APP, EXTRA}
    assert graph.residents("infra") == []


def test_the_same_again_is_no_change() -> None:
    graph = ObjectGraph()
    assert graph.put(MAIN, VERSIONS[MAIN][1])
    assert not graph.put(MAIN, VERSIONS[MAIN][1])
    assert not graph.put(APP, None)
    assert graph.put(MAIN, None)
    assert graph.get(MAIN) is None


def test_labels_of_a_namespace_are_unknown_empty_or_some() -> None:
    graph = ObjectGraph()
    assert graph.labels_of("web") is None
    assert not graph.put_labels("web", None)
    assert graph.put_labels("web", {})
    assert graph.labels_of("web") == {}
    assert graph.put_labels("web", {"a": "b"})
    assert not graph.put_labels("web", {"a": "b"})
    assert graph.put_labels("web", None)
    assert graph.labels_of("web") is None


@given(st.lists(steps))
def test_indexes_are_those_of_the_last_objects_alone(history: list[tuple[Ref, Facts | None]]) -> None:
    travelled, fresh = ObjectGraph(), ObjectGraph()
    for ref, facts in history:
        travelled.put(ref, facts)
    for ref, facts in dict(history).items():
        fresh.put(ref, facts)
    assert contents(travelled) == contents(fresh)


@given(st.lists(steps))
def test_nothing_is_left_when_all_is_gone(history: list[tuple[Ref, Facts | None]]) -> None:
    graph = ObjectGraph()
    for ref, facts in history:
        graph.put(ref, facts)
    for ref in VERSIONS:
        graph.put(ref, None)
    assert graph.is_empty()
