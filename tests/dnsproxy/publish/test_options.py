"""The options of all publishers: the name of a server is a host and a port."""

from __future__ import annotations

import pytest

from dnsproxy.publish.options import parse_server_name
from sidecar.values.host_port import HostPort


@pytest.mark.parametrize(
    ("text", "expected", "shown"),
    [
        pytest.param("127.0.0.1:8081", HostPort("127.0.0.1", 8081), "127.0.0.1:8081", id="IPv4"),
        pytest.param("[2001:DB8::1]:8081", HostPort("2001:db8::1", 8081), "[2001:db8::1]:8081", id="IPv6"),
        pytest.param(" dnsproxy:1 ", HostPort("dnsproxy", 1), "dnsproxy:1", id="a Service of the namespace"),
        pytest.param("A.Example.org:8081", HostPort("a.example.org", 8081), "a.example.org:8081", id="upper case"),
        pytest.param("a.example.org.:8081", HostPort("a.example.org.", 8081), "a.example.org.:8081", id="a full name"),
    ],
)
def test_a_server_reads_and_shows(text: str, expected: HostPort, shown: str) -> None:
    assert parse_server_name(text) == expected
    assert str(expected) == shown
    assert parse_server_name(shown) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":8081",
        "dnsproxy",
        "dnsproxy:",
        "dnsproxy:0",
        "dnsproxy:65536",
        "dnsproxy:x",
        "127.0.0.1",
        "127.0.0.1:0",
        "2001:db8::1",
        "2001:db8::1:8081",
        "http://dnsproxy:8081",
        "*.example.org:1",
        "a b:1",
        "a/b:1",
    ],
)
def test_what_names_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_server_name(text)
