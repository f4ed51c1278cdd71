"""Loop probes: only an outstanding name counts, and it cannot be guessed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.forward.loop import LoopProbes
from tests.kit.messages import TXT, read_dnspython, scanned, wire_name
from tests.kit.strategies import case_of


class News:
    """How many times a probe came back."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_a_probe_is_a_query_that_every_server_understands() -> None:
    probe = LoopProbes().make(News())
    reading = read_dnspython(probe.message)
    assert (reading.ident, reading.flags, reading.opt) == (0, 0x0100, None)
    assert [(qtype, klass) for _, qtype, klass in reading.question] == [(TXT, 1)]
    assert scanned(probe.message) == probe


def test_its_name_can_neither_be_guessed_nor_be_in_use_by_others() -> None:
    """RFC 6761 section 6.4: no one owns `invalid`; an attacker would have to guess 128 bits."""
    names = {LoopProbes().make(News()).name for _ in range(1000)}
    assert len(names) == 1000
    assert {name[0] for name in names} == {32}
    assert {name[33:] for name in names} == {wire_name("loop-probe.switchback.invalid")}


def test_a_probe_is_reported_each_time_it_comes_back() -> None:
    probes, news = LoopProbes(), News()
    probe = probes.make(news)
    assert [probes.caught(probe.name) for _ in range(3)] == [True] * 3
    assert news.count == 3


def test_of_several_probes_the_one_that_comes_back_is_reported() -> None:
    probes, first, second = LoopProbes(), News(), News()
    probes.make(first)
    probe = probes.make(second)
    assert probes.caught(probe.name)
    assert (first.count, second.count) == (0, 1)


def test_a_probe_whose_time_is_over_counts_no_more() -> None:
    probes, news = LoopProbes(), News()
    probe = probes.make(news)
    probes.forget(probe)
    probes.forget(probe)
    assert not probes.caught(probe.name)
    assert (news.count, probes.out) == (0, {})


def test_names_like_a_probe_are_not_one() -> None:
    probes, news = LoopProbes(), News()
    name = probes.make(news).name
    forged = [
        b"\x20" + b"0" * 32 + name[33:],
        name[33:],
        b"\x01a" + name,
        name[:-1],
        name + b"\0",
        LoopProbes().make(news).name,
        b"\0",
        b"",
    ]
    assert not any(probes.caught(other) for other in forged)
    assert news.count == 0


@given(st.integers(0, 2**80))
def test_a_server_that_changes_the_case_of_names_is_caught_too(bits: int) -> None:
    """0x20: the name is looked up in lower case, as scan_query returns it."""
    probes, news = LoopProbes(), News()
    probe = probes.make(news)
    came = probe.message.replace(probe.name, case_of(probe.name, bits))
    assert probes.caught(scanned(came).name)
    assert news.count == 1
