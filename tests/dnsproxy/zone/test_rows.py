"""Rows: what a replica reads is what was judged, and octets that are no row are a ValueError, and never more."""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host
from dnsproxy.dns import names
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import PLAIN, Claim, Origin, Terms
from dnsproxy.hostnames.registry import Judgement
from dnsproxy.hostnames.verdict import Excluded, Verdict
from dnsproxy.replace.balancers import Balancers, Leads
from dnsproxy.zone.address_rules import make_address_rules
from dnsproxy.zone.control import FORMAT, Control, SavedGuards, format_control, parse_control
from dnsproxy.zone.reading import records_of, text_of
from dnsproxy.zone.rows import format_row, parse_row
from dnsproxy.zone.table_zone import LABEL, join_texts, owner_of, table_zone, text_records
from dnsproxy.zone.zone_records import fits, split_row
from tests.kit.strategies import mutate
from tests.kit.zone_sides import TABLE_ZONE

HOSTNAME: Final = "app.example.org"


def claim(name: str = "app", **more: Any) -> Claim:
    return Claim(HOSTNAME, Reach.NAME, Origin("Ingress", name, "shop", "2026-01-01T00:00:00Z"), Terms(**more))


def answered(excluded: int = 0, addresses: tuple[str, ...] = ("192.0.2.1",)) -> Judgement:
    winner = claim()
    others = tuple(Excluded(claim(f"other-{number}"), "it is younger") for number in range(excluded))
    verdict = Verdict(winner, addresses, others, contenders=(winner,))
    return Judgement(Host(HOSTNAME, Reach.NAME, addresses), verdict)


ROW: Final = format_row(HOSTNAME, [answered(2)]) or b""
BALANCERS: Final = Balancers(
    {"203.0.113.10": ("192.0.2.1", "2001:db8::1"), "lb.example.net": ("192.0.2.1",)},
    {"203.0.113.11": ("192.0.2.2",), "198.51.100.0/24": (), "2001:db8:1::/48": ()},
)
CONTROL: Final = Control(
    FORMAT, 5, ("edge/relay",), SavedGuards(deny=("intern.example.org",)), ("192.0.2.1",), balancers=BALANCERS
)


@pytest.mark.parametrize("excluded", [0, 1, 200])
def test_a_row_is_read_as_it_was_judged(excluded: int) -> None:
    text = format_row(HOSTNAME, [answered(excluded)])
    assert text is not None
    assert parse_row(text) == (HOSTNAME, (answered(excluded),))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(Reach), st.sampled_from(Claimed), st.sampled_from([("192.0.2.1",), ("2001:db8::1",), ()])
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda one: one[0],
    )
)
def test_every_row_is_read_with_the_say_of_public_dns(rows: list[tuple[Reach, Claimed, tuple[str, ...]]]) -> None:
    judged = []
    for reach, claimed, addresses in rows:
        found = one_claim = Claim(
            HOSTNAME if reach is Reach.NAME else f"*.{HOSTNAME}", reach, claim().origin, Terms(addresses)
        )
        verdict = Verdict(found if addresses else None, addresses, (), contenders=(one_claim,) if addresses else ())
        host = Host(one_claim.hostname, reach, addresses, claimed=claimed if addresses else Claimed.NO)
        judged.append(Judgement(host, verdict))
    for hostname in {one.host.hostname for one in judged}:
        ours = [one for one in judged if one.host.hostname == hostname]
        text = format_row(hostname, ours)
        if text is None:
            assert all(one.verdict.winner is None for one in ours)
            continue
        _, read = parse_row(text)
        assert [one for one in read if one.host.addresses] == [one for one in ours if one.host.addresses]


@pytest.mark.parametrize("doubt", [[], [""], ["its record leads elsewhere"]])
def test_a_row_of_a_primary_that_knows_no_say_of_public_dns_is_the_answer(doubt: list[str]) -> None:
    more = dict(zip(("doubt",), doubt, strict=False))
    hostname, (judged,) = parse_row(row(**more))
    assert (hostname, judged.host.addresses, judged.host.claimed) == (HOSTNAME, ("192.0.2.1",), Claimed.NO)


def test_a_claim_is_read_with_all_of_its_fields() -> None:
    shown = claim(
        addresses=("192.0.2.7",),
        ingress_class="class",
        target="service:edge/relay",
        status=("192.0.2.8",),
        routed=False,
        annotated=True,
        since="2026-02-02T00:00:00Z",
        target_from="edge",
        gateway="edge/gateway",
        accepted=False,
        declared=("cdn.example.com",),
    )
    assert [name for name in Terms.__struct_fields__ if getattr(shown.terms, name) == getattr(PLAIN, name)] == []
    verdict = Verdict(shown, shown.terms.addresses, (), contenders=(shown,))
    judged = Judgement(Host(HOSTNAME, Reach.NAME, shown.terms.addresses), verdict)
    assert parse_row(format_row(HOSTNAME, [judged]) or b"") == (HOSTNAME, (judged,))


