"""The policy zone gives what the table gives, as a resolver finds it: by RFC 4592, in the zone that dnspython reads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import dns.message
import dns.name
import dns.rdatatype
import dns.xfr
import dns.zone
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.dns.wire import Type
from dnsproxy.hostnames.verdict import Verdict
from dnsproxy.replace.balancers import NO_BALANCERS, Balancers
from dnsproxy.zone.building import BatchWriter, Zones
from dnsproxy.zone.control import FORMAT, Control
from dnsproxy.zone.policy import Triggers, Wildcards, is_trigger
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

T = TypeVar("T")
Given = tuple[str, ...] | str | None
"""Addresses, passthru, or nothing."""


class Policies:
    """A table that changes, and its zones, version by version."""

    def __init__(
        self,
        *,
        never: Sequence[str] = (),
        wildcards: Wildcards = Wildcards.EXCLUDE,
        triggers: Triggers = Triggers.ADDRESSES,
    ) -> None:
        self.writer = TableWriter(ttl=5, never=never)
        self.batches = BatchWriter(ZONE)
        self.triggers = triggers
        self.zones = Zones(ZONE, wildcards=wildcards, triggers=triggers)
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
        pieces = result_of(self.zones.policy.pieces())
        version = ZoneVersion(ZONE, self.zones.serial, ttl=5)
        zone = dns.zone.Zone(dns.name.from_text("rpz.example.org"))
        with dns.xfr.Inbound(zone, dns.rdatatype.AXFR) as inbound:
            for body in messages(version, whole(version, pieces), rtype=Type.AXFR, reply=0x8400):
                done = inbound.process_message(dns.message.from_wire(b"\0\0" + body, xfr=True, origin=zone.origin))
        assert done
        return zone


def result_of(steps: Generator[None, None, T]) -> T:
    """What a generator of steps returns."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
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


def is_asked(policies: Policies, hostname: str) -> bool:
    """Whether the table answers a name by what public DNS says of it, and the zone leaves that to the resolver."""
    found = policies.table.find(wire_name(hostname))
    return found is not None and hides(policies, found)


def hides(policies: Policies, row: Answers) -> bool:
    """Whether the zone has not the addresses of a row, because it depends on public DNS."""
    return policies.triggers is Triggers.ADDRESSES and row.claimed >= Claimed.VERIFIED


def found_in(policies: Policies, hostname: str) -> Given:
    found = policies.table.find(wire_name(hostname))
    known = found is not None and found.addresses and not is_asked(policies, hostname)
    return tuple(sorted(found.addresses)) if found is not None and known else None


def is_covered(policies: Policies, hostname: str) -> bool:
    """Whether the zone has the addresses of a wildcard above a name, of the table or widened."""
    above = (policies.table.wildcards.get(parent) for parent in names.ancestors(wire_name(hostname)))
    rows = (row for pair in above if pair is not None for row in pair if row is not None)
    return any(not hides(policies, row) for row in rows)


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    reach = draw(st.sampled_from(Reach))
    name = draw(st.sampled_from(TREE))
    addresses = draw(st.sampled_from([(), ("192.0.2.1",), ("192.0.2.2",), ("192.0.2.3", "2001:db8::3")]))
    barred = not addresses and reach is Reach.NAME and draw(st.booleans())
    service = RELAY if addresses and draw(st.integers(0, 3)) == 0 else ""
    claimed = draw(st.sampled_from(Claimed)) if addresses else Claimed.NO
    return Host(name if reach is Reach.NAME else f"*.{name}", reach, addresses, barred, service, claimed)


NEVER: Final = st.lists(st.sampled_from([*TREE, "q.example.org", "b.q.a.example.org"]), max_size=2)
CLOSED: Final = st.lists(st.sampled_from([*TREE, "q.d.example.org"]), max_size=2)
BALANCERS: Final = st.sampled_from(
    [
        NO_BALANCERS,
        Balancers({"203.0.113.10": ("192.0.2.7",)}),
        Balancers({"203.0.113.10": ("192.0.2.8",), "2001:db8::10": ("192.0.2.8",)}, {"203.0.113.11": ("192.0.2.9",)}),
        Balancers({}, {"203.0.113.10": ("192.0.2.9", "2001:db8::9"), "198.51.100.0/24": ()}),
    ]
)
STEP: Final = st.tuples(st.lists(hosts(), max_size=4), CLOSED, st.booleans(), BALANCERS)
Step = tuple[list[Host], list[str], bool, Balancers]


