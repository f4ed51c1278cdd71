"""A public DNS of a few records, as the script of a faulty upstream: CNAMEs are followed, other names do not exist."""

from __future__ import annotations

from collections.abc import Iterable

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from tests.kit.faulty_upstream import Step

_MOST_ALIASES = 8


class PublicDns:
    """Answers `NAME TTL TYPE DATA` lines; call it with a query, as of faulty_upstream.Script."""

    def __init__(self, *lines: str) -> None:
        self.set(*lines)

    def set(self, *lines: str) -> None:
        """Have these records from now on."""
        self._sets: dict[tuple[dns.name.Name, int], dns.rrset.RRset] = {}
        for line in lines:
            owner, ttl, rtype, data = line.split(maxsplit=3)
            name, kind = dns.name.from_text(owner), dns.rdatatype.from_text(rtype)
            found = dns.rrset.from_text(name, int(ttl), dns.rdataclass.IN, kind, data)
            known = self._sets.setdefault((name, kind), found)
            known.update(found)  # type: ignore[no-untyped-call]

    def __call__(self, asked: bytes) -> Iterable[Step]:
        """The steps of one query."""
        return [self.reply(asked)]

    def reply(self, asked: bytes) -> bytes:
        """The octets of the reply, with the question as it was asked."""
        query = dns.message.from_wire(asked)
        reply = dns.message.make_response(query, recursion_available=True)
        question = query.question[0]
        name = question.name
        for _ in range(_MOST_ALIASES):
            alias = self._sets.get((name, dns.rdatatype.CNAME))
            if alias is None or question.rdtype == dns.rdatatype.CNAME:
                break
            reply.answer.append(alias)
            name = alias[0].target
        found = self._sets.get((name, question.rdtype))
        if found is not None:
            reply.answer.append(found)
            return reply.to_wire()
        soa = "ns.example.net. nobody.invalid. 1 3600 3600 3600 60"
        reply.authority.append(dns.rrset.from_text(dns.name.root, 60, "IN", "SOA", soa))
        if not any(one == name or one.is_subdomain(name) for one, _ in self._sets):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        return reply.to_wire()
