"""`dnsproxy ip-mode --watch` on the command line: its options and its start.

The law: a watch without a named Service is refused before anything is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click

from sidecar.cli.options import BadUsage, Decorated, add_options, admin_option, log_options, run_program
from sidecar.cli.stray_signals import survive_stray_signals

ADMIN: Final = "127.0.0.1:8086"
FLAGS: Final = ("admin", "admin_host", "log_format", "log_level")
"""Parameters that only --watch uses."""


def watch_options(command: Decorated) -> Decorated:
    """`--watch`, and the options only for it: `--admin`, `--admin-host`, `--log-format`, `--log-level`."""
    watch = click.option(
        "--watch",
        is_flag=True,
        help="Keep running, for Kubernetes 1.30 to 1.35: set ipMode: Proxy in the status of each --service once after "
        "each write of its provider, more rarely if that is undone again and again. Reports in Events, in the log and "
        "at --admin. At the end the statuses stay Proxy until the provider's next write; then pods have the fault "
        "again. Any number of watches may run.",
    )
    return add_options(command, watch, admin_option(ADMIN), log_options)


def run_watching(flags: Mapping[str, Any]) -> NoReturn:
    """Watch until a signal, with the values of the flags."""
    if not flags["services"]:
        raise BadUsage(["--watch: needs a --service NAMESPACE/NAME, because it writes to the named Services alone"])
    survive_stray_signals()
    from dnsproxy.ip_mode.watch.program import WatchSettings, run_watch  # noqa: PLC0415  # --help must not cost what a cluster needs
    from sidecar.cli.cluster_program import access_of  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    configure_logging(format=flags["log_format"], level=flags["log_level"], program="dnsproxy ip-mode --watch")
    ends_connections = flags["balancer_ends_connections"]
    run_program(run_watch, WatchSettings(flags["services"], access_of(flags), ends_connections=ends_connections))
