from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.bench.kit.clock import CpuTime
from tests.bench.sync.samples import NOISY, Use, take_rounds

QUIET, LOUD, LOUDER = NOISY / 2, NOISY * 2, NOISY * 3


@dataclass(frozen=True)
class Taken:
    queued: float


@pytest.mark.parametrize(
    ("queued", "taken", "left"),
    [
        pytest.param([QUIET, LOUD], [QUIET], 1, id="a quiet one is kept"),
        pytest.param([LOUD, QUIET, LOUD], [QUIET], 1, id="a loud one is taken again"),
        pytest.param([LOUDER, LOUD, LOUDER, QUIET], [LOUD], 1, id="of loud ones the least loud, after so many tries"),
        pytest.param([NOISY, LOUD], [NOISY], 1, id="a little is no noise"),
    ],
)
def test_a_round_that_was_disturbed_is_taken_again(queued: list[float], taken: list[float], left: int) -> None:
    tries: Iterator[Taken] = iter([Taken(one) for one in queued])
    assert [one.queued for one in take_rounds(lambda: next(tries), rounds=1, tries=3)] == taken
    assert len(list(tries)) == left


def test_every_round_has_its_tries() -> None:
    tries = iter([Taken(LOUD)] * 4)
    assert len(take_rounds(lambda: next(tries), rounds=2, tries=2)) == 2
    assert not list(tries)


def test_shares_are_of_the_time() -> None:
    use = Use(4.0, CpuTime(user=1.5, system=0.5, queued=1.0))
    assert (use.busy, use.queued) == (0.5, 0.25)
