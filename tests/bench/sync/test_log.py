from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench.sync.log import Log, is_ready, is_serving, parse_log

SERVING = {"event": "serving"}
READY = {"event": "table swapped", "waiting_for": []}


@pytest.mark.parametrize(
    ("octets", "events", "used"),
    [
        pytest.param(b'{"event": "a"}\n{"event": "b"}\n', [{"event": "a"}, {"event": "b"}], 30, id="two lines"),
        pytest.param(b'{"event": "a"}\n{"event": "b"}', [{"event": "a"}], 15, id="one is not complete yet"),
        pytest.param(b'{"event": "a"', [], 0, id="not even one"),
        pytest.param(b"", [], 0, id="nothing"),
        pytest.param(b"Traceback (most recent call last):\n", [], 35, id="no JSON"),
        pytest.param(b"{\n}\n", [], 4, id="JSON over several lines"),
        pytest.param(b"[]\n1\nnull\n", [], 10, id="JSON that is no event"),
        pytest.param(b"\xff\xfe\n", [], 3, id="no text"),
        pytest.param(b"\n\n", [], 2, id="empty lines"),
        pytest.param(b'x\n{"event": "a"}\nx\n', [{"event": "a"}], 19, id="an event between others"),
    ],
)
def test_complete_lines_that_are_events_count(octets: bytes, events: list[Any], used: int) -> None:
    assert parse_log(octets) == (events, used)


@pytest.mark.parametrize(
    ("event", "serving", "ready"),
    [
        pytest.param(SERVING, True, False, id="serving"),
        pytest.param(READY, False, True, id="nothing is waited for"),
        pytest.param(READY | {"waiting_for": ["Ingress"]}, False, False, id="a source is waited for"),
        pytest.param({"event": "table swapped"}, False, False, id="it does not say"),
        pytest.param({"event": "synced", "waiting_for": []}, False, False, id="another event"),
        pytest.param({}, False, False, id="no event"),
    ],
)
def test_two_events_are_waited_for(event: dict[str, Any], serving: bool, ready: bool) -> None:
    assert (is_serving(event), is_ready(event)) == (serving, ready)


def test_a_log_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'warning\n{"event": "serv')
    log = Log(path)
    assert (log.read(), log.events) == (True, [])
    assert not log.read()
    with path.open("ab") as file:
        file.write(b'ing"}\n')
    assert (log.read(), log.events) == (True, [SERVING])


def test_its_end_is_for_people_whatever_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"begin" + b"x" * 10_000 + b"\xffend\n")
    assert Log(path).end().endswith("\N{REPLACEMENT CHARACTER}end\n")
    assert "begin" not in Log(path).end()
