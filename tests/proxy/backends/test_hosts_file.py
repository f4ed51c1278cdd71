"""The hosts file."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.hosts_file import addresses_in

CONTENT = """\
\ufeff192.0.2.8 first.example.org
# a comment
127.0.0.1 localhost
192.0.2.1\tweb.example.org web  # behind it 192.0.2.9 other
192.0.2.2 web.example.org
2001:db8::1   WEB.example.org
192.0.2.1 web.example.org
192.0.2 cut.example.org
name.example.org 192.0.2.3
192.0.2.4
  192.0.2.5 blanks.example.org
192.0.2.6 dot.example.org.
192.0.2.7 windows.example.org\r
"""


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        pytest.param(
            "web.example.org", ["192.0.2.1", "192.0.2.2", "2001:db8::1"], id="several lines, each address once"
        ),
        pytest.param("web", ["192.0.2.1"], id="alias"),
        pytest.param("first.example.org", ["192.0.2.8"], id="behind a byte order mark"),
        pytest.param("Web.Example.ORG.", ["192.0.2.1", "192.0.2.2", "2001:db8::1"], id="case and final dot"),
        pytest.param("dot.example.org", ["192.0.2.6"], id="final dot in the file"),
        pytest.param("blanks.example.org", ["192.0.2.5"], id="blanks in front"),
        pytest.param("windows.example.org", ["192.0.2.7"], id="carriage return"),
        pytest.param("localhost", ["::1", "127.0.0.1"], id="localhost is loopback"),
        pytest.param("app.localhost", ["::1", "127.0.0.1"], id="and so is what ends in it"),
        pytest.param("other", [], id="in a comment"),
        pytest.param("cut.example.org", [], id="no address"),
        pytest.param("192.0.2.3", [], id="the wrong way round"),
        pytest.param("192.0.2.4", [], id="an address without a name"),
        pytest.param("example.org", [], id="a part of a name"),
        pytest.param("", [], id="no name"),
    ],
)
def test_a_name_has_the_addresses_of_its_lines(name: str, addresses: list[str]) -> None:
    assert addresses_in(CONTENT, name) == addresses


names = st.sampled_from(["web", "Web.example.org.", "other"]) | st.text()
lines = st.builds("{} {}".format, st.ip_addresses(), names) | st.text()


@given(st.lists(lines).map("\n".join), names)
def test_of_any_text_only_addresses_are_returned_each_once(content: str, name: str) -> None:
    addresses = addresses_in(content, name)
    assert addresses == [str(ipaddress.ip_address(one)) for one in addresses]
    assert len(set(addresses)) == len(addresses)
