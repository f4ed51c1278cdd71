"""NSD and Knot DNS with the lines of the guide's page, as plain secondaries of the policy zone.

Each is asked for the zone itself: other resolvers behind it load it as they would from the primary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import pytest

from tests.kit.polling import poll_until
from tests.kit.rpz.publisher import KEY, SECRET, ZONE, secret_of
from tests.kit.rpz.resolver import Resolver
from tests.kit.rpz.rigs import DENIED, HOSTS, SECONDARIES, Kind, Rig, rig
from tests.kit.rpz.unbound import running_unbound

pytestmark = [pytest.mark.peer("nsd"), pytest.mark.timeout(240)]

SOON: Final = 30
"""Seconds, below the zone's refresh."""
KINDS: Final = [pytest.param(kind, id=kind.name, marks=pytest.mark.peer(*kind.programs)) for kind in SECONDARIES]


def records(server: Resolver, owner: str, rdtype: str = "A") -> list[str]:
    """The records at a name of the zone."""
    reply = server.ask(f"{owner}.{ZONE}", rdtype)
    return sorted(str(record) for answer in reply.answer for record in answer)


def serial(port: int, *, secret: str | None = None) -> int | None:
    """The zone's serial at a server; None if it does not serve the zone."""
    query = dns.message.make_query(ZONE, "SOA")
    if secret is not None:
        query.use_tsig({dns.name.from_text(KEY): dns.tsig.Key(KEY, secret, "hmac-sha256")})
    reply = dns.query.udp(query, "127.0.0.1", port=port, timeout=10)
    found = [record.serial for answer in reply.answer for record in answer if record.rdtype == dns.rdatatype.SOA]
    return int(found[0]) if found else None


def wait_for_serial(one: Rig) -> None:
    """Until the secondary has the primary's version; at first neither serves the zone."""

    def is_current() -> bool:
        found = serial(one.resolver.port)
        return found is not None and found == serial(one.publisher.port, secret=SECRET)

    poll_until(is_current, "the same serial", seconds=SOON)


@pytest.fixture(scope="module", params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One rig for the tests that leave the primary alone."""
    with rig(request.param, tmp_path_factory.mktemp("rpz")) as one:
        wait_for_serial(one)
        yield one


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found = request.param
    assert isinstance(found, Kind)
    return found


ROWS: Final = {
    "exact": ("app.example.org", "A", ["192.0.2.1"]),
    "several": ("twice.example.org", "A", ["192.0.2.6", "192.0.2.7"]),
    "AAAA": ("six.example.org", "AAAA", ["2001:db8::5"]),
    "wildcard": ("x.apps.example.org", "A", ["192.0.2.2"]),
    "exact below a wildcard": ("exact.apps.example.org", "A", ["192.0.2.3"]),
    "below an exact name": ("x.exact.apps.example.org", "A", ["192.0.2.2"]),
    "below an empty non-terminal": ("x.b.apps.example.org", "A", ["192.0.2.2"]),
    "denied": (DENIED, "CNAME", ["rpz-passthru."]),
}


@pytest.mark.parametrize(("owner", "rdtype", "expected"), ROWS.values(), ids=ROWS)
def test_the_zone_is_there_as_an_authoritative_server_reads_it(
    world: Rig, owner: str, rdtype: str, expected: list[str]
) -> None:
    assert records(world.resolver, owner, rdtype) == expected
    assert world.resolver.ask(f"{owner}.{ZONE}", rdtype).flags & dns.flags.AA


def test_each_change_is_transferred_after_its_notify(world: Rig) -> None:
    for number in range(5):
        world.publisher.write(*HOSTS, f"192.0.2.{20 + number} new{number}.example.org")
        poll_until(lambda at=number: records(world.resolver, f"new{at}.example.org"), "the name is there", seconds=SOON)  # type: ignore[misc]
        assert not number or not records(world.resolver, f"new{number - 1}.example.org")
    world.publisher.write(*HOSTS)
    poll_until(lambda: not records(world.resolver, "new4.example.org"), "the first names", seconds=SOON)
    wait_for_serial(world)


def test_the_zone_stays_without_the_primary_and_the_next_primarys_changes_come(kind: Kind, tmp_path: Path) -> None:
    with rig(kind, tmp_path) as one:
        wait_for_serial(one)
        before = serial(one.resolver.port)
        one.publisher.kill()
        assert records(one.resolver, "app.example.org") == ["192.0.2.1"]
        one.publisher.write(*HOSTS, "192.0.2.12 later.example.org")
        one.publisher.start()
        poll_until(lambda: records(one.resolver, "later.example.org"), "the next primary's change", seconds=SOON)
        after = serial(one.resolver.port)
        assert before is not None
        assert after is not None
        assert after > before


@pytest.mark.peer("unbound")
def test_unbound_which_cannot_sign_loads_the_zone_from_a_secondary_beside_it(
    kind: Kind, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with rig(kind, tmp_path) as one:
        wait_for_serial(one)
        site = replace(one.site, folder=tmp_path_factory.mktemp("unbound"), primary=one.site.helper)
        with running_unbound(site) as behind:
            poll_until(lambda: behind.addresses("app.example.org") == ["192.0.2.1"], "the zone", seconds=SOON)
            one.publisher.write(*HOSTS[1:], "192.0.2.13 new.example.org")
            poll_until(lambda: behind.addresses("new.example.org"), "the change, after two NOTIFYs", seconds=SOON)
            poll_until(lambda: behind.addresses("app.example.org") == ["198.51.100.1"], "the removal", seconds=SOON)


def test_with_a_wrong_key_there_is_no_zone(kind: Kind, tmp_path: Path) -> None:
    with rig(kind, tmp_path, secret=secret_of("wrong")) as one:
        poll_until(lambda: "a request for a zone is refused" in one.publisher.log, "a refusal", seconds=SOON)
        assert dns.rcode.to_text(one.resolver.ask(ZONE, "SOA").rcode()) in ("SERVFAIL", "REFUSED")
