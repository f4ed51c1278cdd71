"""Real resolvers with the lines of the guide's page, as secondaries of the policy zone of `dnsproxy serve --rpz`.

Each forwards to an NSD. The zone's SOA is asked for again after 60 s: what comes earlier came by NOTIFY, or because the
page's lines let the resolver ask more often.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import dns.flags
import dns.rcode
import pytest

from tests.kit.coredns import running_coredns
from tests.kit.polling import poll_until
from tests.kit.rpz.publisher import secret_of
from tests.kit.rpz.rigs import DENIED, HOSTS, RESOLVERS, Kind, Rig, rig

pytestmark = [pytest.mark.peer("nsd"), pytest.mark.timeout(240)]

SOON: Final = 30
"""Seconds, below the zone's refresh."""
KINDS: Final = [pytest.param(kind, id=kind.name, marks=pytest.mark.peer(*kind.programs)) for kind in RESOLVERS]


def wait_for_policy(one: Rig) -> None:
    poll_until(lambda: one.resolver.addresses("app.example.org") == ["192.0.2.1"], "the first transfer", seconds=60)


@pytest.fixture(scope="module", params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One rig for the tests that leave the primary alone."""
    with rig(request.param, tmp_path_factory.mktemp("rpz")) as one:
        wait_for_policy(one)
        yield one


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found = request.param
    assert isinstance(found, Kind)
    return found


ADDRESSES: Final = {
    "exact": ("app.example.org", ["192.0.2.1"]),
    "several": ("twice.example.org", ["192.0.2.6", "192.0.2.7"]),
    "wildcard": ("x.apps.example.org", ["192.0.2.2"]),
    "wildcard, another case": ("X.Apps.Example.ORG", ["192.0.2.2"]),
    "two labels below a wildcard": ("y.x.apps.example.org", ["192.0.2.2"]),
    "exact below a wildcard": ("exact.apps.example.org", ["192.0.2.3"]),
    "below an exact name below a wildcard": ("x.exact.apps.example.org", ["192.0.2.2"]),
    "exact, two labels below a wildcard": ("a.b.apps.example.org", ["192.0.2.4"]),
    "empty non-terminal": ("b.apps.example.org", ["192.0.2.2"]),
    "below an empty non-terminal": ("x.b.apps.example.org", ["192.0.2.2"]),
    "below a denied name": (f"x.{DENIED}", ["192.0.2.2"]),
}


def test_a_name_of_the_table_has_the_tables_addresses(world: Rig) -> None:
    for row, (name, addresses) in ADDRESSES.items():
        assert world.resolver.addresses(name) == addresses, row
        assert world.publisher.addresses(name) == addresses, row


def test_a_name_with_an_aaaa_record_has_it(world: Rig) -> None:
    assert world.resolver.addresses("six.example.org", "AAAA") == ["2001:db8::5"]


NODATA: Final = {
    "AAAA": ("app.example.org", "AAAA"),
    "A": ("six.example.org", "A"),
    "TXT": ("app.example.org", "TXT"),
    "MX": ("app.example.org", "MX"),
    "HTTPS": ("app.example.org", "HTTPS"),
    "AAAA by a wildcard": ("x.apps.example.org", "AAAA"),
}


def test_other_types_of_a_name_of_the_table_are_nodata_though_the_upstream_has_them(world: Rig) -> None:
    for row, (name, rdtype) in NODATA.items():
        reply = world.resolver.ask(name, rdtype)
        assert (dns.rcode.to_text(reply.rcode()), reply.answer) == ("NOERROR", []), row


UNTOUCHED: Final = {
    "A": ("www.example.org", "A"),
    "AAAA": ("www.example.org", "AAAA"),
    "TXT": ("text.example.org", "TXT"),
    "MX": ("many.example.org", "MX"),
    "alias": ("alias.example.org", "A"),
    "apex": ("example.org", "SOA"),
    "NODATA": ("www.example.org", "TXT"),
    "above a wildcard": ("apps.example.org", "A"),
    "denied": (DENIED, "A"),
    "NXDOMAIN": ("missing.example.org", "A"),
    "below an exact name": ("x.app.example.org", "A"),
    "beside a name": ("app2.example.org", "A"),
}


def test_every_other_name_is_as_the_upstream_has_it(world: Rig) -> None:
    for row, (name, rdtype) in UNTOUCHED.items():
        found, expected = world.resolver.ask(name, rdtype), world.upstream.ask(name, rdtype)
        assert (found.rcode(), found.answer) == (expected.rcode(), expected.answer), row


def test_an_alias_of_the_upstream_to_a_name_of_the_table(world: Rig) -> None:
    """Knot Resolver alone looks only at the name that is asked for."""
    expected = ["198.51.100.1"] if world.kind.name == "knot-resolver" else ["192.0.2.1"]
    assert [one for one in world.resolver.addresses("entry.example.org") if one[0].isdigit()] == expected


NEW: Final = {
    "that the upstream does not have": "new.example.org",
    "that the upstream has for an hour": "kept.example.org",
    "that the upstream fails for": "new.example.com",
}


@pytest.mark.parametrize("name", NEW.values(), ids=NEW)
def test_a_new_name_is_answered_and_a_removed_one_is_the_upstreams_again(world: Rig, name: str) -> None:
    """Asked for before, so that the resolver's caches have the answer of the upstream."""
    before = world.resolver.rcode(name), world.resolver.addresses(name)
    world.publisher.write(*HOSTS, f"192.0.2.9 {name}")
    poll_until(lambda: world.publisher.addresses(name), "the primary has the name", seconds=SOON)
    start = time.monotonic()
    poll_until(lambda: world.resolver.addresses(name) == ["192.0.2.9"], "the resolver has the name", seconds=SOON)
    seen = time.monotonic()
    world.publisher.write(*HOSTS)
    poll_until(lambda: not world.publisher.addresses(name), "the primary has it no more", seconds=SOON)
    gone = time.monotonic()
    poll_until(
        lambda: (world.resolver.rcode(name), world.resolver.addresses(name)) == before, "the upstream's", seconds=SOON
    )
    took = f"new after {seen - start:.3f} s, gone after {time.monotonic() - gone:.3f} s"
    print(f"{world.kind.name}, {name}: {took}")  # noqa: T201  # to be seen with -rP
    assert world.resolver.addresses("app.example.org") == ["192.0.2.1"]


def test_other_addresses_of_a_name_replace_the_first_ones(world: Rig) -> None:
    world.publisher.write(*HOSTS[1:], "192.0.2.10 app.example.org", "2001:db8::10 app.example.org")
    poll_until(lambda: world.resolver.addresses("app.example.org") == ["192.0.2.10"], "another address", seconds=SOON)
    poll_until(
        lambda: world.resolver.addresses("app.example.org", "AAAA") == ["2001:db8::10"], "one more", seconds=SOON
    )
    world.publisher.write(*HOSTS)
    wait_for_policy(world)
    poll_until(lambda: not world.resolver.addresses("app.example.org", "AAAA"), "the first ones", seconds=SOON)


def test_a_wildcard_that_comes_and_goes(world: Rig) -> None:
    name = "x.wild.example.org"
    world.publisher.write(*HOSTS, "192.0.2.11 *.wild.example.org")
    poll_until(lambda: world.resolver.addresses(name) == ["192.0.2.11"], "the wildcard is there", seconds=SOON)
    world.publisher.write(*HOSTS)
    poll_until(lambda: world.resolver.rcode(name) == "NXDOMAIN", "the wildcard is gone", seconds=SOON)


@pytest.mark.peer("coredns")
def test_coredns_in_front_as_openshift_sets_it_up_passes_the_answers_on(world: Rig, tmp_path: Path) -> None:
    """The lines of cluster-dns-operator for the pods' other names."""
    forward = f"forward . 127.0.0.1:{world.resolver.port} {{\n policy sequential\n }}"
    corefile = f". {{\n bufsize 1232\n errors\n {forward}\n cache 900 {{\n denial 9984 30\n }}\n}}\n"
    with running_coredns(tmp_path, corefile) as coredns:
        for name, addresses in ADDRESSES.values():
            assert sorted(coredns.addresses(name)) == addresses
        assert coredns.addresses("www.example.org") == ["198.51.100.3"]
        world.publisher.write(*HOSTS[1:], "192.0.2.14 app.example.org")
        poll_until(lambda: coredns.addresses("app.example.org") == ["192.0.2.14"], "another address", seconds=SOON)
        world.publisher.write(*HOSTS)
        wait_for_policy(world)


def test_the_last_policy_stays_without_the_primary_and_the_next_primary_is_followed(kind: Kind, tmp_path: Path) -> None:
    with rig(kind, tmp_path) as one:
        wait_for_policy(one)
        one.publisher.kill()
        # Several retries of the zone's 10 s are not waited for; its expiry is four weeks.
        for name, addresses in ADDRESSES.values():
            assert one.resolver.addresses(name) == addresses
        one.publisher.write(*HOSTS, "192.0.2.12 later.example.org")
        one.publisher.start()
        poll_until(lambda: one.resolver.addresses("later.example.org"), "the change of the next primary", seconds=SOON)
        assert one.resolver.addresses("app.example.org") == ["192.0.2.1"]


@pytest.mark.parametrize("kind", [one for one in KINDS if one.id != "knot-resolver"])
def test_with_a_wrong_key_or_none_there_is_no_policy(kind: Kind, tmp_path: Path) -> None:
    """The transfer is refused, and every name is the upstream's. Knot Resolver's helper: test_rpz_secondaries.py."""
    with rig(kind, tmp_path, secret=secret_of("wrong"), may_be_unsigned=False) as one:
        poll_until(lambda: "a request for a zone is refused" in one.publisher.log, "a refusal", seconds=SOON)
        assert one.resolver.addresses("app.example.org") == ["198.51.100.1"]
        assert one.resolver.rcode("x.apps.example.org") == "NXDOMAIN"


def test_a_resolver_that_verifies_a_signed_upstream_gives_the_tables_addresses(kind: Kind, tmp_path: Path) -> None:
    """With DO as without; what the table does not have is verified as ever."""
    with rig(kind, tmp_path, is_signed=True) as one:
        wait_for_policy(one)
        for dnssec in (False, True):
            for name in ("app.example.org", "x.apps.example.org"):
                reply = one.resolver.ask(name, dnssec=dnssec)
                assert [str(record) for answer in reply.answer for record in answer] == one.publisher.addresses(name)
                assert not reply.flags & dns.flags.AD
            assert one.resolver.ask("app.example.org", "AAAA", dnssec=dnssec).answer == []
        verified = one.resolver.ask("www.example.org", dnssec=True)
        assert verified.flags & dns.flags.AD
        assert verified.answer == one.upstream.ask("www.example.org", dnssec=True).answer
        assert dns.rcode.to_text(one.resolver.ask("missing.example.org", dnssec=True).rcode()) == "NXDOMAIN"


def test_without_its_upstream_a_resolver_answers_the_tables_names(kind: Kind, tmp_path: Path) -> None:
    with rig(kind, tmp_path) as one:
        wait_for_policy(one)
        one.end_upstream()
        for name, addresses in ADDRESSES.values():
            assert one.resolver.addresses(name) == addresses
