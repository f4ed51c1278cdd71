"""HOST:PORT; the tests of publish/options.py and proxy/routes.py have their rules for names."""

from __future__ import annotations

import pytest

from sidecar.values.host_port import HostPort, parse_host_port


def refuse(text: str) -> str:
    raise ValueError(f"{text} is refused")


@pytest.mark.parametrize(
    ("text", "expected", "normal"),
    [
        pytest.param("192.0.2.1:80", HostPort("192.0.2.1", 80), "192.0.2.1:80", id="IPv4"),
        pytest.param("[2001:DB8::1]:80", HostPort("2001:db8::1", 80), "[2001:db8::1]:80", id="IPv6"),
        pytest.param("A.example.org:65535", HostPort("a.example.org", 65535), "a.example.org:65535", id="a name"),
    ],
)
def test_a_host_and_a_port_read_and_format(text: str, expected: HostPort, normal: str) -> None:
    assert parse_host_port(text, parse_name=str.lower) == expected
    assert str(expected) == normal
    assert parse_host_port(normal, parse_name=str.lower) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "'' is not HOST:PORT, such as a:1", id="empty"),
        pytest.param("example", "'example' is not HOST:PORT, such as a:1", id="no port"),
        pytest.param(":80", "':80' is not HOST:PORT", id="no host"),
        pytest.param("example.org:80", "example.org is refused", id="a name that the rule refuses"),
        pytest.param("2001:db8::1:80", "'2001:db8::1': an IPv6 address goes in brackets", id="no brackets"),
        pytest.param("[example.org]:80", "'example.org' is not an IP address", id="a name in brackets"),
        pytest.param("192.0.2.1:0", "'0' is not a port", id="port 0"),
        pytest.param("192.0.2.1:65536", "'65536' is not a port", id="a port too large"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_host_port(text, parse_name=refuse, example="a:1")
    assert str(caught.value).startswith(message)
