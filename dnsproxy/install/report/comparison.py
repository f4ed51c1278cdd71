"""The comparison of what is installed with what an install would write now, as rows of the status table and as JSON.

The law: rows and JSON values show the same; the rows have the changed lines only, the JSON the whole diff. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dnsproxy.cluster_dns.method_choice import ConfigMapKey
from dnsproxy.corefile.model import listed
from dnsproxy.corefile.rewrite_lines import MOST
from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.change.drift import Drift
from dnsproxy.install.change.rewrite_choice import ADVICE
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage

_MOST_LINES: Final = 20


class Row(NamedTuple):
    """One line of the table."""

    what: str
    state: str
    """`ok`, `no`, `part`, `?`, or empty if it is neither good nor bad."""
    detail: str


def rows_of_drift(drift: Drift | None) -> Iterator[Row]:
    """Nothing if it is up to date."""
    if drift is None:
        return
    yield Row("up to date", "no", drift.refusal or f"{drift.target}: an install would write")
    # Without the headers of files and of hunks.
    lines = [line for line in drift.diff.splitlines() if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
    for line in lines[:_MOST_LINES]:
        yield Row("", "", line)
    if len(lines) > _MOST_LINES:
        yield Row("", "", f"and {len(lines) - _MOST_LINES} more lines")


def rows_of_coverage(coverage: Coverage) -> Iterator[Row]:
    """Nothing if no host is missing."""
    if coverage.unknown:
        yield Row("zones", "?", f"not compared with the live hostnames: {coverage.unknown}")
    elif coverage.hosts:
        state = "part" if coverage.chosen else "no"
        yield Row("zones", state, f"{', '.join(coverage.zones)} missing, for {listed(coverage.hosts)}")
        yield Row("", "", f"compared with {coverage.source}")


def rows_of_names(names: RewriteCoverage | None) -> Iterator[Row]:
    """Nothing without rewrite lines."""
    if names is None:
        return
    changes = [f"{len(names.missing)} missing: {listed(names.missing)}"] if names.missing else []
    changes += [f"{len(names.gone)} no longer wanted: {listed(names.gone)}"] if names.gone else []
    yield Row("names", "no" if changes else "ok", "; ".join([f"{names.standing} are rewritten", *changes]))
    if names.unknown:
        yield Row("", "?", f"names may be missing here: {names.unknown}")
    if names.beyond:
        yield Row("", "part", f"{names.beyond} are left out beyond {MOST} lines: {ADVICE}")
    for hostname, why in names.refused[:_MOST_LINES]:
        yield Row("", "part", f"{hostname} is left out: {why}")
    if len(names.refused) > _MOST_LINES:
        yield Row("", "part", f"and {len(names.refused) - _MOST_LINES} more")
    if names.plain:
        yield Row("", "", f"{names.plain} have plain addresses and no Service: they are answered as before")


def format_names(names: RewriteCoverage | None) -> dict[str, Any] | None:
    """The names as JSON values; null without rewrite lines."""
    if names is None:
        return None
    return {
        "standing": names.standing,
        "missing": list(names.missing),
        "gone": list(names.gone),
        "left_out": names.beyond,
        "plain": names.plain,
        "refused": dict(names.refused),
        "unknown": names.unknown,
    }


def format_drift(drift: Drift | None) -> dict[str, Any] | None:
    """The drift as JSON values; null if it is up to date."""
    if drift is None:
        return None
    return {"target": format_target(drift.target), "diff": drift.diff, "refusal": drift.refusal}


def format_coverage(coverage: Coverage) -> dict[str, Any]:
    """The coverage as JSON values."""
    return {
        "hosts": list(coverage.hosts),
        "zones": list(coverage.zones),
        "source": coverage.source,
        "unknown": coverage.unknown,
        "chosen": coverage.chosen,
    }


def format_target(target: ConfigMapKey | None) -> dict[str, str] | None:
    """The ConfigMap and key that a method writes, as JSON values."""
    return None if target is None else {"config_map": str(target.source), "key": target.key}
