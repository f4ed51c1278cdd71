"""The settings of forwarding, from flags and from a resolv.conf, and the errors for other texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.settings import (
    ForwardSettings,
    TcpEndpoint,
    TlsEndpoint,
    exclude_own,
    parse_forwarding,
    parse_upstream,
    refuse_loop,
)
from sidecar.values.endpoints import Endpoint


@pytest.mark.parametrize(
    ("text", "upstream"),
    [
        pytest.param("192.0.2.53", Endpoint("192.0.2.53", 53), id="IPv4"),
        pytest.param(" 192.0.2.53:5353\n", Endpoint("192.0.2.53", 5353), id="port, spaces around"),
        pytest.param("2001:DB8::53", Endpoint("2001:db8::53", 53), id="IPv6"),
        pytest.param("[2001:db8::53]:5353", Endpoint("2001:db8::53", 5353), id="IPv6 and port"),
        pytest.param("fe80::1%eth0", Endpoint("fe80::1%eth0", 53), id="scope"),
    ],
)
def test_an_address_is_asked_in_plain_dns(text: str, upstream: Endpoint) -> None:
    assert parse_upstream(text) == upstream
    assert type(parse_upstream(text)) is Endpoint


@pytest.mark.parametrize(
    ("text", "host", "port", "name"),
    [
        pytest.param("tls://192.0.2.53#dns.example.org", "192.0.2.53", 853, "dns.example.org", id="IPv4"),
        pytest.param("tls://192.0.2.53:8853#dns.example.org", "192.0.2.53", 8853, "dns.example.org", id="port"),
        pytest.param("TLS://192.0.2.53#DNS.Example.ORG.", "192.0.2.53", 853, "dns.example.org", id="case, final dot"),
        pytest.param("tls://2001:DB8::53#dns.example.org", "2001:db8::53", 853, "dns.example.org", id="IPv6"),
        pytest.param("tls://[2001:db8::53]#dns.example.org", "2001:db8::53", 853, "dns.example.org", id="brackets"),
        pytest.param("tls://[2001:db8::53]:8853#x.example", "2001:db8::53", 8853, "x.example", id="IPv6 and port"),
        pytest.param("tls://fe80::1%eth0#dns.example.org", "fe80::1%eth0", 853, "dns.example.org", id="scope"),
        pytest.param("tls://192.0.2.53#192.0.2.53", "192.0.2.53", 853, "192.0.2.53", id="certificate of an address"),
        pytest.param("tls://192.0.2.53#2001:DB8::0:53", "192.0.2.53", 853, "2001:db8::53", id="of another address"),
        pytest.param("tls://192.0.2.53#dns", "192.0.2.53", 853, "dns", id="one label"),
        pytest.param("tls://192.0.2.53#dns.bücher.example", "192.0.2.53", 853, "dns.xn--bcher-kva.example", id="IDN"),
    ],
)
def test_tls_comes_with_the_name_that_is_expected(text: str, host: str, port: int, name: str) -> None:
    assert parse_upstream(text) == TlsEndpoint(host, port, name)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("", "is not an IP address", id="empty"),
        pytest.param("dns.example.org", "'dns.example.org' is not an IP address", id="a name"),
        pytest.param("dns.example.org:53", "'dns.example.org' is not an IP address", id="a name and a port"),
        pytest.param("192.0.2.53:0", "'0' is not a port", id="port 0"),
        pytest.param("192.0.2.53:65536", "'65536' is not a port", id="port too large"),
        pytest.param("192.0.2.53:", "'' is not a port", id="colon alone"),
        pytest.param("192.0.2.53:dns", "'dns' is not a port", id="port by name"),
        pytest.param("192.0.2.256", "is not an IP address", id="number too large"),
        pytest.param("192.0.2.053", "is not an IP address", id="octal"),
        pytest.param("[192.0.2.53", "is not [ADDR]:PORT", id="open bracket"),
        pytest.param("192.0.2.53 192.0.2.54", "is not an IP address", id="two in one"),
        pytest.param("192.0.2.53#dns.example.org", "is not an IP address", id="a name without tls"),
        pytest.param("192.0.2.53#5353", "is not an IP address", id="dnsmasq's way to name a port"),
        pytest.param("https://192.0.2.53/dns-query", "ADDR[:PORT] or tls://ADDR[:PORT]#NAME", id="https"),
        pytest.param("udp://192.0.2.53", "ADDR[:PORT] or tls://ADDR[:PORT]#NAME", id="other scheme"),
        pytest.param("://192.0.2.53", "ADDR[:PORT] or tls://ADDR[:PORT]#NAME", id="no scheme"),
        pytest.param("tls:192.0.2.53#dns.example.org", "is not an IP address", id="half a scheme"),
        pytest.param("tls://192.0.2.53", "has no name to expect in the certificate", id="no certificate"),
        pytest.param("tls://192.0.2.53#", "has no name to expect in the certificate", id="empty name"),
        pytest.param("tls://", "has no name to expect in the certificate", id="scheme alone"),
        pytest.param("tls://#dns.example.org", "is not an IP address", id="no address"),
        pytest.param("tls://dns.example.org#dns.example.org", "is not an IP address", id="a name to dial"),
        pytest.param("tls://192.0.2.53:0#dns.example.org", "'0' is not a port", id="tls on port 0"),
        pytest.param("tls://192.0.2.53/#dns.example.org", "is not an IP address", id="path"),
        pytest.param("tls://user@192.0.2.53#dns.example.org", "is not an IP address", id="user"),
        pytest.param("tls://192.0.2.53#*.example.org", "not a wildcard", id="wildcard"),
        pytest.param("tls://192.0.2.53#*", "is not a hostname", id="star"),
        pytest.param("tls://192.0.2.53#dns..example.org", "a label is empty", id="empty label"),
        pytest.param("tls://192.0.2.53#a#b", "is not a host label", id="two names"),
        pytest.param("tls://192.0.2.53#-dns.example.org", "is not a host label", id="dash in front"),
        pytest.param(f"tls://192.0.2.53#{'a' * 64}.example", "is not a host label", id="label too long"),
        pytest.param(f"tls://192.0.2.53#{'a.' * 127}example", "longer than 255 octets", id="name too long"),
        pytest.param("tls://192.0.2.53#[2001:db8::53]", "is an IP address, not a hostname", id="address in brackets"),
        pytest.param("tls://192.0.2.53#192.0.2.53:853", "is not a host label", id="port behind the name"),
        pytest.param("tls://192.0.2.53#fe80::1%eth0", "has no scope", id="certificate of a scope"),
        pytest.param("tls://192.0.2.53#dns.example.org\0", "is not a host label", id="NUL"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_upstream(text)


def test_a_complaint_shows_no_more_of_a_text_than_is_needed_to_recognise_it() -> None:
    for text in ("tls://" + "x" * 5000, "https://" + "x" * 5000, "x" * 5000):
        with pytest.raises(ValueError, match=r"\.\.\.") as caught:
            parse_upstream(text)
        assert len(str(caught.value)) < 250


@given(st.ip_addresses(), st.integers(1, 65535), st.none() | st.sampled_from(["dns.example.org", "192.0.2.1", "::1"]))
def test_an_upstream_is_read_as_it_is_written(host: object, port: int, name: str | None) -> None:
    upstream = Endpoint(str(host), port) if name is None else TlsEndpoint(str(host), port, name)
    assert parse_upstream(str(upstream)) == upstream


@given(st.text() | st.text("tls:/#.[]%*120ab", max_size=40).map("tls://".__add__))
def test_any_text_is_an_upstream_or_a_value_error(text: str) -> None:
    try:
        upstream = parse_upstream(text)
    except ValueError:
        return
    assert parse_upstream(str(upstream)) == upstream


# --- resolv.conf ---

NONE = ForwardSettings(())


def upstreams(*hosts: str) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(host, 53) for host in hosts)


@pytest.mark.parametrize(
    ("content", "settings"),
    [
        pytest.param("nameserver 192.0.2.1\n", ForwardSettings(upstreams("192.0.2.1")), id="one"),
        pytest.param(
            "".join(f"nameserver 192.0.2.{number}\n" for number in (4, 3, 2, 1)),
            ForwardSettings(upstreams("192.0.2.4", "192.0.2.3", "192.0.2.2", "192.0.2.1")),
            id="four, in order",
        ),
        pytest.param(
            "options rotate use-vc attempts:1\nnameserver 2001:db8::1\nnameserver fe80::1%eth0\n",
            ForwardSettings(upstreams("2001:db8::1", "fe80::1%eth0"), rotate=True, attempts=1, use_tcp=True),
            id="options",
        ),
        pytest.param(
            "nameserver 192.0.2.1\noptions attempts:5 timeout:30\n",
            ForwardSettings(upstreams("192.0.2.1"), attempts=2),
            id="more attempts than are ever made",
        ),
        pytest.param("nameserver x\nnameserver 192.0.2.1\n", ForwardSettings(upstreams("192.0.2.1")), id="one bad"),
    ],
)
def test_nameservers_and_options_become_settings(content: str, settings: ForwardSettings) -> None:
    assert parse_forwarding(content, plain=NONE) == settings


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("# nameserver 192.0.2.1\n", id="a comment"),
        pytest.param("nameserver\nnameserver dns.example.org\n", id="no address"),
        pytest.param("search example.org\noptions rotate\n", id="only other things"),
        pytest.param("\0" * 100, id="zeros, as after a crash"),
    ],
)
def test_a_file_without_a_nameserver_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match="has no nameserver"):
        parse_forwarding(content, plain=NONE)


@given(st.booleans(), st.integers(1, 2), st.booleans())
def test_only_what_is_no_matter_of_the_file_stays(rotate: bool, attempts: int, use_tcp: bool) -> None:
    plain = ForwardSettings(
        upstreams("192.0.2.9"), outstanding=7, per_client=3, rotate=rotate, attempts=attempts, use_tcp=use_tcp
    )
    expected = ForwardSettings(upstreams("192.0.2.1"), outstanding=7, per_client=3)
    assert parse_forwarding("nameserver 192.0.2.1\n", plain=plain) == expected


@pytest.mark.parametrize(
    ("asked", "listening"),
    [
        pytest.param([Endpoint("127.0.0.1", 53)], [Endpoint("127.0.0.1", 53)], id="the same"),
        pytest.param([Endpoint("::1", 53)], [Endpoint("127.0.0.1", 53), Endpoint("::1", 53)], id="the second listener"),
        pytest.param(
            [Endpoint("192.0.2.1", 53), Endpoint("127.0.0.1", 53)], [Endpoint("127.0.0.1", 53)], id="second upstream"
        ),
        pytest.param([TlsEndpoint("127.0.0.1", 853, "a.example")], [Endpoint("127.0.0.1", 853)], id="over TLS"),
        pytest.param([Endpoint("::ffff:127.0.0.1", 53)], [Endpoint("127.0.0.1", 53)], id="IPv4-mapped"),
        pytest.param([Endpoint("127.0.0.1", 53)], [Endpoint("::ffff:127.0.0.1", 53)], id="IPv4-mapped listener"),
        pytest.param([Endpoint("0.0.0.0", 53)], [Endpoint("127.0.0.1", 53)], id="unspecified, which is the local host"),
        pytest.param([Endpoint("::", 53)], [Endpoint("::1", 53)], id="unspecified, IPv6"),
        pytest.param([Endpoint("0.0.0.0", 53)], [Endpoint("0.0.0.0", 53)], id="unspecified twice"),
        pytest.param([Endpoint("fe80::1%eth0", 53)], [Endpoint("fe80::1%eth0", 53)], id="with a scope"),
    ],
)
def test_an_upstream_that_is_this_server_is_refused(asked: list[Endpoint], listening: list[Endpoint]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{asked[-1]} is an address that dnsproxy listens on")):
        refuse_loop(asked, listening=listening)


@pytest.mark.parametrize(
    ("asked", "listening"),
    [
        pytest.param([Endpoint("127.0.0.1", 53)], [Endpoint("127.0.0.1", 1053)], id="another port"),
        pytest.param([Endpoint("127.0.0.53", 53)], [Endpoint("127.0.0.1", 53)], id="another address"),
        # Another server may be bound to one device there, as systemd-resolved is.
        pytest.param([Endpoint("127.0.0.53", 53)], [Endpoint("0.0.0.0", 53)], id="every address"),
        pytest.param([Endpoint("127.0.0.1", 53)], [Endpoint("0.0.0.0", 53)], id="the local host of every address"),
        pytest.param([Endpoint("fe80::1%eth0", 53)], [Endpoint("fe80::1%eth1", 53)], id="another scope"),
        pytest.param([], [Endpoint("127.0.0.1", 53)], id="no upstream"),
        pytest.param([Endpoint("127.0.0.1", 53)], [], id="no listener"),
    ],
)
def test_any_other_upstream_may_be_asked(asked: list[Endpoint], listening: list[Endpoint]) -> None:
    refuse_loop(asked, listening=listening)


def test_tcp_is_a_way_to_ask_of_its_own() -> None:
    upstream = parse_upstream("TCP://192.0.2.1")
    assert (upstream, str(upstream)) == (TcpEndpoint("192.0.2.1", 53), "tcp://192.0.2.1:53")
    assert upstream != Endpoint("192.0.2.1", 53)


def test_upstreams_that_are_this_server_are_excluded_and_the_others_keep_their_order() -> None:
    ours, first, second = Endpoint("127.0.0.1", 53), Endpoint("192.0.2.1", 53), Endpoint("192.0.2.2", 53)
    settings = ForwardSettings((ours, first, Endpoint("0.0.0.0", 53), second), rotate=True)
    found, excluded = exclude_own(settings, listening=[ours])
    assert found == ForwardSettings((first, second), rotate=True)
    assert excluded == (ours, Endpoint("0.0.0.0", 53))
    assert exclude_own(found, listening=[ours]) == (found, ())


def test_if_no_other_upstream_is_left_it_is_a_loop() -> None:
    ours = Endpoint("127.0.0.1", 53)
    with pytest.raises(ValueError, match="is an address that dnsproxy listens on"):
        exclude_own(ForwardSettings((ours, Endpoint("::ffff:127.0.0.1", 53))), listening=[ours])
