"""The route `/changes` of the admin port: the last changes of the table as JSON, newest first.

The law: bounded by what TableChanges keeps; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dnsproxy.hostnames.table_changes import TableChanges
from sidecar.admin.answers import JSON, Answer, Route

PATH: Final = "/changes"


def changes_route(changes: TableChanges) -> Mapping[str, Route]:
    """The route, for serve_admin."""

    def show(_: Mapping[str, str]) -> Answer:
        return Answer(200, msgspec.json.encode({"changes": changes.newest_first()}) + b"\n", JSON)

    return {PATH: show}
