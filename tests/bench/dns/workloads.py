"""What is asked of every server: names, their addresses, and the queries for them. Pure, and the same in every run.

The law: a zone is what a server has to know, a workload is how it is asked; the right address belongs to each question.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.kit.messages import opt_record, query

SUFFIX: Final = "apps.example.org"
WILDCARD_SUFFIX: Final = "wild.example.org"
_WILDCARD_ADDRESS: Final = "192.0.2.255"
_SEED: Final = 20


@dataclass(frozen=True, slots=True)
class Zone:
    """What a server has to know."""

    name: str
    hosts: tuple[tuple[str, str], ...]
    """Names and addresses."""
    wildcard: tuple[str, str] | None = None
    """All names below this one have this address."""
    forwarded: bool = False
    """Whether the upstream knows all this, and the server only the upstream."""


@dataclass(frozen=True, slots=True)
class Question:
    """A name as it is written in the query, and its address."""

    name: str
    address: str

    def message(self, *, edns: bool = False) -> bytes:
        """The query; `edns` adds an OPT of 1232 octets with DO."""
        return query(self.name, additional=(opt_record(1232, flags=0x8000),) if edns else ())


@dataclass(frozen=True, slots=True)
class Workload:
    """How a zone is asked."""

    name: str
    zone: str
    about: str
    edns: bool = False
    mixed_case: bool = False
    rate: int | None = None
    """Queries a second of a server that has nothing else to do; None: as many as it answers."""


WORKLOADS: Final = (
    Workload("table", "10k", "10,000 names"),
    Workload("edns", "10k", "10,000 names, each query with an OPT (1232, DO)", edns=True),
    Workload("case", "10k", "10,000 names, letters in random case", mixed_case=True),
    Workload("wildcard", "wildcard", "random labels below a wildcard, beside 10,000 names"),
    Workload("100k", "100k", "100,000 names"),
    Workload("tap", "10k tap", "10,000 names, while one listener reads every query that it gets (dnsproxy tap)"),
    Workload("two", "10k two", "10,000 names, two workers each, on every processor: they share them with the load"),
    Workload("forward", "forward", "100,000 names that only the upstream has (NSD on loopback)"),
    Workload("rest-1000", "10k", "10,000 names, 1,000 queries a second and nothing else", rate=1000),
    Workload("rest-100", "10k", "the same at 100 queries a second", rate=100),
)

BEHIND_FORWARD: Final = Workload("upstream", "upstream", "what the upstream of `forward` is checked with")


def make_zone(name: str) -> Zone:
    """The zone of a workload by its name."""
    match name:
        case "10k" | "10k tap" | "10k two":
            return Zone(name, _make_hosts(10_000))
        case "100k" | "upstream":
            return Zone(name, _make_hosts(100_000))
        case "wildcard":
            return Zone(name, _make_hosts(10_000), (WILDCARD_SUFFIX, _WILDCARD_ADDRESS))
        case "forward":
            return Zone(name, _make_hosts(100_000), forwarded=True)
    raise ValueError(f"no zone {name}")


def make_questions(workload: Workload, zone: Zone) -> list[Question]:
    """As many as the zone has names, in random order; random labels where it has a wildcard."""
    chance = random.Random(_SEED)  # noqa: S311  # the same in every run, on purpose
    if zone.wildcard is not None:
        parent, address = zone.wildcard
        return [Question(f"{chance.getrandbits(40):010x}.{parent}", address) for _ in zone.hosts]
    questions = [Question(name, address) for name, address in zone.hosts]
    chance.shuffle(questions)
    if workload.mixed_case:
        return [Question(mix_case(each.name, chance), each.address) for each in questions]
    return questions


def mix_case(name: str, chance: random.Random) -> str:
    """Each letter in either case (draft-vixie-dnsext-dns0x20)."""
    return "".join(chance.choice((letter.lower(), letter.upper())) for letter in name)


def format_queries(questions: Sequence[Question], *, edns: bool) -> bytes:
    """The input of `dnsperf -B`: messages as DNS over TCP frames them. Its text form knows no EDNS size but 4096."""
    messages = (question.message(edns=edns) for question in questions)
    return b"".join(len(message).to_bytes(2, "big") + message for message in messages)


def _make_hosts(count: int) -> tuple[tuple[str, str], ...]:
    return tuple((f"app-{number:05d}.{SUFFIX}", f"192.0.2.{number % 254 + 1}") for number in range(count))
