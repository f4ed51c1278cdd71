"""The header mode of a port, from probes."""

from __future__ import annotations

import itertools

import pytest

from dnsproxy.doctor.facts.probes import Header, Outcome
from dnsproxy.doctor.judge.header_mode import HeaderMode, describe, header_mode_of, overall, versions_of
from tests.dnsproxy.doctor.making import ACCEPTS, REJECTS, REQUIRES, controller_probes

O = Outcome  # noqa: E741  # a table is read across


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (REQUIRES, HeaderMode.REQUIRES),
        (REJECTS, HeaderMode.REJECTS),
        (ACCEPTS, HeaderMode.ACCEPTS),
        ((O.RESET, O.ANSWERED, O.ANSWERED), HeaderMode.REQUIRES),
        ((O.SILENT, O.ANSWERED, O.CLOSED), HeaderMode.REQUIRES),
        ((O.BAD_REQUEST, O.CLOSED, O.ANSWERED), HeaderMode.REQUIRES),
        ((O.CLOSED, O.ALERT, O.ALERT), HeaderMode.REQUIRES),
        ((O.ALERT, O.CLOSED, O.CLOSED), HeaderMode.REJECTS),
        ((O.ALERT, O.GARBAGE, O.GARBAGE), HeaderMode.REJECTS),
        ((O.ANSWERED, O.CLOSED, O.ANSWERED), HeaderMode.ACCEPTS),
        ((O.ANSWERED, O.SILENT, O.RESET), HeaderMode.REJECTS),
        ((O.BAD_REQUEST, O.BAD_REQUEST, O.BAD_REQUEST), HeaderMode.UNKNOWN),
        ((O.CLOSED, O.CLOSED, O.CLOSED), HeaderMode.SILENT),
        ((O.GARBAGE, O.GARBAGE, O.GARBAGE), HeaderMode.UNKNOWN),
        ((O.SILENT, O.SILENT, O.SILENT), HeaderMode.SILENT),
        ((O.REFUSED, O.REFUSED, O.REFUSED), HeaderMode.DEAD),
        ((O.UNREACHABLE, O.UNREACHABLE, O.REFUSED), HeaderMode.DEAD),
        ((O.UNREACHABLE, O.UNREACHABLE, O.UNREACHABLE), HeaderMode.UNKNOWN),
        ((O.UNREACHABLE, O.CLOSED, O.REFUSED), HeaderMode.UNKNOWN),
    ],
)
def test_three_outcomes_give_one_mode(outcomes: tuple[Outcome, ...], expected: HeaderMode) -> None:
    assert header_mode_of(controller_probes(outcomes)) is expected


def test_without_all_probes_the_mode_is_unknown() -> None:
    probes = controller_probes(REQUIRES)
    assert header_mode_of(()) is HeaderMode.UNKNOWN
    assert header_mode_of(probes[:1]) is HeaderMode.UNKNOWN
    assert header_mode_of(probes[1:]) is HeaderMode.UNKNOWN
    assert header_mode_of(controller_probes(REJECTS)[:1]) is HeaderMode.UNKNOWN


def test_every_combination_has_a_mode_and_an_answered_port_is_never_dead() -> None:
    lost = {O.REFUSED, O.UNREACHABLE, O.NO_ROUTE}
    for outcomes in itertools.product(Outcome, repeat=3):
        found = header_mode_of(controller_probes(outcomes))
        assert (found is HeaderMode.REQUIRES) <= (outcomes[0] not in (O.ANSWERED, O.ALERT))
        assert (found is HeaderMode.DEAD) == (O.REFUSED in outcomes and set(outcomes) <= lost)


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ([HeaderMode.REQUIRES, HeaderMode.DEAD], HeaderMode.REQUIRES),
        ([HeaderMode.REJECTS, HeaderMode.REQUIRES], HeaderMode.REQUIRES),
        ([HeaderMode.UNKNOWN, HeaderMode.REJECTS], HeaderMode.REJECTS),
        ([HeaderMode.DEAD, HeaderMode.DEAD], HeaderMode.DEAD),
        ([HeaderMode.DEAD, HeaderMode.UNKNOWN], HeaderMode.UNKNOWN),
        ([], HeaderMode.UNKNOWN),
    ],
)
def test_the_port_that_makes_pods_fail_decides(modes: list[HeaderMode], expected: HeaderMode) -> None:
    assert overall(modes) is expected


def test_the_outcomes_of_a_port_are_one_line() -> None:
    probes = controller_probes(REQUIRES) + controller_probes(REJECTS, port=443, tls=True)
    assert describe(probes) == (
        "10.96.0.80:80 (HTTP): plain closed, v1 answered, v2 answered",
        "10.96.0.80:443 (TLS): plain answered, v1 bad request, v2 bad request",
    )
    assert versions_of(probes) == ("v1", "v2")
    assert Header.PLAIN.value not in versions_of(controller_probes(ACCEPTS))
