"""What public DNS shows about a claim: owned, unknown, or foreign."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.hostnames.ownership import Finding, OwnershipSettings, Standing, parse_trust, standing_of

RELAY: Final = ("10.96.7.7",)
OWNED, UNKNOWN, FOREIGN = Standing


def claim(*status: str, **rest: Any) -> Claim:
    return Claim("app.example.org", Reach.NAME, Origin("Ingress", "app", "shop"), Terms(status=status, **rest))


def judged(one: Claim, *public: str, answers: tuple[str, ...] = RELAY, **rest: Any) -> Standing:
    return standing_of(one, answers=answers, finding=Finding(public, **rest))


@pytest.mark.parametrize(
    ("status", "public", "expected"),
    [
        pytest.param(["192.0.2.1"], ["192.0.2.1"], OWNED, id="the load balancer"),
        pytest.param(["192.0.2.1"], ["192.0.2.2"], FOREIGN, id="somebody else"),
        pytest.param(["192.0.2.1", "192.0.2.2"], ["192.0.2.2", "192.0.2.9"], OWNED, id="one of several"),
        pytest.param(["192.0.2.1"], ["2001:db8::9"], UNKNOWN, id="another family"),
        pytest.param(["192.0.2.1", "2001:db8::1"], ["192.0.2.9", "2001:db8::1"], OWNED, id="one family leads here"),
        pytest.param(["192.0.2.1"], ["192.0.2.9", "2001:db8::9"], FOREIGN, id="the family that can be compared"),
        pytest.param(["2001:db8::1"], ["2001:db8::9"], FOREIGN, id="IPv6"),
        pytest.param([], ["192.0.2.9"], UNKNOWN, id="no status"),
        pytest.param(["10.0.0.5"], ["192.0.2.9"], UNKNOWN, id="behind NAT"),
        pytest.param(["192.168.1.5", "fd00::5"], ["192.0.2.9", "2001:db8::9"], UNKNOWN, id="behind NAT, both families"),
        pytest.param(["100.64.0.1"], ["192.0.2.9"], UNKNOWN, id="behind a carrier's NAT"),
        pytest.param(["10.0.0.5", "192.0.2.1"], ["192.0.2.9"], FOREIGN, id="an internal address beside a public one"),
        pytest.param(["10.0.0.5"], ["10.0.0.9"], FOREIGN, id="two internal ones"),
        pytest.param(["10.0.0.5"], ["10.0.0.9", "192.0.2.9"], UNKNOWN, id="behind NAT, an internal record too"),
        pytest.param(["192.0.2.1"], ["10.0.0.9"], FOREIGN, id="an internal record for a public load balancer"),
        pytest.param(["172.15.0.1"], ["192.0.2.9"], FOREIGN, id="nearly an internal address"),
    ],
)
def test_addresses_are_compared_family_by_family(status: list[str], public: list[str], expected: Standing) -> None:
    assert judged(claim(*status), *public) is expected


@pytest.mark.parametrize(
    ("declared", "public", "aliases", "expected"),
    [
        pytest.param(
            ["192.0.2.9"], ["192.0.2.9"], [], UNKNOWN, id="the record that its writer asked for proves nothing"
        ),
        pytest.param(["192.0.2.9", "192.0.2.8"], ["192.0.2.9"], [], UNKNOWN, id="one of two that its writer asked for"),
        pytest.param(["cdn.example.com"], ["192.0.2.9"], ["cdn.example.com"], UNKNOWN, id="an alias of its writer's"),
        pytest.param(["192.0.2.9"], ["192.0.2.1"], [], OWNED, id="the load balancer nevertheless"),
        pytest.param(["192.0.2.9"], ["192.0.2.9", "192.0.2.10"], [], FOREIGN, id="only a part of the record"),
        pytest.param(["192.0.2.8"], ["192.0.2.9"], [], FOREIGN, id="another record"),
        pytest.param(["cdn.example.com"], ["192.0.2.9"], ["login.example.com"], FOREIGN, id="another alias"),
        pytest.param(["cdn.example.com"], ["192.0.2.9"], [], FOREIGN, id="no alias"),
    ],
)
def test_what_the_writer_declares_explains_a_record_and_proves_nothing(
    declared: list[str], public: list[str], aliases: list[str], expected: Standing
) -> None:
    one = claim("192.0.2.1", declared=tuple(declared))
    assert judged(one, *public, aliases=tuple(aliases)) is expected


@pytest.mark.parametrize(
    ("status", "aliases", "resolved", "expected"),
    [
        pytest.param(["lb.example.net"], [], {"lb.example.net": ("192.0.2.9",)}, OWNED, id="the same addresses"),
        pytest.param(["lb.example.net"], [], {"lb.example.net": ("192.0.2.1",)}, FOREIGN, id="other addresses"),
        pytest.param(["lb.example.net"], ["lb.example.net"], {}, OWNED, id="an alias of it, however it rotates"),
        pytest.param(["lb.example.net"], ["cdn.example.com"], {}, UNKNOWN, id="one that could not be asked for"),
        pytest.param(["lb.example.net"], [], {"lb.example.net": ()}, UNKNOWN, id="one without addresses"),
        pytest.param(
            ["lb.example.net", "192.0.2.1"], [], {}, UNKNOWN, id="an address elsewhere beside one that is not known"
        ),
        pytest.param(["lb.example.net", "192.0.2.9"], [], {}, OWNED, id="an address here beside one that is not known"),
        pytest.param(
            ["a.example.net", "b.example.net"],
            [],
            {"a.example.net": ("192.0.2.1",), "b.example.net": ("192.0.2.9",)},
            OWNED,
            id="one of two",
        ),
        pytest.param(["lb.example.net"], [], {"lb.example.net": ("10.0.0.1",)}, UNKNOWN, id="one that is internal"),
    ],
)
def test_a_load_balancer_with_a_hostname_has_its_addresses(
    status: list[str], aliases: list[str], resolved: dict[str, tuple[str, ...]], expected: Standing
) -> None:
    assert judged(claim(*status), "192.0.2.9", aliases=tuple(aliases), resolved=resolved) is expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(claim(ingress_class="nginx"), OWNED, id="no status yet"),
        pytest.param(claim("192.0.2.1", ingress_class="nginx"), OWNED, id="a load balancer of its own beside it"),
        pytest.param(claim(ingress_class="other"), FOREIGN, id="another class, whose controller is elsewhere"),
        pytest.param(claim(ingress_class="nobody"), UNKNOWN, id="a class without any"),
        pytest.param(claim(), UNKNOWN, id="no class"),
    ],
)
def test_the_controllers_load_balancers_count_for_each_object_of_the_class(one: Claim, expected: Standing) -> None:
    balancers = {"nginx": ("192.0.2.9",), "other": ("192.0.2.1",), None: ()}
    assert judged(one, "192.0.2.9", balancers=balancers) is expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(("192.0.2.9",), OWNED, id="the very address"),
        pytest.param(("192.0.2.9", "192.0.2.8"), OWNED, id="all of them"),
        pytest.param(("192.0.2.9", "192.0.2.7"), FOREIGN, id="one address too many"),
        pytest.param(("192.0.2.7",), FOREIGN, id="another"),
        pytest.param((), FOREIGN, id="none"),
    ],
)
def test_an_answer_within_the_public_record_is_harmless(answers: tuple[str, ...], expected: Standing) -> None:
    assert judged(claim("192.0.2.1"), "192.0.2.8", "192.0.2.9", answers=answers) is expected


def test_a_static_name_is_never_unverified() -> None:
    static = Claim(
        "app.example.org", Reach.NAME, Origin("flag", "--host"), Terms(("192.0.2.7",), status=("192.0.2.1",))
    )
    assert judged(static, "192.0.2.9") is UNKNOWN


def test_where_the_operator_has_named_the_public_addresses_internal_ones_excuse_nothing() -> None:
    assert judged(claim("10.0.0.5"), "192.0.2.9", strict=True) is FOREIGN
    assert judged(claim("10.0.0.5"), "2001:db8::9", strict=True) is UNKNOWN
    assert judged(claim("10.0.0.5"), "10.0.0.5", strict=True) is OWNED


@pytest.mark.parametrize(
    ("public", "shown"),
    [(["192.0.2.1"], "(192.0.2.1)"), ([f"192.0.2.{n}" for n in range(5)], "(192.0.2.0, 192.0.2.1, 192.0.2.2, ...)")],
    ids=["one", "many"],
)
def test_the_reason_has_the_addresses_of_the_record(public: list[str], shown: str) -> None:
    assert Finding(tuple(public)).reason == f"its public record points elsewhere {shown}"


POINTS = st.sampled_from(
    ["192.0.2.1", "192.0.2.9", "10.0.0.5", "2001:db8::1", "2001:db8::9", "lb.example.net", "x.org"]
)
ADDRESSES = st.lists(st.sampled_from(["192.0.2.1", "192.0.2.9", "10.0.0.5", "2001:db8::1", "2001:db8::9"]))


@given(
    st.lists(POINTS),
    ADDRESSES.filter(bool),
    st.lists(POINTS),
    st.dictionaries(st.sampled_from(["lb.example.net", "x.org"]), ADDRESSES.map(tuple)),
    ADDRESSES.map(tuple),
    st.booleans(),
)
def test_an_overlap_is_owned_and_a_claim_without_addresses_to_compare_passes(
    status: list[str],
    public: list[str],
    aliases: list[str],
    resolved: dict[str, tuple[str, ...]],
    answers: tuple[str, ...],
    strict: bool,
) -> None:
    rest: Any = {"aliases": tuple(aliases), "resolved": resolved, "strict": strict}
    found = judged(claim(*status), *public, answers=answers, **rest)
    assert found is judged(claim(*reversed(status)), *reversed(public), answers=answers[::-1], **rest)
    if {*status} & {*public, *aliases}:
        assert found is OWNED
    if not status:
        assert found is not FOREIGN
    if found is FOREIGN:
        assert not {*status} & {*public}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Example.ORG.", "example.org"),
        (" shop.example.org ", "shop.example.org"),
        ("192.0.2.7", ip_network("192.0.2.7/32")),
        ("192.0.2.0/24", ip_network("192.0.2.0/24")),
        ("2001:db8::/32", ip_network("2001:db8::/32")),
        ("2001:db8::7", ip_network("2001:db8::7/128")),
    ],
)
def test_trust_is_a_zone_or_a_network(text: str, expected: object) -> None:
    assert parse_trust(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "*", "*.example.org", "-x", "a..b", "192.0.2.300", "192.0.2.7/24", "192.0.2.0/33", "192.0.2.0/", "/24",
     "example.org/24", "0.0.0.0", "192.0.2.1-192.0.2.9", "[2001:db8::1]", "https://example.org", "a b", "\u202e"],
)  # fmt: skip
def test_a_text_that_is_neither_zone_nor_network_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse_trust(text)
    assert str(caught.value).isprintable()


SETTINGS = OwnershipSettings(zones=("example.org",), networks=(ip_network("192.0.2.0/24"), ip_network("2001:db8::/64")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("example.org", True), ("a.b.example.org", True), ("*.example.org", True), ("*.a.example.org", True),
     ("anexample.org", False), ("org", False), ("*.org", False), ("example.org.example.com", False)],
)  # fmt: skip
def test_a_name_is_trusted_at_or_below_a_zone(name: str, expected: bool) -> None:
    assert SETTINGS.trusts_name(name) is expected
    assert not OwnershipSettings().trusts_name(name)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [(["192.0.2.255"], True), (["198.51.100.1", "2001:db8::1"], True), (["192.0.3.0"], False),
     (["2001:db8:1::"], False), ([], False)],
)  # fmt: skip
def test_a_record_is_trusted_by_one_of_its_addresses(addresses: list[str], expected: bool) -> None:
    assert SETTINGS.trusts_address(addresses) is expected
    assert not OwnershipSettings().trusts_address(addresses)
