"""The questions of a soak and the check of their replies. Pure, given the random source.

The law: a reply is correct only if it answers exactly the question with an address that the name may have at the time;
the server may have read either version of the hosts file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import dns.exception

from tests.bench.dns import bombs
from tests.bench.dns.workloads import mix_case
from tests.kit.messages import AAAA, ANY, HTTPS, TXT, A, Reading, opt_record, option, query, read_dnspython
from tests.soak.tally import Kind, Result

NAMES: Final = 2_000
"""Number of names in every version of the hosts file."""
PASSING: Final = 500
"""Number of names in only one version, never to return: memory of them would grow."""
SUFFIX: Final = "apps.example.org"
WILDCARD: Final = "wild.example.org"
OUTSIDE: Final = "example.net"
UPSTREAM_AT: Final = "198.51.100.7"
"""The address in the answers of tests.kit.upstream_replies."""
_TC: Final = 0x0200
_NOERROR, _SERVFAIL, _REFUSED = 0, 2, 5

Judge = Callable[[bytes], tuple[Result, str]]


@dataclass(frozen=True, slots=True)
class Question:
    """A message without its ID, and the check of its reply."""

    kind: Kind
    message: bytes
    judge: Judge

    def with_id(self, ident: bytes) -> bytes:
        return ident + self.message[2:]


def addresses_of(number: int) -> tuple[str, str]:
    """The addresses of a name in the alternating versions of the hosts file."""
    last = number % 254 + 1
    return f"192.0.2.{last}", f"203.0.113.{last}"


def format_hosts(version: int) -> str:
    """One version of the hosts file (hosts(5))."""
    turn = version % 2
    rows = [f"{addresses_of(number)[turn]} app-{number:05d}.{SUFFIX}" for number in range(NAMES)]
    rows += [f"{addresses_of(number)[turn]} v{version}-{number}.{SUFFIX}" for number in range(PASSING)]
    rows.append(f"{addresses_of(0)[turn]} *.{WILDCARD}")
    return "\n".join(rows) + "\n"


def table_question(chance: random.Random) -> Question:
    """A name of the table, queried like stub resolvers, forwarders and browsers do."""
    number = chance.randrange(NAMES)
    name = f"app-{number:05d}.{SUFFIX}"
    if chance.random() < 0.1:
        number, name = 0, f"{chance.getrandbits(40):010x}.{WILDCARD}"
    if chance.random() < 0.2:
        name = mix_case(name, chance)
    qtype = chance.choices((A, AAAA, HTTPS, ANY), (70, 20, 8, 2))[0]
    message = query(name, qtype, additional=_additional(chance))
    return Question(Kind.TABLE, message, _judge_table(message, qtype, addresses_of(number)))


def outside_question(chance: random.Random) -> Question:
    """A name that was never queried before; sometimes another type of a name of the table."""
    if chance.random() < 0.05:
        message = query(f"app-{chance.randrange(NAMES):05d}.{SUFFIX}", TXT, additional=_additional(chance))
    else:
        message = query(f"{chance.getrandbits(64):016x}.{OUTSIDE}", A, additional=_additional(chance))
    return Question(Kind.OUTSIDE, message, _judge_outside(message))


def stream_question(chance: random.Random) -> Question:
    """Either kind, over TCP."""
    asked = chance.choice((table_question, outside_question))(chance)
    return Question(Kind.STREAM, asked.message, asked.judge)


def malformed_message(chance: random.Random) -> bytes:
    """Octets that are no valid query, after any ID."""
    good = table_question(chance).message
    match chance.randrange(6):
        case 0:
            return chance.randbytes(chance.randrange(1, 600))
        case 1:
            return good[: chance.randrange(len(good))]
        case 2:
            at = chance.randrange(2, len(good))
            return good[:at] + chance.randbytes(1) + good[at + 1 :]
        case 3:
            return good + chance.randbytes(chance.randrange(1, 100))
        case 4:
            return bombs.query_bomb(chance.choice(bombs.SIZES[:4]))
        case _:
            return bombs.masked_bomb(good[12:], chance.choice(bombs.SIZES[1:4]))


def _additional(chance: random.Random) -> tuple[bytes, ...]:
    match chance.randrange(4):
        case 0:
            return ()
        case 1:
            return (opt_record(1232, flags=0x8000),)
        case 2:
            return (opt_record(chance.choice((512, 1400, 4096))),)
        case _:
            return (opt_record(1232, options=option(10, chance.randbytes(8))),)


def _judge_table(message: bytes, qtype: int, addresses: Sequence[str]) -> Judge:
    def judge(reply: bytes) -> tuple[Result, str]:
        reading = _read(message, reply)
        if isinstance(reading, str):
            return Result.WRONG, reading
        found = [str(row[3]) for row in reading.answers]
        if reading.rcode != _NOERROR:
            return Result.WRONG, f"rcode {reading.rcode}"
        if qtype == A:
            right = len(found) == 1 and found[0] in addresses
        elif qtype == ANY:
            right = len(found) == 1
        else:
            right = not found and len(reading.authorities) == 1
        return (Result.RIGHT, "") if right else (Result.WRONG, f"{found} for type {qtype}")

    return judge


def _judge_outside(message: bytes) -> Judge:
    def judge(reply: bytes) -> tuple[Result, str]:
        reading = _read(message, reply)
        if isinstance(reading, str):
            return Result.WRONG, reading
        if reading.rcode in (_SERVFAIL, _REFUSED):
            return Result.FAILED, ""
        if reading.rcode == _NOERROR and (reading.flags & _TC or _is_from_upstream(reading)):
            return Result.RIGHT, ""
        return Result.WRONG, f"rcode {reading.rcode}, {reading.answers}"

    return judge


def _is_from_upstream(reading: Reading) -> bool:
    return [str(row[3]) for row in reading.answers] == [UPSTREAM_AT]


def _read(message: bytes, reply: bytes) -> Reading | str:
    """The reply to this message, or the reason why it is none."""
    try:
        reading, asked = read_dnspython(reply), read_dnspython(message)
    except dns.exception.DNSException as error:
        return f"dnspython cannot read the reply: {error!r}"
    return reading if reading.question == asked.question else f"another question: {reading.question}"
