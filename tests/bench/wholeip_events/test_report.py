"""What a run says of its figures."""

from __future__ import annotations

import pytest

from tests.bench.wholeip_events.report import Figures, format_figures, to_json


@pytest.mark.parametrize(("slowest", "verdict"), [(0.05, "reached"), (0.2, "MISSED")])
def test_the_goal_is_reached_or_missed_by_the_99th_of_100(slowest: float, verdict: str) -> None:
    figures = Figures(1000, 1.5, 0.5, 70_000_000, 0.02, [0.02] * 98 + [slowest] * 2, [0.01] * 100)
    text = format_figures(figures)
    assert verdict in text
    assert f"{slowest * 1000:.1f} ms" in text
    assert "70 MB" in text
    assert to_json(figures, cpus=2)["cpus"] == 2


def test_without_changes_nothing_is_reached() -> None:
    assert "MISSED" in format_figures(Figures(1, 1.0, 1.0, 1, 0.0, [], []))
