"""The connections of one probe: which come next, and what they show, whatever the applications do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from typing import Final

import pytest

from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.facts import Probed
from dnsproxy.operate.decide.probing import UNSERVED, BalancerProbe
from dnsproxy.operate.probe.endpoint_probe import balancer_connections, next_connection, shown_by
from sidecar.values.endpoints import Endpoint

M, E = HeaderMode, Outcome
FIRST, SECOND = "a.example.org", "b.example.org"
NAMES: Final = (FIRST, SECOND)
TAKES: Final[Mapping[HeaderMode, frozenset[Header]]] = {
    M.REQUIRES: frozenset([Header.V1, Header.V2]),
    M.ACCEPTS: frozenset(Header),
    M.REJECTS: frozenset([Header.PLAIN]),
}
"""What a controller reads, by its mode."""
Answers = Callable[[str, Header], Outcome]


def controller(
    mode: HeaderMode, applications: Mapping[str, Outcome], *, takes: frozenset[Header] | None = None
) -> Answers:
    """A controller that closes what it cannot read, and leads each name to its application; all others answer."""
    read = TAKES[mode] if takes is None else takes
    return lambda name, header: applications.get(name, E.ANSWERED) if header in read else E.CLOSED


def play(answers: Answers) -> tuple[Probed, list[tuple[str, Header]]]:
    """What a probe shows, and its connections."""
    made: list[Probe] = []
    while (following := next_connection(NAMES, made)) is not None:
        made.append(Probe("192.0.2.1", 443, following[0], True, following[1], answers(*following)))
    return shown_by(made), [(one.hostname, one.header) for one in made]


DOWN: Final = (E.CLOSED, E.RESET, E.SILENT, E.GARBAGE, E.BAD_REQUEST)
ONE_IS_DOWN: Final = {
    "all answer": {},
    "the first name's application is down": {FIRST: E.RESET},
    "all applications are down": {FIRST: E.CLOSED, SECOND: E.SILENT},
    "no certificate for a name that nobody has": {UNSERVED: E.ALERT},
    "unknown names are closed": {UNSERVED: E.CLOSED},
    "unknown names are closed, and the first name's application is down": {UNSERVED: E.CLOSED, FIRST: E.RESET},
    "unknown names and the first hang": {UNSERVED: E.SILENT, FIRST: E.SILENT},
    "only the first answers": {UNSERVED: E.RESET, SECOND: E.RESET},
}


@pytest.mark.parametrize("mode", TAKES, ids=lambda one: one.name)
@pytest.mark.parametrize("applications", ONE_IS_DOWN.values(), ids=ONE_IS_DOWN)
def test_one_name_that_answers_shows_the_header(applications: Mapping[str, Outcome], mode: HeaderMode) -> None:
    found, _ = play(controller(mode, applications))
    assert found.mode is mode


@pytest.mark.parametrize("mode", TAKES, ids=lambda one: one.name)
def test_where_no_name_answers_the_header_is_unknown(mode: HeaderMode) -> None:
    for outcomes in product(DOWN, repeat=3):
        found, made = play(controller(mode, dict(zip((UNSERVED, *NAMES), outcomes, strict=True))))
        assert found.mode in {M.UNKNOWN, M.SILENT}
        assert len(made) == 8


@pytest.mark.parametrize("mode", TAKES, ids=lambda one: one.name)
def test_no_application_is_asked_if_the_controller_answers_for_itself(mode: HeaderMode) -> None:
    _, made = play(controller(mode, dict.fromkeys(NAMES, E.RESET)))
    assert made == [(UNSERVED, Header.PLAIN), (UNSERVED, Header.V1)]


def test_an_application_that_answers_by_turns_does_not_change_what_the_controller_shows() -> None:
    """It refuses the bare connection and answers the next one, as if the header were missing."""
    asked: Counter[str] = Counter()

    def flaps(name: str, _: Header) -> Outcome:
        asked[name] += 1
        return E.ANSWERED if name == UNSERVED or asked[name] % 2 == 0 else E.RESET

    assert play(flaps)[0].mode is M.ACCEPTS
    assert set(asked) == {UNSERVED}


@pytest.mark.parametrize(
    ("applications", "connections"),
    [
        pytest.param({}, 2, id="the controller answers for itself"),
        pytest.param({UNSERVED: E.CLOSED}, 4, id="it closes unknown names"),
        pytest.param({UNSERVED: E.CLOSED, FIRST: E.CLOSED}, 7, id="and one application is down"),
        pytest.param({UNSERVED: E.CLOSED, FIRST: E.CLOSED, SECOND: E.CLOSED}, 8, id="and all are"),
    ],
)
def test_a_probe_costs_so_many_connections(applications: Mapping[str, Outcome], connections: int) -> None:
    _, made = play(controller(M.REQUIRES, applications))
    assert len(made) == connections
    assert max(Counter(name for name, _ in made).values()) <= 3


def test_a_controller_that_takes_version_2_alone_is_found_by_a_name_that_is_served() -> None:
    found, made = play(controller(M.REQUIRES, {FIRST: E.CLOSED}, takes=frozenset([Header.V2])))
    assert (found.mode, found.versions) == (M.REQUIRES, ("v2",))
    assert made[-1] == (SECOND, Header.V2)


@pytest.mark.parametrize(
    ("outcome", "mode"), [(E.REFUSED, M.DEAD), (E.UNREACHABLE, M.UNKNOWN), (E.NO_ROUTE, M.UNKNOWN)]
)
def test_where_nobody_listens_no_other_name_is_tried(outcome: Outcome, mode: HeaderMode) -> None:
    found, made = play(lambda *_: outcome)
    assert (found.mode, found.reached, len(made)) == (mode, outcome is E.REFUSED, 1)


def test_the_detail_is_that_of_the_name_that_showed_the_mode() -> None:
    found, _ = play(controller(M.REQUIRES, {UNSERVED: E.RESET, FIRST: E.RESET}))
    assert found.detail == "plain closed, v1 answered"


HTTP, HTTPS, OTHER = (Endpoint("203.0.113.10", port) for port in (80, 443, 8443))


@pytest.mark.parametrize(
    ("ports", "connections"),
    [
        pytest.param(
            ((HTTP, False), (HTTPS, True), (OTHER, True)),
            [
                (HTTP, False, UNSERVED),
                (HTTPS, True, UNSERVED),
                (OTHER, True, UNSERVED),
                (HTTPS, True, FIRST),
                (HTTPS, True, SECOND),
            ],
            id="the names at one port that begins with TLS",
        ),
        pytest.param(
            ((HTTP, False),),
            [(HTTP, False, UNSERVED), (HTTP, False, FIRST), (HTTP, False, SECOND)],
            id="no port begins with TLS",
        ),
        pytest.param((), [], id="no port"),
    ],
)
def test_a_load_balancer_is_dialled_for_a_name_that_nobody_has_and_then_for_two_more(
    ports: tuple[tuple[Endpoint, bool], ...], connections: list[tuple[Endpoint, bool, str]]
) -> None:
    assert list(balancer_connections(BalancerProbe("web/nginx", ports, NAMES))) == connections
