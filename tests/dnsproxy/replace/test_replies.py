"""Replies with records replaced: only what leads here, octet for octet."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.wire import CD, TC, scan_query
from dnsproxy.replace.balancers import Balancers, Leads, Target, make_target
from dnsproxy.replace.message import MOST_RECORDS, read_reply, write_reply
from dnsproxy.replace.replies import is_exempt, read_leads, replace_leads
from tests.kit.messages import opt_record, query, record, reply_to

BALANCER = "203.0.113.10"
BALANCER_6 = "2001:db8:a::10"
RELAY = "10.96.7.7"
RELAY_6 = "fd00:96::7"
ELSEWHERE = "198.51.100.7"
TTL = 5

LEADS = Leads(
    Balancers(
        {BALANCER: (RELAY, RELAY_6), BALANCER_6: (RELAY, RELAY_6), "lb.example.net": (RELAY, RELAY_6)},
        {"192.0.2.0/24": (), "203.0.113.77": ()},
    )
)
FOUR_ONLY = Leads(Balancers({BALANCER: (RELAY,), BALANCER_6: (RELAY,)}))
OWN = make_target([RELAY])


def reply(*lines: str, question: str = "app.example.org A", flags: str = "QR RD RA") -> bytes:
    """A reply with `SECTION NAME TTL TYPE DATA` lines, written by dnspython."""
    name, rtype = question.split()
    message = dns.message.make_response(dns.message.make_query(name, rtype))
    message.flags = dns.flags.from_text(flags)
    sections = {"answer": message.answer, "authority": message.authority, "additional": message.additional}
    for line in lines:
        section, owner, ttl, kind, data = line.split(maxsplit=4)
        sections[section].append(dns.rrset.from_text(owner, int(ttl), "IN", kind, data))
    return message.to_wire()


def shown(message: bytes | None) -> list[str]:
    """Each record as text, with its section."""
    assert message is not None
    read = dns.message.from_wire(message, one_rr_per_rrset=True)
    sections = (("answer", read.answer), ("authority", read.authority), ("additional", read.additional))
    return [f"{name} {line}" for name, section in sections for one in section for line in one.to_text().split("\n")]


# --- What is replaced ---


def test_an_address_that_leads_here_becomes_the_target_and_lives_no_longer_than_ours() -> None:
    message = reply(f"answer app.example.org. 300 A {BALANCER}")
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [f"answer app.example.org. 5 IN A {RELAY}"]


def test_a_short_ttl_stays() -> None:
    message = reply(f"answer app.example.org. 2 A {BALANCER}")
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [f"answer app.example.org. 2 IN A {RELAY}"]


def test_each_address_is_judged_alone_and_the_set_has_one_ttl() -> None:
    message = reply(f"answer app.example.org. 300 A {BALANCER}", f"answer app.example.org. 300 A {ELSEWHERE}")
    expected = [f"answer app.example.org. 5 IN A {RELAY}", f"answer app.example.org. 5 IN A {ELSEWHERE}"]
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == expected


def test_two_addresses_of_one_balancer_are_the_target_once() -> None:
    leads = Leads(Balancers({BALANCER: (RELAY,), "203.0.113.11": (RELAY,)}))
    message = reply("answer app.example.org. 60 A 203.0.113.11", f"answer app.example.org. 60 A {BALANCER}")
    assert shown(replace_leads(message, leads, ttl=TTL)) == [f"answer app.example.org. 5 IN A {RELAY}"]


def test_the_other_family_has_its_own_target() -> None:
    message = reply(f"answer app.example.org. 60 AAAA {BALANCER_6}", question="app.example.org AAAA")
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [f"answer app.example.org. 5 IN AAAA {RELAY_6}"]


def test_a_family_without_a_target_is_left_out() -> None:
    message = reply(f"answer app.example.org. 60 AAAA {BALANCER_6}", question="app.example.org AAAA")
    replaced = replace_leads(message, FOUR_ONLY, ttl=TTL)
    assert shown(replaced) == []
    assert replaced is not None
    assert dns.message.from_wire(replaced).rcode() == 0


def test_an_alias_chain_stays_and_its_address_is_replaced() -> None:
    message = reply(
        "answer app.example.org. 60 CNAME b.example.org.",
        "answer b.example.org. 60 CNAME c.example.org.",
        f"answer c.example.org. 60 A {BALANCER}",
    )
    assert shown(replace_leads(message, LEADS, ttl=TTL))[-1] == f"answer c.example.org. 5 IN A {RELAY}"


@pytest.mark.parametrize("case", ["lb.example.net.", "LB.Example.NET."])
def test_an_alias_of_a_balancers_hostname_leads_there_with_all_its_addresses(case: str) -> None:
    message = reply(
        f"answer app.example.org. 60 CNAME {case}", f"answer {case} 60 A 192.0.2.200", f"answer {case} 60 A {ELSEWHERE}"
    )
    assert LEADS.search is not None
    assert LEADS.search(message)
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [
        f"answer app.example.org. 60 IN CNAME {case}",
        f"answer {case} 5 IN A {RELAY}",
    ]


def test_an_alias_of_such_an_alias_leads_there_too_and_so_does_what_the_hostname_is_an_alias_of() -> None:
    message = reply(
        "answer app.example.org. 60 CNAME www.example.org.",
        "answer www.example.org. 60 CNAME lb.example.net.",
        "answer lb.example.net. 60 CNAME node.example.com.",
        f"answer node.example.com. 60 A {ELSEWHERE}",
    )
    assert shown(replace_leads(message, LEADS, ttl=TTL))[-1] == f"answer node.example.com. 5 IN A {RELAY}"


def test_addresses_of_other_names_in_a_reply_about_a_balancers_hostname_stay() -> None:
    """A balancer's hostname may be a name with a mail server of its own."""
    message = reply(
        "answer lb.example.net. 60 MX 10 mail.example.net.",
        f"additional mail.example.net. 60 A {ELSEWHERE}",
        question="lb.example.net MX",
    )
    assert replace_leads(message, LEADS, ttl=TTL) is None


