"""A small recorded run, for the tests of the pages and tables that show one."""

from __future__ import annotations

from typing import Any, Final

from docs.speed.run import Bench, Figure, Machine, Row, Run

MACHINE: Final = Machine(2, "A processor", 8.0, "6.1.0", "Debian", beside="nothing", load=0.1)


def make_row(**changes: Any) -> Row:
    """Ours is a fifth faster than NSD, and Unbound has no figure."""
    figures = {
        "Switchback": Figure(120_000.0, 110_000.0, 125_000.0, 3),
        "NSD": Figure(100_000.0, 90_000.0, 101_000.0, 3),
    }
    values: dict[str, Any] = {
        "bench": "dns",
        "id": "dns-table-answers",
        "title": "Answers a second",
        "unit": "1/s",
        "better": "higher",
        "figures": figures,
        "faults": {"Unbound": "it answers <REFUSED>"},
    }
    return Row(**{**values, **changes})


def make_run(*rows: Row, **changes: Any) -> Run:
    """Of one benchmark that was measured, and one that was not."""
    benches = [Bench("dns", "DNS", "Names", 61.0, 3), Bench("fleet", "A fleet", "Many", trouble="takes root")]
    values: dict[str, Any] = {
        "date": "2026-01-02",
        "commit": "abc1234",
        "minutes": 19.6,
        "machine": MACHINE,
        "programs": {"NSD": "4.6.1"},
        "benches": benches,
        "rows": rows or (make_row(),),
    }
    return Run(**{**values, **changes})
