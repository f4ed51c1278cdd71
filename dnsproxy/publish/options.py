"""Options that the publishers have in common, and what their values make.

The law: what fails only together is said in one line that names the flags.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dnsproxy.dns.names import parse_zone
from dnsproxy.publish.server_name import parse_server_name
from sidecar.checked_type import CheckedType
from sidecar.options import BadUsage, Decorated, Seconds, add_options, admin_option, kubeconfig_options, log_options

if TYPE_CHECKING:
    from dnsproxy.publish.settings import PublisherSettings

ADMIN = "127.0.0.1:8084"


def publisher_options(command: Decorated) -> Decorated:
    """Where the table comes from, what is done with it and how often, and the admin port."""
    return add_options(
        command,
        click.option(
            "--from",
            type=CheckedType("host:port", parse_server_name),
            default="127.0.0.1:8081",
            help="Take the table from the admin port of this `dnsproxy serve`, a Service of them in a cluster.",
        ),
        click.option(
            "--from-file",
            type=click.Path(path_type=Path),
            help="Take it from here instead: where the ConfigMap of `publish-hosts --to-configmap` is mounted.",
        ),
        click.option(
            "--zone",
            type=CheckedType("zone", parse_zone),
            multiple=True,
            help="Publish only names at or below this one.",
        ),
        click.option("--interval", type=Seconds(0.1), default=10.0, help="Seconds between two looks at the table."),
        click.option("--once", is_flag=True, help="Publish the table of now, and end."),
        click.option("--remove", is_flag=True, help="Take out all that was published, and end."),
        click.option("--remove-on-exit", is_flag=True, help="Take it out at the end, after SIGTERM."),
        click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing."),
        kubeconfig_options("How to reach the cluster, where objects in it are written."),
        admin_option(ADMIN),
        log_options,
    )


def make_common(values: dict[str, Any]) -> PublisherSettings:
    """Settings from the values by the flags' names. Raises BadUsage."""
    from dnsproxy.publish.following import Pace  # noqa: PLC0415  # --help must not cost its imports
    from dnsproxy.publish.settings import Doing, PublisherSettings  # noqa: PLC0415

    doing = Doing.REMOVE if values["remove"] else Doing.ONCE if values["once"] else Doing.FOLLOW
    faults = []
    if values["remove"] and values["once"]:
        faults.append("--once and --remove: one of them, each ends by itself")
    if values["remove_on_exit"] and (values["dry_run"] or doing is not Doing.FOLLOW):
        faults.append("--remove-on-exit is for a publisher that runs on, not for --once, --remove or --dry-run")
    if faults:
        raise BadUsage(faults)
    return PublisherSettings(
        source=values["from_file"] or values["from"],
        doing=doing,
        dry_run=values["dry_run"],
        zones=values["zone"],
        pace=Pace(interval=values["interval"]),
        remove_on_exit=values["remove_on_exit"],
        admin=values["admin"],
        kubeconfig=values["kubeconfig"],
        context=values["context"],
    )
