"""Addresses that no status names: which of those where names lead are worth a hint, and in which words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.public_addresses import AddressTally, UnknownAddress, merge_unknown
from dnsproxy.hostnames.verdict import LedElsewhere

ROUTER: Final = "198.51.100.1"
CDN: Final = "203.0.113.99"
NGINX: Final = "ingressclass/nginx"


def led(hostname: str, *leads: str) -> LedElsewhere:
    return LedElsewhere(hostname, Claim(hostname, Reach.NAME, Origin("Ingress", "web", "shop")), leads)


def tally_of(leads: Mapping[str, Iterable[str]], subjects: Mapping[str, str] | None = None) -> AddressTally:
    tally = AddressTally()
    for hostname, addresses in leads.items():
        tally.add(led(hostname, *addresses), (subjects or {}).get(hostname, NGINX))
    return tally


def names(number: int, *leads: str, prefix: str = "a") -> dict[str, Iterable[str]]:
    return {f"{prefix}{one:03}.example.org": leads for one in range(number)}


@pytest.mark.parametrize(
    ("leading", "asked", "named"),
    [
        pytest.param(0, 0, False, id="nothing was asked"),
        pytest.param(0, 9, False, id="nothing leads elsewhere"),
        pytest.param(1, 1, True, id="the only one"),
        pytest.param(1, 2, True, id="half of two"),
        pytest.param(1, 3, False, id="a third"),
        pytest.param(2, 4, True, id="half of four"),
        pytest.param(2, 5, False, id="less than half"),
        pytest.param(3, 5, True, id="three of five"),
        pytest.param(2, 1_000, False, id="two of many"),
        pytest.param(3, 1_000, True, id="three of many"),
    ],
)
def test_three_names_are_worth_a_hint_or_half_of_those_that_were_asked(leading: int, asked: int, named: bool) -> None:
    found = tally_of(names(leading, ROUTER)).find_unknown(asked)
    assert [(one.address, one.hostnames, one.asked) for one in found] == [(ROUTER, leading, asked)] * named


def test_a_name_counts_once_for_each_of_its_addresses() -> None:
    tally = tally_of({"a.example.org": (ROUTER, ROUTER), "b.example.org": (ROUTER, "2001:db8::1")})
    assert {one.address: one.hostnames for one in tally.find_unknown(2)} == {ROUTER: 2, "2001:db8::1": 1}


def test_more_names_lead_elsewhere_than_were_counted_as_asked() -> None:
    (found,) = tally_of(names(4, ROUTER)).find_unknown(2)
    assert (found.hostnames, found.asked) == (4, 4)


def test_only_the_five_addresses_with_the_most_names_are_named() -> None:
    leads = {
        hostname: (f"198.51.100.{number}",)
        for number in range(1, 9)
        for hostname in names(2 + number, prefix=f"n{number}-")
    }
    found = tally_of(leads).find_unknown(100)
    assert [(one.address, one.hostnames) for one in found] == [(f"198.51.100.{n}", 2 + n) for n in (8, 7, 6, 5, 4)]


def test_addresses_with_equally_many_names_stay_in_one_order() -> None:
    leads = {**names(3, CDN, prefix="z"), **names(3, ROUTER, prefix="b")}
    assert [one.address for one in tally_of(leads).find_unknown(6)] == [ROUTER, CDN]
    assert [one.address for one in tally_of(dict(reversed(leads.items()))).find_unknown(6)] == [ROUTER, CDN]


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "169.254.169.254", "::1", "::", "no address", ""])
def test_an_address_that_no_router_has_is_not_named(address: str) -> None:
    # A reader would refuse the whole document for one of them, and tenants choose where their records lead.
    found = tally_of(names(5, address)).find_unknown(5)
    assert found == ()


def test_examples_are_the_first_three_whatever_the_order() -> None:
    leads = dict(reversed(names(9, ROUTER).items()))
    (found,) = tally_of(leads).find_unknown(9)
    assert found.examples == ("a000.example.org", "a001.example.org", "a002.example.org")


def test_the_subject_is_that_of_most_names_and_none_without_one() -> None:
    subjects = {"a000.example.org": "gateway/infra/gate"}
    assert tally_of(names(3, ROUTER), subjects).find_unknown(3)[0].subject == NGINX
    assert tally_of(names(3, ROUTER), dict.fromkeys(names(3), "")).find_unknown(3)[0].subject == ""


def address(**changes: object) -> UnknownAddress:
    made: dict[str, object] = {"address": ROUTER, "hostnames": 12, "asked": 14, "examples": ("app.example.org",)}
    return UnknownAddress(**(made | changes))  # type: ignore[arg-type]


def test_the_words_say_both_what_it_may_be_and_how_to_name_it() -> None:
    assert address().sentence == (
        "12 of 14 asked hosts lead to 198.51.100.1, which no status names; "
        "if it is your router, name it, if it is a CDN, leave it"
    )
    assert address(hostnames=1, asked=2).sentence.startswith("1 of 2 asked hosts leads to 198.51.100.1, ")
    assert "`--trust 198.51.100.1`" in address().shown
    assert "dns.publicAddresses" in address().shown
    assert "such as app.example.org" in address().shown


def test_long_names_are_cut_in_a_sentence() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(address(examples=(longest, longest, longest)).shown) < 700


def test_of_several_servers_the_one_that_knows_most_of_an_address_counts() -> None:
    more, less, other = address(), address(hostnames=3, asked=3), address(address=CDN, hostnames=3)
    assert merge_unknown([]) == merge_unknown([[], []]) == ()
    assert merge_unknown([[less], [other, more]]) == merge_unknown([[more], [less], [other]]) == (more, other)
    many = [address(address=f"198.51.100.{number}", hostnames=number) for number in range(1, 10)]
    assert [one.hostnames for one in merge_unknown([many[:5], many[5:]])] == [9, 8, 7, 6, 5]
