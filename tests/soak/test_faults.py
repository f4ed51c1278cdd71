from __future__ import annotations

import pytest

from tests.kit.faulty_upstream import Close, Elsewhere, Part, Pause, Reset, Step, answer
from tests.kit.messages import query
from tests.soak.chances import chance_of
from tests.soak.faults import DATAGRAM_FAULTS, SHARE, STREAM_FAULTS, Fault, faulty

ASKED = query("www.example.net")
STREAM_ONLY, DATAGRAM_ONLY = (Part, Close, Reset), (Elsewhere,)


def steps_of(faults: tuple[Fault, ...], *, share: float, times: int = 2_000) -> list[list[Step]]:
    play = faulty(faults, chance_of(1), share=share)
    return [list(play(ASKED)) for _ in range(times)]


def test_most_replies_are_right_and_at_once() -> None:
    played = steps_of(tuple(DATAGRAM_FAULTS), share=SHARE)
    right = sum(steps == list(answer(ASKED)) for steps in played)
    assert 0.85 < right / len(played) < 1


@pytest.mark.parametrize(
    ("faults", "foreign"),
    [
        pytest.param(DATAGRAM_FAULTS, STREAM_ONLY, id="datagrams"),
        pytest.param(STREAM_FAULTS, DATAGRAM_ONLY, id="streams"),
    ],
)
def test_no_fault_has_steps_of_the_other_transport(faults: tuple[Fault, ...], foreign: tuple[type, ...]) -> None:
    assert not any(isinstance(step, foreign) for steps in steps_of(faults, share=1) for step in steps)


@pytest.mark.parametrize(
    "fault", dict.fromkeys([*DATAGRAM_FAULTS, *STREAM_FAULTS]), ids=lambda fault: fault.__name__.strip("_")
)
def test_a_fault_is_no_plain_answer(fault: Fault) -> None:
    chance = chance_of(2)
    assert all(list(fault(ASKED, chance)) != list(answer(ASKED)) for _ in range(100))


@pytest.mark.parametrize("faults", [DATAGRAM_FAULTS, STREAM_FAULTS], ids=["datagrams", "streams"])
def test_every_fault_has_its_turn(faults: tuple[Fault, ...]) -> None:
    """Identified by the kinds of their steps, because the octets vary."""

    def shape(steps: object) -> tuple[str, ...]:
        return tuple(type(step).__name__ for step in steps)  # type: ignore[attr-defined]

    chance = chance_of(3)
    wanted = {shape(fault(ASKED, chance)) for fault in faults}
    assert wanted <= {shape(steps) for steps in steps_of(faults, share=1)}


def test_pauses_reach_beyond_what_we_give_an_upstream() -> None:
    played = steps_of(tuple(DATAGRAM_FAULTS), share=1)
    pauses = [step.seconds for steps in played for step in steps if isinstance(step, Pause)]
    assert min(pauses) < 0.2
    assert max(pauses) > 2
