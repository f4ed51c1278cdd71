"""Our stanza is ours also without its markers, and a forward of others is never taken for it."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dnsproxy.corefile.markers import count_addresses, find_region, is_marked
from dnsproxy.corefile.model import CorefileError
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.plan import plan_uninstall
from dnsproxy.corefile.stanza import Version
from dnsproxy.corefile.unmarked import find_unmarked
from dnsproxy.corefile.upstream_routes import find_upstream_routes
from tests.dnsproxy.corefile.shapes import NEWEST, SHAPES, corefiles, installed, stock

versions = st.sampled_from([None, (1, 9, 4), (1, 13, 1), NEWEST])
MARKER = re.compile(r"[ \t]*# (BEGIN|END) switchback.*\n")
OURS = "policy sequential\n max_fails 1\n prefer_udp"


def unmarked(text: str) -> str:
    """The text without the lines of our markers."""
    return MARKER.sub("", text.replace("\r\n", "\n"))


def migrated(text: str) -> str:
    """The text as a migration writes it: without comments, each line at its own indentation."""
    bare = re.sub(r"(?m)^[ \t]*#.*\n", "", text)
    return re.sub(r"(?m)^[ \t]+", "    ", bare)


@given(corefiles(), versions)
def test_an_uninstall_without_markers_gives_back_the_text_from_before(text: str, version: Version | None) -> None:
    text = text.replace("\r\n", "\n")
    written = unmarked(installed(text, version=version).new)
    assume(written != unmarked(text))
    found = find_unmarked(parse_corefile(written))
    # On the line of an opening brace the marker was no line of its own.
    assume(found is not None)
    assert plan_uninstall(written).new == text


@pytest.mark.parametrize("version", [None, NEWEST])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_stock_corefile_comes_back_also_after_a_migration(shape: str, version: Version | None) -> None:
    text = stock(shape)
    try:
        change = installed(text, version=version)
    except CorefileError:
        return  # what no install takes has no stanza
    for lossy in (unmarked, migrated):
        written = lossy(change.new)
        assert is_marked(written)
        assert plan_uninstall(written).new == lossy(text)


@pytest.mark.parametrize("addresses", [("10.96.0.53",), ("10.96.0.53", "10.96.0.54"), ("[2001:db8::53]:5353",)])
def test_an_install_adopts_it_whatever_its_address_was(addresses: tuple[str, ...]) -> None:
    text = stock("kubeadm")
    written = migrated(installed(text, *addresses, zones=("example.org", ".")).new)
    region = find_region(parse_corefile(written))
    assert region is not None
    assert count_addresses(region.begin) == len(addresses)
    again = installed(written, "192.0.2.99", zones=("example.org", ".")).new
    assert again.count("192.0.2.99 ") == 2
    assert all(one.strip("[]") not in again for one in addresses)
    assert plan_uninstall(again).new == migrated(text)


def test_its_addresses_are_no_upstreams() -> None:
    text = stock("kubeadm")
    written = migrated(installed(text).new)
    assert find_upstream_routes(written) == find_upstream_routes(migrated(text))


THEIRS = [
    pytest.param(f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\n", id="nothing behind it"),
    pytest.param(f"forward . 10.96.0.53 {{\n {OURS}\n}}\nforward . 192.0.2.53\n", id="without the upstreams"),
    pytest.param(f"forward . 10.96.0.53 192.0.2.54 {{\n {OURS}\n}}\nforward . 192.0.2.53\n", id="with other upstreams"),
    pytest.param(
        "forward . 10.96.0.53 192.0.2.53 {\n policy sequential\n}\nforward . 192.0.2.53\n", id="with fewer options"
    ),
    pytest.param(
        f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n expire 5s\n}}\nforward . 192.0.2.53\n",
        id="with more options",
    ),
    pytest.param("forward . 10.96.0.53 192.0.2.53\nforward . 192.0.2.53\n", id="without options"),
    pytest.param(
        f"forward . tls://10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\nforward . 192.0.2.53\n", id="over another protocol"
    ),
    pytest.param(
        f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\nlog\nforward . 192.0.2.53\n", id="with a line in between"
    ),
    pytest.param(
        f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\nimport x\nforward . 192.0.2.53\n",
        id="with an import in between",
    ),
    pytest.param(
        f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\nforward example.org 192.0.2.53\n", id="before another zone"
    ),
]


@pytest.mark.parametrize("lines", THEIRS)
def test_a_forward_that_only_resembles_it_is_its_owners(lines: str) -> None:
    text = f".:53 {{\n{lines}}}\n"
    assert not is_marked(text)
    assert find_region(parse_corefile(text)) is None


def test_where_a_marker_is_the_content_does_not_count() -> None:
    text = unmarked(installed(stock("kubeadm")).new).replace(".:53 {", ".:53 {\n# END switchback")
    with pytest.raises(CorefileError, match="stands alone"):
        find_region(parse_corefile(text))


def test_thousands_of_forwards_are_not_compared_with_one_another() -> None:
    lines = f"forward . 10.96.0.53 192.0.2.53 {{\n {OURS}\n}}\n" * 5000
    assert find_unmarked(parse_corefile(f". {{\n{lines}}}\n")) is None
