from __future__ import annotations

import dns.zone

from dnsproxy.dns.names import to_wire
from dnsproxy.dns.wire import Type
from dnsproxy.zone.content import Piece
from dnsproxy.zone.transfer import ZoneVersion, messages, reply_head, whole
from dnsproxy.zone.zone_records import format_zone_addresses, format_zone_record
from tests.bench.fleet.zone_file import format_whole, format_zone

ZONE = to_wire("rpz.example.org")


def test_the_file_has_the_records_of_the_transfer() -> None:
    version = ZoneVersion(ZONE, 7, ttl=5)
    records = [
        format_zone_addresses(b"\x03app\x07example", ("192.0.2.1", "2001:db8::1"), ttl=5),
        format_zone_addresses(b"\x01*\x03app", ("192.0.2.2",), ttl=5),
        [format_zone_record(b"\x04a.\\b", Type.TXT, 5, b"\x02hi")],
    ]
    pieces = [Piece(len(found), b"".join(found)) for found in records]
    bodies = messages(version, whole(version, pieces), rtype=Type.AXFR, reply=reply_head(0))
    lines = "".join(f"{line}\n" for line in format_zone([b"\0\1" + body for body in bodies]))
    read = dns.zone.from_text(format_whole("rpz.example.org", lines, serial=9, change=1))
    assert read.get_soa().serial == 9
    found = {f"{name} {data}" for name, _, data in read.iterate_rdatas() if data.rdtype not in (Type.SOA, Type.NS)}
    assert found >= {
        "app.example 192.0.2.1",
        "app.example 2001:db8::1",
        "*.app 192.0.2.2",
        r'a\.\\b "hi"',
    }
    assert len(found) == 5
    assert read.find_rdataset("@", "NS")
