"""Flags that several programs have, and one place to import everything that a command line needs.

The law: the text of a flag becomes a checked value here, at the edge; no other code sees the text. A parser knows
nothing of click; the message of its ValueError is shown to the user.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli.program import run_program
from sidecar.cli.usage import BadUsage, Command, Decorated, Group, Program
from sidecar.values.endpoints import Endpoint, parse_endpoint
from sidecar.values.errors import StartError
from sidecar.values.host_name import parse_host_name
from sidecar.values.text import one_line

__all__ = [
    "BadUsage",
    "CheckedType",
    "Command",
    "Decorated",
    "Endpoint",
    "EndpointType",
    "Group",
    "Program",
    "Seconds",
    "StartError",
    "add_options",
    "admin_option",
    "kubeconfig_options",
    "log_options",
    "parse_endpoint",
    "run_program",
]


if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    # Generic in the annotations of click alone.
    ParamType = click.ParamType


class CheckedType(ParamType):
    """The value that `parse` returns for the text; a default may already be such a value."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The checked value. Raises click's BadParameter for an invalid text."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(one_line(str(error)), param, ctx)


class EndpointType(CheckedType):
    """A flag's value as an Endpoint: `ADDR:PORT`, or `ADDR` alone if there is a default port."""

    def __init__(self, default_port: int | None = None) -> None:
        name = "addr:port" if default_port is None else "addr[:port]"
        super().__init__(name, partial(parse_endpoint, default_port=default_port))


class _AdminType(EndpointType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Endpoint | None:
        return None if value == "off" else super().convert(value, param, ctx)


class Seconds(click.FloatRange):
    """A flag's value in seconds, `lowest` to 86,400."""

    name = "seconds"

    def __init__(self, lowest: float = 0) -> None:
        super().__init__(lowest, 86_400)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click's BadParameter for an invalid text."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            # NaN is in no range, but is not less than a lower bound either.
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return float(super().convert(number, param, ctx))


def add_options(command: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    """The command with these flags, in the order of --help."""
    for option in reversed(options):
        command = option(command)
    return command


def kubeconfig_options(purpose: str = "How to reach the API server.") -> Callable[[Decorated], Decorated]:
    """`--kubeconfig` and `--context`, the arguments of load_cluster."""

    def decorate(command: Decorated) -> Decorated:
        return add_options(
            command,
            click.option(
                "--kubeconfig",
                type=click.Path(),
                metavar="FILE",
                help=f"{purpose}  [default: KUBECONFIG, the pod's own account, ~/.kube/config]",
            ),
            click.option("--context", metavar="NAME", help="A context of the kubeconfig other than its current one."),
        )

    return decorate


def admin_option(default: str) -> Callable[[Decorated], Decorated]:
    """`--admin ADDR:PORT` as `admin`: an Endpoint, or None for `off`; `--admin-host NAME` as `admin_host`: names."""

    def decorate(command: Decorated) -> Decorated:
        return add_options(
            command,
            click.option(
                "--admin",
                type=_AdminType(),
                default=default,
                help="Where to serve /healthz, /readyz, /metrics and a status page; `off` for nowhere.",
            ),
            click.option(
                "--admin-host",
                type=CheckedType("name", parse_host_name),
                multiple=True,
                help="A name by which browsers and programs may ask the admin port, beside addresses, localhost and "
                "the hostname. Repeatable.",
            ),
        )

    return decorate


def log_options(command: Decorated) -> Decorated:
    """`--log-format` and `--log-level`, the arguments of configure_logging."""
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
            help="The lowest level that is logged.",
        ),
    )