def test_hints_of_an_https_record_for_a_balancers_hostname_are_its_addresses() -> None:
    message = reply(
        f"answer app.example.org. 60 HTTPS 1 LB.example.net. ipv4hint={ELSEWHERE}", question="app.example.org HTTPS"
    )
    (record,) = shown(replace_leads(message, LEADS, ttl=TTL))
    assert f'ipv4hint="{RELAY}"' in record


def test_a_reply_without_any_answer_left_is_no_referral() -> None:
    message = reply(
        f"answer app.example.org. 60 AAAA {BALANCER_6}",
        "authority example.org. 60 NS ns.example.org.",
        question="app.example.org AAAA",
    )
    assert shown(replace_leads(message, FOUR_ONLY, ttl=TTL)) == []


def test_a_signed_message_stays_as_it_is() -> None:
    message = dns.message.from_wire(reply(f"answer app.example.org. 60 A {BALANCER}"))
    message.use_tsig({dns.name.from_text("key."): b"secret"}, keyname="key.")
    assert replace_leads(message.to_wire(), LEADS, ttl=TTL) is None


def test_a_circle_of_aliases_ends() -> None:
    message = reply(
        "answer app.example.org. 60 CNAME b.example.org.",
        "answer b.example.org. 60 CNAME app.example.org.",
        f"answer b.example.org. 60 A {ELSEWHERE}",
    )
    assert replace_leads(message, LEADS, ttl=TTL) is None


def test_additional_addresses_are_replaced_and_authorities_stay() -> None:
    message = reply(
        "answer _sip._tcp.example.org. 60 SRV 1 2 5060 app.example.org.",
        "authority example.org. 60 NS app.example.org.",
        f"additional app.example.org. 60 A {BALANCER}",
        f"additional ns.example.org. 60 A {ELSEWHERE}",
        question="_sip._tcp.example.org SRV",
    )
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [
        "answer _sip._tcp.example.org. 60 IN SRV 1 2 5060 app.example.org.",
        "authority example.org. 60 IN NS app.example.org.",
        f"additional app.example.org. 5 IN A {RELAY}",
        f"additional ns.example.org. 60 IN A {ELSEWHERE}",
    ]


