"""Transfers of the zones, with dnspython as the secondary, over real sockets."""

from __future__ import annotations

from typing import Final

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.xfr
import dns.zone
import pytest

from dnsproxy.dns import names
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.zone.content import MOST_STEPS
from dnsproxy.zone.requests import format_request
from dnsproxy.zone.tsig_keys import TsigKey
from tests.kit.messages import query
from tests.kit.zone_servers import KEYS, OPEN, POLICY, SIGNED, TABLE, records_of, serial_of, zones_served
from tests.kit.zone_sides import TABLE_ZONE, ZONE

LINES: Final = ("app.example.org 192.0.2.1 2001:db8::1", "**.any.example.org 192.0.2.2", "x.any.example.org 192.0.2.3")
RECORDS: Final = {
    "@ NS localhost.",
    "app.example.org A 192.0.2.1",
    "app.example.org AAAA 2001:db8::1",
    "*.any.example.org A 192.0.2.2",
    "x.any.example.org A 192.0.2.3",
    "*.x.any.example.org A 192.0.2.2",
}


@pytest.mark.parametrize("key", [None, *KEYS], ids=lambda key: key.algorithm if key else "no key")
async def test_dnspython_gets_the_zone_whole_and_then_what_changed(key: TsigKey | None) -> None:
    async with zones_served(*LINES, settings=SIGNED if key else OPEN) as served:
        by_datagram, by_stream, whole = (dns.zone.Zone(POLICY) for _ in range(3))
        for zone in (by_datagram, by_stream):
            await served.transfer(zone, key=key)
            assert records_of(zone) == RECORDS
        await served.put("second", "new.example.org 192.0.2.9")
        await served.put("first", *LINES[1:])
        await served.transfer(by_datagram, key=key, serial=serial_of(by_datagram), udp=True)
        await served.transfer(by_stream, key=key, serial=serial_of(by_stream))
        await served.wait_for_transfers(axfr=2, ixfr=2, current=0)
        await served.transfer(whole, key=key)
        assert records_of(by_datagram) == records_of(by_stream) == records_of(whole)
        assert serial_of(by_datagram) == serial_of(by_stream) == serial_of(whole) == served.primary.serial
        assert not any("app" in record for record in records_of(whole))


@pytest.mark.parametrize("zone", [POLICY, TABLE], ids=["the policy zone", "the table zone"])
async def test_any_way_of_following_comes_to_the_same_zone(zone: dns.name.Name) -> None:
    async with zones_served(*LINES) as served:
        first, second = dns.zone.Zone(zone), dns.zone.Zone(zone)
        await served.transfer(first)
        await served.transfer(second)
        for number in range(5):
            await served.put(f"more-{number}", f"more-{number}.example.org 192.0.2.{number + 1}", *LINES[: number % 3])
            await served.put(f"more-{number - 2}")
            await served.transfer(first, serial=serial_of(first), udp=bool(number % 2))
        await served.transfer(second, serial=serial_of(second))
        last = dns.zone.Zone(zone)
        await served.transfer(last)
        assert records_of(first) == records_of(second) == records_of(last)
        await served.wait_for_transfers(axfr=3)


async def test_serials_go_on_around_their_circle() -> None:
    async with zones_served(*LINES, start=(1 << 32) - 2) as served:
        zone = dns.zone.Zone(POLICY)
        await served.transfer(zone)
        serials = [serial_of(zone)]
        for number in range(4):
            await served.put("more", f"more-{number}.example.org 192.0.2.9")
            await served.transfer(zone, serial=serials[-1])
            serials.append(serial_of(zone))
        # 0 is left out.
        assert serials == [(1 << 32) - 2, (1 << 32) - 1, 1, 2, 3]
        assert "more-3.example.org A 192.0.2.9" in records_of(zone)
        await served.wait_for_transfers(axfr=1, ixfr=4, current=0)


@pytest.mark.parametrize(
    ("serial", "answers"),
    [
        pytest.param(100, 1, id="the current one"),
        pytest.param(101, 1, id="one of the future"),
        pytest.param(100 + (1 << 31), 1, id="half the circle away"),
        pytest.param(99 + (1 << 31), 1, id="nearly half the circle ahead"),
        pytest.param(0, 1 + len(RECORDS) + 1, id="zero"),
        pytest.param(50, 1 + len(RECORDS) + 1, id="one that never was: the whole zone"),
    ],
)
async def test_an_ixfr_from_any_serial_has_an_answer_of_its_own(serial: int, answers: int) -> None:
    async with zones_served(*LINES, start=100) as served:
        reply = await served.running.ask_stream(format_request(ZONE, serial=serial, ident=5))
        found = dns.message.from_wire(reply, xfr=True, one_rr_per_rrset=True)
        assert found.rcode() == dns.rcode.NOERROR
        assert [found.answer[0].rdtype, found.answer[-1].rdtype] == [dns.rdatatype.SOA] * 2
        assert len(found.answer) == answers
        datagram = dns.message.from_wire(
            await served.running.ask(format_request(ZONE, serial=serial, ident=5, datagram=True))
        )
        assert [one.rdtype for one in datagram.answer] == [dns.rdatatype.SOA]


