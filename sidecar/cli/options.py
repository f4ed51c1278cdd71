"""Flags that programs have in common, and all that a command line needs in one place to import from.

The law: a flag's value is turned into a checked value here, at the edge; nothing behind it sees the text again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sidecar.cli.program import run_program
from sidecar.cli.usage import BadUsage, Command, Group
from sidecar.sockets.listeners import bound_endpoint, listen_tcp, listen_udp
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.errors import StartError
from sidecar.values.text import one_line

__all__ = [
    "BadUsage",
    "CheckedType",
    "Command",
    "Endpoint",
    "EndpointType",
    "Group",
    "Seconds",
    "StartError",
    "add_options",
    "admin_option",
    "bound_endpoint",
    "kubeconfig_options",
    "listen_tcp",
    "listen_udp",
    "log_options",
    "parse_endpoint",
    "run_program",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    # Generic in the annotations of click alone.
    ParamType = click.ParamType


class CheckedType(ParamType):
    """The value that `parse` makes of the text, once; a default may be such a value already."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The checked value; a bad text is click's BadParameter."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(one_line(str(error)), param, ctx)


class EndpointType(CheckedType):
    """A flag's value as an Endpoint: `ADDR:PORT`, and `ADDR` alone where there is a default port."""

    def __init__(self, default_port: int | None = None) -> None:
        name = "addr:port" if default_port is None else "addr[:port]"
        super().__init__(name, partial(parse_endpoint, default_port=default_port))


class _AdminType(EndpointType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Endpoint | None:
        return None if value == "off" else super().convert(value, param, ctx)


class Seconds(click.FloatRange):
    """A flag's value as a number of seconds, from `lowest` to a day: what is to last longer is to last for ever."""

    name = "seconds"

    def __init__(self, lowest: float = 0) -> None:
        super().__init__(lowest, 86_400)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; a bad text is click's BadParameter."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            # Not a number is outside of every range, and still not less than its lower end.
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return float(super().convert(number, param, ctx))


def add_options(command: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    """The command with these flags, in the order in which --help is to name them."""
    for option in reversed(options):
        command = option(command)
    return command


def kubeconfig_options(purpose: str = "How to reach the API server.") -> Callable[[Decorated], Decorated]:
    """`--kubeconfig` and `--context`: what load_cluster takes."""

    def decorate(command: Decorated) -> Decorated:
        return add_options(
            command,
            click.option(
                "--kubeconfig",
                metavar="FILE",
                help=f"{purpose}  [default: KUBECONFIG, the pod's own account, ~/.kube/config]",
            ),
            click.option("--context", metavar="NAME", help="A context of the kubeconfig other than its current one."),
        )

    return decorate


def admin_option(default: str) -> Callable[[Decorated], Decorated]:
    """`--admin ADDR:PORT`: gives `admin`, an Endpoint, or None for `off`."""
    return click.option(
        "--admin",
        type=_AdminType(),
        default=default,
        help="Where to serve /healthz, /readyz, /metrics and a status page; `off` for nowhere.",
    )


def log_options(command: Decorated) -> Decorated:
    """`--log-format` and `--log-level`: what configure_logging takes as format and level."""
    return add_options(
        command,
        click.option(
            "--log-format",
            type=click.Choice(["json", "console"]),
            help="How to write log lines.  [default: console on a terminal, else json]",
        ),
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
            default="info",
            help="What to leave out of the log.",
        ),
    )
