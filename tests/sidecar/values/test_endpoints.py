"""Endpoints as text and as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.values.endpoints import Endpoint, parse_address, parse_endpoint, parse_port


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        pytest.param("127.0.0.1:53", Endpoint("127.0.0.1", 53), id="IPv4"),
        pytest.param("[::1]:53", Endpoint("::1", 53), id="IPv6"),
        pytest.param("[2001:DB8:0::1]:53", Endpoint("2001:db8::1", 53), id="IPv6 in another form"),
        pytest.param("[fe80::1%eth0]:53", Endpoint("fe80::1%eth0", 53), id="scope"),
        pytest.param("0.0.0.0:0", Endpoint("0.0.0.0", 0), id="port of the system's choice"),
        pytest.param(" 127.0.0.1:53 ", Endpoint("127.0.0.1", 53), id="blanks around"),
    ],
)
def test_an_endpoint_is_read_and_written(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        pytest.param("192.0.2.1", Endpoint("192.0.2.1", 53), id="IPv4 alone"),
        pytest.param("192.0.2.1:5353", Endpoint("192.0.2.1", 5353), id="IPv4 and port"),
        pytest.param("2001:db8::1", Endpoint("2001:db8::1", 53), id="IPv6 alone"),
        pytest.param("[2001:db8::1]", Endpoint("2001:db8::1", 53), id="IPv6 in brackets"),
        pytest.param("[2001:db8::1]:5353", Endpoint("2001:db8::1", 5353), id="IPv6 and port"),
    ],
)
def test_a_default_port_may_be_left_out(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text, default_port=53) == endpoint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is not ADDR:PORT", id="nothing"),
        pytest.param("53", "is not ADDR:PORT", id="a port alone"),
        pytest.param("127.0.0.1", "is not ADDR:PORT", id="an address alone"),
        pytest.param(":53", r"'0\.0\.0\.0:53' or '\[::\]:53'$", id="no address"),
        pytest.param(":\r0", r"'0\.0\.0\.0:\\r0' or '\[::\]:\\r0'$", id="no address, and a carriage return"),
        pytest.param("::1", r"goes in brackets", id="IPv6 without brackets"),
        pytest.param("::1:53", r"goes in brackets", id="IPv6 and port without brackets"),
        pytest.param("[::1]", r"is not \[ADDR\]:PORT", id="IPv6 without port"),
        pytest.param("[::1]53", r"is not \[ADDR\]:PORT", id="no colon"),
        pytest.param("[::1:53", r"is not \[ADDR\]:PORT", id="one bracket"),
        pytest.param("[]:53", "'' is not an IP address", id="empty brackets"),
        pytest.param("localhost:53", "'localhost' is not an IP address", id="a name"),
        pytest.param("127.0.0.1:", "'' is not a port", id="no port"),
        pytest.param("127.0.0.1:dns", "'dns' is not a port", id="port by name"),
        pytest.param("127.0.0.1:65536", "'65536' is not a port", id="port of 65536"),
        pytest.param("127.0.0.1:-1", "'-1' is not a port", id="negative port"),
        pytest.param("127.0.0.1:5\u0663", "is not a port", id="Arabic digits"),
        pytest.param("127.0.0.1:00000053", "is not a port", id="many zeros"),
        pytest.param("127.0.0.01:53", "is not an IP address", id="leading zero"),
    ],
)
def test_what_is_no_endpoint_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_endpoint(text)


@pytest.mark.parametrize("text", ["192.0.2.1:0", "[2001:db8::1]:0"])
def test_port_0_is_no_port_to_dial(text: str) -> None:
    with pytest.raises(ValueError, match="'0' is not a port"):
        parse_endpoint(text, default_port=53)


@pytest.mark.parametrize("text", ["", " ", "192.0.2", "192.0.2.1/24", "2001:db8::g", "example.org", "1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an IP address"):
        parse_address(text)


@given(st.text(), st.one_of(st.none(), st.just(53)))
def test_any_text_is_an_endpoint_or_a_value_error_on_one_line(text: str, default_port: int | None) -> None:
    try:
        endpoint = parse_endpoint(text, default_port=default_port)
    except ValueError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        return
    assert parse_endpoint(str(endpoint)) == endpoint


@given(st.ip_addresses().map(str), st.integers(0, 65_535))
def test_every_address_and_port_is_read_again_as_written(host: str, port: int) -> None:
    assert parse_endpoint(str(Endpoint(host, port))) == Endpoint(host, port)


@given(st.integers(1, 65_535))
def test_every_port_is_read(port: int) -> None:
    assert parse_port(str(port)) == port
