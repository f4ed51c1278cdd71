"""The table forwards the names of a Service that is not ready, in no time, and still hides the wildcards above them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.admin.publication import names_of
from dnsproxy.answers.decide import Answer, Forward, decide
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from tests.kit import messages

RELAY, OTHER = "switchback/relay", "edge/other"
MX = 15
HOSTS = (
    Host("app.example.org", Reach.NAME, ("10.96.0.1",), service=RELAY),
    Host("fixed.example.org", Reach.NAME, ("10.96.0.1",)),
    Host("inner.example.org", Reach.NAME, ("10.96.0.2",), service=OTHER),
    Host("*.shop.example.org", Reach.ONE_LABEL, ("10.96.0.1",), service=RELAY),
    Host("*.shop.example.org", Reach.ANY_LABELS, ("10.96.0.2",), service=OTHER),
    Host("*.example.org", Reach.ANY_LABELS, ("10.96.0.2",), service=OTHER),
)


def written(*unready: str) -> HostTable:
    writer = TableWriter(ttl=5)
    for host in HOSTS:
        writer.put(host)
    writer.forward(frozenset(unready))
    return writer.publish()


def is_answered(table: HostTable, name: str, rtype: int = Type.A) -> bool:
    query = messages.query(name, rtype)
    outcome = decide(query, table, stream=False)
    replies, undecided = QuickAnswers(table).answer([query[2:]])
    assert (replies[0] is not None) <= isinstance(outcome, Answer)
    assert bool(undecided) is (replies[0] is None)
    return isinstance(outcome, Answer)


@pytest.mark.parametrize(
    ("name", "forwarded"),
    [
        pytest.param("app.example.org", True, id="an exact name, although a wildcard of another Service is above"),
        pytest.param("fixed.example.org", False, id="the same address, but nobody's"),
        pytest.param("inner.example.org", False, id="another Service"),
        pytest.param("x.shop.example.org", True, id="a wildcard, although one of another Service is beside it"),
        pytest.param("y.x.shop.example.org", False, id="below a wildcard of one label"),
        pytest.param("x.example.org", False, id="the wildcard above"),
    ],
)
def test_its_names_are_forwarded_and_no_others(name: str, forwarded: bool) -> None:
    for rtype in (Type.A, Type.AAAA, Type.HTTPS, Type.ANY):
        assert is_answered(written(), name, rtype)
        assert is_answered(written(RELAY), name, rtype) is not forwarded
        assert is_answered(written("gone/gone"), name, rtype)


@pytest.mark.parametrize("rtype", [Type.A, MX])
def test_a_forwarded_name_is_as_one_that_is_not_there(rtype: int) -> None:
    """NXDOMAIN of the public DNS passes: before, it did."""
    outcome = decide(messages.query("app.example.org", rtype), written(RELAY), stream=False)
    assert isinstance(outcome, Forward)
    assert not outcome.shields


def test_it_is_counted_and_published_only_while_it_is_ready() -> None:
    assert len(written()) == len(HOSTS)
    assert len(written(RELAY)) == len(HOSTS) - 2
    assert len(written(RELAY, OTHER)) == 1
    assert [name.hostname for name in names_of(written(RELAY, OTHER))] == ["fixed.example.org"]
    assert {(one.hostname, one.reach) for one in HOSTS if one.service != RELAY} == {
        (name.hostname, name.reach) for name in names_of(written(RELAY))
    }


def test_what_was_published_stays_as_it_was() -> None:
    writer = TableWriter(ttl=5)
    for host in HOSTS:
        writer.put(host)
    before = writer.publish()
    assert writer.forward(frozenset([RELAY]))
    after = writer.publish()
    assert is_answered(before, "app.example.org")
    assert not is_answered(after, "app.example.org")
    assert not writer.forward(frozenset([RELAY]))
    assert writer.publish() is after
    assert writer.forward(frozenset())
    assert is_answered(writer.publish(), "app.example.org")


def test_it_is_set_between_two_changes() -> None:
    """A swap of many names takes seconds; a relay that dies meanwhile is not waited for."""
    writer = TableWriter(ttl=5)
    writer.put(HOSTS[0])
    writer.forward(frozenset([RELAY]))
    between = writer.publish()
    writer.put(HOSTS[2])
    assert not is_answered(between, "app.example.org")
    assert not is_answered(between, "inner.example.org")
    assert is_answered(writer.publish(), "inner.example.org")
    assert not is_answered(writer.publish(), "app.example.org")


STEPS = st.one_of(st.sampled_from(HOSTS), st.frozensets(st.sampled_from([RELAY, OTHER])))


@given(st.lists(STEPS, max_size=12))
def test_the_number_of_names_is_right_after_any_steps(steps: list[Host | frozenset[str]]) -> None:
    writer = TableWriter(ttl=5)
    rows: dict[tuple[str, Reach], Host] = {}
    unready: frozenset[str] = frozenset()
    for step in steps:
        if isinstance(step, Host):
            gone = (step.hostname, step.reach) in rows
            writer.put(Host(step.hostname, step.reach, ()) if gone else step)
            if gone:
                del rows[step.hostname, step.reach]
            else:
                rows[step.hostname, step.reach] = step
        else:
            writer.forward(unready := step)
        table = writer.publish()
        assert len(table) == sum(one.service not in unready for one in rows.values()) == len(list(names_of(table)))