async def test_a_difference_that_is_too_large_for_a_datagram_brings_the_soa_alone() -> None:
    async with zones_served(*LINES) as served:
        zone = dns.zone.Zone(POLICY)
        await served.transfer(zone)
        await served.put("many", *(f"n{number}.example.org 192.0.2.1" for number in range(100)))
        small = format_request(ZONE, serial=1, ident=5, datagram=True)
        reply = dns.message.from_wire(await served.running.ask(small))
        assert [one.rdtype for one in reply.answer] == [dns.rdatatype.SOA]
        await served.transfer(zone, serial=1, udp=True)
        assert len(records_of(zone)) == len(RECORDS) + 100


async def test_a_journal_that_does_not_reach_back_brings_the_whole_zone() -> None:
    async with zones_served(*LINES) as served:
        zone = dns.zone.Zone(POLICY)
        await served.transfer(zone)
        content = served.primary.zones.zones.policy
        for number in range(MOST_STEPS + 1):
            content.put(
                b"\x01x\x03org\0", b"\0\1\x01x\x03org\xc0\x0c\0\1\0\1\0\0\0\5\0\4\0\0" + number.to_bytes(2, "big")
            )
            content.commit(content.serial + 1)
        served.primary.zones.tell()
        await served.transfer(zone, serial=1)
        await served.wait_for_transfers(axfr=2, ixfr=0, current=0)
        assert "x.org A 0.0.39.16" in records_of(zone)
        await served.running.ask_stream(format_request(ZONE, serial=content.serial - 5, ident=5))
        await served.wait_for_transfers(ixfr=1)


async def test_huge_rows_are_sent_in_whole_messages() -> None:
    many = " ".join(f"192.0.{number >> 8}.{number & 255}" for number in range(3_000))
    async with zones_served(*LINES, f"huge.example.org {many}") as served:
        zones = []
        for name in (POLICY, TABLE):
            zones.append(dns.zone.Zone(name))
            await served.transfer(zones[-1])
        assert len(records_of(zones[0])) == len(RECORDS) + 3_000
        await served.put("rival", "huge.example.org 192.0.2.77")
        for zone in zones:
            await served.transfer(zone, serial=serial_of(zone))
            again = dns.zone.Zone(zone.origin)
            await served.transfer(again)
            assert records_of(zone) == records_of(again)


async def test_a_zone_whose_name_leaves_little_room_has_the_names_that_fit() -> None:
    origin = dns.name.from_text(".".join(["z" * 63, "y" * 63, "x" * 40]))
    settings = RpzSettings(names.to_wire(origin.to_text()))
    async with zones_served(*LINES, f"{'a' * 60}.{'b' * 60}.org 192.0.2.7", settings=settings) as served:
        zone = dns.zone.Zone(origin)
        await served.transfer(zone)
        assert records_of(zone) == RECORDS
        assert served.primary.zones.zones.inexpressible.too_long == 1
        rows = dns.zone.Zone(dns.name.Name([b"_switchback", *origin.labels]))
        await served.transfer(rows)
        assert sum("TXT" in record for record in records_of(rows)) == len(LINES) + 2


@pytest.mark.parametrize(
    ("message", "rcode"),
    [
        pytest.param(query("rpz.example.org", 252), dns.rcode.FORMERR, id="AXFR over UDP"),
        pytest.param(query("rpz.example.org", 251), dns.rcode.FORMERR, id="IXFR without a serial"),
        pytest.param(query("rpz.example.org", 1), dns.rcode.REFUSED, id="an address of the zone"),
        pytest.param(query("rpz.example.org", 255), dns.rcode.REFUSED, id="ANY of the zone"),
        pytest.param(query("app.example.org.rpz.example.org", 1), dns.rcode.REFUSED, id="a policy"),
        pytest.param(query("app.example.org.rpz.example.org", 252), dns.rcode.REFUSED, id="AXFR of a name in the zone"),
        pytest.param(query("rpz.example.org", 6, klass=3), dns.rcode.REFUSED, id="another class"),
        pytest.param(query("other.example.org", 252), dns.rcode.REFUSED, id="AXFR of a zone of somebody else"),
        pytest.param(query("_switchback.rpz.example.org", 16), dns.rcode.REFUSED, id="the control record"),
    ],
)
async def test_other_questions_about_the_zones_are_refused_and_not_forwarded(message: bytes, rcode: int) -> None:
    async with zones_served(*LINES) as served:
        reply = dns.message.from_wire(await served.running.ask(message))
        assert (reply.rcode(), reply.answer, reply.authority) == (rcode, [], [])
        assert served.running.server.outstanding == 0


async def test_the_soa_and_the_ns_are_answered_and_authoritative() -> None:
    async with zones_served(*LINES, start=77) as served:
        for name, rtype in ((ZONE, 6), (TABLE_ZONE, 6), (ZONE, 2)):
            for ask in (served.running.ask, served.running.ask_stream):
                reply = dns.message.from_wire(await ask(query(name, rtype)))
                assert reply.flags & dns.flags.AA
                assert [one.rdtype for one in reply.answer] == [rtype]
        reply = dns.message.from_wire(await served.running.ask(query(ZONE, 6)))
        assert (reply.answer[0][0].serial, reply.answer[0][0].expire) == (77, 4 * 7 * 86400)


async def test_before_the_first_version_there_is_no_answer_to_take_for_an_empty_zone() -> None:
    async with zones_served() as served:
        served.primary.zones.zones.policy.serial = 0
        for rtype in (6, 252):
            reply = dns.message.from_wire(await served.running.ask_stream(query(ZONE, rtype)))
            assert (reply.rcode(), reply.answer) == (dns.rcode.SERVFAIL, [])
