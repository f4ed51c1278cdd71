from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak.flatness import FEWEST, Allowance, TooFew, Verdict, judge

NONE = Allowance()
samples = st.lists(st.floats(0, 1e9), min_size=FEWEST, max_size=60)


@pytest.mark.parametrize(
    ("values", "allowance", "flat"),
    [
        pytest.param([5.0] * 8, NONE, True, id="constant"),
        pytest.param([0.0] * 8, NONE, True, id="zero"),
        pytest.param([1, 2, 9, 9, 9, 9, 9, 9], NONE, True, id="growth in the warm-up"),
        pytest.param([9, 9, 9, 9, 5, 5, 1, 1], NONE, True, id="a fall"),
        pytest.param([9, 9, 9, 9, 99, 99, 9, 9], NONE, True, id="a hill in the third quarter"),
        pytest.param([5, 5, 5, 5, 5, 5, 5, 900, 5, 5, 5, 5], NONE, True, id="one peak"),
        pytest.param([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 900], NONE, True, id="a peak at the end"),
        pytest.param([1, 2, 3, 4, 5, 6, 7, 8], NONE, False, id="steady growth"),
        pytest.param([5, 5, 5, 5, 5, 5, 6, 6], NONE, False, id="a step at the end"),
        pytest.param([0, 0, 0, 0, 0, 0, 1, 1], NONE, False, id="the first ones ever"),
        pytest.param([100] * 6 + [104, 104], Allowance(share=0.05), True, id="within the share"),
        pytest.param([100] * 6 + [106, 106], Allowance(share=0.05), False, id="beyond the share"),
        pytest.param([2, 2, 2, 2, 2, 2, 5, 5], Allowance(least=3), True, id="within the least"),
        pytest.param([2, 2, 2, 2, 2, 2, 6, 6], Allowance(least=3), False, id="beyond the least"),
        pytest.param([100] * 6 + [104, 104], Allowance(share=0.01, least=5), True, id="the larger of the two counts"),
        pytest.param([10.0] * 100 + [10 + n / 10 for n in range(140)], NONE, False, id="a slow leak of 14"),
    ],
)
def test_only_growth_beyond_the_allowance_is_not_flat(values: list[float], allowance: Allowance, flat: bool) -> None:
    assert judge(values, allowance).flat == flat


def test_the_medians_are_those_of_the_second_and_the_last_quarter() -> None:
    values = [0, 0, 0, 1, 2, 6, 0, 0, 0, 7, 9, 8]
    assert judge(values, Allowance(share=0.5)) == Verdict(early=2, late=8, most=3)


@pytest.mark.parametrize("count", range(FEWEST))
def test_too_few_samples_make_no_verdict(count: int) -> None:
    with pytest.raises(TooFew):
        judge([1.0] * count, NONE)


@given(samples)
def test_what_never_grows_is_flat(values: list[float]) -> None:
    assert judge(sorted(values, reverse=True), NONE).flat


@given(samples, st.floats(0.001, 1e6))
def test_what_grows_by_more_than_the_least_between_the_quarters_is_not_flat(values: list[float], least: float) -> None:
    leaking = [min(values) + 10 * least * index for index in range(len(values))]
    assert not judge(leaking, Allowance(least=least)).flat


@given(samples, samples)
def test_the_warm_up_counts_for_nothing(values: list[float], other: list[float]) -> None:
    warm_up = len(values) // 4
    changed = (other * len(values))[:warm_up] + values[warm_up:]
    assert judge(changed, NONE) == judge(values, NONE)
