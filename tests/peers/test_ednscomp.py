"""EDNS and header compliance, tested with the real dig: our own answers, and the replies of a real NSD upstream.

The probes are those of ISC's compliance tester (RFC 8906 section 8), and other hostile queries that dig can send. Each
is sent for a name of the table, which we answer, and for a name of NSD, for which our reply must equal NSD's own reply
to a direct query.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.kit.dig import dig
from tests.kit.nsd import NSID, running_nsd
from tests.kit.serve_process import Serving, serving
from tests.peers.ednscomp import Expected, find_faults

pytestmark = pytest.mark.peer("dig", "nsd")

OURS, OURS_AT = "app.example.org", "192.0.2.80"
"""A name in our table that NSD does not have."""
MANY, MANY_COUNT = "many.example.org", 40
"""More addresses than fit into 512 octets, but fewer than 1232 octets."""
HUGE, HUGE_COUNT = "huge.example.org", 120
"""More than fit into 1232 octets."""
THEIRS = "www.example.org"
BIG = "big.example.org"
"""A name of NSD; its reply has more than 512 octets and less than 1232."""

ZONE = "".join([*(f"big IN A 198.51.100.{last}\n" for last in range(1, 41)), "www IN A 198.51.100.7\n"])

ANSWER = Expected()
BADVERS = Expected(status="BADVERS", answers=0, aa=False)
NODATA = Expected(answers=0, soa=True)
REFUSED = Expected(status="REFUSED", answers=0, aa=False)
NOTIMP = Expected(status="NOTIMP", answers=0, aa=False, edns=False)
"""Without OPT: the content after the header of an unknown opcode is unknown too."""

BOTH = ("+notcp", "+tcp")
TRANSPORTS = pytest.mark.parametrize("transport", BOTH, ids=["udp", "tcp"])

PROBES = [
    pytest.param("+noedns", replace(ANSWER, edns=False), id="E1 no EDNS"),
    pytest.param("+noedns +noad +norec", replace(ANSWER, edns=False), id="E1 no EDNS, no flags"),
    pytest.param("+edns=0 +nocookie", ANSWER, id="E2 EDNS"),
    pytest.param("+edns=1 +noednsneg +nocookie", BADVERS, id="E3 version 1"),
    pytest.param("+edns=100 +noednsneg +nocookie", BADVERS, id="E3 version 100"),
    pytest.param("+edns=255 +noednsneg +nocookie", BADVERS, id="E3 version 255"),
    pytest.param("+nocookie +ednsopt=100", ANSWER, id="E4 unknown option"),
    pytest.param("+nocookie +ednsopt=65001:0102", ANSWER, id="E4 unknown option with data"),
    pytest.param("+nocookie +ednsflags=0x40", ANSWER, id="E5 flag 0x40"),
    pytest.param("+nocookie +ednsflags=0x80", ANSWER, id="E5 flag 0x80"),
    pytest.param("+nocookie +ednsflags=0x7fff", ANSWER, id="E5 all unknown flags"),
    pytest.param("+nocookie +dnssec", replace(ANSWER, do=True), id="E6 DO"),
    pytest.param("+nocookie +dnssec +ednsflags=0x40", replace(ANSWER, do=True), id="E6 DO and a flag"),
    pytest.param("+edns=1 +noednsneg +nocookie +ednsopt=100", BADVERS, id="E7 version and option"),
    pytest.param("+edns=1 +noednsneg +nocookie +ednsflags=0x40", BADVERS, id="E7 version and flag"),
    pytest.param("+edns=1 +noednsneg +nocookie +dnssec", replace(BADVERS, do=True), id="E7 version and DO"),
    pytest.param("+cookie +nsid +expire +subnet=0.0.0.0/0", ANSWER, id="E8 known options"),
    pytest.param("+nocookie +nsid +ednsopt=3 +ednsopt=3", ANSWER, id="E16 NSID three times"),
    pytest.param("+nocookie +padding=128", ANSWER, id="E16 padding"),
    pytest.param("+nocookie +bufsize=0", ANSWER, id="E17 size 0"),
    pytest.param("+nocookie +bufsize=1", ANSWER, id="E17 size 1"),
    pytest.param("+nocookie +bufsize=511", ANSWER, id="E17 size 511"),
    pytest.param("+nocookie +bufsize=4096", ANSWER, id="E17 size 4096"),
    # dig limits its value to 1232.
    pytest.param("+nocookie +bufsize=32767", ANSWER, id="E17 size 32767"),
    pytest.param("+nocookie +ednsopt=10", ANSWER, id="E18 cookie of 0"),
    pytest.param(f"+nocookie +ednsopt=10:{'01' * 7}", ANSWER, id="E18 cookie of 7"),
    pytest.param(f"+nocookie +ednsopt=10:{'01' * 8}", ANSWER, id="E18 cookie of 8"),
    pytest.param(f"+nocookie +ednsopt=10:{'01' * 9}", ANSWER, id="E18 cookie of 9"),
    pytest.param(f"+nocookie +ednsopt=10:{'01' * 41}", ANSWER, id="E18 cookie of 41"),
    pytest.param("+zflag", ANSWER, id="W9 Z"),
    pytest.param("+zflag +noedns", replace(ANSWER, edns=False), id="W9 Z without EDNS"),
    pytest.param("+noedns +noad +cd", replace(ANSWER, edns=False), id="W9 CD"),
    pytest.param("+noedns +ad", replace(ANSWER, edns=False), id="W9 AD"),
]
"""Arguments of dig, and our reply for a name of the table."""

NEVER_FORWARDED = [
    pytest.param("+noedns +norec +noad +header-only +opcode=15", NOTIMP, id="W8 opcode 15, a header only"),
    *(
        pytest.param(f"+noedns +opcode={opcode} {{name}}", NOTIMP, id=f"W8 opcode {opcode}")
        for opcode in (1, 2, 3, 4, 5, 6, 14, 15)
    ),
    pytest.param("+opcode=4 {name} SOA", NOTIMP, id="W8 opcode 4 with EDNS"),
    pytest.param("{name} CH TXT", REFUSED, id="W11 class CH"),
    pytest.param("{name} HS A", REFUSED, id="W11 class HS"),
    pytest.param("{name} CLASS0 A", REFUSED, id="W11 class 0"),
    pytest.param("{name} CLASS254 A", REFUSED, id="W11 class NONE"),
    pytest.param("{name} CLASS255 A", REFUSED, id="W11 class ANY"),
    pytest.param("{name} CLASS65535 A", REFUSED, id="W11 class 65535"),
    pytest.param("{name} AXFR", REFUSED, id="W13 AXFR"),
    pytest.param("{name} IXFR=1", REFUSED, id="W13 IXFR"),
]


@dataclass(frozen=True)
class Servers:
    """Our server with NSD as upstream."""

    ours: Serving
    upstream: int


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("ednscomp")
    hosts = {
        OURS: OURS_AT,
        MANY: ",".join(f"192.0.2.{last}" for last in range(1, MANY_COUNT + 1)),
        HUGE: ",".join(f"192.0.2.{last}" for last in range(1, HUGE_COUNT + 1)),
    }
    flags = [flag for name, addresses in hosts.items() for flag in ("--host", f"{name}={addresses}")]
    with (
        running_nsd(folder, ZONE) as upstream,
        serving(folder, "--upstream", f"127.0.0.1:{upstream}", *flags) as ours,
    ):
        yield Servers(ours, upstream)


@pytest.mark.parametrize(("arguments", "expected"), PROBES)
def test_a_name_of_the_table_is_answered_as_the_standard_wants(
    servers: Servers, arguments: str, expected: Expected
) -> None:
    for transport in BOTH:
        reply = dig(servers.ours.port, transport, "+ignore", *arguments.split(), OURS)
        assert find_faults(reply, expected) == [], transport
        # The client's RD and CD are copied into the reply (RFC 1035 section 4.1.1, RFC 4035 section 3.2.2).
        assert ("rd" in reply.flags) == ("+norec" not in arguments)
        assert ("cd" in reply.flags) == ("+cd" in arguments)
        assert "ra" in reply.flags


@TRANSPORTS
@pytest.mark.parametrize("name", [THEIRS, "missing.example.org"], ids=["answer", "NXDOMAIN"])
def test_another_name_gets_what_its_server_says(servers: Servers, name: str, transport: str) -> None:
    for probe in PROBES:
        words = (transport, "+ignore", *str(probe.values[0]).split(), name)
        assert dig(servers.ours.port, *words) == dig(servers.upstream, *words), probe.id


@TRANSPORTS
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(f"{THEIRS} TYPE1000", id="W10 type 1000: NODATA"),
        pytest.param(f"{THEIRS} TYPE65280", id="W10 type 65280: NODATA"),
        pytest.param(f"{THEIRS} ANY", id="W12 ANY"),
        pytest.param(f"{THEIRS} DNSKEY", id="DNSKEY"),
        pytest.param("www.example.net A", id="not of its zone: REFUSED"),
        pytest.param(". NS", id="the root: REFUSED"),
    ],
)
def test_every_type_is_its_servers_business(servers: Servers, asked: str, transport: str) -> None:
    probe = (transport, "+ignore", *asked.split())
    assert dig(servers.ours.port, *probe) == dig(servers.upstream, *probe)


def test_the_upstreams_own_option_comes_through(servers: Servers) -> None:
    """Otherwise two equal replies could both come from us."""
    reply = dig(servers.ours.port, "+nocookie", "+nsid", THEIRS)
    assert reply.edns is not None
    assert [NSID in option for option in reply.edns.options] == [True]


@pytest.mark.parametrize(("arguments", "expected"), NEVER_FORWARDED)
def test_what_is_neither_answered_nor_forwarded_is_refused(
    servers: Servers, arguments: str, expected: Expected
) -> None:
    before = servers.ours.metric("dnsproxy_forward_sends_total")
    for name, transport in itertools.product((OURS, THEIRS), BOTH):
        reply = dig(servers.ours.port, *arguments.format(name=name).split(), transport)
        assert find_faults(reply, expected) == [], (name, transport)
    assert servers.ours.metric("dnsproxy_forward_sends_total") == before


@TRANSPORTS
@pytest.mark.parametrize("qtype", ["AAAA", "HTTPS", "SVCB"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param("+noedns", replace(NODATA, edns=False), id="no EDNS"),
        pytest.param("+nocookie", NODATA, id="EDNS"),
        pytest.param("+dnssec", replace(NODATA, do=True), id="DO"),
    ],
)
def test_a_family_without_an_address_is_nodata_with_an_soa(
    servers: Servers, arguments: str, expected: Expected, qtype: str, transport: str
) -> None:
    reply = dig(servers.ours.port, transport, *arguments.split(), OURS, qtype)
    assert find_faults(reply, expected) == []


@TRANSPORTS
@pytest.mark.parametrize("qtype", ["TYPE1000", "TYPE65280", "TXT", "MX", "CAA"])
def test_a_type_that_only_upstream_could_know_is_nodata_where_it_does_not(
    servers: Servers, qtype: str, transport: str
) -> None:
    """NSD denies the whole name, which exists in our table."""
    assert dig(servers.upstream, transport, OURS, qtype).status == "NXDOMAIN"
    assert find_faults(dig(servers.ours.port, transport, OURS, qtype), NODATA) == []


@TRANSPORTS
def test_any_gets_one_small_record(servers: Servers, transport: str) -> None:
    reply = dig(servers.ours.port, transport, OURS, "ANY")
    assert find_faults(reply, replace(ANSWER, most=512)) == []
    assert '"RFC8482"' in reply.section("ANSWER")[0]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param(MANY, "+noedns", Expected(answers=0, tc=True, edns=False, most=512), id="no EDNS: 512"),
        pytest.param(
            MANY, "+dnssec +bufsize=512", Expected(answers=0, tc=True, do=True, most=512), id="E9 512 with DO"
        ),
        pytest.param(MANY, "+bufsize=0", Expected(answers=0, tc=True, most=512), id="E17 0 counts as 512"),
        pytest.param(MANY, "+bufsize=1", Expected(answers=0, tc=True, most=512), id="E17 1 counts as 512"),
        pytest.param(MANY, "+bufsize=511", Expected(answers=0, tc=True, most=512), id="E17 511 counts as 512"),
        pytest.param(MANY, "+bufsize=1232", Expected(answers=MANY_COUNT, most=1232), id="1232 is enough"),
        pytest.param(HUGE, "+bufsize=1232", Expected(answers=0, tc=True, most=1232), id="1232 is not enough"),
        pytest.param(HUGE, "+bufsize=4096", Expected(answers=0, tc=True, most=1232), id="E17 4096 is cut to 1232"),
        pytest.param(HUGE, "+bufsize=32767", Expected(answers=0, tc=True, most=1232), id="E17 32767 is cut to 1232"),
    ],
)
def test_a_big_answer_of_ours_is_cut_to_what_its_client_takes(
    servers: Servers, name: str, arguments: str, expected: Expected
) -> None:
    assert find_faults(dig(servers.ours.port, "+nocookie", "+ignore", *arguments.split(), name), expected) == []


@pytest.mark.parametrize(("name", "count"), [(MANY, MANY_COUNT), (HUGE, HUGE_COUNT)])
@pytest.mark.parametrize("arguments", ["+noedns", "+bufsize=512"])
def test_a_client_gets_the_whole_answer_over_tcp_after_truncation(
    servers: Servers, name: str, count: int, arguments: str
) -> None:
    reply = dig(servers.ours.port, arguments, name)
    assert len(reply.section("ANSWER")) == count


@pytest.mark.parametrize("arguments", ["+noedns", "+dnssec +bufsize=512", "+bufsize=1", "+bufsize=1232", "+tcp"])
def test_a_big_answer_of_another_is_cut_as_its_server_cuts_it(servers: Servers, arguments: str) -> None:
    probe = ("+ignore", *arguments.split(), BIG)
    reply = dig(servers.ours.port, *probe)
    assert reply == dig(servers.upstream, *probe)
    assert ("tc" in reply.flags) == (arguments not in ("+bufsize=1232", "+tcp"))


@pytest.mark.parametrize("name", [OURS, THEIRS], ids=["ours", "theirs"])
def test_names_are_matched_in_any_case_and_come_back_as_they_were_asked(servers: Servers, name: str) -> None:
    mixed = name.upper().replace("EXAMPLE", "ExAmPlE")
    reply = dig(servers.ours.port, mixed)
    assert reply.status == "NOERROR"
    assert reply.section("QUESTION")[0].startswith(f";{mixed}.")
