"""A cluster's DNS with rewrite lines, as a script of faulty_upstream: what CoreDNS makes of the names, in a few lines.

Real CoreDNS judges the same in tests/peers/test_rewrites_coredns.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.kit.faulty_upstream import Step
from tests.kit.rewriting import rewritten


def rewriting(lines: Sequence[str], services: Mapping[str, Sequence[str]]) -> Callable[[bytes], list[Step]]:
    """The script of a server with these lines, and these addresses by name (with a final dot); NXDOMAIN for others."""

    def answer(asked: bytes) -> list[Step]:
        query = dns.message.from_wire(asked)
        reply = dns.message.make_response(query)
        (question,) = query.question
        found = services.get(rewritten(lines, question.name.to_text().lower()))
        if found is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        version = 4 if question.rdtype == dns.rdatatype.A else 6
        some = [one for one in found or () if ipaddress.ip_address(one).version == version]
        if some:
            reply.answer.append(dns.rrset.from_text_list(question.name, 5, "IN", question.rdtype, some))
        return [reply.to_wire()]

    return answer
