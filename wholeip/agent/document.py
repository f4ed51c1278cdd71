"""The document that `wholeip status`, `wholeip rules` and the path /mappings show: mappings and reports.

The law: its reader checks it again, and as JSON it has ASCII alone, so that no text of it can control a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sidecar.values.text import escaped_json
from wholeip.agent.status import AgentStatus
from wholeip.mappings.mapping import Mapping
from wholeip.mappings.reports import Report


class ShownMapping(msgspec.Struct, frozen=True):
    """A mapping in the document."""

    service: str
    address: str
    endpoint: str
    opened: tuple[str, ...] | None
    """`80/tcp`; null: everything."""
    icmp: bool
    egress: bool
    here: bool


class ShownReport(msgspec.Struct, frozen=True):
    """A report in the document."""

    service: str
    reason: str
    detail: str


class Document(msgspec.Struct, frozen=True):
    """Mappings and reports of a node."""

    node: str | None
    ready: bool
    state: str
    """A line for people."""
    mappings: tuple[ShownMapping, ...]
    reports: tuple[ShownReport, ...]


def show(status: AgentStatus) -> Document:
    """The document of the present status."""
    return Document(
        status.node,
        not status.why_not_ready(),
        status.describe(),
        tuple(map(show_mapping, status.plan.mappings)),
        tuple(map(show_report, status.plan.reports)),
    )


def show_mapping(mapping: Mapping) -> ShownMapping:
    """One mapping."""
    opened = None if mapping.opened is None else tuple(f"{one.number}/{one.protocol}" for one in sorted(mapping.opened))
    return ShownMapping(
        mapping.service,
        str(mapping.address),
        str(mapping.endpoint),
        opened,
        mapping.icmp,
        mapping.egress,
        mapping.here,
    )


def show_report(report: Report) -> ShownReport:
    """One report."""
    return ShownReport(report.service, str(report.reason), report.detail)


def format_json(document: msgspec.Struct, **more: Any) -> str:
    """Indented JSON, with every character beyond ASCII escaped."""
    return escaped_json(msgspec.to_builtins(document) | more, indent=2)


def parse_document(octets: bytes) -> Document:
    """The document that format_json wrote. Raises ValueError."""
    try:
        return msgspec.json.decode(octets, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def describe_opened(opened: Iterable[str] | None, *, icmp: bool) -> str:
    """The traffic that is let in, in a few words."""
    if opened is None:
        return "everything"
    return " ".join([*opened, *(["icmp"] if icmp else [])]) or "nothing"
