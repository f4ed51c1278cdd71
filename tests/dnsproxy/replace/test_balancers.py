"""Load balancers: what leads where, whatever is written in statuses and flags."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.replace.balancers import OF_ROW, Balancers, Leads, make_target, parse_replacement

RELAY = make_target(["10.96.7.7"])


def octets(text: str) -> bytes:
    return ip_address(text).packed


@pytest.mark.parametrize("claimed", [False, True])
def test_what_is_replaced_leads_to_its_target_whoever_asks(claimed: bool) -> None:
    leads = Leads(
        Balancers({"203.0.113.10": ("10.96.7.7",), "2001:db8::10": ("10.96.7.7",), "LB.example.net.": ("10.96.7.7",)})
    )
    for text in ("203.0.113.10", "2001:db8::10"):
        assert leads.by_address(octets(text), claimed=claimed) == RELAY
    assert leads.by_address(octets("203.0.113.11"), claimed=claimed) is None
    assert leads.by_name(b"\2lb\7example\3net\0", claimed=claimed) == RELAY
    assert leads.by_name(b"\7example\3net\0", claimed=claimed) is None


def test_what_is_known_leads_here_for_claimed_names_alone() -> None:
    known = {"198.51.100.0/24": (), "2001:db8:1::/48": (), "192.0.2.9": ("10.96.7.7",), "elb.example.com": ()}
    leads = Leads(Balancers({}, known))
    for text in ("198.51.100.255", "2001:db8:1::5"):
        assert leads.by_address(octets(text), claimed=True) == OF_ROW
    assert leads.by_address(octets("192.0.2.9"), claimed=True) == RELAY
    for text in ("192.0.2.8", "2001:db8:2::"):
        assert leads.by_address(octets(text), claimed=True) is None
    assert leads.by_name(b"\3elb\7example\3com\0", claimed=True) == OF_ROW
    for text in ("198.51.100.255", "192.0.2.9"):
        assert leads.by_address(octets(text), claimed=False) is None
    assert leads.by_name(b"\3elb\7example\3com\0", claimed=False) is None


def test_for_claimed_names_what_is_known_counts_before_what_is_replaced() -> None:
    leads = Leads(Balancers({"203.0.113.10": ("10.96.7.7",)}, {"203.0.113.10": (), "203.0.113.0/24": ()}))
    assert leads.by_address(octets("203.0.113.10"), claimed=True) == OF_ROW
    assert leads.by_address(octets("203.0.113.10"), claimed=False) == RELAY


@pytest.mark.parametrize(
    "text", ["", "*", "..", "203.0.113", "203.0.113.10/99", "a b", "x" * 300, "-.example", "::1%eth0/3", "\0"]
)
def test_what_is_neither_address_nor_hostname_leads_nowhere(text: str) -> None:
    leads = Leads(Balancers({text: ("10.96.7.7",)}, {text: ()}))
    assert leads.by_address(octets("203.0.113.10"), claimed=True) is None
    if leads.search is not None:
        assert not leads.search(b"\0" * 12)


def test_a_target_that_is_none_replaces_nothing() -> None:
    leads = Leads(Balancers({"203.0.113.10": ("relay",), "203.0.113.11": ("10.96.7.7",)}))
    assert leads.by_address(octets("203.0.113.10"), claimed=False) is None
    assert leads.by_address(octets("203.0.113.11"), claimed=False) == RELAY


def test_without_anything_to_replace_no_reply_is_searched() -> None:
    assert Leads().search is None
    assert Leads(Balancers({}, {"203.0.113.10": ()})).search is None


@given(st.lists(st.ip_addresses(), min_size=1, max_size=80, unique=True), st.binary(max_size=40), st.data())
def test_the_search_finds_each_of_them_wherever_it_stands(
    addresses: list[object], around: bytes, data: st.DataObject
) -> None:
    leads = Leads(Balancers({str(one): ("10.96.7.7",) for one in addresses}))
    assert leads.search is not None
    one = data.draw(st.sampled_from(addresses))
    assert leads.search(around + ip_address(str(one)).packed + around)


def test_the_search_finds_a_hostname_in_any_case_before_a_pointer() -> None:
    leads = Leads(Balancers({"lb.example.net": ("10.96.7.7",)}))
    assert leads.search is not None
    assert leads.search(b"....\2LB\xc0\x10")
    assert not leads.search(b"....\3LBx\xc0\x10")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("203.0.113.10=10.96.7.7", ("203.0.113.10", ("10.96.7.7",))),
        (" 2001:DB8::10 = fd00::7, 10.96.7.7 ", ("2001:db8::10", ("fd00::7", "10.96.7.7"))),
    ],
)
def test_a_replacement_is_read(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert parse_replacement(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "203.0.113.10", "=10.96.7.7", "203.0.113.10=", "lb.example.net=10.96.7.7", "203.0.113.10=relay", "a=b=c"],
)
def test_another_text_is_no_replacement(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|ADDRESS"):
        parse_replacement(text)
