"""The values of --dnstap and --dnstap-identity."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from dnsproxy.dnstap.settings import Collector, format_collector, parse_collector, parse_identity
from sidecar.values.endpoints import Endpoint


@pytest.mark.parametrize(
    ("text", "collector"),
    [
        pytest.param("unix:/run/dnstap.sock", PurePosixPath("/run/dnstap.sock"), id="a socket"),
        pytest.param("unix:dnstap.sock", PurePosixPath("dnstap.sock"), id="a relative path"),
        pytest.param("unix:/run/a:b", PurePosixPath("/run/a:b"), id="a path with a colon"),
        pytest.param("unix:/" + 106 * "x", PurePosixPath("/" + 106 * "x"), id="the longest path"),
        pytest.param("tcp:192.0.2.9:6000", Endpoint("192.0.2.9", 6000), id="TCP"),
        pytest.param("tcp:[2001:db8::9]:6000", Endpoint("2001:db8::9", 6000), id="TCP, IPv6"),
    ],
)
def test_a_collector_is_read_and_written(text: str, collector: Collector) -> None:
    assert parse_collector(text) == collector
    assert format_collector(collector) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "unix:PATH or tcp:ADDR:PORT", id="nothing"),
        pytest.param("/run/dnstap.sock", "unix:PATH or tcp:ADDR:PORT", id="a path alone"),
        pytest.param("192.0.2.9:6000", "unix:PATH or tcp:ADDR:PORT", id="an endpoint alone"),
        pytest.param("udp:192.0.2.9:6000", "unix:PATH or tcp:ADDR:PORT", id="UDP"),
        pytest.param("tls:192.0.2.9:6000", "unix:PATH or tcp:ADDR:PORT", id="TLS"),
        pytest.param("tcp:", "ADDR:PORT", id="no endpoint"),
        pytest.param("tcp:192.0.2.9", "ADDR:PORT", id="no port"),
        pytest.param("tcp://192.0.2.9:6000", "not an IP address", id="as an address of the Web"),
        pytest.param("tcp:collector.example.org:6000", "not an IP address", id="a name"),
        pytest.param("tcp:192.0.2.9:0", "port 0", id="port 0"),
        pytest.param("tcp:192.0.2.9:65536", "not a port", id="a great port"),
        pytest.param("unix:", "path of a socket", id="no path"),
        pytest.param("unix:/run/", "path of a socket", id="a folder"),
        pytest.param("unix:@dnstap", "path of a socket", id="an abstract socket"),
        pytest.param("unix:/run/\0", "path of a socket", id="a zero octet"),
        pytest.param("unix:/" + 107 * "x", "at most 107 octets", id="too long a path"),
        pytest.param("unix:/" + 54 * "ä", "at most 107 octets", id="too many octets"),
        pytest.param("unix:/\udcff", "not UTF-8", id="not UTF-8"),
    ],
)
def test_what_is_no_collector_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_collector(text)


@pytest.mark.parametrize("text", ["pod-7", "node 1, rack 2", "ä", 255 * "x"])
def test_an_identity_is_a_printable_text(text: str) -> None:
    assert parse_identity(text) == text


@pytest.mark.parametrize("text", ["", "a\nb", "\x1b[31m", 256 * "x", 128 * "ä", "\udcff", "a\0"])
def test_other_identities_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not"):
        parse_identity(text)
