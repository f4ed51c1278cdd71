import dns.edns
import dns.message
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.edns_options import client_subnet, find_opt, full_rcode
from tests.kit.messages import opt_record, option, query, record


def asked_for(address: str, prefix: int) -> bytes:
    return dns.message.make_query(
        "app.example.org", "A", use_edns=True, options=[dns.edns.ECSOption(address, prefix)]
    ).to_wire()


@pytest.mark.parametrize(
    ("address", "prefix", "shown"),
    [
        ("192.0.2.7", 32, "192.0.2.7/32"),
        ("192.0.2.7", 24, "192.0.2.0/24"),
        ("192.0.2.7", 0, "0.0.0.0/0"),
        ("2001:db8::7", 56, "2001:db8::/56"),
        ("2001:db8::7", 128, "2001:db8::7/128"),
    ],
)
def test_the_subnet_of_another_library_is_read(address: str, prefix: int, shown: str) -> None:
    assert client_subnet(asked_for(address, prefix)) == shown


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"\0\x08", id="cut in the code"),
        pytest.param(option(8), id="empty"),
        pytest.param(option(8, b"\0\x01\x18"), id="cut before the scope"),
        pytest.param(option(8, b"\0\x03\x18\0\xc0\0\2"), id="another family"),
        pytest.param(option(8, b"\0\x01\x21\0\xc0\0\2\1"), id="a prefix too long"),
        pytest.param(option(8, b"\0\x01\x18\0" + bytes(5)), id="an address too long"),
        pytest.param(option(10, bytes(8)), id="a cookie alone"),
    ],
)
def test_other_options_are_no_subnet(options: bytes) -> None:
    assert client_subnet(query("app.example.org", additional=(opt_record(options=options),))) == ""


def test_the_subnet_stands_among_other_options() -> None:
    options = option(10, bytes(8)) + option(8, b"\0\x01\x18\0\xc0\0\2") + option(12, bytes(9))
    assert client_subnet(query("app.example.org", additional=(opt_record(options=options),))) == "192.0.2.0/24"


def test_an_extended_code_is_the_whole_code() -> None:
    reply = query("app.example.org", flags=0x8000, additional=(opt_record(rcode=1),))
    assert full_rcode(reply) == 16
    assert full_rcode(query("app.example.org", flags=0x8003)) == 3


def test_the_opt_is_found_behind_other_records() -> None:
    reply = query("app.example.org", additional=(record(1, bytes(4)), record(250, bytes(9)), opt_record(rcode=2)))
    found = find_opt(reply)
    assert found is not None
    assert found.extended == 2


@given(st.binary(max_size=300))
def test_any_octets_are_shown_without_an_error(octets: bytes) -> None:
    for message in (octets, query("app.example.org", additional=(octets,))):
        find_opt(message)
        client_subnet(message)
