"""The policy zone gives what the table gives, as a resolver finds it: by RFC 4592, in the zone that dnspython reads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

import dns.message
import dns.name
import dns.rdatatype
import dns.xfr
import dns.zone
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.zone.building import BatchWriter, Zones
from dnsproxy.zone.content import Piece
from dnsproxy.zone.control import FORMAT, Control
from dnsproxy.zone.policy import Wildcards, is_trigger
from dnsproxy.zone.transfer import ZoneVersion, messages, whole
from dnsproxy.zone.zone_records import fits
from tests.kit.messages import parse_host, wire_name

ZONE: Final = names.to_wire("rpz.example.org")
CONTROL: Final = Control(FORMAT, 5)
NO_VERDICT: Final = Verdict(None, (), ())
PASSTHRU: Final = "passthru"
TREE: Final = ("org", "example.org", "a.example.org", "b.a.example.org", "c.b.a.example.org", "d.example.org")
ASKED: Final = tuple(f"{prefix}{name}" for name in TREE for prefix in ("", "q.", "a.", "b.a.", "r.q.", "z.r.q."))
RELAY: Final = "edge/relay"

Given = tuple[str, ...] | str | None
"""Addresses, passthru, or nothing."""


class Policies:
    """A table that changes, and its zones, version by version."""

    def __init__(self, *, never: Sequence[str] = (), wildcards: Wildcards = Wildcards.EXCLUDE) -> None:
        self.writer = TableWriter(ttl=5, never=never)
        self.batches = BatchWriter(ZONE)
        self.zones = Zones(ZONE, wildcards=wildcards)
        self.table = HostTable()

    def put(self, *hosts: Host) -> None:
        for host in hosts:
            self.writer.put(host)
            self.batches.judged(host, NO_VERDICT)

    def publish(self) -> HostTable:
        self.table = self.writer.publish()
        for _ in self.zones.apply(self.batches.seal(self.table, CONTROL)):
            pass
        if self.zones.is_changed:
            self.zones.commit(self.zones.serial + 1)
        return self.table

    def records(self) -> dict[bytes, bytes]:
        content = self.zones.policy
        return {key: content.get(key) or b"" for key in content.keys()}  # noqa: SIM118  # no mapping

    def read(self) -> dns.zone.Zone:
        """The zone as dnspython reads its transfer."""
        pieces = _result(self.zones.policy.pieces())
        version = ZoneVersion(ZONE, self.zones.serial, ttl=5)
        zone = dns.zone.Zone(dns.name.from_text("rpz.example.org"))
        with dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound:
            for body in messages(version, whole(version, pieces), rtype=Type.AXFR, reply=0x8400):
                done = inbound.process_message(dns.message.from_wire(b"\0\0" + body, xfr=True, origin=zone.origin))
        assert done
        return zone


def _result(steps: Generator[None, None, tuple[Piece, ...]]) -> tuple[Piece, ...]:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: tuple[Piece, ...] = done.value
            return found


def look_up(zone: dns.zone.Zone, hostname: str) -> Given:
    """What a resolver gets: the node itself, else the `*` of the closest encloser (RFC 4592 section 3.3.1)."""
    existing = {dns.name.Name(node.labels[start:]) for node in zone for start in range(len(node.labels) + 1)}
    name = dns.name.from_text(hostname, None)
    if name in existing:
        return _policy_of(zone.get_node(name))
    encloser = next(name for start in range(1, len(name) + 1) if (name := _tail(hostname, start)) in existing)
    return _policy_of(zone.get_node(dns.name.Name([b"*", *encloser.labels])))


def _tail(hostname: str, start: int) -> dns.name.Name:
    return dns.name.Name(dns.name.from_text(hostname, None).labels[start:])


def _policy_of(node: dns.node.Node | None) -> Given:
    if node is None or not node.rdatasets:
        return None
    if node.rdatasets[0].rdtype == dns.rdatatype.CNAME:
        assert [rdata.target.to_text() for rdata in node.rdatasets[0]] == ["rpz-passthru."]
        return PASSTHRU
    return tuple(sorted(rdata.address for rdataset in node.rdatasets for rdata in rdataset))


def found_in(table: HostTable, hostname: str) -> Given:
    found = table.find(wire_name(hostname))
    return tuple(sorted(found.addresses)) if found is not None and found.addresses else None


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    reach = draw(st.sampled_from(Reach))
    name = draw(st.sampled_from(TREE))
    addresses = draw(st.sampled_from([(), ("192.0.2.1",), ("192.0.2.2",), ("192.0.2.3", "2001:db8::3")]))
    barred = not addresses and reach is Reach.NAME and draw(st.booleans())
    service = RELAY if addresses and draw(st.integers(0, 3)) == 0 else ""
    return Host(name if reach is Reach.NAME else f"*.{name}", reach, addresses, barred, service)


NEVER: Final = st.lists(st.sampled_from([*TREE, "q.example.org", "b.q.a.example.org"]), max_size=2)
CLOSED: Final = st.lists(st.sampled_from([*TREE, "q.d.example.org"]), max_size=2)
STEP: Final = st.tuples(st.lists(hosts(), max_size=4), CLOSED, st.booleans())


def follow(steps: Sequence[tuple[list[Host], list[str], bool]], never: Sequence[str], mode: Wildcards) -> Policies:
    policies = Policies(never=never, wildcards=mode)
    for changed, closed, dead in steps:
        policies.put(*changed)
        policies.writer.close(closed)
        policies.writer.forward(frozenset([RELAY] if dead else []))
        policies.publish()
    return policies


@given(st.lists(STEP, min_size=1, max_size=4), NEVER, st.sampled_from(Wildcards))
def test_a_resolver_gives_the_tables_addresses_or_leaves_the_name_alone(
    steps: list[tuple[list[Host], list[str], bool]], never: list[str], mode: Wildcards
) -> None:
    """Never other addresses; fewer only at or below a wildcard of one label, which RPZ cannot say."""
    policies = follow(steps, never, mode)
    zone, table = policies.read(), policies.table
    for hostname in ASKED:
        expected, given_there = found_in(table, hostname), look_up(zone, hostname)
        one_label = [
            parent
            for parent in names.ancestors(wire_name(hostname))
            if parent in table.wildcards and table.wildcards[parent].one_label is not None
        ]
        if not isinstance(given_there, tuple):
            event("left alone")
            assert expected is None or (one_label and names.to_wire(hostname) not in table.exact), hostname
        elif mode is Wildcards.EXCLUDE or not one_label:
            assert given_there == expected, hostname
        elif given_there != expected:
            event("widened")
            wider = {table.wildcards[parent].one_label.addresses for parent in one_label}  # type: ignore[union-attr]
            assert expected is None or names.to_wire(hostname) not in table.exact
            assert given_there in {tuple(sorted(addresses)) for addresses in wider}, hostname


@given(st.lists(STEP, min_size=1, max_size=6), NEVER, st.sampled_from(Wildcards))
def test_a_zone_that_followed_changes_is_the_zone_of_the_last_table(
    steps: list[tuple[list[Host], list[str], bool]], never: list[str], mode: Wildcards
) -> None:
    followed = follow(steps, never, mode)
    last: dict[tuple[str, Reach], Host] = {}
    for changed, _, _ in steps:
        last.update({(host.hostname, host.reach): host for host in changed})
    fresh = follow([(list(last.values()), *steps[-1][1:])], never, mode)
    assert followed.records() == fresh.records()
    assert followed.zones.inexpressible == fresh.zones.inexpressible


@pytest.mark.parametrize(
    ("lines", "hostname", "expected"),
    [
        pytest.param(["app.example.org 192.0.2.1"], "app.example.org", ("192.0.2.1",), id="an exact name"),
        pytest.param(["app.example.org 192.0.2.1"], "q.app.example.org", None, id="below it"),
        pytest.param(["app.example.org 192.0.2.1"], "example.org", None, id="above it"),
        pytest.param(["**.example.org 192.0.2.1"], "r.q.example.org", ("192.0.2.1",), id="a wildcard"),
        pytest.param(["**.example.org 192.0.2.1"], "example.org", None, id="a wildcard's own parent"),
        pytest.param(
            ["**.example.org 192.0.2.1", "b.a.example.org 192.0.2.2"],
            "a.example.org",
            ("192.0.2.1",),
            id="an empty node below a wildcard",
        ),
        pytest.param(
            ["**.example.org 192.0.2.1", "a.example.org 192.0.2.2"],
            "q.a.example.org",
            ("192.0.2.1",),
            id="below an exact name that hides the wildcard",
        ),
        pytest.param(["*.example.org 192.0.2.1"], "q.example.org", None, id="a wildcard of one label"),
        pytest.param(
            ["*.a.example.org 192.0.2.1", "**.example.org 192.0.2.2"],
            "q.a.example.org",
            PASSTHRU,
            id="one label, below a wildcard with other addresses",
        ),
        pytest.param(
            ["*.a.example.org 192.0.2.1", "**.a.example.org 192.0.2.2"],
            "q.a.example.org",
            PASSTHRU,
            id="one label, beside a wildcard with other addresses",
        ),
        pytest.param(
            ["*.a.example.org 192.0.2.1", "c.b.a.example.org 192.0.2.2"],
            "b.a.example.org",
            ("192.0.2.1",),
            id="one label, of an empty node: it is a name that can be said",
        ),
    ],
)
def test_each_kind_of_name_has_its_records(lines: list[str], hostname: str, expected: Given) -> None:
    policies = Policies()
    policies.put(*map(parse_host, lines))
    policies.publish()
    assert look_up(policies.read(), hostname) == expected


def test_widened_a_wildcard_of_one_label_covers_any_number() -> None:
    policies = Policies(wildcards=Wildcards.WIDEN)
    policies.put(parse_host("*.example.org 192.0.2.1"))
    policies.publish()
    assert look_up(policies.read(), "r.q.example.org") == ("192.0.2.1",)
    assert policies.zones.inexpressible.one_label == 1


def test_a_name_that_does_not_fit_is_left_out_and_counted() -> None:
    policies = Policies()
    long = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    policies.put(Host(long, Reach.NAME, ("192.0.2.1",)), parse_host("app.example.org 192.0.2.2"))
    policies.publish()
    assert not fits(wire_name(long)[:-1], ZONE)
    assert policies.zones.inexpressible.too_long == 1
    assert look_up(policies.read(), "app.example.org") == ("192.0.2.2",)
    policies.put(Host(long, Reach.NAME, ()))
    policies.publish()
    assert policies.zones.inexpressible.too_long == 0


@pytest.mark.parametrize(
    "name", ["8.0.0.0.10.rpz-client-ip", "32.1.2.0.192.rpz-ip", "32.9.2.0.192.rpz-nsip", "ns.example.rpz-nsdname"]
)
def test_no_name_becomes_a_rule_about_addresses_or_name_servers(name: str) -> None:
    policies = Policies(never=(f"x.{name}",))
    policies.put(parse_host(f"{name} 192.0.2.1"), parse_host(f"*.{name} 192.0.2.1"))
    policies.put(parse_host(f"{name}.example.org 192.0.2.2"))
    policies.publish()
    assert policies.zones.inexpressible.triggers == 1
    assert not [node for node in policies.zones.policy.keys() if is_trigger(node)]  # noqa: SIM118  # no mapping
    assert look_up(policies.read(), f"{name}.example.org") == ("192.0.2.2",)
    policies.put(Host(name, Reach.NAME, ()), Host(f"*.{name}", Reach.ONE_LABEL, ()))
    policies.publish()
    assert policies.zones.inexpressible.triggers == 0