def test_of_more_excluded_claims_the_first_200_are_told() -> None:
    text = format_row(HOSTNAME, [answered(3_000)])
    assert text is not None
    _, (judged,) = parse_row(text)
    assert judged.verdict.excluded == answered(200).verdict.excluded


def test_a_row_of_3000_addresses_is_cut_into_records_and_joined_in_any_order() -> None:
    many = tuple(f"192.0.{number >> 8}.{number & 255}" for number in range(3_000))
    text = format_row(HOSTNAME, [answered(200, many)])
    assert text is not None
    owner = owner_of(HOSTNAME, TABLE_ZONE)
    records = list(split_row(text_records(owner, text, ttl=5)))
    assert len(records) > 2
    assert all(len(record) < 20_000 for record in records)
    parts = records_of(owner, text_records(owner, text, ttl=5))
    assert text_of(reversed(parts)) == text


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b"1/2 a"] * 2, id="one part twice"),
        pytest.param([b"1/3 a", b"2/3 b"], id="a part is missing"),
        pytest.param([b"0/2 a", b"1/2 b"], id="a part zero"),
        pytest.param([b"a", b"b"], id="texts that are no parts"),
        pytest.param([b"1/2", b"x/2 b"], id="no number"),
        pytest.param([b"1/2 a", b"9999999999999999999999/2 b"], id="a huge number"),
    ],
)
def test_records_that_are_not_the_parts_of_one_text_are_refused(parts: list[bytes]) -> None:
    with pytest.raises(ValueError, match="not the parts"):
        join_texts(parts)


def row(hostname: str = HOSTNAME, **changes: object) -> bytes:
    """A row with one judged reach, whose fields are in the order of _Judged."""
    fields: dict[str, object] = {
        "reach": 0,
        "addresses": ["192.0.2.1"],
        "service": "",
        "claims": [[["Ingress", "app", "shop", ""]]],
        "winner": 0,
        "unready": -1,
        "excluded": [],
        "contenders": [],
    }
    return msgspec.json.encode([hostname, [list({**fields, **changes}.values())]])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="an empty list"),
        pytest.param(b"{}", id="an object"),
        pytest.param(b'["' + b"\xff" + b'"]', id="not UTF-8"),
        pytest.param(b"[" * 100_000, id="lists in lists without end"),
        pytest.param(row("APP.example.org"), id="a name in upper case"),
        pytest.param(row("app..example.org"), id="an empty label"),
        pytest.param(row("a" * 64 + ".example.org"), id="a label of 64 characters"),
        pytest.param(row("192.0.2.1"), id="an address for a name"),
        pytest.param(row("*.example.org"), id="a wildcard that reaches its own name"),
        pytest.param(row(reach=1), id="a name that reaches below itself"),
        pytest.param(row(reach=9), id="an unknown reach"),
        pytest.param(row(addresses=["nowhere"]), id="an address that is none"),
        pytest.param(row(addresses=["192.0.2.256"]), id="an octet of 256"),
        pytest.param(row(addresses=[""]), id="an empty address"),
        pytest.param(row(addresses=[]), id="a winner without addresses"),
        pytest.param(row(winner=-1), id="addresses without a winner"),
        pytest.param(row(winner=1), id="a winner that is no claim"),
        pytest.param(row(winner=-2), id="a negative claim"),
        pytest.param(row(unready=7), id="an unready claim that is none"),
        pytest.param(row(excluded=[[3, "why"]]), id="an excluded claim that is none"),
        pytest.param(row(contenders=[1]), id="a contender that is none"),
        pytest.param(row(claims=[[["Ingress", "app"]]]), id="an origin of two parts"),
        pytest.param(row(claims=[]), id="no claims"),
        pytest.param(row(doubt="", waits=False, barred=False, claimed=4), id="an unknown say of public DNS"),
        pytest.param(row(doubt="", waits=False, barred=False, claimed=-1), id="a negative say of public DNS"),
        pytest.param(row(doubt="", waits=False, barred=False, claimed="2"), id="a say of public DNS in quotes"),
        pytest.param(row(doubt="", waits=False, barred=False, claimed=None), id="no say of public DNS"),
        pytest.param(row(doubt=7, waits=False, barred=False, claimed=2), id="a number for the reserved text"),
    ],
)
def test_a_damaged_row_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_row(text)


