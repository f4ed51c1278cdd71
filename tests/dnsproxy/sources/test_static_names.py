"""Static names: flags and hosts files; an invalid line is reported and affects no other."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Origin
from dnsproxy.sources.static_names import MOST_REJECTIONS, join_flags, parse_host_flag, parse_hosts_file
from tests.kit.stepping import parse_hosts

Names = dict[str, tuple[str, ...]]

# As Debian, Kubernetes and macOS write it.
SYSTEM_LINES = """\
127.0.0.1\tlocalhost localhost.localdomain
::1     localhost ip6-localhost ip6-loopback
fe00::0 ip6-localnet
ff00::0 ip6-mcastprefix
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
fe80::1%lo0 localhost
255.255.255.255 broadcasthost
"""


def read(content: str) -> tuple[Names, dict[int, str]]:
    """The addresses of each name, and the reason for each invalid line."""
    claims, rejections, faults_total = parse_hosts(content, path="names")
    assert faults_total == len(rejections)
    assert [claim.hostname for claim in claims.values()] == list(claims)
    faults: dict[int, str] = {}
    for rejection in rejections:
        path, _, number = rejection.origin.name.rpartition(":")
        assert (rejection.origin.kind, path) == ("hosts file", "names")
        faults[int(number)] = rejection.reason
    return {hostname: claim.terms.addresses for hostname, claim in claims.items()}, faults


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param("\n\n  \n\t\n", {}, id="blank"),
        pytest.param("# all is comment\n  # indented\n", {}, id="comments"),
        pytest.param("192.0.2.1 app.example.org", {"app.example.org": ("192.0.2.1",)}, id="no final newline"),
        pytest.param("192.0.2.1 app.example.org # ours\n", {"app.example.org": ("192.0.2.1",)}, id="comment behind"),
        pytest.param("192.0.2.1 app.example.org#ours\n", {"app.example.org": ("192.0.2.1",)}, id="comment at a name"),
        pytest.param("  192.0.2.1\t\tApp.Example.ORG.  \r\n", {"app.example.org": ("192.0.2.1",)}, id="spaces, CRLF"),
        pytest.param(
            "192.0.2.1 a.example.org b.example.org\n",
            {"a.example.org": ("192.0.2.1",), "b.example.org": ("192.0.2.1",)},
            id="two names",
        ),
        pytest.param(
            "192.0.2.1 a.example.org\n2001:DB8:0::1 a.example.org\n192.0.2.1 a.example.org\n",
            {"a.example.org": ("192.0.2.1", "2001:db8::1")},
            id="lines add up, each address once",
        ),
        pytest.param("192.0.2.1 *.example.org\n", {"*.example.org": ("192.0.2.1",)}, id="wildcard"),
        pytest.param(
            "# \u0085192.0.2.9 hidden.example.org\n# \u2028192.0.2.9 hidden.example.org\n"
            "# \x0c192.0.2.9 hidden.example.org\n192.0.2.1 app.example.org\n",
            {"app.example.org": ("192.0.2.1",)},
            id="only a newline ends a comment",
        ),
        pytest.param(SYSTEM_LINES, {}, id="the lines of every system"),
        pytest.param(
            "192.0.2.1 localhost app.example.org\n", {"app.example.org": ("192.0.2.1",)}, id="beside localhost"
        ),
    ],
)
def test_a_good_file_gives_its_names_and_no_complaint(content: str, expected: Names) -> None:
    assert read(content) == (expected, {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("192.0.2.1", "192.0.2.1 has no name after it", id="no name"),
        pytest.param("192.0.2.1 # app.example.org", "192.0.2.1 has no name after it", id="name in the comment"),
        pytest.param("app.example.org 192.0.2.1", "'app.example.org' is not an IP address", id="the wrong way round"),
        pytest.param("app.example.org", "'app.example.org' is not an IP address", id="name alone"),
        pytest.param("192.0.2.256 app.example.org", "'192.0.2.256' is not an IP address", id="number too large"),
        pytest.param("192.0.2 app.example.org", "'192.0.2' is not an IP address", id="three numbers"),
        pytest.param("192.0.2.1:80 app.example.org", "'192.0.2.1:80' is not an IP address", id="port"),
        pytest.param("192.0.2.0/24 app.example.org", "'192.0.2.0/24' is not an IP address", id="network"),
        pytest.param("2001:db8::g app.example.org", "'2001:db8::g' is not an IP address", id="no hexadecimal"),
        pytest.param("0.0.0.0 app.example.org", "not an address that a client can connect to", id="unspecified"),
        pytest.param(":: app.example.org", "not an address that a client can connect to", id="unspecified IPv6"),
        pytest.param("224.0.0.1 app.example.org", "not an address that a client can connect to", id="multicast"),
        pytest.param("fe80::1%eth0 app.example.org", "has a zone", id="zone"),
        pytest.param("fe80::1 app.example.org", "'fe80::1' is link-local", id="link-local"),
        pytest.param("255.255.255.255 app.example.org", "not an address that a client can connect to", id="broadcast"),
        pytest.param("::ffff:192.0.2.1 app.example.org", "in IPv6 form; write 192.0.2.1", id="IPv4 in IPv6"),
        pytest.param("192.0.2.1 " + "a " * 33_000, "longer than 65536 characters", id="a very long line"),
        pytest.param("192.0.2.1 -app.example.org", "'-app.example.org': a label '-app' is not a host label", id="dash"),
        pytest.param("192.0.2.1 app..example.org", "a label is empty", id="empty label"),
        pytest.param("192.0.2.1 *", "'*' is not a hostname", id="bare star"),
        pytest.param("192.0.2.1 192.0.2.2", "'192.0.2.2' is an IP address", id="two addresses"),
        pytest.param("192.0.2.1 " + "a" * 64 + ".example.org", "is not a host label", id="label of 64 octets"),
        pytest.param("192.0.2.1 app\0.example.org", "is not a host label", id="NUL"),
        pytest.param("\ufeff192.0.2.1 app.example.org", "'\\ufeff192.0.2.1' is not an IP address", id="BOM"),
        pytest.param("x" * 10_000 + " app.example.org", "x...' is not an IP address", id="ten thousand octets"),
        pytest.param("\x1b[31m app.example.org", "'\\x1b[31m' is not an IP address", id="terminal escape"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_the_rest_counts(line: str, reason: str) -> None:
    names, faults = read(f"192.0.2.7 before.example.org\n# comment\n{line}\n192.0.2.8 after.example.org\n")
    assert names == {"before.example.org": ("192.0.2.7",), "after.example.org": ("192.0.2.8",)}
    assert list(faults) == [3]
    assert reason in faults[3]
    assert faults[3].isprintable()
    assert len(faults[3]) < 300


def test_a_bad_name_leaves_the_others_of_its_line() -> None:
    names, faults = read("192.0.2.1 a.example.org b..example.org c.example.org")
    assert set(names) == {"a.example.org", "c.example.org"}
    assert list(faults) == [1]


def test_a_name_comes_from_the_first_line_that_has_it() -> None:
    claims, *_ = parse_hosts("\n192.0.2.1 a.example.org\n192.0.2.2 a.example.org", path="/etc/names")
    claim = claims["a.example.org"]
    assert claim.origin == Origin("hosts file", "/etc/names:2")
    assert claim.reach is Reach.NAME


def test_there_is_a_step_for_every_name_and_every_line() -> None:
    """The caller may stop after each step."""
    lines = ["192.0.2.1 " + " ".join(f"a{number}.example.org" for number in range(100)), "# comment", "", "bad line"]
    assert sum(1 for _ in parse_hosts_file(enumerate(lines, 1), path="names")) == 100 + 4


def test_of_many_bad_lines_the_first_are_kept_and_the_others_counted() -> None:
    content = "192.0.2.1 a.example.org\n" + "no address\n" * 60_000 + "192.0.2.2 b.example.org\n"
    claims, rejections, faults = parse_hosts(content, path="names")
    assert list(claims) == ["a.example.org", "b.example.org"]
    assert (faults, len(rejections)) == (60_000, MOST_REJECTIONS + 1)
    assert str(rejections[-1].origin) == "hosts file names"
    assert rejections[-1].reason == "59000 more lines or names are invalid"


@given(st.text() | st.text("12.:# \n\tab*é\0", max_size=60))
def test_any_text_is_a_hosts_file(content: str) -> None:
    names, faults = read(content)
    assert all(1 <= number <= content.count("\n") + content.count("\r") + 1 for number in faults)
    again, none = read("".join(f"{address} {name}\n" for name, found in names.items() for address in found))
    assert (again, none) == (names, {})


@pytest.mark.parametrize(
    ("text", "hostname", "reach", "addresses"),
    [
        pytest.param("a.example.org=192.0.2.1", "a.example.org", Reach.NAME, ("192.0.2.1",), id="one"),
        pytest.param(
            "a.example.org=192.0.2.1,2001:db8::1",
            "a.example.org",
            Reach.NAME,
            ("192.0.2.1", "2001:db8::1"),
            id="both families",
        ),
        pytest.param("*.example.org=192.0.2.1", "*.example.org", Reach.ANY_LABELS, ("192.0.2.1",), id="wildcard"),
        pytest.param(" A.Example.ORG. = 192.0.2.1 ", "a.example.org", Reach.NAME, ("192.0.2.1",), id="spaces"),
    ],
)
def test_a_flag_is_a_claim(text: str, hostname: str, reach: Reach, addresses: tuple[str, ...]) -> None:
    claim = parse_host_flag(text)
    assert (claim.hostname, claim.reach, claim.terms.addresses) == (hostname, reach, addresses)
    assert claim.origin == Origin("flag", f"--host {text}")


@pytest.mark.parametrize(
    ("flags", "addresses"),
    [
        pytest.param(["a.example.org=192.0.2.2", "a.example.org=192.0.2.1"], ("192.0.2.2", "192.0.2.1"), id="in order"),
        pytest.param(["a.example.org=192.0.2.1", "A.example.org.=192.0.2.1"], ("192.0.2.1",), id="each once"),
        pytest.param(["a.example.org=192.0.2.1", "a.example.org=2001:db8::1"], ("192.0.2.1", "2001:db8::1"), id="both"),
        pytest.param(["*.example.org=192.0.2.1", "a.example.org=192.0.2.2"], ("192.0.2.2",), id="beside a wildcard"),
    ],
)
def test_flags_for_one_name_add_up_as_lines_do(flags: list[str], addresses: tuple[str, ...]) -> None:
    joined = {claim.hostname: claim for claim in join_flags(map(parse_host_flag, flags))}
    assert joined["a.example.org"].terms.addresses == addresses
    lines = "".join(f"{address} a.example.org\n" for address in addresses)
    assert read(lines)[0]["a.example.org"] == addresses


def test_a_name_of_two_flags_comes_from_both() -> None:
    (claim,) = join_flags(map(parse_host_flag, ["a.example.org=192.0.2.2", "a.example.org=192.0.2.1"]))
    assert str(claim.origin) == "flag --host a.example.org=192.0.2.2 --host a.example.org=192.0.2.1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a.example.org=255.255.255.255", "not an address that a client can connect to", id="broadcast"),
        pytest.param("a.example.org=::ffff:1.2.3.4", "in IPv6 form; write 1.2.3.4", id="IPv4 in IPv6"),
        pytest.param("a.example.org=192.0.2.1,fe80::1", "'fe80::1' is link-local", id="link-local"),
        pytest.param("", "is not NAME=IP", id="empty"),
        pytest.param("app.example.org", "is not NAME=IP", id="no equals sign"),
        pytest.param("app.example.org:192.0.2.1", "is not NAME=IP", id="colon"),
        pytest.param("=192.0.2.1", "'' is not a hostname", id="no name"),
        pytest.param("app.example.org=", "'' is not an IP address", id="no address"),
        pytest.param("app.example.org=192.0.2.1,", "'' is not an IP address", id="final comma"),
        pytest.param("app.example.org=other.example.org", "'other.example.org' is not an IP address", id="name"),
        pytest.param("app.example.org==192.0.2.1", "'=192.0.2.1' is not an IP address", id="two equals signs"),
        pytest.param("192.0.2.1=app.example.org", "is an IP address, not a hostname", id="the wrong way round"),
        pytest.param("*=192.0.2.1", "'*' is not a hostname", id="bare star"),
        pytest.param("a b=192.0.2.1", "is not a host label", id="space in the name"),
    ],
)
def test_an_invalid_flag_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_host_flag(text)
