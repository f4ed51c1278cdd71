from __future__ import annotations

from tests.bench.whole.report import format_run_as_text
from tests.docs.speed.runs import make_run


def test_a_run_is_a_table_for_each_benchmark_with_ratios_and_reasons() -> None:
    text = format_run_as_text(make_run())
    nsd = next(line for line in text.splitlines() if line.startswith("  NSD"))
    assert nsd.split() == ["NSD", "100,000", "(90,000-101,000)", "1/s", "1.20"]
    assert "  Unbound: not measured: it answers <REFUSED>" in text
    assert "A fleet\n" in text
    assert "not measured, or not wholly: takes root" in text
