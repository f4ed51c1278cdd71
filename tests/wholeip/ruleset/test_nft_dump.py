"""The static part in the kernel's messages; test_nft_contract.py has the real kernel's."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wholeip.ruleset.test_netlink import message
from wholeip.ruleset.netlink import format_attribute, parse_messages
from wholeip.ruleset.nft_dump import (
    format_elements_request,
    format_generation_request,
    format_static_requests,
    parse_generation,
    parse_static,
)
from wholeip.ruleset.static_rules import CHAINS, COLLECTIONS, Chain, Collection, static_part
from wholeip.ruleset.steps import at_once

T = "our_table"
TYPES = {"ipv4_addr": 7, "ipv6_addr": 8, "inet_proto": 12, "inet_service": 13}
HOOKS = {"prerouting": 0, "output": 3, "postrouting": 4}


def number(value: int) -> bytes:
    return struct.pack("!I", value)


def made(kind: int, table: str, *attributes: tuple[int, bytes], family: int = 1) -> bytes:
    body = format_attribute(1, table.encode() + b"\0") + b"".join(format_attribute(*one) for one in attributes)
    return message(bytes([family, 0, 0, 0]) + body, kind=10 << 8 | kind)


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def set_message(collection: Collection, *, flags: int = 0, more: tuple[tuple[int, bytes], ...] = ()) -> bytes:
    flags |= (8 if collection.value else 0) | (4 if collection.interval else 0)
    key = 0
    for name in collection.key.split(" . "):
        key = key << 6 | TYPES[name]
    values = ((6, number(TYPES[collection.value])),) if collection.value else ()
    return made(9, T, (2, text(collection.name)), (3, number(flags)), (4, number(key)), *values, *more)


def chain_message(chain: Chain, *, policy: int = 1, flags: int = 1) -> bytes:
    if not chain.hook:
        return made(3, T, (3, text(chain.name)))
    hook = format_attribute(1, number(HOOKS[chain.hook])) + format_attribute(2, struct.pack("!i", chain.priority))
    return made(
        3,
        T,
        (3, text(chain.name)),
        (0x8004, hook),
        (5, number(policy)),
        (7, text(chain.kind)),
        (10, number(flags)),
    )


def rule_message(chain: str, comment: str) -> bytes:
    noted = text(comment)
    return made(6, T, (2, text(chain)), (7, b"\x01\x01\x00" + bytes([0, len(noted)]) + noted))


def ours() -> Iterator[bytes]:
    yield made(0, T, (2, number(0)))
    yield from map(set_message, COLLECTIONS)
    for chain in CHAINS:
        yield chain_message(chain)
        yield from (rule_message(chain.name, rule.comment()) for rule in chain.rules)


def read(datagrams: Iterable[bytes], table: str) -> frozenset[str]:
    return at_once(parse_static(datagrams, table))


FIRST_CHAIN = next(chain for chain in CHAINS if chain.hook)
FIRST_SET = COLLECTIONS[0]


def test_our_own_static_part_is_known() -> None:
    assert read(ours(), T) == static_part()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(made(0, "other", (2, number(1))), id="a dormant table of others"),
        pytest.param(made(3, "other", (3, text("c"))), id="a chain of theirs"),
        pytest.param(made(3, T, (3, text("c")), family=2), id="a table of this name in another family"),
        pytest.param(set_message(Collection("__set0", "ipv4_addr"), flags=3), id="the set of a rule"),
        pytest.param(message(bytes(4), kind=3), id="the end"),
        pytest.param(message(bytes(20), kind=0x100), id="of another part of the kernel"),
    ],
)
def test_what_is_not_in_our_table_does_not_count(more: bytes) -> None:
    assert read([*ours(), more], T) == static_part()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(made(0, T, (2, number(1))), id="asleep"),
        pytest.param(made(3, T, (3, text("more"))), id="a chain"),
        pytest.param(made(3, T), id="a chain without a name"),
        pytest.param(chain_message(FIRST_CHAIN, policy=0), id="another policy"),
        pytest.param(chain_message(FIRST_CHAIN, flags=3), id="offloaded"),
        pytest.param(rule_message(FIRST_CHAIN.name, "x"), id="a rule"),
        pytest.param(made(6, T, (2, text("more"))), id="a rule without a comment"),
        pytest.param(set_message(Collection("more", "ipv4_addr")), id="a set"),
        pytest.param(set_message(FIRST_SET, flags=16), id="times"),
        pytest.param(set_message(FIRST_SET, more=((11, bytes(8)),)), id="a time"),
        pytest.param(made(9, T, (2, text("more")), (4, number(99))), id="an unknown type"),
        pytest.param(made(18, T, (2, text("more"))), id="an object"),
        pytest.param(made(22, T, (2, text("more"))), id="a flowtable"),
    ],
)
def test_anything_else_in_our_table_differs(more: bytes) -> None:
    assert read([*ours(), more], T) != static_part()


def test_anything_that_is_missing_differs_but_for_the_table_itself() -> None:
    messages = list(ours())
    without = [messages[:missing] + messages[missing + 1 :] for missing in range(len(messages))]
    assert [missing for missing, rest in enumerate(without) if read(rest, T) == static_part()] == [0]


def test_the_chains_of_other_tables_are_read_in_steps() -> None:
    theirs = [made(3, "other", (3, text(f"c{place}"))) for place in range(1000)]
    assert sum(1 for _ in parse_static(theirs, T)) == 1000


def test_the_order_of_rules_counts() -> None:
    rules = [rule_message("translate", text) for text in "ab"]
    assert read(rules, T) != read(reversed(rules), T)


def test_the_generation_is_read() -> None:
    answer = message(bytes(4) + format_attribute(1, number(77)) + format_attribute(2, number(1)), kind=10 << 8 | 15)
    assert parse_generation(answer) == 77
    with pytest.raises(KeyError):
        parse_generation(message(bytes(4), kind=3))


def test_requests_are_whole_messages() -> None:
    requests = [*format_static_requests(T), format_elements_request(T, "s"), format_generation_request()]
    assert all(len(list(parse_messages(one))) == 1 for one in requests)
    assert len({kind for one in requests for kind, _, _ in parse_messages(one)}) == len(requests)


@given(st.lists(st.binary(max_size=60)), st.sampled_from([0, 3, 6, 9, 12, 18, 22]))
def test_any_octets_are_read_or_refused(bodies: list[bytes], kind: int) -> None:
    with contextlib.suppress(struct.error):
        read([message(b"\1\0\0\0" + one, kind=10 << 8 | kind) for one in bodies], T)
