"""Logs: one line per event on stderr, as JSON for machines or in columns for people.

The law: a log line never waits, never ends the program, and never contains a control character from outside. Logging is
configured once, at the start of a program; all other code only calls structlog.get_logger().
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from sidecar.cli.stderr import Stderr
from sidecar.values.build import own_build
from sidecar.values.text import colour_choice, escape_controls

# These log every request at level info; here that is debug information.
_CHATTY = ("httpx2", "httpcore2", "kubernetes", "urllib3")


def configure_logging(
    *,
    format: str | None = None,  # noqa: A002
    level: str = "info",
    stream: TextIO | None = None,
    program: str | None = None,
) -> None:
    """Send structlog and the standard library's logging to stderr.

    `format` is "json" or "console"; None is console on a terminal and JSON elsewhere. `level` is debug, info, warning
    or error. Colours are for the console format on a terminal; NO_COLOR and FORCE_COLOR override that. `program` is the
    command of a program that stays: its first line states the build too.
    """
    output = Stderr(stream)
    number = logging.getLevelNamesMapping()[level.upper()]
    first = [] if program is None else [_FirstLine({"program": program, **own_build().labels()})]
    renderer = _renderer(format or ("console" if output.isatty() else "json"), terminal=output.isatty())
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *_common(), *first, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(output),  # type: ignore[arg-type]  # it needs write and flush alone
    )
    _configure_standard_library(output, renderer, number)


class _FirstLine:
    """Adds fields to the first line. A line of its own would stand before the error of a program that cannot start."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def __call__(self, _logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
        fields, self._fields = self._fields, {}
        return {**event_dict, **fields}


def _common() -> list[Processor]:
    return [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]


def _renderer(format: str, *, terminal: bool) -> list[Processor]:  # noqa: A002
    if format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_format_json)]
    choice = colour_choice(os.environ)
    return [
        escape_values,
        structlog.processors.format_exc_info,
        escape_traceback,
        structlog.dev.ConsoleRenderer(
            colors=terminal if choice is None else choice, exception_formatter=structlog.dev.plain_traceback
        ),
    ]


def _format_json(event: Any, **_: Any) -> str:
    # JSON escapes every control character but DEL.
    return json.dumps(event, default=str).replace("\x7f", "\\u007f")


def _configure_standard_library(output: Stderr, renderer: Sequence[Processor], level: int) -> None:
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *_common()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == logging.DEBUG else max(level, logging.WARNING))


def escape_values(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Escape control characters in all logged values."""
    return {key: value if key in _OWN else _escaped(value) for key, value in event_dict.items()}


# Set and read by structlog itself.
_OWN = frozenset({"exc_info", "stack_info", "_record", "_from_structlog", "_logger"})


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape_controls(value)
    return value if value is None or isinstance(value, bool | int | float) else escape_controls(repr(value))


def escape_traceback(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Escape a traceback except its line ends: the message in it may come from outside."""
    if "exception" in event_dict:
        event_dict["exception"] = escape_controls(event_dict["exception"], keep="\n")
    return event_dict
