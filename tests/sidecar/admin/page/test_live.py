"""The updates for the script of a page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidecar.admin.page.document import Fact, Level
from sidecar.admin.page.history import Chart, History, level
from sidecar.admin.page.live import live_route


def told(history: History, since: str | None) -> dict[str, Any]:
    route = live_route(history, lambda: [Fact("State", "ready", Level.OK, "state"), Fact("still", "1")])["/live"]
    answer: Any = route({} if since is None else {"since": since})
    document: dict[str, Any] = json.loads(answer.body)
    return document


@pytest.mark.parametrize(
    ("since", "samples"),
    [
        (None, 3),
        ("0", 3),
        ("2", 1),
        ("3", 0),
        ("99", 3),
        ("-1", 3),
        ("", 3),
        ("x", 3),
        ("²", 3),
        ("٣", 3),
        ("9" * 5_000, 3),
    ],
    ids=["nothing", "start", "some", "all", "another life", "negative", "empty", "word", "power", "digit", "long"],
)
def test_the_samples_since_a_number_and_what_changes_are_told(since: str | None, samples: int) -> None:
    history = History([Chart("c", "C", "x", (level("one", "one", "one"),))])
    for second in range(4):
        history.take(second, {"one": second})
    document = told(history, since)
    assert (document["number"], len(document["samples"])) == (3, samples)
    assert document["facts"] == {"state": ["ready", "ok"]}
