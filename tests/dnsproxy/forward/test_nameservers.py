"""A resolv.conf as the settings of forwarding, and loops that can be seen before the first query."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.address import TlsEndpoint
from dnsproxy.forward.nameservers import parse_forwarding, refuse_loop
from dnsproxy.forward.settings import ForwardSettings
from sidecar.endpoints import Endpoint

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
    with pytest.raises(ValueError, match="names no nameserver"):
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
    ],
)
def test_an_upstream_that_is_us_is_refused(asked: list[Endpoint], listening: list[Endpoint]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{asked[-1]} is where we listen ourselves")):
        refuse_loop(asked, listening=listening)


@pytest.mark.parametrize(
    ("asked", "listening"),
    [
        pytest.param([Endpoint("127.0.0.1", 53)], [Endpoint("127.0.0.1", 1053)], id="another port"),
        pytest.param([Endpoint("127.0.0.53", 53)], [Endpoint("127.0.0.1", 53)], id="another address"),
        # It may be bound to its own device, as systemd-resolved is, and then it is not us.
        pytest.param([Endpoint("127.0.0.53", 53)], [Endpoint("0.0.0.0", 53)], id="every address"),
        pytest.param([], [Endpoint("127.0.0.1", 53)], id="no upstream"),
        pytest.param([Endpoint("127.0.0.1", 53)], [], id="no listener"),
    ],
)
def test_any_other_upstream_may_be_asked(asked: list[Endpoint], listening: list[Endpoint]) -> None:
    refuse_loop(asked, listening=listening)