def test_signatures_over_what_was_changed_go_and_so_does_ad() -> None:
    signature = "5 3 60 20300101000000 20200101000000 1 example.org. AAAA"
    message = reply(
        f"answer app.example.org. 60 A {BALANCER}",
        f"answer app.example.org. 60 RRSIG A {signature}",
        f"answer app.example.org. 60 RRSIG TXT {signature}",
        flags="QR RD RA AD",
    )
    replaced = replace_leads(message, LEADS, ttl=TTL)
    assert [line.split()[4:6] for line in shown(replaced)] == [["A", RELAY], ["RRSIG", "TXT"]]
    assert replaced is not None
    assert not dns.message.from_wire(replaced).flags & dns.flags.AD


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (f"1 . alpn=h2 ipv4hint={BALANCER}", f'1 . alpn="h2" ipv4hint="{RELAY}"'),
        (f"1 . ipv4hint={ELSEWHERE},{BALANCER}", f'1 . ipv4hint="{ELSEWHERE},{RELAY}"'),
        (f"1 . ipv6hint={BALANCER_6} port=8443", f'1 . port="8443" ipv6hint="{RELAY_6}"'),
    ],
)
def test_hints_of_https_records_are_addresses_too(hints: str, expected: str) -> None:
    message = reply(f"answer app.example.org. 60 HTTPS {hints}", question="app.example.org HTTPS")
    assert shown(replace_leads(message, LEADS, ttl=TTL)) == [f"answer app.example.org. 5 IN HTTPS {expected}"]


def test_a_hint_without_a_target_is_left_out_and_is_mandatory_no_more() -> None:
    given = f"1 . mandatory=ipv6hint,alpn alpn=h2 ipv6hint={BALANCER_6}"
    message = reply(f"answer app.example.org. 60 HTTPS {given}", question="app.example.org HTTPS")
    expected = 'answer app.example.org. 5 IN HTTPS 1 . mandatory="alpn" alpn="h2"'
    assert shown(replace_leads(message, FOUR_ONLY, ttl=TTL)) == [expected]


def test_what_only_leads_here_is_replaced_by_the_rows_addresses_and_for_no_other_name() -> None:
    message = reply("answer app.example.org. 60 A 192.0.2.5", f"answer app.example.org. 60 A {ELSEWHERE}")
    assert replace_leads(message, LEADS, ttl=TTL) is None
    expected = [f"answer app.example.org. 5 IN A {RELAY}", f"answer app.example.org. 5 IN A {ELSEWHERE}"]
    assert shown(replace_leads(message, LEADS, ttl=TTL, own=OWN)) == expected


def test_names_keep_their_case() -> None:
    message = reply(
        "answer aPP.Example.org. 60 CNAME B.example.org.",
        f"answer B.Example.org. 60 A {BALANCER}",
        question="ApP.eXample.oRg A",
    )
    replaced = replace_leads(message, LEADS, ttl=TTL)
    whole, before = read_reply(replaced or b""), read_reply(message)
    assert whole is not None
    assert before is not None
    assert whole.question == before.question == b"\3ApP\7eXample\3oRg\0\0\1\0\1"
    assert [one.owner for one in whole.sections[0]] == [one.owner for one in before.sections[0]]