@given(st.integers(0, 2**32), st.sampled_from([ROW, row(), format_control(CONTROL)]))
def test_a_mutated_text_is_a_row_or_a_value_error(seed: int, text: bytes) -> None:
    mutated = mutate(text, random.Random(seed), others=(ROW, format_control(CONTROL)))  # noqa: S311
    for parse in (parse_row, parse_control):
        try:
            found = parse(mutated)
        except ValueError:
            continue
        if isinstance(found, Control):
            assert found.named_guards.closed is not None
            Leads(found.balancers or Balancers())
            make_address_rules(found.balancers or Balancers(), conditional=True, ttl=found.ttl)
            for name in found.named_guards.deny:
                names.to_wire(name)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"format": 2}, id="another format"),
        pytest.param({"ttl": 0}, id="a TTL of 0"),
        pytest.param({"ttl": 1 << 31}, id="a huge TTL"),
        pytest.param({"ttl": "5"}, id="a TTL in quotes"),
        pytest.param({"new": 1}, id="an unknown field"),
        pytest.param({"guards": {"deny": ["a" * 64]}}, id="a denied name with a label of 64 characters"),
        pytest.param({"guards": {"search": ["b\xfccher.example.org"]}}, id="a search domain that is not ASCII"),
        pytest.param({"guards": {"deny": [".".join(["a" * 60] * 5)]}}, id="a denied name of 304 characters"),
        pytest.param({"guards": {"zones": ["a..b"]}}, id="an empty label"),
        pytest.param({"guards": {"zones": [""]}}, id="an empty zone"),
        pytest.param({"balancers": [{"203.0.113.10": ["nowhere"]}, {}]}, id="a target that is no address"),
        pytest.param({"balancers": [{"203.0.113.10": ["192.0.2.0/24"]}]}, id="a network as a target"),
        pytest.param({"balancers": [{}, {"203.0.113.10": [""]}]}, id="an empty target"),
        pytest.param({"balancers": [{"203.0.113.10": "192.0.2.1"}]}, id="a target that is no list"),
        pytest.param({"balancers": [{"203.0.113.10": None}]}, id="no target"),
        pytest.param({"balancers": {"replaced": {}}}, id="load balancers by name"),
        pytest.param({"balancers": [[]]}, id="load balancers without targets"),
        pytest.param({"balancers": 7}, id="a number of load balancers"),
    ],
)
def test_a_damaged_control_record_is_a_value_error(fields: dict[str, object]) -> None:
    whole = {"format": FORMAT, "ttl": 5}
    assert parse_control(msgspec.json.encode(whole)).ttl == 5
    with pytest.raises(ValueError, match=r"."):
        parse_control(msgspec.json.encode({**whole, **fields}))


@pytest.mark.parametrize(
    "balancers",
    [
        pytest.param([{"": ["192.0.2.1"]}], id="an empty name"),
        pytest.param([{"a..b": ["192.0.2.1"], "\u212a.example.org": ["192.0.2.1"], "x" * 70_000: []}], id="no names"),
        pytest.param([{}, {"192.0.2.1/24": [], "192.0.2.0/33": [], "/": [], "::/129": []}], id="no networks"),
        pytest.param([{"203.0.113.256": [], "1.2.3": [], "0x7f.1": []}], id="no addresses"),
        pytest.param([{"fe80::1%eth0": ["fe80::1%eth0"]}], id="an address of a link"),
        pytest.param([{}, {}, "new"], id="a field of a later primary"),
        pytest.param([], id="nothing"),
        pytest.param(None, id="none"),
    ],
)
def test_load_balancers_that_lead_nowhere_are_no_error(balancers: object) -> None:
    """An address or name is another one's word, a status; the target is the primary's."""
    control = parse_control(msgspec.json.encode({"format": FORMAT, "ttl": 5, "balancers": balancers}))
    found = control.balancers or Balancers()
    Leads(found)
    make_address_rules(found, conditional=True, ttl=5)


def test_a_control_record_of_a_primary_that_knows_no_load_balancers_has_none() -> None:
    assert parse_control(msgspec.json.encode({"format": FORMAT, "ttl": 5})).balancers is None


def test_a_control_record_is_read_as_it_was_written() -> None:
    assert parse_control(format_control(CONTROL)) == CONTROL


@given(st.lists(st.integers(1, 63), max_size=4), st.integers(1, 63))
def test_every_hostname_has_an_owner_that_fits_in_every_zone_that_is_taken(labels: list[int], last: int) -> None:
    zone = names.to_wire(".".join("z" * size for size in labels))
    hostname = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * min(last, 61)])
    try:
        table = table_zone(zone)
    except ValueError:
        assert len(LABEL + zone) > 200
        return
    assert fits(owner_of(hostname, table), table)
    assert fits(owner_of(f"*.{HOSTNAME}", table), table)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('["%s",[]]' % (" " * 60_000 + HOSTNAME), id="a hostname with blanks"),
        pytest.param('["%s",7]' % ("x" * 60_000), id="no row"),
    ],
)
def test_a_long_text_in_a_row_is_not_repeated_whole(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_row(text.encode())
    assert len(str(error.value)) < 400


def test_a_long_guard_is_not_repeated_whole() -> None:
    control = format_control(Control(FORMAT, 5, guards=SavedGuards(zones=("x" * 60_000,))))
    with pytest.raises(ValueError, match="is no name") as error:
        parse_control(control)
    assert len(str(error.value)) < 400
