from __future__ import annotations

import pytest

from tests.bench.whole.plan import Cost, choose_rounds, slowness

COSTS = {"dns": Cost(10, 10), "relay": Cost(0, 5, most=3), "fleet": Cost(20, 40)}


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [
        pytest.param(0, (1, 1, 1), id="no time: the least of each"),
        pytest.param(85, (1, 1, 1), id="exactly the least"),
        pytest.param(90, (1, 2, 1), id="another round of the only part that fits"),
        pytest.param(100, (2, 2, 1), id="one more of those that have the fewest"),
        pytest.param(200, (3, 3, 3), id="as many of each"),
        pytest.param(1000, (9, 3, 9), id="no more than the most"),
    ],
)
def test_rounds_are_spread_evenly_over_the_time(seconds: float, rounds: tuple[int, int, int]) -> None:
    chosen = choose_rounds(COSTS, seconds)
    assert tuple(chosen.values()) == rounds
    total = sum(cost.seconds(chosen[name]) for name, cost in COSTS.items())
    assert total <= max(seconds, 85)


def test_no_benchmarks_have_no_rounds() -> None:
    assert choose_rounds({}, 100) == {}


@pytest.mark.parametrize(
    ("planned", "taken", "factor"),
    [
        pytest.param(0, 0, 1, id="nothing ran yet"),
        pytest.param(10, 5, 1, id="sooner than planned"),
        pytest.param(10, 25, 2.5, id="later than planned"),
    ],
)
def test_what_took_longer_will_take_longer(planned: float, taken: float, factor: float) -> None:
    assert slowness(planned, taken) == factor
