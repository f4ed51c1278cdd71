"""Loop probes: only an outstanding name counts, and it cannot be guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Query
from dnsproxy.forward.loop import LoopProbes, shows_loop
from dnsproxy.forward.settings import TcpEndpoint, TlsEndpoint
from sidecar.values.endpoints import Endpoint
from tests.kit.messages import TXT, read_dnspython, scanned, wire_name
from tests.kit.strategies import case_of

SERVICE = Endpoint("10.96.0.53", 53)


def is_caught(probes: LoopProbes, query: Query) -> bool:
    """Whether it is answered as a loop, in a form that other servers pass on."""
    answer = probes.answer(query)
    if answer is None:
        return False
    reading = read_dnspython(answer)
    assert (reading.rcode, len(reading.answers)) == (0, 1)
    assert shows_loop(answer)
    return True


class News:
    """How many times a probe came back."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_a_probe_is_a_query_that_every_server_understands() -> None:
    probe = LoopProbes().make(SERVICE, News())
    reading = read_dnspython(probe.message)
    assert (reading.ident, reading.flags, reading.opt) == (0, 0x0100, None)
    assert [(qtype, klass) for _, qtype, klass in reading.question] == [(TXT, 1)]
    assert scanned(probe.message) == probe


def test_its_name_can_neither_be_guessed_nor_be_in_use_by_others() -> None:
    """RFC 6761 section 6.4: no one owns `invalid`; an attacker would have to guess 128 bits."""
    names = {LoopProbes().make(SERVICE, News()).name for _ in range(1000)}
    assert len(names) == 1000
    assert {name[0] for name in names} == {32}
    assert len({name[33:50] for name in names}) == 1, "the mark of the upstream"
    assert {name[50:] for name in names} == {wire_name("loop-probe.switchback.invalid")}


def test_a_probe_is_reported_each_time_it_comes_back() -> None:
    probes, news = LoopProbes(), News()
    probe = probes.make(SERVICE, news)
    assert all(is_caught(probes, probe) for _ in range(3))
    assert news.count == 3


def test_of_several_probes_the_one_that_comes_back_is_reported() -> None:
    probes, first, second = LoopProbes(), News(), News()
    probes.make(SERVICE, first)
    probe = probes.make(SERVICE, second)
    assert is_caught(probes, probe)
    assert (first.count, second.count) == (0, 1)


def test_a_probe_whose_time_is_over_counts_no_more() -> None:
    probes, news = LoopProbes(), News()
    probe = probes.make(SERVICE, news)
    probes.forget(probe)
    probes.forget(probe)
    assert not is_caught(probes, probe)
    assert (news.count, probes.out) == (0, {})


@pytest.mark.parametrize(
    ("theirs", "ours", "caught"),
    [
        pytest.param(SERVICE, [SERVICE], True, id="the same upstream"),
        pytest.param(SERVICE, [TcpEndpoint("10.96.0.53", 53)], True, id="over TCP"),
        pytest.param(SERVICE, [Endpoint("192.0.2.1", 53), SERVICE], True, id="one of two"),
        pytest.param(SERVICE, [], False, id="none"),
        pytest.param(SERVICE, [Endpoint("10.96.0.53", 5353)], False, id="another port"),
        pytest.param(SERVICE, [TlsEndpoint("192.0.2.1", 853, "dns.example.org")], False, id="another address"),
        pytest.param(Endpoint("127.0.0.53", 53), [Endpoint("127.0.0.53", 53)], False, id="of each computer"),
        pytest.param(Endpoint("fe80::1%1", 53), [Endpoint("fe80::1%1", 53)], False, id="of each link"),
    ],
)
def test_the_probe_of_another_server_shows_a_loop_by_the_upstream_that_both_have(
    theirs: Endpoint, ours: list[Endpoint], caught: bool
) -> None:
    probes = LoopProbes()
    probes.set_upstreams(ours)
    assert is_caught(probes, LoopProbes().make(theirs, News())) is caught


def test_names_like_a_probe_are_not_one() -> None:
    probes, news = LoopProbes(), News()
    name = probes.make(SERVICE, news).name
    forged = [
        b"\x20" + b"0" * 32 + name[33:],
        name[33:],
        b"\x01a" + name,
        name[:-1],
        name + b"\0",
        LoopProbes().make(SERVICE, news).name,
        b"\0",
        b"",
    ]
    assert not any(is_caught(probes, wire.plain_query(other, TXT)) for other in forged)
    assert news.count == 0


@given(st.integers(0, 2**80))
def test_a_server_that_changes_the_case_of_names_is_caught_too(bits: int) -> None:
    """0x20: the name is looked up in lower case, as scan_query returns it."""
    probes, news = LoopProbes(), News()
    probe = probes.make(SERVICE, news)
    came = probe.message.replace(probe.name, case_of(probe.name, bits))
    assert is_caught(probes, scanned(came))
    assert news.count == 1
