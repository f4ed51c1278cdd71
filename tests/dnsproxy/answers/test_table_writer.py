"""The table writer: a table has all hosts, removed hosts leave nothing, and a published table never changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import Rows, TableWriter
from dnsproxy.dns.names import Reach, ancestors, to_wire
from dnsproxy.replace.balancers import Balancers
from dnsproxy.workers.feed import FeedWriter
from tests.kit.messages import addresses_of, parse_host, table_of, wire_name

Contents = tuple[dict[bytes, tuple[str, ...]], dict[tuple[bytes, Reach], tuple[str, ...]], dict[bytes, int]]

NAMES = ("example.org", "app.example.org", "x.app.example.org", "org", "example.net")


def contents(table: HostTable) -> Contents:
    """The content of a table, for comparison."""
    exact = {name: answers.addresses for name, answers in table.exact.items()}
    wildcards = {}
    for name, (one_label, any_labels) in table.wildcards.items():
        if one_label is not None:
            wildcards[name, Reach.ONE_LABEL] = one_label.addresses
        if any_labels is not None:
            wildcards[name, Reach.ANY_LABELS] = any_labels.addresses
    return exact, wildcards, dict(table.above)


def write(hosts: Sequence[Host]) -> HostTable:
    writer = TableWriter(ttl=5)
    for host in hosts:
        writer.put(host)
    return writer.publish()


@st.composite
def any_hosts(draw: st.DrawFn) -> Host:
    reach = draw(st.sampled_from(Reach))
    name = draw(st.sampled_from(NAMES))
    addresses = draw(st.sampled_from([(), ("192.0.2.1",), ("192.0.2.2", "2001:db8::2")]))
    return Host(name if reach is Reach.NAME else f"*.{name}", reach, addresses)


@given(st.lists(any_hosts(), max_size=30))
def test_a_table_depends_on_the_last_state_of_each_host_alone(hosts: list[Host]) -> None:
    last = {(host.hostname, host.reach): host for host in hosts}
    wanted = [host for host in last.values() if host.addresses]
    assert contents(write(hosts)) == contents(write(wanted)) == contents(write(wanted[::-1]))


@given(st.lists(any_hosts(), max_size=30))
def test_above_counts_the_rows_below_each_ancestor(hosts: list[Host]) -> None:
    table = write(hosts)
    expected: dict[bytes, int] = {}
    below = [above for name in table.exact for above in ancestors(name)]
    below += [above for name in table.wildcards for above in (name, *ancestors(name))]
    for name in below:
        expected[name] = expected.get(name, 0) + 1
    assert table.above == expected


@given(st.lists(any_hosts(), max_size=30))
def test_taking_all_out_leaves_nothing(hosts: list[Host]) -> None:
    gone = [Host(host.hostname, host.reach, ()) for host in hosts]
    assert contents(write([*hosts, *gone])) == ({}, {}, {})


@given(st.lists(any_hosts(), max_size=10), st.lists(any_hosts(), max_size=10))
def test_what_is_published_never_changes(before: list[Host], after: list[Host]) -> None:
    writer = TableWriter(ttl=5)
    for host in before:
        writer.put(host)
    table = writer.publish()
    kept = contents(table)
    for host in after:
        writer.put(host)
    assert contents(table) == kept


@given(st.lists(st.tuples(st.lists(any_hosts(), max_size=4), st.booleans()), max_size=20))
def test_tables_that_come_and_go_are_what_was_put_and_those_that_stay_do_not_change(
    rounds: list[tuple[list[Host], bool]],
) -> None:
    writer = TableWriter(ttl=5)
    put = [Host(f"h{number}.example.org", Reach.NAME, ("192.0.2.1",)) for number in range(50)]
    kept = []
    for host in put:
        writer.put(host)
    for hosts, is_kept in rounds:
        for host in hosts:
            writer.put(host)
        put += hosts
        table = writer.publish()
        assert contents(table) == contents(write(put))
        if is_kept:
            kept.append((table, contents(table)))
        assert all(contents(table) == before for table, before in kept)


def test_a_table_without_changes_is_the_last_one() -> None:
    writer = TableWriter(ttl=5)
    table = writer.publish()
    assert writer.publish() is table
    writer.open()
    assert writer.publish() == table


def test_a_table_without_references_gives_its_rows_to_the_next_but_one() -> None:
    """It saves copying 100,000 rows for each change."""
    writer = TableWriter(ttl=5)
    for number in range(50):
        writer.put(parse_host(f"h{number}.example.org 192.0.2.1"))

    def publish(number: int) -> int:
        writer.put(parse_host(f"h{number}.example.org 192.0.2.{number + 2}"))
        return id(writer.publish().exact)

    assert len({publish(number) for number in range(20)}) == 2


def test_taking_out_what_was_never_there_changes_nothing() -> None:
    assert contents(table_of("app.example.org", "*.example.org", "**.example.org")) == ({}, {}, {})


def test_one_kind_of_wildcard_goes_and_the_other_stays() -> None:
    table = table_of("*.example.org 192.0.2.1", "**.example.org 192.0.2.2", "*.example.org")
    assert addresses_of(table, "a.example.org") == ("192.0.2.2",)
    assert table.above == {to_wire("example.org"): 1, to_wire("org"): 1, to_wire(""): 1}


def test_names_with_the_same_addresses_share_one_answer() -> None:
    table = table_of("a.example.org 192.0.2.1", "b.example.org 192.0.2.1", "c.example.org 192.0.2.2")
    assert table.exact[wire_name("a.example.org")] is table.exact[wire_name("b.example.org")]
    assert table.exact[wire_name("a.example.org")] is not table.exact[wire_name("c.example.org")]


@given(st.lists(any_hosts(), max_size=30))
def test_answers_that_no_name_has_any_more_are_forgotten(hosts: list[Host]) -> None:
    writer = TableWriter(ttl=5)
    for host in hosts:
        writer.put(host)
    exact, wildcards, _ = contents(writer.publish())
    used = {(addresses, "", Claimed.NO) for addresses in (*exact.values(), *wildcards.values())}
    assert set(writer._shared) == set(writer._uses) == used


@given(st.lists(any_hosts(), max_size=30), st.booleans())
def test_each_row_that_is_put_gives_back_the_addresses_that_it_had(hosts: list[Host], feeding: bool) -> None:
    writer = FeedWriter(ttl=5, send=lambda _: None) if feeding else TableWriter(ttl=5)
    model: dict[tuple[str, Reach], tuple[str, ...]] = {}
    for host in hosts:
        row = host.hostname, host.reach
        assert writer.addresses_of(host) == model.get(row, ())
        assert writer.put(host) == model.get(row, ())
        model[row] = host.addresses


def test_a_denied_wildcard_is_no_denied_name() -> None:
    table = table_of("**.example.org 192.0.2.1", never=("*.dev.example.org", "intern.example.org"))
    assert set(table.never) == {wire_name("intern.example.org")}
    assert addresses_of(table, "dev.example.org") == ("192.0.2.1",)


def test_closing_a_zone_makes_a_new_table_and_leaves_the_published_one() -> None:
    writer = TableWriter(ttl=5)
    writer.put(Host("*.example.org", Reach.ANY_LABELS, ("192.0.2.1",)))
    before = writer.publish()
    writer.close(["eu.example.org"])
    after = writer.publish()
    assert addresses_of(before, "a.eu.example.org") == ("192.0.2.1",)
    assert addresses_of(after, "a.eu.example.org") is None
    writer.close(["eu.example.org"])
    assert writer.publish() is after


def test_names_in_which_public_dns_has_another_say_share_no_answer() -> None:
    writer = TableWriter(ttl=5)
    for name, claimed in (("a", Claimed.NO), ("b", Claimed.VERIFIED), ("c", Claimed.VERIFIED)):
        writer.put(Host(f"{name}.example.org", Reach.NAME, ("192.0.2.1",), claimed=claimed))
    a, b, c = (writer.publish().exact[wire_name(f"{name}.example.org")] for name in "abc")
    assert (a.claimed, b.claimed, b is c) == (Claimed.NO, Claimed.VERIFIED, True)
    writer.put(Host("b.example.org", Reach.NAME, ("192.0.2.1",)))
    assert writer.publish().exact[wire_name("b.example.org")] is a


def test_other_load_balancers_make_a_new_table_and_leave_the_published_one() -> None:
    writer = TableWriter(ttl=300)
    before = writer.publish()
    lead = Balancers({"203.0.113.10": ("10.96.7.7",)})
    assert writer.lead(lead)
    after = writer.publish()
    assert (before.leads.balancers, after.leads.balancers) == (Balancers(), lead)
    assert (before.leads.search, after.ttl) == (None, 300)
    assert not writer.lead(Balancers({"203.0.113.10": ("10.96.7.7",)}))
    assert writer.publish() is after


def test_the_ttl_is_the_writers() -> None:
    one, other = (
        table_of("app.example.org 192.0.2.1", ttl=ttl).exact[wire_name("app.example.org")] for ttl in (5, 300)
    )
    assert one.by_type[1].octets[6:10] == (5).to_bytes(4, "big")
    assert other.by_type[1].octets[6:10] == (300).to_bytes(4, "big")


# --- rows ---

KEYS = [bytes([number]) for number in range(30)]
PutList = list[tuple[bytes, int | None]]
PUTS = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 3)), max_size=6)


@given(st.lists(st.tuples(PUTS, st.booleans()), max_size=20))
def test_rows_hold_what_was_put_and_never_change_while_in_use(rounds: list[tuple[PutList, bool]]) -> None:
    """Some of the dicts that are handed out are kept, others are dropped before the next."""
    rows: Rows[int] = Rows()
    expected: dict[bytes, int] = {}
    kept: list[tuple[Mapping[bytes, int], dict[bytes, int]]] = []
    free = True
    for key in KEYS:
        rows.put(key, 9)
        expected[key] = 9
    for puts, is_kept in rounds:
        for key, value in puts:
            rows.put(key, value)
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        out = rows.hand_out()
        assert (out, len(rows), rows.get(KEYS[0])) == (expected, len(expected), expected.get(KEYS[0]))
        if is_kept:
            kept.append((out, dict(out)))
        rows.go_on(free=free)
        free = not is_kept
        assert all(out == before for out, before in kept)


@pytest.mark.parametrize(
    ("changed", "free", "again"),
    [
        pytest.param(1, True, True, id="no longer in use"),
        pytest.param(1, False, False, id="in use"),
        pytest.param(30, True, False, id="nearly all has changed"),
    ],
)
def test_rows_that_are_no_longer_in_use_are_handed_out_again(changed: int, free: bool, again: bool) -> None:
    rows: Rows[int] = Rows()
    for key in KEYS:
        rows.put(key, 9)
    first = rows.hand_out()
    rows.go_on(free=True)
    for key in KEYS[:changed]:
        rows.put(key, 1)
    second = rows.hand_out()
    rows.go_on(free=free)
    third = rows.hand_out()
    assert third is not second
    assert third == second
    assert (third is first) is again


def test_a_value_that_is_none_is_no_row() -> None:
    rows: Rows[int] = Rows()
    rows.put(b"a", None)
    assert (len(rows), rows.get(b"a"), rows.hand_out()) == (0, None, {})
