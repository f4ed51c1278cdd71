"""Options that the publishers share, and the settings that their values make.

The law: combinations of flags that are refused are reported in one line that names the flags.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dnsproxy.dns.names import is_wildcard, parse_hostname, parse_zone
from sidecar.cli.options import (
    BadUsage,
    CheckedType,
    Decorated,
    Seconds,
    add_options,
    admin_option,
    kubeconfig_options,
    log_options,
)
from sidecar.values.host_port import HostPort, parse_host_port
from sidecar.values.text import quoted

if TYPE_CHECKING:
    from dnsproxy.publish.settings import PublisherSettings

ADMIN: Final = "127.0.0.1:8084"
_EXAMPLE: Final = "dnsproxy-admin.switchback.svc:8081"


def parse_server_name(text: str) -> HostPort:
    """The server that `HOST:PORT` names; an IPv6 address goes in brackets. Raises ValueError."""
    return parse_host_port(text.strip(), parse_name=_parse_name, example=_EXAMPLE)


def _parse_name(text: str) -> str:
    hostname = parse_hostname(text)
    if is_wildcard(hostname):
        raise ValueError(f"{quoted(text)} is a wildcard, not a host")
    # With the final dot, the resolver does not try a pod's search list.
    return hostname + "." if text.endswith(".") else hostname


def publisher_options(command: Decorated) -> Decorated:
    """The source of the table, what to do with it and how often, and the admin port."""
    return add_options(
        command,
        click.option(
            "--from",
            type=CheckedType("host:port", parse_server_name),
            default="127.0.0.1:8081",
            help="Read the table from the admin port of this `dnsproxy serve`, in a cluster from a Service of them.",
        ),
        click.option(
            "--from-file",
            type=click.Path(path_type=Path),
            help="Read it from here instead: where the ConfigMap of `publish-hosts --to-configmap` is mounted.",
        ),
        click.option("--interval", type=Seconds(0.1), default=10.0, help="Seconds between two reads of the table."),
        click.option("--once", is_flag=True, help="Publish the present table, and exit."),
        click.option(
            "--allow-loss",
            is_flag=True,
            help="With --once: publish a table that lost most of the names too.",
        ),
        click.option("--remove", is_flag=True, help="Remove all that was published, and exit."),
        click.option("--remove-on-exit", is_flag=True, help="Remove it at the end, after SIGTERM."),
        click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing."),
        kubeconfig_options("How to reach the cluster, if objects in it are written."),
        admin_option(ADMIN),
        log_options,
    )


def zone_option(command: Decorated) -> Decorated:
    """`--zone` of a publisher that also publishes without one."""
    kind, text = CheckedType("zone", parse_zone), "Publish only names at or below this one."
    return click.option("--zone", type=kind, multiple=True, help=text)(command)


def make_common(values: dict[str, Any], more_faults: Iterable[str] = ()) -> PublisherSettings:
    """Settings from the values by the flags' names. Raises BadUsage, with the other faults that a publisher found."""
    from dnsproxy.publish.settings import Mode, Pace, PublisherSettings  # noqa: PLC0415  # --help must not cost its imports

    mode = Mode.REMOVE if values["remove"] else Mode.ONCE if values["once"] else Mode.FOLLOW
    faults = list(more_faults)
    if values["remove"] and values["once"]:
        faults.append("--once and --remove: give one of them, each exits when it is done")
    if values["remove_on_exit"] and (values["dry_run"] or mode is not Mode.FOLLOW):
        faults.append("--remove-on-exit is for a publisher that keeps running, not for --once, --remove or --dry-run")
    if values["allow_loss"] and mode is not Mode.ONCE:
        faults.append("--allow-loss is for --once: a publisher that keeps running reads the table a second time")
    if faults:
        raise BadUsage(faults)
    return PublisherSettings(
        source=values["from_file"] or values["from"],
        mode=mode,
        dry_run=values["dry_run"],
        zones=values["zone"],
        pace=Pace(interval=values["interval"]),
        remove_on_exit=values["remove_on_exit"],
        allow_loss=values["allow_loss"],
        admin=values["admin"],
        admin_hosts=values["admin_host"],
        kubeconfig=values["kubeconfig"],
        context=values["context"],
    )
