"""The form of a log line, and protection against foreign text in it."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys

import pytest
import structlog

from sidecar.cli.logs import configure_logging
from sidecar.values.build import own_build

EVIL = "name\nERROR forged\x1b[2J\u202e\x7f"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_elsewhere_than_on_a_terminal_an_event_is_a_line_of_json() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger().info("started", port=53, hosts=["a"], nothing=None)
    (line,) = lines(stream)
    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    assert event == {"event": "started", "level": "info", "port": 53, "hosts": ["a"], "nothing": None}


def test_the_first_line_of_a_program_that_stays_states_its_build() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream, program="dnsproxy serve")
    assert lines(stream) == []
    log = structlog.get_logger()
    log.debug("hidden")
    log.info("limits", descriptors=1024)
    log.info("serving", port=53)
    first, second = map(json.loads, lines(stream))
    assert (first["event"], first["descriptors"], first["program"]) == ("limits", 1024, "dnsproxy serve")
    assert {name: first[name] for name in own_build().labels()} == own_build().labels()
    assert set(second) == {"event", "port", "level", "timestamp"}


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_value_can_forge_a_line_or_drive_a_terminal(form: str) -> None:
    stream = io.StringIO()
    configure_logging(format=form, stream=stream)
    structlog.get_logger().warning(EVIL, name=EVIL, names=[EVIL], error=ValueError(EVIL))
    logging.getLogger("library").warning("%s", EVIL)
    assert len(lines(stream)) == 2
    assert stream.getvalue().isascii()
    assert not set(stream.getvalue()) & {"\x1b", "\x7f", "\r"}


def test_json_gives_back_what_was_logged() -> None:
    stream = io.StringIO()
    configure_logging(format="json", stream=stream)
    structlog.get_logger().info("x", name=EVIL)
    assert json.loads(stream.getvalue())["name"] == EVIL


def test_a_traceback_keeps_its_lines_and_loses_its_controls() -> None:
    stream = io.StringIO()
    configure_logging(format="console", stream=stream)
    structlog.get_logger().error("failed", exc_info=ValueError("\x1b[2J"))
    assert len(lines(stream)) > 1
    assert "ValueError: \\x1b[2J" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        pytest.param(Terminal(), {}, True, id="terminal"),
        pytest.param(Terminal(), {"NO_COLOR": "1"}, False, id="terminal, NO_COLOR"),
        pytest.param(Terminal(), {"TERM": "dumb"}, False, id="dumb terminal"),
        pytest.param(io.StringIO(), {}, False, id="elsewhere"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, True, id="elsewhere, FORCE_COLOR"),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    configure_logging(format="console", stream=stream)
    structlog.get_logger().info("x")
    assert ("\x1b[" in stream.getvalue()) is coloured


def test_on_a_terminal_the_form_is_for_people() -> None:
    stream = Terminal()
    configure_logging(stream=stream)
    structlog.get_logger().info("x")
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_what_is_below_the_level_is_left_out_for_both_kinds_of_loggers(level: str, kept: list[str]) -> None:
    stream = io.StringIO()
    configure_logging(format="json", level=level, stream=stream)
    for logger in (structlog.get_logger(), logging.getLogger("library")):
        for name in ("debug", "info", "warning", "error"):
            getattr(logger, name)("x")
    assert [json.loads(line)["level"] for line in lines(stream)] == kept * 2


def test_a_request_that_httpx_made_is_for_debugging() -> None:
    stream = io.StringIO()
    configure_logging(format="json", level="info", stream=stream)
    logging.getLogger("httpx2").info("HTTP Request: GET https://example.org")
    assert stream.getvalue() == ""
    configure_logging(format="json", level="debug", stream=stream)
    logging.getLogger("httpx2").info("HTTP Request: GET https://example.org")
    assert json.loads(stream.getvalue())["logger"] == "httpx2"


CHATTER = """
import logging, structlog
from sidecar.cli.logs import configure_logging
from sidecar.values.build import own_build
configure_logging(format="json", level="info")
for _ in range(1000):
    structlog.get_logger().info("x" * 1000)
    logging.getLogger("library").warning("x" * 1000)
print("survived")
"""


@pytest.mark.parametrize("stderr", ["closed", "without a reader", "full"])
def test_a_program_survives_any_stderr(stderr: str) -> None:
    read_end, write_end = os.pipe()
    if stderr == "without a reader":
        os.close(read_end)
    redirect = "2>&-" if stderr == "closed" else ""
    result = subprocess.run(
        ["bash", "-c", f'exec "$@" {redirect}', "-", sys.executable, "-c", CHATTER],
        stdout=subprocess.PIPE,
        stderr=write_end,
        timeout=30,
        check=False,
    )
    os.close(write_end)
    if stderr != "without a reader":
        os.close(read_end)
    assert (result.stdout, result.returncode) == (b"survived\n", 0)


def test_a_console_without_rich_shows_plain_tracebacks() -> None:
    """The package rich is not a dependency; if it were installed, structlog would use it."""
    script = (
        "import sys; sys.modules['rich'] = None; import structlog; from sidecar.cli.logs import configure_logging\n"
        "configure_logging(format='console')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: structlog.get_logger().exception('failed', name='a')"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, *_, last = result.stderr.splitlines()
    assert "failed" in first
    assert "name=a" in first
    assert last == "ZeroDivisionError: division by zero"
