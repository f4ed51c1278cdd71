"""From samples to rows of figures. Pure.

The law: a figure is the median over rounds, with the time in the queue among the rows, because it says what the figure
is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.bench.kit.figures import percentile, spread
from tests.bench.sync import report
from tests.bench.sync.memory import Memory
from tests.bench.sync.report import Row, make_row
from tests.bench.sync.samples import Changed, Created, Probed, Start, Use
from tests.soak.figures import FIGURES
from tests.soak.flatness import FEWEST, judge

_PERCENT: Final = 100
_MS: Final = 1000
_FLAT: Final = next(figure.allowance for figure in FIGURES if figure.name == "memory")


def start_rows(size: int, starts: Sequence[Start], *, suffix: str = "") -> list[Row]:
    """Times in seconds, until the server was ready; memory afterwards."""
    uses = [one.use for one in starts]
    return [
        make_row(size, report.READY + suffix, spread([one.seconds for one in uses]), "s"),
        make_row(size, "its processor time until then" + suffix, spread([one.cpu.total for one in uses]), "s"),
        make_row(
            size, "the API server's processor time until then" + suffix, spread([one.served for one in starts]), "s"
        ),
        make_row(size, "its time in the queue until then" + suffix, spread([one.cpu.queued for one in uses]), "s"),
        make_row(size, report.RESIDENT + suffix, spread([one.memory.resident for one in starts]), "MiB"),
        make_row(size, report.PROPORTIONAL + suffix, spread([one.proportional for one in starts]), "MiB"),
        make_row(size, report.PEAK + suffix, spread([one.memory.peak for one in starts]), "MiB"),
    ]


def probed_rows(size: int, what: str, rounds: Sequence[Probed]) -> list[Row]:
    """`what` is the name of the p99; those of the other rows are made from it."""
    base = what.removesuffix(", p99")
    probes = [one.probe for one in rounds]
    return [
        make_row(size, what, spread(_known([one.p99 for one in probes])), "ms"),
        make_row(size, f"{base}, worst", spread(_known([one.worst for one in probes])), "ms"),
        make_row(size, f"{base}, lost", spread([float(one.lost) for one in probes]), ""),
        *use_rows(size, base, [one.use for one in rounds]),
    ]


def created_rows(size: int, rounds: Sequence[Created]) -> list[Row]:
    """From created to answered, over all objects of all rounds."""
    creations = [creation for one in rounds for creation in one.creations]
    answered = [one.answered * _MS for one in creations]
    return [
        percentile_row(size, report.ANSWERED_P50, answered, 0.5),
        percentile_row(size, report.ANSWERED_P99, answered, 0.99),
        percentile_row(size, "the API server's own time to create, p50", [one.created * _MS for one in creations], 0.5),
        *use_rows(size, "created to answered", [one.use for one in rounds]),
    ]


def mixed_rows(starts: Sequence[Row], probed: Sequence[Row], created: Sequence[Row]) -> list[Row]:
    """The same figures of objects of mixed kinds, with goals of their own."""
    return [
        make_row(row.size, f"{report.MIXED}, {row.what}", row.figure, row.unit) for row in (*starts, *probed, *created)
    ]


def kind_rows(size: int, rounds: Sequence[Created]) -> list[Row]:
    """From created to answered, the middle of each kind."""
    creations = [creation for one in rounds for creation in one.creations]
    return [
        percentile_row(
            size,
            f"created to answered, {kind}, p50",
            [one.answered * _MS for one in creations if one.kind == kind],
            0.5,
        )
        for kind in dict.fromkeys(one.kind for one in creations)
    ]


def changed_rows(size: int, rounds: Sequence[Changed]) -> list[Row]:
    """Answers during the changes, and what became of server and changes."""
    return [
        *probed_rows(size, report.CHANGES_P99, [one.probed for one in rounds]),
        make_row(size, "changes made a second", spread([one.rate for one in rounds]), "1/s"),
        make_row(size, "last change to its answer", spread([one.lag * _MS for one in rounds]), "ms"),
        *growth_rows(size, [one.memory for one in rounds]),
    ]


def growth_rows(size: int, rounds: Sequence[Sequence[Memory]]) -> list[Row]:
    """What the memory grew by during the changes, after their warm-up (tests.soak.flatness); none of a short time."""
    verdicts = [judge([one.resident for one in each], _FLAT) for each in rounds if len(each) >= FEWEST]
    if not verdicts:
        return []
    growth = spread([one.late - one.early for one in verdicts])
    return [make_row(size, report.GROWTH, growth, "MiB", goal=min(one.most - one.early for one in verdicts))]


def informer_rows(size: int, seconds: float, memory: Memory) -> list[Row]:
    """Of the kubernetes package's informer."""
    base = "kubernetes informer"
    return [
        make_row(size, f"{base}: start to synced", spread([seconds]), "s"),
        make_row(size, f"{base}: resident", spread([memory.resident]), "MiB"),
        make_row(size, f"{base}: peak resident", spread([memory.peak]), "MiB"),
    ]


def use_rows(size: int, base: str, uses: Sequence[Use]) -> list[Row]:
    """How the server had the processor meanwhile."""
    return [
        make_row(size, f"{base}, on the processor", spread([one.busy * _PERCENT for one in uses]), "%"),
        make_row(size, f"{base}, in the queue", spread([one.queued * _PERCENT for one in uses]), "%"),
    ]


def percentile_row(size: int, what: str, values: Sequence[float], share: float) -> Row:
    """A percentile of milliseconds; no figure of no values."""
    found = percentile(values, share)
    return make_row(size, what, spread([] if found is None else [found]), "ms")


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
