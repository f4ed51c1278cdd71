"""Verdicts: how long they count, what they say while nobody knows better, and that they are bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.wire import Rcode, Type
from dnsproxy.replace import verdicts as verdicts_module
from dnsproxy.replace.balancers import OF_ROW, Target, make_target
from dnsproxy.replace.replies import Lead, Reading
from dnsproxy.replace.verdicts import (
    BELOW,
    COST,
    MOST_SHOWN,
    REMEMBERED,
    STALE,
    LeadsTo,
    Verdict,
    Verdicts,
    join_verdicts,
    judge,
    judged_type,
    key_of,
    other_family,
)

NAME = b"\3app\7example\3org\0"
A, AAAA = int(Type.A), int(Type.AAAA)
RELAY = make_target(["10.96.7.7"])
OTHER = make_target(["10.96.9.9"])
HERE = Verdict(LeadsTo.HERE, 100.0)
ELSEWHERE = Verdict(LeadsTo.ELSEWHERE, 100.0, leads=(b"\xc6\x33\x64\x07",))


def reading(*targets: Target | None, rcode: int = Rcode.NOERROR, ttl: int = 60) -> Reading:
    return Reading(rcode, tuple(Lead(bytes([192, 0, 2, number]), one) for number, one in enumerate(targets)), ttl)


# --- What one reply says ---


@pytest.mark.parametrize(
    ("found", "rtype", "place"),
    [
        pytest.param(reading(OF_ROW), A, LeadsTo.HERE, id="leads here"),
        pytest.param(reading(RELAY), A, LeadsTo.HERE, id="leads to the row's target"),
        pytest.param(reading(RELAY, OF_ROW), A, LeadsTo.HERE, id="both of two"),
        pytest.param(reading(OTHER), A, LeadsTo.ELSEWHERE, id="to another target of ours"),
        pytest.param(reading(None), A, LeadsTo.ELSEWHERE, id="elsewhere"),
        pytest.param(reading(OF_ROW, None), A, LeadsTo.ELSEWHERE, id="one of two elsewhere"),
        pytest.param(reading(rcode=Rcode.NXDOMAIN), A, LeadsTo.NOWHERE, id="no such name"),
        pytest.param(reading(rcode=Rcode.NXDOMAIN), 65, LeadsTo.NOWHERE, id="no such name, another type"),
        pytest.param(reading(rcode=Rcode.SERVFAIL), 65, LeadsTo.NOWHERE, id="an error for another type"),
        pytest.param(None, A, LeadsTo.NOWHERE, id="no reply, or octets that are none"),
        pytest.param(reading(), 65, LeadsTo.ELSEWHERE, id="no HTTPS record"),
    ],
)
def test_where_a_reply_says_that_a_name_leads(found: Reading | None, rtype: int, place: LeadsTo) -> None:
    verdict = judge(found, rtype, own=RELAY, now=0.0)
    assert verdict is not None
    assert verdict.place is place


@pytest.mark.parametrize("rtype", [A, AAAA])
@pytest.mark.parametrize(
    "found",
    [
        pytest.param(reading(), id="empty"),
        pytest.param(reading(rcode=Rcode.SERVFAIL), id="an error"),
        pytest.param(reading(OF_ROW, rcode=Rcode.REFUSED), id="an error with records"),
    ],
)
def test_a_reply_without_addresses_decides_nothing_by_itself(found: Reading, rtype: int) -> None:
    assert judge(found, rtype, own=RELAY, now=0.0) is None


@pytest.mark.parametrize(
    ("one", "now", "place"),
    [
        pytest.param(Verdict(LeadsTo.NOWHERE, 100.0), 50.0, LeadsTo.ELSEWHERE, id="no such name"),
        pytest.param(Verdict(LeadsTo.NOWHERE, 300.0), 200.0, LeadsTo.NOWHERE, id="no such name, as of now"),
        pytest.param(Verdict(LeadsTo.NOWHERE, 300.0, sure=False), 200.0, LeadsTo.ELSEWHERE, id="nobody could say"),
        pytest.param(HERE, 50.0, LeadsTo.HERE, id="here"),
    ],
)
def test_a_name_that_leads_elsewhere_by_one_family_is_not_free_by_the_other(
    one: Verdict, now: float, place: LeadsTo
) -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, ELSEWHERE, below=False)
    verdicts.note(NAME, AAAA, one, below=False)
    found = verdicts.find_joined(NAME, AAAA, now)
    assert found is not None
    assert found.place is place


def test_only_some_of_the_addresses_are_kept() -> None:
    verdict = judge(reading(*[None] * 9), A, own=RELAY, now=0.0)
    assert verdict is not None
    assert len(verdict.leads) == MOST_SHOWN


def test_a_verdict_that_nobody_gave_is_not_sure() -> None:
    unsure, sure = judge(None, A, own=RELAY, now=0.0), judge(reading(OF_ROW), A, own=RELAY, now=0.0)
    assert unsure is not None
    assert sure is not None
    assert (unsure.sure, sure.sure) == (False, True)


@pytest.mark.parametrize(("rtype", "judged"), [(A, A), (AAAA, AAAA), (65, A), (64, A), (255, A)])
def test_a_type_without_addresses_is_judged_by_those_of_a(rtype: int, judged: int) -> None:
    assert judged_type(rtype) == judged


def test_the_other_family() -> None:
    assert [other_family(one) for one in (A, AAAA)] == [AAAA, A]


# --- How long it counts ---


def test_a_verdict_is_fresh_for_its_time_answers_for_some_more_and_is_then_forgotten() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, HERE, below=False)
    assert verdicts.find_fresh(NAME, A, 99.9)
    assert not verdicts.find_fresh(NAME, A, 100.0)
    assert verdicts.find(NAME, A, 100.0 + STALE - 0.1) == HERE
    assert verdicts.find(NAME, A, 100.0 + STALE) is None
    assert verdicts.expire(99.0) == []
    assert verdicts.expire(100.0) == [key_of(NAME, A)]
    assert len(verdicts) == 1
    verdicts.expire(100.0 + STALE)
    assert len(verdicts) == 0


def test_a_name_that_led_elsewhere_is_remembered_for_a_day() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, ELSEWHERE, below=False)
    assert verdicts.find(NAME, A, 100.0 + STALE) == ELSEWHERE
    verdicts.expire(100.0 + REMEMBERED)
    assert len(verdicts) == 0


def test_names_and_types_are_apart() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, HERE, below=False)
    assert verdicts.find(NAME, AAAA, 0.0) is None
    assert verdicts.find(b"\3www\7example\3org\0", A, 0.0) is None


def test_when_the_load_balancers_change_every_name_is_judged_again_and_answered_meanwhile() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, HERE, below=False)
    verdicts.end_all(7.0)
    assert not verdicts.find_fresh(NAME, A, 7.0)
    found = verdicts.find(NAME, A, 7.0)
    assert found is not None
    assert found.place is LeadsTo.HERE


# --- Bounds ---


def test_random_names_below_a_wildcard_push_out_one_another_and_no_exact_name() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, HERE, below=False)
    names = [b"\6%06d\7example\3net\0" % number for number in range(4_000)]
    for name in names:
        verdicts.note(name, A, HERE, below=True)
    room = BELOW // (COST + len(key_of(names[0], A)))
    assert len(verdicts) == room + 1
    assert verdicts.find_fresh(NAME, A, 0.0)
    assert [verdicts.find_fresh(one, A, 0.0) is not None for one in (names[-room - 1], names[-room])] == [False, True]
    # Their recipes go with them.
    assert verdicts.expire(0.0) == [key_of(one, A) for one in names[:-room]]
    assert verdicts.expire(0.0) == []


def test_long_names_have_less_room() -> None:
    verdicts = Verdicts()
    for number in range(10_000):
        verdicts.note(b"\6%06d" % number + (b"\x3f" + b"a" * 63) * 3 + b"\0", A, HERE, below=False)
    assert len(verdicts) < 7_000


def test_a_spare_verdict_pushes_out_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts_module, "EXACT", 2 * (COST + len(key_of(b"\1a\0", A))))
    kept = Verdicts()
    for name, spare in ((b"\1a\0", True), (b"\1b\0", False), (b"\1c\0", True)):
        kept.note(name, A, HERE, below=False, spare=spare)
    assert [bool(kept.find(name, A, 0)) for name in (b"\1a\0", b"\1b\0", b"\1c\0")] == [True, True, False]
    kept.note(b"\1a\0", A, ELSEWHERE, below=False, spare=True)
    assert kept.find(b"\1a\0", A, 0) == ELSEWHERE
    kept.note(b"\1d\0", A, HERE, below=False)
    assert len(kept) == 2


# --- A name by its types ---

NOWHERE = Verdict(LeadsTo.NOWHERE, 50)
UNSURE = Verdict(LeadsTo.NOWHERE, 5, sure=False)


@pytest.mark.parametrize(
    ("several", "joined"),
    [
        pytest.param([HERE], HERE, id="one"),
        pytest.param([HERE, ELSEWHERE], ELSEWHERE, id="one type elsewhere"),
        pytest.param([UNSURE, ELSEWHERE], ELSEWHERE._replace(until=5), id="elsewhere, and one that nobody could say"),
        pytest.param([HERE, NOWHERE], NOWHERE, id="one without a record"),
        pytest.param([HERE, UNSURE], UNSURE, id="one that nobody could say"),
    ],
)
def test_the_verdict_on_a_name_is_the_worst_on_its_types(several: list[Verdict], joined: Verdict) -> None:
    assert join_verdicts(several) == joined


def test_a_name_with_two_types_is_one_name_until_its_last_type_is_forgotten() -> None:
    verdicts = Verdicts()
    verdicts.note(NAME, A, HERE._replace(until=10), below=True)
    verdicts.note(NAME, AAAA, HERE._replace(until=20), below=False)
    verdicts.note(b"\3www\7example\3org\0", A, HERE._replace(until=10), below=False)
    assert verdicts.names == 2
    verdicts.expire(10 + STALE)
    assert verdicts.names == 1
    verdicts.expire(20 + STALE)
    assert verdicts.names == 0


# --- What leads elsewhere ---


def test_the_version_changes_with_the_names_that_lead_elsewhere_and_with_nothing_else() -> None:
    verdicts = Verdicts()
    seen = [verdicts.version]

    def changed() -> bool:
        seen.append(verdicts.version)
        return seen[-1] != seen[-2]

    verdicts.note(NAME, A, HERE, below=False)
    assert not changed()
    verdicts.note(NAME, A, ELSEWHERE, below=False)
    assert changed()
    verdicts.note(NAME, A, ELSEWHERE._replace(until=200.0), below=False)
    assert not changed()
    verdicts.note(NAME, A, ELSEWHERE._replace(leads=(b"\1\2\3\4",)), below=False)
    assert changed()
    verdicts.expire(100.0 + STALE)
    assert not changed()
    verdicts.expire(100.0 + REMEMBERED)
    assert changed()
    assert verdicts.led() == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"\1a\0", b"\1b\0", b"\1c\0"]),
            st.sampled_from([A, AAAA]),
            st.sampled_from(LeadsTo),
            st.floats(0, 1000),
            st.booleans(),
        ),
        max_size=20,
    ),
    st.floats(0, 2000),
)
def test_what_is_told_is_what_was_noted_last(noted: list[tuple[bytes, int, LeadsTo, float, bool]], now: float) -> None:
    verdicts = Verdicts()
    last: dict[tuple[bytes, int, bool], Verdict] = {}
    for name, rtype, place, until, below in noted:
        verdict = Verdict(place, until, leads=(b"\1\2\3\4",) if place is LeadsTo.ELSEWHERE else ())
        verdicts.note(name, rtype, verdict, below=below)
        last[name, rtype, below] = verdict
    over = verdicts.expire(now)
    lasts = {LeadsTo.ELSEWHERE: REMEMBERED}
    kept = {key: one for key, one in last.items() if one.until + lasts.get(one.place, STALE) > now}
    assert len(verdicts) == len(kept)
    ended = {key_of(name, rtype) for (name, rtype, _), one in last.items() if one.until <= now}
    joined = {key_of(name, other_family(rtype)) for name, rtype, place, _, _ in noted if place is LeadsTo.ELSEWHERE}
    assert ended <= set(over) <= ended | joined
    expected = sorted((name, rtype) for (name, rtype, _), one in kept.items() if one.place is LeadsTo.ELSEWHERE)
    assert sorted((one.name, one.rtype) for one in verdicts.led()) == expected
    assert sum(verdicts.counts().values()) == len(kept)
