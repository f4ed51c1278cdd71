"""What probes say about the header that a port wants."""

from __future__ import annotations

import itertools

import pytest

from dnsproxy.doctor.facts.model import Header, Outcome
from dnsproxy.doctor.judge.header_mode import Speech, declared, describe, overall, speech_of, versions_of
from tests.dnsproxy.doctor.making import ACCEPTS, REJECTS, REQUIRES, controller_probes, service

O = Outcome  # noqa: E741  # a table is read across


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (REQUIRES, Speech.REQUIRES),
        (REJECTS, Speech.REJECTS),
        (ACCEPTS, Speech.ACCEPTS),
        ((O.RESET, O.ANSWERED, O.ANSWERED), Speech.REQUIRES),
        ((O.SILENT, O.ANSWERED, O.CLOSED), Speech.REQUIRES),
        ((O.BAD_REQUEST, O.CLOSED, O.ANSWERED), Speech.REQUIRES),
        ((O.CLOSED, O.ALERT, O.ALERT), Speech.REQUIRES),
        ((O.ALERT, O.CLOSED, O.CLOSED), Speech.REJECTS),
        ((O.ALERT, O.GARBAGE, O.GARBAGE), Speech.REJECTS),
        ((O.ANSWERED, O.CLOSED, O.ANSWERED), Speech.ACCEPTS),
        ((O.ANSWERED, O.SILENT, O.RESET), Speech.REJECTS),
        ((O.BAD_REQUEST, O.BAD_REQUEST, O.BAD_REQUEST), Speech.UNKNOWN),
        ((O.CLOSED, O.CLOSED, O.CLOSED), Speech.UNKNOWN),
        ((O.GARBAGE, O.GARBAGE, O.GARBAGE), Speech.UNKNOWN),
        ((O.SILENT, O.SILENT, O.SILENT), Speech.UNKNOWN),
        ((O.REFUSED, O.REFUSED, O.REFUSED), Speech.DEAD),
        ((O.UNREACHABLE, O.UNREACHABLE, O.REFUSED), Speech.DEAD),
        ((O.UNREACHABLE, O.UNREACHABLE, O.UNREACHABLE), Speech.UNKNOWN),
        ((O.UNREACHABLE, O.CLOSED, O.REFUSED), Speech.UNKNOWN),
    ],
)
def test_three_outcomes_make_one_speech(outcomes: tuple[Outcome, ...], expected: Speech) -> None:
    assert speech_of(controller_probes(outcomes)) is expected


def test_a_port_that_was_not_asked_everything_says_less() -> None:
    probes = controller_probes(REQUIRES)
    assert speech_of(()) is Speech.UNKNOWN
    assert speech_of(probes[:1]) is Speech.UNKNOWN
    assert speech_of(probes[1:]) is Speech.UNKNOWN
    assert speech_of(controller_probes(REJECTS)[:1]) is Speech.UNKNOWN


def test_every_combination_has_a_speech_and_none_calls_an_answered_port_dead() -> None:
    for outcomes in itertools.product(Outcome, repeat=3):
        found = speech_of(controller_probes(outcomes))
        assert (found is Speech.REQUIRES) <= (outcomes[0] not in (O.ANSWERED, O.ALERT))
        assert (found is Speech.DEAD) == (O.REFUSED in outcomes and set(outcomes) <= {O.REFUSED, O.UNREACHABLE})


@pytest.mark.parametrize(
    ("speeches", "expected"),
    [
        ([Speech.REQUIRES, Speech.DEAD], Speech.REQUIRES),
        ([Speech.REJECTS, Speech.REQUIRES], Speech.REQUIRES),
        ([Speech.UNKNOWN, Speech.REJECTS], Speech.REJECTS),
        ([Speech.DEAD, Speech.DEAD], Speech.DEAD),
        ([Speech.DEAD, Speech.UNKNOWN], Speech.UNKNOWN),
        ([], Speech.UNKNOWN),
    ],
)
def test_the_port_that_makes_pods_fail_speaks_for_all(speeches: list[Speech], expected: Speech) -> None:
    assert overall(speeches) is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"use-proxy-protocol": "true"}, Speech.REQUIRES),
        ({"use-proxy-protocol": "True"}, Speech.REQUIRES),
        ({"use-proxy-protocol": "false"}, Speech.REJECTS),
        ({"proxy-protocol": "10.0.0.0/8"}, Speech.ACCEPTS),
        ({"use-proxy-protocol": "maybe"}, Speech.UNKNOWN),
        ({"use-proxy-protocol": ""}, Speech.UNKNOWN),
        ({"proxy-protocol": ""}, Speech.UNKNOWN),
        ({}, Speech.UNKNOWN),
    ],
)
def test_settings_speak_where_nothing_was_dialled(settings: dict[str, str], expected: Speech) -> None:
    assert declared(service(settings=settings)) is expected


def test_the_outcomes_of_a_port_are_one_line() -> None:
    probes = controller_probes(REQUIRES) + controller_probes(REJECTS, port=443, tls=True)
    assert describe(probes) == (
        "10.96.0.80:80 (HTTP): plain closed, v1 answered, v2 answered",
        "10.96.0.80:443 (TLS): plain answered, v1 bad request, v2 bad request",
    )
    assert versions_of(probes) == ("v1", "v2")
    assert Header.PLAIN.value not in versions_of(controller_probes(ACCEPTS))