# --- What stays ---


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(reply(f"answer app.example.org. 60 A {ELSEWHERE}"), id="elsewhere"),
        pytest.param(reply(), id="nothing"),
        pytest.param(
            reply(f"answer app.example.org. 60 TXT {BALANCER}", question="app.example.org TXT"), id="as a text"
        ),
        pytest.param(
            reply_to(query("a.example"), records=record(1, ip_address(BALANCER).packed, klass=3), answers=1),
            id="another class",
        ),
        pytest.param(
            reply_to(query("a.example"), records=record(1, b"\0" + ip_address(BALANCER).packed), answers=1),
            id="five octets",
        ),
        pytest.param(reply("authority example.org. 60 NS app.example.org."), id="an authority"),
    ],
)
def test_what_leads_nowhere_here_stays(message: bytes) -> None:
    assert replace_leads(message, LEADS, ttl=TTL, own=OWN) is None


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(bytes(11), id="less than a header"),
        pytest.param(reply(f"answer app.example.org. 60 A {BALANCER}")[:-1], id="cut"),
        pytest.param(reply(f"answer app.example.org. 60 A {BALANCER}") + b"\0", id="octets behind it"),
        pytest.param(
            reply_to(query("a.example"), records=b"\xc0\x1b" + record(1, bytes(4))[2:], answers=1),
            id="a pointer to itself",
        ),
        pytest.param(
            reply_to(query("a.example"), records=b"\xff\xff" + record(1, bytes(4))[2:], answers=1),
            id="a pointer behind the end",
        ),
        pytest.param(reply_to(query("a.example"), records=record(1, bytes(4)), answers=2), id="one record too few"),
        pytest.param(
            reply_to(query("a.example"), records=record(1, bytes(4)) * (MOST_RECORDS + 1), answers=MOST_RECORDS + 1),
            id="too many records",
        ),
        pytest.param(reply_to(query("a.example"), records=record(5, b"\x3f"), answers=1), id="a name without its end"),
        pytest.param(reply_to(query("a.example"), records=record(15, b"\0"), answers=1), id="an MX of one octet"),
        pytest.param(reply_to(query("a.example"), records=record(35, b"\0\0\0\0\xff"), answers=1), id="a bad NAPTR"),
    ],
)
def test_octets_that_are_no_whole_reply_are_left_alone(message: bytes) -> None:
    assert replace_leads(message, LEADS, ttl=TTL, own=OWN) is None
    assert read_leads(message, LEADS) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\1", b"\0\1\0\0\4", b"\0\1\0\0\4\0\5abcde", b"\0\1\0\0\4\0\4\xcb", b"\0\1\0" + b"\0\4\0\0" * 2],
)
def test_malformed_service_parameters_are_left_alone(data: bytes) -> None:
    message = reply_to(query("a.example", 65), records=record(65, data), answers=1)
    assert replace_leads(message, LEADS, ttl=TTL, own=OWN) is None


# --- Where a reply leads ---


def test_a_reply_tells_its_addresses_with_their_targets_and_how_long_that_may_be_kept() -> None:
    message = reply(
        f"answer app.example.org. 100 A {BALANCER}",
        f"answer app.example.org. 90 A {ELSEWHERE}",
        "answer app.example.org. 90 A 192.0.2.9",
    )
    reading = read_leads(message, LEADS)
    assert reading is not None
    targets = [one.target for one in reading.leads]
    assert targets == [make_target([RELAY, RELAY_6]), None, Target(())]
    assert reading.ttl == 90


@pytest.mark.parametrize(("ttl", "kept"), [(0, 5), (4, 5), (6, 6), (300, 300), (86400, 300)])
def test_a_verdict_is_kept_for_five_seconds_to_five_minutes(ttl: int, kept: int) -> None:
    reading = read_leads(reply(f"answer app.example.org. {ttl} A {BALANCER}"), LEADS)
    assert reading is not None
    assert reading.ttl == kept


@pytest.mark.parametrize(
    ("flags", "do", "exempt"), [(0x0110, True, True), (0x0100, True, False), (0x0110, False, False)]
)
def test_a_client_that_sets_do_and_cd_validates_by_itself(flags: int, do: bool, exempt: bool) -> None:
    asked = scan_query(query("a.example", flags=flags, additional=(opt_record(flags=0x8000 if do else 0),)))
    assert is_exempt(asked) is exempt  # type: ignore[arg-type]
    assert is_exempt(scan_query(query("a.example", flags=CD))) is False  # type: ignore[arg-type]