def follow(steps: Sequence[Step], never: Sequence[str], mode: Wildcards, triggers: Triggers) -> Policies:
    policies = Policies(never=never, wildcards=mode, triggers=triggers)
    for changed, closed, dead, balancers in steps:
        policies.put(*changed)
        policies.writer.close(closed)
        policies.writer.forward(frozenset([RELAY] if dead else []))
        policies.writer.lead(balancers)
        policies.publish()
    return policies


@given(st.lists(STEP, min_size=1, max_size=4), NEVER, st.sampled_from(Wildcards), st.sampled_from(Triggers))
def test_a_resolver_gives_the_tables_addresses_or_leaves_the_name_alone(
    steps: list[Step], never: list[str], mode: Wildcards, triggers: Triggers
) -> None:
    """Never other addresses; fewer only at or below a wildcard of one label, which RPZ cannot say.

    A name that depends on public DNS has none, and is let pass only below a wildcard: triggers of addresses are not
    looked at for a name that is let pass.
    """
    policies = follow(steps, never, mode, triggers)
    zone, table = policies.read(), policies.table
    for hostname in ASKED:
        expected, given_there = found_in(policies, hostname), look_up(zone, hostname)
        is_exact = names.to_wire(hostname) in table.exact
        if is_asked(policies, hostname) and (is_exact or mode is Wildcards.EXCLUDE):
            event("asked for")
            assert given_there in (None, PASSTHRU), hostname
        if given_there is PASSTHRU:
            assert is_covered(policies, hostname), hostname
        one_label = [
            parent
            for parent in names.ancestors(wire_name(hostname))
            if parent in table.wildcards and table.wildcards[parent].one_label is not None
        ]
        if not isinstance(given_there, tuple):
            event("left alone")
            assert expected is None or (one_label and not is_exact), hostname
        elif mode is Wildcards.EXCLUDE or not one_label:
            assert given_there == expected, hostname
        elif given_there != expected:
            event("widened")
            wider = [table.wildcards[parent].one_label for parent in one_label]
            assert expected is None or not is_exact
            assert given_there in {
                tuple(sorted(row.addresses)) for row in wider if row is not None and not hides(policies, row)
            }, hostname


@given(st.lists(STEP, min_size=1, max_size=6), NEVER, st.sampled_from(Wildcards), st.sampled_from(Triggers))
def test_a_zone_that_followed_changes_is_the_zone_of_the_last_table(
    steps: list[Step], never: list[str], mode: Wildcards, triggers: Triggers
) -> None:
    followed = follow(steps, never, mode, triggers)
    last: dict[tuple[str, Reach], Host] = {}
    for changed, *_ in steps:
        last.update({(host.hostname, host.reach): host for host in changed})
    fresh = follow([(list(last.values()), *steps[-1][1:])], never, mode, triggers)
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


OWN: Final = "**.example.org 192.0.2.1"
"""A wildcard that is its owner's word."""


def claimed(line: str, by: Claimed = Claimed.VERIFIED) -> Host:
    """A row that depends on public DNS."""
    return replace(parse_host(line), claimed=by)


ASKED_ROWS: Final = {
    "alone": ([], "app.example.org 192.0.2.2", "app.example.org", None),
    "below a wildcard": ([OWN], "app.example.org 192.0.2.2", "app.example.org", PASSTHRU),
    "with the addresses of the wildcard": ([OWN], "app.example.org 192.0.2.1", "app.example.org", PASSTHRU),
    "below a name below a wildcard": ([OWN], "app.example.org 192.0.2.2", "q.app.example.org", ("192.0.2.1",)),
    "above a name": (["q.app.example.org 192.0.2.1"], "app.example.org 192.0.2.2", "app.example.org", None),
    "a wildcard": ([], "**.example.org 192.0.2.2", "q.example.org", None),
    "a name below a wildcard": (
        ["a.example.org 192.0.2.1"],
        "**.example.org 192.0.2.2",
        "a.example.org",
        ("192.0.2.1",),
    ),
    "below that name": (["a.example.org 192.0.2.1"], "**.example.org 192.0.2.2", "q.a.example.org", None),
    "a wildcard below a wildcard": ([OWN], "**.a.example.org 192.0.2.2", "q.a.example.org", PASSTHRU),
    "its parent": ([OWN], "**.a.example.org 192.0.2.2", "a.example.org", ("192.0.2.1",)),
    "below a name below both": (
        [OWN, "b.a.example.org 192.0.2.3"],
        "**.a.example.org 192.0.2.2",
        "q.b.a.example.org",
        PASSTHRU,
    ),
    "above a wildcard": ([OWN], "**.org 192.0.2.2", "q.example.org", ("192.0.2.1",)),
    "one label": ([], "*.a.example.org 192.0.2.2", "q.a.example.org", None),
    "one label below a wildcard": ([OWN], "*.a.example.org 192.0.2.2", "q.a.example.org", PASSTHRU),
    "one label of the same addresses": ([OWN], "*.a.example.org 192.0.2.1", "q.a.example.org", PASSTHRU),
}


