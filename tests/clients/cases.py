"""The cases: what a client is asked for, and how its outcome is judged and named.

The law: the outcome of a case is a short text, equal on every run and machine. An address of public DNS for a name of
the table, an answer to a name with a search domain, a lookup without an answer and one that waits are faults, whatever
the guide says.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import Final

import dns.rcode

from tests.clients.clients import Answer, Session
from tests.clients.pods import IPV4, IPV6, SEARCH
from tests.clients.servers import FEW, FORWARDED, MANY, TARGET
from tests.clients.tap import Message, Tap

ADDRESSES: Final = "addresses"
OTHER_FAMILY: Final = "other family"
QUERIES: Final = "queries"
FORTY: Final = "40 addresses"
HUNDRED: Final = "100 addresses"
HUNDRED_FORWARDED: Final = "100 forwarded"
UNKNOWN: Final = "unknown name"
REMOVED: Final = "removed name"
CASES: Final = (ADDRESSES, OTHER_FAMILY, QUERIES, FORTY, HUNDRED, HUNDRED_FORWARDED, UNKNOWN, REMOVED)

NEGATIVE: Final = ("no data", "no such name", "not found")
"""A client that says one of these has understood the answer; what it calls it is up to its interface."""


class Lookups:
    """A client whose messages are seen."""

    def __init__(self, session: Session, tap: Tap) -> None:
        self.session, self.tap = session, tap
        self.queries: frozenset[Message] = frozenset()
        """The different queries of the last lookup."""
        self.repeats: list[tuple[str, Counter[Message]]] = []
        """The lookups with a query that was repeated: after a wait, or because the client rejects the answer."""

    def ask(self, family: str, name: str) -> Answer:
        """A lookup of a name."""
        self.tap.read()
        answer = self.session.ask(family, name)
        seen = self.tap.read()
        for reply in seen:
            assert not _is_answered_with_a_search_domain(reply), reply
        asked = Counter(message for message in seen if not message.is_reply)
        if any(count > 1 for count in asked.values()):
            self.repeats.append((f"{family} {name}", asked))
        self.queries = frozenset(asked)
        return answer


def outcomes(lookups: Lookups) -> dict[str, str]:
    """The outcome of each case but the last, for one client in one pod."""
    first = {
        ADDRESSES: _addresses(lookups),
        OTHER_FAMILY: _other_family(lookups),
        QUERIES: _queries(lookups),
    }
    # One lookup may meet a busy machine; two have a cause. Large answers are exempt: glibc enlarges its buffer.
    assert len(lookups.repeats) <= 1, lookups.repeats
    return {
        **first,
        FORTY: _large(lookups, "few.example.org.", FEW),
        HUNDRED: _large(lookups, "many.example.org.", MANY),
        HUNDRED_FORWARDED: _large(lookups, "large.example.org.", FORWARDED),
        UNKNOWN: _unknown(lookups),
    }


def same_addresses(answer: Answer, expected: Sequence[str]) -> bool:
    """Java writes IPv6 addresses in full."""
    return sorted(map(ipaddress.ip_address, answer.addresses), key=str) == sorted(
        map(ipaddress.ip_address, expected), key=str
    )


def _addresses(lookups: Lookups) -> str:
    """Names as programs write them, with search domains."""
    for name, expected in (
        ("four.example.org", [TARGET[IPV4]]),
        ("six.example.org", [TARGET[IPV6]]),
        ("dual.example.org", list(TARGET.values())),
    ):
        answer = lookups.ask("any", name)
        assert same_addresses(answer, expected), (name, answer)
    return "right"


def _other_family(lookups: Lookups) -> str:
    said = {}
    for kind, family, name in (("AAAA", "6", "four.example.org."), ("A", "4", "six.example.org.")):
        answer = lookups.ask(family, name)
        assert answer.outcome in NEGATIVE, (name, answer)
        assert answer.addresses == ()
        said[kind] = answer.outcome
    if len(set(said.values())) == 1:
        return said["A"]
    return ", ".join(f"{kind}: {outcome}" for kind, outcome in said.items())


def _queries(lookups: Lookups) -> str:
    """The numbers for a short name, and for an absolute one."""
    counts = []
    for name in ("short.example.org", "absolute.example.org."):
        answer = lookups.ask("any", name)
        assert same_addresses(answer, list(TARGET.values())), (name, answer)
        counts.append(len(lookups.queries))
    return " / ".join(map(str, counts))


def _large(lookups: Lookups, name: str, expected: Sequence[str]) -> str:
    answer = lookups.ask("any", name)
    assert answer.outcome in ("found", *NEGATIVE), (name, answer)
    assert set(answer.addresses) <= set(expected)
    transports = "TCP" if any(query.transport == "TCP" for query in lookups.queries) else "UDP"
    count = "all" if same_addresses(answer, expected) else str(len(answer.addresses) or answer.outcome)
    return f"{count}, {transports}"


def _unknown(lookups: Lookups) -> str:
    answer = lookups.ask("any", "nothing.example.net.")
    assert answer.outcome in NEGATIVE, answer
    return answer.outcome


def _is_answered_with_a_search_domain(message: Message) -> bool:
    has_suffix = message.name.endswith(tuple(f".{domain}." for domain in SEARCH))
    return message.is_reply and has_suffix and (message.rcode != dns.rcode.NXDOMAIN or message.answers > 0)
