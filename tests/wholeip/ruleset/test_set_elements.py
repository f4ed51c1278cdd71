"""Elements in the kernel's messages; test_nft_contract.py has the real kernel's."""

from __future__ import annotations

import contextlib
import struct
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wholeip.ruleset.test_netlink import message
from wholeip.ruleset.netlink import format_attribute
from wholeip.ruleset.set_elements import NEW_ELEMENTS, NotUnderstood, parse_elements
from wholeip.ruleset.static_rules import Collection
from wholeip.ruleset.steps import at_once

SET4, SET6 = Collection("s", "ipv4_addr"), Collection("s", "ipv6_addr")
MAP4 = Collection("m", "ipv4_addr", "ipv4_addr")
PORTS6 = Collection("p", "ipv6_addr . inet_proto . inet_service", "ipv6_addr")
NETWORKS4, NETWORKS6 = Collection("n", "ipv4_addr", interval=True), Collection("n", "ipv6_addr", interval=True)
END = struct.pack("!I", 1)
OPEN = bytes([1, 4]) + struct.pack("=I", 1)


def packed(text: str) -> bytes:
    return ip_address(text).packed


def value(octets: bytes) -> bytes:
    return format_attribute(1, octets)


def element(key: bytes, data: bytes | None = None, **more: bytes) -> bytes:
    numbers = {"flags": 3, "user_data": 6, "expiration": 5}
    attributes = format_attribute(0x8001, value(key))
    if data is not None:
        attributes += format_attribute(0x8002, value(data))
    return format_attribute(0x8001, attributes + b"".join(format_attribute(numbers[one], more[one]) for one in more))


def datagram(*elements: bytes) -> bytes:
    names = format_attribute(1, b"table\0") + format_attribute(2, b"s\0")
    return message(bytes(4) + names + format_attribute(0x8003, b"".join(elements)), kind=NEW_ELEMENTS)


def parse(collection: Collection, *elements: bytes) -> dict[str, str]:
    return at_once(parse_elements([datagram(*elements)], collection))


@pytest.mark.parametrize(
    ("collection", "elements", "expected"),
    [
        pytest.param(SET4, [], {}, id="none"),
        pytest.param(SET4, [element(packed("192.0.2.1"))], {"192.0.2.1": ""}, id="an address"),
        pytest.param(
            SET6, [element(packed(one)) for one in ("::1", "fd00::a")], {"::1": "", "fd00::a": ""}, id="two of IPv6"
        ),
        pytest.param(
            MAP4, [element(packed("192.0.2.1"), packed("10.0.0.1"))], {"192.0.2.1": "10.0.0.1"}, id="one of a map"
        ),
        pytest.param(
            PORTS6,
            [element(packed("fd00::1") + b"\x06\0\0\0" + b"\x01\xbb\0\0", packed("fd00::2"))],
            {"fd00::1 . 6 . 443": "fd00::2"},
            id="parts are padded",
        ),
    ],
)
def test_elements_are_written_as_nft_writes_them(
    collection: Collection, elements: list[bytes], expected: dict[str, str]
) -> None:
    assert parse(collection, *elements) == expected


def test_elements_come_in_several_datagrams() -> None:
    many = [datagram(element(packed(f"192.0.2.{one}"))) for one in range(40)]
    assert len(at_once(parse_elements([*many, message(bytes(4), kind=3)], SET4))) == 40


@pytest.mark.parametrize(
    ("collection", "bounds", "expected"),
    [
        pytest.param(NETWORKS4, [("0.0.0.0", END), ("10.0.0.0", None), ("11.0.0.0", END)], ["10.0.0.0/8"], id="one"),
        pytest.param(
            NETWORKS4,
            [("10.0.0.2", END), ("10.0.0.1", None), ("10.0.0.1", END), ("10.0.0.0", None), ("0.0.0.0", END)],
            ["10.0.0.0", "10.0.0.1"],
            id="side by side, backwards",
        ),
        pytest.param(NETWORKS4, [("192.0.2.1", None), ("192.0.2.4", END)], ["192.0.2.1-192.0.2.3"], id="no network"),
        pytest.param(NETWORKS4, [("240.0.0.0", None)], ["240.0.0.0/4"], id="to the end of the space"),
        pytest.param(NETWORKS4, [("0.0.0.0", None)], ["0.0.0.0/0"], id="the whole space"),
        pytest.param(NETWORKS6, [("ff00::", None)], ["ff00::/8"], id="to the end of IPv6"),
    ],
)
def test_intervals_are_networks_or_ranges(
    collection: Collection, bounds: list[tuple[str, Any]], expected: list[str]
) -> None:
    elements = [element(packed(one), **({"flags": flags} if flags else {})) for one, flags in bounds]
    assert sorted(parse(collection, *elements)) == expected


def test_nft_marks_an_interval_to_the_end_of_the_space() -> None:
    assert parse(NETWORKS4, element(packed("224.0.0.0"), user_data=OPEN)) == {"224.0.0.0/3": ""}


def test_an_interval_is_read_and_written_in_steps_of_its_own() -> None:
    """Another program may have added thousands; the last step must not have them all."""
    bounds = [[element(packed(f"10.{one}.0.0")), element(packed(f"10.{one}.0.9"), flags=END)] for one in range(100)]
    assert len(list(parse_elements([datagram(*one) for one in bounds], NETWORKS4))) == 400


@pytest.mark.parametrize(
    ("collection", "elements"),
    [
        pytest.param(SET4, [element(packed("::1"))], id="an address of the other family"),
        pytest.param(SET4, [element(packed("192.0.2.1"), packed("192.0.2.2"))], id="a value in a set"),
        pytest.param(MAP4, [element(packed("192.0.2.1"))], id="none in a map"),
        pytest.param(MAP4, [element(packed("192.0.2.1"), b"")], id="an empty value"),
        pytest.param(SET4, [element(packed("192.0.2.1"), flags=END)], id="an end in a set without intervals"),
        pytest.param(SET4, [element(packed("192.0.2.1"), flags=struct.pack("!I", 2))], id="any other (catchall)"),
        pytest.param(SET4, [element(packed("192.0.2.1"), user_data=b"\0\2x\0")], id="a comment"),
        pytest.param(SET4, [element(packed("192.0.2.1"), expiration=bytes(8))], id="a time"),
        pytest.param(SET4, [format_attribute(1, b"")], id="no key"),
        pytest.param(SET4, [format_attribute(1, format_attribute(1, format_attribute(2, bytes(4))))], id="a verdict"),
        pytest.param(
            SET4, [element(packed("192.0.2.1")), element(packed("192.0.2.2"), user_data=b"\0\2x\0")], id="the second"
        ),
        pytest.param(NETWORKS4, [element(packed("10.0.0.0")), element(packed("10.0.0.9"))], id="two starts"),
        pytest.param(NETWORKS4, [element(packed("::"))], id="an interval of the other family"),
    ],
)
def test_what_is_not_understood_is_left_to_nft(collection: Collection, elements: list[bytes]) -> None:
    with pytest.raises((NotUnderstood, ValueError)):
        parse(collection, *elements)


@given(st.binary(max_size=80), st.sampled_from([SET4, SET6, MAP4, PORTS6, NETWORKS4]))
def test_any_octets_are_read_or_refused(octets: bytes, collection: Collection) -> None:
    for body in (bytes(4) + octets, bytes(4) + format_attribute(0x8003, octets)):
        with contextlib.suppress(struct.error, ValueError, LookupError):
            at_once(parse_elements([message(body, kind=NEW_ELEMENTS)], collection))