@pytest.mark.parametrize("by", [Claimed.VERIFIED, Claimed.ENFORCED])
@pytest.mark.parametrize(("lines", "line", "hostname", "expected"), ASKED_ROWS.values(), ids=ASKED_ROWS)
def test_a_row_that_depends_on_public_dns_is_not_in_the_zone_and_still_hides_wildcards(
    lines: list[str], line: str, hostname: str, expected: Given, by: Claimed
) -> None:
    policies = Policies()
    policies.put(*map(parse_host, lines), claimed(line, by))
    policies.publish()
    assert look_up(policies.read(), hostname) == expected


@pytest.mark.parametrize("by", Claimed)
def test_by_names_every_row_is_a_name_and_no_address_a_trigger(by: Claimed) -> None:
    policies = Policies(triggers=Triggers.NAMES)
    policies.put(claimed("app.example.org 192.0.2.2", by))
    policies.writer.lead(Balancers({"203.0.113.10": ("192.0.2.7",), "lb.example.net": ("192.0.2.7",)}))
    policies.publish()
    assert look_up(policies.read(), "app.example.org") == ("192.0.2.2",)
    assert [*policies.records()] == [names.to_wire("app.example.org")]
    assert (policies.zones.inexpressible.balancer_hostnames, policies.zones.inexpressible.passed) == (0, 0)


@pytest.mark.parametrize("by", [Claimed.NO, Claimed.REPORTED])
def test_a_row_of_its_owners_word_is_a_name(by: Claimed) -> None:
    policies = Policies()
    policies.put(claimed("app.example.org 192.0.2.2", by))
    policies.publish()
    assert look_up(policies.read(), "app.example.org") == ("192.0.2.2",)


def test_names_that_are_let_pass_are_counted_until_no_wildcard_covers_them() -> None:
    policies = Policies()
    policies.put(claimed("app.example.org 192.0.2.2"), claimed("*.a.example.org 192.0.2.2"), parse_host(OWN))
    policies.publish()
    assert policies.zones.inexpressible.passed == 2
    policies.put(claimed("app.example.org 192.0.2.2", Claimed.NO))
    policies.publish()
    assert policies.zones.inexpressible.passed == 1
    policies.put(Host("*.example.org", Reach.ANY_LABELS, ()))
    policies.publish()
    assert policies.zones.inexpressible.passed == 0
    assert look_up(policies.read(), "q.a.example.org") is None


def test_a_name_whose_service_is_not_ready_is_forwarded_and_not_counted_as_asked_for() -> None:
    policies = Policies()
    policies.put(replace(claimed("app.example.org 192.0.2.2"), service=RELAY), parse_host(OWN))
    policies.writer.forward(frozenset([RELAY]))
    policies.publish()
    assert look_up(policies.read(), "app.example.org") == PASSTHRU
    assert policies.zones.inexpressible.passed == 0


def test_a_name_that_is_a_rule_for_an_address_neither_changes_nor_removes_the_rule() -> None:
    name = "32.10.113.0.203.rpz-ip"
    policies = Policies()
    policies.writer.lead(Balancers({"203.0.113.10": ("192.0.2.7",)}))
    policies.put(parse_host("app.example.org 192.0.2.1"))
    policies.publish()
    before = policies.records()
    for line in (f"{name} 192.0.2.66", f"**.{name} 192.0.2.66", "**.rpz-ip 192.0.2.66"):
        policies.put(parse_host(line))
        policies.publish()
    assert policies.records() == before
    for host in (Host(name, Reach.NAME, ()), Host(f"*.{name}", Reach.ANY_LABELS, ())):
        policies.put(host)
        policies.publish()
    assert policies.records() == before
    assert look_up(policies.read(), name) == ("192.0.2.7",)
