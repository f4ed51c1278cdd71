"""Quick answers to names in whose rows public DNS has a say: only while a verdict says so, and those of the row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.decide import Answer, Forward, answer_from, decide
from dnsproxy.answers.quick import QuickAnswers
from dnsproxy.answers.table import Host
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.replace.verdicts import judged_type, key_of
from tests.kit.messages import AAAA, A, opt_record, query, scanned

NAMES = ("app.example.org", "own.example.org", "warn.example.org", "a.apps.example.org", "b.apps.example.org")
CLAIMED = {
    "app.example.org": Claimed.VERIFIED,
    "own.example.org": Claimed.NO,
    "warn.example.org": Claimed.REPORTED,
    "*.apps.example.org": Claimed.ENFORCED,
}


def table_of_claims() -> TableWriter:
    writer = TableWriter(ttl=5)
    for name, claimed in CLAIMED.items():
        reach = Reach.ANY_LABELS if name.startswith("*.") else Reach.NAME
        writer.put(Host(name, reach, ("192.0.2.81",), claimed=claimed))
    return writer


@st.composite
def queries(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(NAMES))
    name = draw(st.sampled_from([name, name.upper(), name.title()]))
    opt = draw(st.sampled_from([(), (opt_record(),), (opt_record(flags=0x8000),)]))
    flags = draw(st.sampled_from([0x0100, 0x0110, 0x0120, 0]))
    return query(name, draw(st.sampled_from([A, AAAA, 65, 64, 255])), flags=flags, additional=opt)


@given(st.lists(queries(), max_size=12), st.sets(st.sampled_from(NAMES)), st.booleans())
def test_a_quick_answer_is_that_of_the_row_and_only_by_a_verdict(
    asked: list[bytes], known: set[str], forgotten: bool
) -> None:
    table = table_of_claims().publish()
    wires = {key_of(b"".join(bytes([len(one)]) + one.encode() for one in name.split(".")) + b"\0", A) for name in known}
    answers = set(wires)
    quick = QuickAnswers(table, lambda name, rtype, _: key_of(name, A) in answers and rtype in (A, AAAA))
    for message in asked:
        (reply,), _ = quick.answer([message[2:]])
        again = quick.answer([message[2:]])[0][0]
        assert reply == again
        outcome = decide(message, table, stream=False)
        if reply is None:
            continue
        one = scanned(message)
        row = table.find(one.name)
        assert row is not None
        assert message[:2] + reply == answer_from(row, one, stream=False)
        if row.claimed is not Claimed.NO:
            assert key_of(one.name, A) in answers
            assert isinstance(outcome, Answer if row.claimed is Claimed.REPORTED else Forward)
            asker = outcome.beside if isinstance(outcome, Answer) else outcome
            # A client that validates by itself is never answered from a row.
            assert isinstance(asker, Forward)
            assert asker.claim is row
        if forgotten:
            answers.clear()
            quick.forget([key_of(one.name, judged_type(one.type))])
            if row.claimed is not Claimed.NO:
                assert quick.answer([message[2:]])[0] == [None]


def test_what_is_forgotten_takes_no_recipe_of_another_name() -> None:
    quick = QuickAnswers(table_of_claims().publish(), lambda *_: True)
    for name in NAMES:
        quick.answer([query(name)[2:]])
    before = len(quick)
    quick.forget([key_of(scanned(query("app.example.org")).name, A)])
    assert len(quick) == before - 1


def test_names_below_a_claimed_wildcard_have_no_recipe_in_common() -> None:
    first = scanned(query("a.apps.example.org")).name
    quick = QuickAnswers(table_of_claims().publish(), lambda name, *_: name == first)
    assert quick.answer([query("a.apps.example.org")[2:]])[0] != [None]
    assert quick.answer([query("b.apps.example.org")[2:]])[0] == [None]
