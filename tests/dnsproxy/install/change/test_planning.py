"""What is planned for every cluster of the corpus, and what is refused."""

from __future__ import annotations

import pytest

from dnsproxy.install.change.edits import format_diffs
from dnsproxy.install.discover.choice import Method, choose_method
from dnsproxy.install.discover.traces import find_traces
from tests.dnsproxy.install.change.playing import plan, plan_out, play, where_of, without_versions
from tests.dnsproxy.install.discover.cluster import NAMES, discover, manifests

WAYS = [
    pytest.param(name, method, id=f"{name}-{method.value}")
    for name in NAMES
    for method in (Method.IMPORT, Method.COREFILE, Method.STUB_DOMAINS)
    if choose_method(discover(manifests(name), where_of(name)), method).method is method
]


def test_every_method_is_among_the_ways() -> None:
    assert {str(way.values[1]) for way in WAYS} == {"Method.IMPORT", "Method.COREFILE", "Method.STUB_DOMAINS"}
    assert len(WAYS) >= len(NAMES)


@pytest.mark.parametrize(("name", "method"), WAYS)
def test_an_install_is_found_is_the_same_twice_and_goes_without_a_trace(name: str, method: Method) -> None:
    before = manifests(name)
    where = where_of(name)
    edits = plan(before, method=method, where=where)
    assert edits.changed
    assert edits.method is method
    there = play(before, edits)
    (trace,) = find_traces(discover(there, where))
    assert (trace.method, trace.fault) == (method, "")
    assert {zone.rstrip(".") for zone in trace.zones} == {zone.rstrip(".") for zone in edits.zones}
    again = plan(there, method=method, where=where)
    assert not again.changed, format_diffs(again)
    out = plan_out(there, where)
    assert out.refusals == ()
    assert without_versions(play(there, out)) == without_versions(before)
    assert not plan_out(before, where).changed