# --- Laws ---

NAMES = st.sampled_from(
    ["app.example.org.", "APP.example.org.", "b.example.org.", "lb.example.net.", "a.b.example.", "."]
)
FOURS = st.sampled_from([BALANCER, ELSEWHERE, "192.0.2.9", "203.0.113.77", "198.51.100.8"])
SIXES = st.sampled_from([BALANCER_6, "2001:db8:e::1"])


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, str, str]:
    """Owner, type and data of a record."""
    data = {
        "A": FOURS,
        "AAAA": SIXES,
        "CNAME": NAMES,
        "NS": NAMES,
        "MX": NAMES.map(lambda name: f"10 {name}"),
        "SRV": NAMES.map(lambda name: f"1 2 3 {name}"),
        "SOA": NAMES.map(lambda name: f"{name} {name} 1 2 3 4 5"),
        "NAPTR": NAMES.map(lambda name: f'1 2 "s" "x" "" {name}'),
        "TXT": st.sampled_from(['"hello"', f'"{BALANCER}"']),
        "TYPE65280": st.sampled_from([r"\# 4 cb00710a", r"\# 2 c00c"]),
        "HTTPS": FOURS.map(lambda one: f"1 . ipv4hint={one}"),
    }
    kind = draw(st.sampled_from(sorted(data)))
    return draw(NAMES), kind, draw(data[kind])


def message_of(sections: list[list[tuple[str, str, str]]], flags: int) -> bytes:
    message = dns.message.make_response(dns.message.make_query("app.example.org", "A"))
    message.flags = flags | dns.flags.QR
    for rows, section in zip(sections, (message.answer, message.authority, message.additional), strict=True):
        for owner, kind, data in rows:
            rrset = dns.rrset.RRset(dns.name.from_text(owner), dns.rdataclass.IN, dns.rdatatype.from_text(kind))
            rrset.add(dns.rdata.from_text("IN", kind, data), 60)
            section.append(rrset)
    return message.to_wire()


@given(
    st.lists(st.lists(lines(), max_size=4), min_size=3, max_size=3),
    st.sampled_from([0, dns.flags.AA, TC, dns.flags.AD]),
    st.sampled_from([None, OWN]),
)
def test_a_reply_is_untouched_or_differs_only_in_what_led_here(
    sections: list[list[tuple[str, str, str]]], flags: int, own: Target | None
) -> None:
    message = message_of(sections, flags)
    replaced = replace_leads(message, LEADS, ttl=TTL, own=own)
    whole = read_reply(message)
    assert whole is not None
    assert shown(write_reply(whole)) == shown(message)
    if replaced is None:
        return
    before, after = shown(message), shown(replaced)
    everything = any("lb.example.net." in data.lower() for _, kind, data in sections[0] if kind == "CNAME")
    here = {BALANCER, BALANCER_6} | ({"192.0.2.9", "203.0.113.77"} if own == OWN else set())
    for line in before:
        _, owner, ttl, klass, kind, data = (*line.split(" ", 5),)
        of_balancer = everything or "lb.example.net." in f"{owner} {data}".lower()
        leads = kind in ("A", "AAAA") and not line.startswith("authority") and (of_balancer or data in here)
        hinted = kind == "HTTPS" and (of_balancer or any(one in data for one in here))
        referral = kind == "NS" and not any(one.startswith("answer") for one in after)
        if not leads and not hinted and not referral:
            kept = {line, line.replace(f" {ttl} {klass}", f" {TTL} {klass}")}
            assert kept & set(after), (line, owner)
    assert not any(data in here for data in (line.split(" ", 5)[5] for line in after if not line.startswith("auth")))


@given(st.binary(max_size=200))
def test_any_octets_give_a_reply_or_none(octets: bytes) -> None:
    asked = query("a.example")
    for message in (octets, reply_to(asked, records=octets, answers=1), asked[:4] + struct.pack("!H", 1) + octets):
        read_leads(message, LEADS)
        replace_leads(message, LEADS, ttl=TTL, own=OWN)
