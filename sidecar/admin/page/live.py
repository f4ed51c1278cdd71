"""`/live`: the changes since a page was made, for its script.

The law: pure; an answer is always small, because the history is short and the facts are those of one page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from sidecar.admin.answers import JSON, Answer, Route
from sidecar.admin.page.document import Fact, as_levels
from sidecar.admin.page.history import History

PATH: Final = "/live"


def live_route(history: History, facts: Callable[[], Iterable[Fact]]) -> Mapping[str, Route]:
    """The resource, for serve_admin; `facts` returns the facts of the overview that change."""

    def show(query: Mapping[str, str]) -> Answer:
        since = query.get("since", "0")
        number = int(since) if since.isascii() and since.isdigit() and len(since) < 16 else 0  # noqa: PLR2004
        document = {"number": history.number, "samples": history.since(number), "facts": as_levels(facts())}
        return Answer(200, msgspec.json.encode(document) + b"\n", JSON)

    return {PATH: show}
