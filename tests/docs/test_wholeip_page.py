"""The page on wholeip has the Events that agents make, and their numbers."""

from __future__ import annotations

import re
from typing import Final

import pytest

from docs.build import HERE
from wholeip.mappings.reports import NOTES, Reason
from wholeip.service_events import turns, writer
from wholeip.service_events.service_event import AGENT, event_reason

PAGE: Final = (HERE / "pages" / "wholeip.md").read_text(encoding="utf-8")
EVENTS: Final = PAGE.partition("\n## Events\n")[2].partition("\n## ")[0]


def test_every_event_is_on_the_page_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", EVENTS, re.MULTILINE)
    assert sorted(rows) == sorted(event_reason(one).name for one in Reason if one not in NOTES)
    assert f"reportingController={AGENT.controller}" in EVENTS


def test_every_reason_without_an_event_is_on_the_page() -> None:
    assert [one for one in NOTES if f"`{one}`" not in EVENTS] == []


NUMBERS: Final = [
    f"if it lasts {turns.FIRST:.0f} seconds",
    f"each agent at most {60 / writer.PACE:.0f} in a minute",
    f"comes back within {turns.repeat_wait(0, 1.0) / 60:.0f} minutes",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_its_numbers_are_those_of_the_code(text: str) -> None:
    assert text in " ".join(EVENTS.split())
