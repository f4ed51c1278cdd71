"""The steering in the status: rows of the table and values of the JSON document.

The law: both show the same. A class or Gateway is `ok` if pods reach it, through a relay or without; `?` if something
is missing to decide; `no` if something is in the way of the decision. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dnsproxy.admin.steering_document import RouteRow, SteeringDocument, SubjectRow
from dnsproxy.install.report.comparison import Row


def rows_of_steering(document: SteeringDocument | None, unknown: str) -> Iterator[Row]:
    """Nothing where `dnsproxy operate` does not run."""
    if unknown:
        yield Row("steering", "?", f"dnsproxy operate could not be asked: {unknown}")
    if document is None:
        return
    if not document.leader:
        yield Row("steering", "?", "no replica of dnsproxy operate leads, so nothing is probed or written")
    for text in document.missing:
        yield Row("steering", "?", f"not read, so nothing counts as absent: {text}")
    for one in document.subjects:
        yield from _rows_of_subject(one)
    for route in document.routes:
        yield from _rows_of_route(route)


def faults_of_steering(document: SteeringDocument | None) -> Iterator[str]:
    """What is in the way of decisions, for the verdict."""
    for one in document.subjects if document is not None else ():
        if one.fault:
            yield f"{one.subject}: {one.fault}"


def format_steering_values(document: SteeringDocument | None, unknown: str) -> dict[str, Any] | None:
    """The steering as JSON values; null where `dnsproxy operate` does not run."""
    if document is None and not unknown:
        return None
    found = msgspec.to_builtins(document) if document is not None else {}
    return {**found, "unknown": unknown}


def _rows_of_subject(one: SubjectRow) -> Iterator[Row]:
    state = "no" if one.fault else "?" if one.undecided else "ok"
    said = f"names are answered with {one.relay}" if one.steered else "names are not claimed"
    behind = f" for {one.backend}" if one.backend else ""
    yield Row("steering", state, f"{one.subject}: {one.decision}{behind}; {said}")
    for text in (*one.evidence, *([one.fault] if one.fault else [])):
        yield Row("", "", text)


def _rows_of_route(one: RouteRow) -> Iterator[Row]:
    if not one.managed or one.faults:
        yield Row("route", "no" if one.faults else "ok", f"{one.service} to {one.relay_to or 'nowhere'}")
    for text in one.faults:
        yield Row("", "", text)
