"""The names of the upstream that the resolvers forward to, in a zone that may be signed.

The law: the upstream has other records for the table's names, so that each answer shows who gave it.
"""

from __future__ import annotations

from typing import Final

import dns.dnssec
import dns.zone
from cryptography.hazmat.primitives.asymmetric import ec
from dns.dnssectypes import Algorithm
from dns.rdtypes.dnskeybase import Flag

from tests.bench.dns.configs import format_zone_file
from tests.bench.dns.workloads import Zone

_LIFETIME: Final = 86_400
"""Seconds that signatures are valid."""

UPSTREAM: Final = """\
app IN A 198.51.100.1
app IN AAAA 2001:db8:ffff::1
app IN TXT "of the upstream"
app IN MX 5 mail
denied.apps IN A 198.51.100.2
www IN A 198.51.100.3
kept 3600 IN A 198.51.100.5
www IN AAAA 2001:db8:ffff::3
mail IN A 198.51.100.4
text IN TXT "one" "two"
many IN MX 5 mail
many IN MX 6 www
alias IN CNAME www
entry IN CNAME app
"""
"""Lines below example.org."""


def signed(records: str) -> tuple[str, str]:
    """The records with signatures and denials of existence, and the zone's key as a DNSKEY record's data."""
    zone = dns.zone.from_text(format_zone_file(Zone("example.org", ())) + records, origin="example.org")
    before = {(name, rdataset.rdtype) for name, rdataset in zone.iterate_rdatasets()}
    private = ec.generate_private_key(ec.SECP256R1())
    flags = Flag.ZONE | Flag.SEP
    key = dns.dnssec.make_dnskey(private.public_key(), Algorithm.ECDSAP256SHA256, flags=flags)
    dns.dnssec.sign_zone(zone, keys=[(private, key)], lifetime=_LIFETIME)
    added = "".join(
        f"{rdataset.to_text(name, origin=zone.origin, relativize=False)}\n"
        for name, rdataset in zone.iterate_rdatasets()
        if (name, rdataset.rdtype) not in before
    )
    return records + added, key.to_text()
