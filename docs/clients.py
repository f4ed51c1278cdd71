"""What clients make of the answers: the tables of the guide from docs/clients.json, which tests/clients writes.

The law: pure, except that it reads that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docs.tables import format_table

_FILE: Final = Path(__file__).with_name("clients.json")
_THROUGH_COREDNS: Final = "through CoreDNS"
_DIRECT: Final = "asked directly"
COLUMNS: Final[Mapping[str, str]] = {
    "addresses": "addresses of IPv4, IPv6 and dual-stack names",
    "other family": "the other family alone",
    "queries": "queries for a short / an absolute name",
    "40 addresses": "40 addresses",
    "100 addresses": "100 addresses",
    "100 forwarded": "100 addresses, forwarded",
    "unknown name": "unknown name",
    "removed name": "removed name: public answer",
}
"""The headings, by case."""


def format_clients() -> str:
    """A row for each client, with the version of the last run."""
    recorded = _read()
    head = ["client", "version", *COLUMNS.values()]
    rows = (
        [client, recorded["versions"][client], *(cells[case] for case in COLUMNS)]
        for client, cells in recorded[_THROUGH_COREDNS].items()
    )
    return format_table(head, rows)


def format_clients_without_coredns() -> str:
    """A row for each outcome that differs if a client asks dnsproxy itself."""
    recorded = _read()
    rows = (
        [client, COLUMNS[case], through[case], outcome]
        for client, through in recorded[_THROUGH_COREDNS].items()
        for case, outcome in recorded[_DIRECT][client].items()
        if outcome != through[case]
    )
    return format_table(["client", "case", _THROUGH_COREDNS, _DIRECT], rows)


def _read() -> Mapping[str, Mapping[str, Any]]:
    recorded: Mapping[str, Mapping[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return recorded
