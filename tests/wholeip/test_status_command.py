"""What `wholeip status` prints of an agent's answer."""

from __future__ import annotations

import click
import pytest

from tests.wholeip.agent.test_status import status
from wholeip.agent.document import Document, ShownMapping, ShownReport, show
from wholeip.agent.status import AgentStatus
from wholeip.status_command import format_text


def lines(document: Document) -> list[str]:
    return [click.unstyle(one) for one in format_text(document)]


def test_mappings_are_columns_and_the_state_comes_last() -> None:
    assert lines(show(status())) == [
        "SERVICE     ADDRESS    POD       LETS IN             EGRESS  RUNS",
        "default/vm  192.0.2.1  10.0.0.1  80/tcp 53/udp icmp  yes     elsewhere",
        "",
        "default/x: no pod is ready (no-endpoint)",
        "",
        "Ready on n1: 1 mappings of 2 Services",
    ]


def test_without_mappings_there_are_no_columns() -> None:
    assert lines(show(AgentStatus())) == ["Not ready: the cluster is not known yet"]


@pytest.mark.parametrize("text", ["\x1b[31mred", "two\nlines", "\u202eevil", "\x9b31m"])
def test_what_comes_from_elsewhere_cannot_drive_the_terminal(text: str) -> None:
    mapping = ShownMapping(text, text, text, (text,), True, True, True)
    document = Document(text, True, text, (mapping,), (ShownReport(text, text, text),))
    assert all(line.isprintable() for line in lines(document))
    assert len(lines(document)) == 6
