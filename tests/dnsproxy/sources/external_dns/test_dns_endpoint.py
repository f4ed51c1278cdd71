"""What one DNSEndpoint lists."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.sources.external_dns.dns_endpoint import Records, read_records
from tests.dnsproxy.sources.external_dns.objects import dns_endpoint, record

DB = "db.example.org"


def read(*endpoints: Any, most: int | None = None, **about: Any) -> Records:
    return read_records(dns_endpoint(*endpoints, **about), most=most)


@pytest.mark.parametrize(
    ("endpoints", "addresses", "aliases"),
    [
        pytest.param([record(DB, "A", "192.0.2.1")], {DB: ("192.0.2.1",)}, {}, id="an address"),
        pytest.param([record("DB.Example.Org.", "A", " 192.0.2.1")], {DB: ("192.0.2.1",)}, {}, id="another spelling"),
        pytest.param(
            [
                record(DB, "A", "192.0.2.1", "192.0.2.2"),
                record(DB, "AAAA", "2001:DB8::1"),
                record(DB, "A", "192.0.2.1"),
            ],
            {DB: ("192.0.2.1", "192.0.2.2", "2001:db8::1")},
            {},
            id="both families, in several endpoints",
        ),
        pytest.param([record(DB, "CNAME", "LB.example.net.")], {}, {DB: "lb.example.net"}, id="an alias"),
        pytest.param(
            [record("*.example.org", "A", "192.0.2.1")], {"*.example.org": ("192.0.2.1",)}, {}, id="a wildcard"
        ),
        pytest.param([record(DB, "A")], {}, {}, id="no targets"),
        pytest.param([None, {"dnsName": DB, "recordType": "A", "targets": None}], {}, {}, id="null"),
        pytest.param([record(DB, "A", None, "")], {}, {}, id="empty targets"),
    ],
)
def test_records_are_read(endpoints: list[Any], addresses: dict[str, tuple[str, ...]], aliases: dict[str, str]) -> None:
    found = read(*endpoints)
    assert (found.addresses, found.aliases, found.faults, found.ignored) == (addresses, aliases, (), ())


@pytest.mark.parametrize("spec", [None, {}, {"endpoints": None}, {"endpoints": []}], ids=str)
def test_an_object_without_endpoints_has_nothing(spec: Any) -> None:
    assert read_records(dns_endpoint(spec=spec), most=None).names == ()


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        pytest.param(record("?", "A", "192.0.2.9"), "dnsName: '?'", id="a bad hostname"),
        pytest.param(record(None, "A", "192.0.2.9"), "dnsName: '' is not a hostname", id="no hostname"),
        pytest.param(record("192.0.2.1", "A", "192.0.2.9"), "is an IP address", id="an address as a hostname"),
        pytest.param(record("a.org", "A", "lb.example.net"), "its A target 'lb.example.net' is not an IP", id="a name"),
        pytest.param(record("a.org", "A", "192.0.2.1."), "'192.0.2.1.' is not an IP", id="a final dot"),
        pytest.param(record("a.org", "A", "2001:db8::1"), "2001:db8::1 is of the other family", id="IPv6 in A"),
        pytest.param(record("a.org", "AAAA", "192.0.2.9"), "192.0.2.9 is of the other family", id="IPv4 in AAAA"),
        pytest.param(record("a.org", "A", "169.254.169.254"), "is link-local", id="a metadata service"),
        pytest.param(record("a.org", "CNAME", "192.0.2.9"), "CNAME target '192.0.2.9'", id="an alias of an address"),
        pytest.param(record("a.org", "CNAME", "*.a.org"), "'*.a.org' is a wildcard", id="an alias of a wildcard"),
        pytest.param(record("a.org", "CNAME", "a b"), "'a b' is not a host label", id="an alias of a text"),
    ],
)
def test_a_bad_endpoint_harms_no_other(bad: Any, named: str) -> None:
    found = read(bad, record(DB, "A", "192.0.2.1"))
    assert (found.addresses, found.aliases) == ({DB: ("192.0.2.1",)}, {})
    (fault,) = found.faults
    assert named in fault


def test_a_bad_target_harms_no_other() -> None:
    found = read(record(DB, "A", "?", "192.0.2.1"))
    assert found.addresses == {DB: ("192.0.2.1",)}
    assert len(found.faults) == 1


@pytest.mark.parametrize(
    ("endpoints", "aliases", "named"),
    [
        ([record(DB, "CNAME", "a.org", "b.org")], {DB: "a.org"}, "several aliases"),
        ([record(DB, "CNAME", "a.org"), record(DB, "CNAME", "b.org")], {DB: "a.org"}, "several aliases"),
        ([record(DB, "CNAME", "a.org"), record(DB, "A", "192.0.2.1")], {}, "no alias beside them"),
    ],
    ids=["two targets", "two endpoints", "beside an address"],
)
def test_a_name_has_one_alias_or_addresses(endpoints: list[Any], aliases: dict[str, str], named: str) -> None:
    found = read(*endpoints)
    assert found.aliases == aliases
    assert [named in fault for fault in found.faults] == [True]


@pytest.mark.parametrize("rtype", ["TXT", "MX", "SRV", "NS", "PTR", "DNAME", "a", "", None])
def test_other_types_are_left_out_on_purpose(rtype: str | None) -> None:
    found = read(record(DB, rtype, "x"))
    assert (found.names, found.faults) == ((), ())
    assert [reason.startswith(f"'{DB}': only A, AAAA and CNAME") for reason in found.ignored] == [True]


def test_of_many_names_the_first_are_read() -> None:
    many = [record(f"h{number}.org", "A", "192.0.2.1") for number in range(9_000)]
    found = read(*many, most=3)
    assert found.names == ("h0.org", "h1.org", "h2.org")
    assert found.faults == ("it claims more than 3 names (--max-names-per-object): the others are left out",)
    assert read(*many[:3], record("h0.org", "AAAA", "2001:db8::1"), most=3).faults == ()


def test_names_beyond_the_limit_take_no_address_from_the_first() -> None:
    names = ["a.org", "b.org", "c.org"]
    found = read(*(record(name, "A", "192.0.2.1") for name in names), record("a.org", "AAAA", "2001:db8::1"), most=2)
    assert found.addresses == {"a.org": ("192.0.2.1", "2001:db8::1"), "b.org": ("192.0.2.1",)}


def test_of_many_addresses_and_faults_a_few_are_kept() -> None:
    found = read(record(DB, "A", *(f"10.0.{n >> 8}.{n & 255}" for n in range(1_000))))
    assert len(found.addresses[DB]) == 64
    assert found.faults == (f"{DB}: it has more than 64 addresses: the others are left out",)
    assert len(read(*(record(f"-{n}", "A", "x") for n in range(1_000))).faults) == 100


@pytest.mark.parametrize(
    ("endpoint", "what"),
    [
        pytest.param(record(DB, "A", *(f"x{number}" for number in range(20_000))), "targets", id="bad addresses"),
        pytest.param(record(DB, "CNAME", *(f"-.{number}" for number in range(20_000))), "targets", id="bad aliases"),
        pytest.param(record(DB, "CNAME", *(f"x.{number}.org" for number in range(20_000))), "targets", id="aliases"),
        pytest.param(record(DB, "A", *["192.0.2.1"] * 20_000), "targets", id="one address"),
        pytest.param([{}] * 20_000, "endpoints", id="endpoints without a name"),
        pytest.param([None] * 20_000, "endpoints", id="nulls"),
        pytest.param([record(DB, "TXT", "x")] * 20_000, "endpoints", id="endpoints of another type"),
        pytest.param([record(DB, "A", "192.0.2.1")] * 20_000, "endpoints", id="one record"),
    ],
)
def test_of_an_object_that_takes_long_to_read_only_the_first_part_counts(endpoint: Any, what: str) -> None:
    """Nothing is answered meanwhile, and its writer may change it every second."""
    endpoints = endpoint if isinstance(endpoint, list) else [endpoint]
    found = read(record("first.org", "A", "192.0.2.1"), *endpoints, record("last.org", "A", "192.0.2.1"))
    assert found.addresses["first.org"] == ("192.0.2.1",)
    assert "last.org" not in found.addresses
    assert f"it has more than 10,000 {what}: the others are left out" in found.faults


def test_what_we_publish_ourselves_is_not_read() -> None:
    """It would keep each name for ever: the table is published, and the published is in the table."""
    found = read(record(DB, "A", "192.0.2.1"), labels={"switchback.dev/instance": "x"})
    assert found.names == ()
    assert "Switchback itself" in found.ignored[0]


def test_the_annotations_are_ours() -> None:
    found = read(record(DB, "A", "192.0.2.1"), annotations={"switchback.dev/target": "?"})
    assert found.annotations.exclusion == "has an invalid annotation"
    assert len(found.faults) == 1


TEXTS = st.sampled_from([DB, "*.a.org", "192.0.2.1", "2001:db8::1", "?", "", None]) | st.text(max_size=20)


@given(st.lists(st.none() | st.builds(record, TEXTS, st.sampled_from(["A", "AAAA", "CNAME", "TXT", "", None]), TEXTS)))
def test_any_texts_are_records_or_reasons(endpoints: list[Any]) -> None:
    found = read(*endpoints)
    assert not found.addresses.keys() & found.aliases.keys()
    assert all(found.addresses.values())
    rebuilt = [
        record(name, "AAAA" if ":" in one else "A", one) for name, all_ in found.addresses.items() for one in all_
    ]
    rebuilt += [record(name, "CNAME", alias) for name, alias in found.aliases.items()]
    again = read(*rebuilt)
    assert (again.addresses, again.aliases, again.faults) == (found.addresses, found.aliases, ())


def test_an_object_of_wrong_types_is_not_decoded() -> None:
    with pytest.raises(msgspec.ValidationError):
        dns_endpoint({"dnsName": 1})
