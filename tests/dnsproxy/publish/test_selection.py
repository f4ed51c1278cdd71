"""Doubt: which losses take a second look."""

from __future__ import annotations

import pytest

from dnsproxy.publish.selection import is_doubtful


@pytest.mark.parametrize(
    ("before", "after", "doubtful"),
    [
        pytest.param(0, 0, False, id="nothing and nothing"),
        pytest.param(0, 5, False, id="a beginning"),
        pytest.param(1, 0, True, id="the last name"),
        pytest.param(10_000, 0, True, id="all names"),
        pytest.param(19, 1, False, id="few names, most of them"),
        pytest.param(20, 1, True, id="twenty names, all but one"),
        pytest.param(20, 2, False, id="a tenth is left"),
        pytest.param(10_000, 999, True, id="less than a tenth is left"),
        pytest.param(10_000, 20_000, False, id="more than before"),
    ],
)
def test_losing_nearly_everything_is_doubted(before: int, after: int, doubtful: bool) -> None:
    assert is_doubtful(before=before, after=after) is doubtful
