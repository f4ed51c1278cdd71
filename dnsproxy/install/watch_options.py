"""`dnsproxy install --watch` on the command line: its options, those that exclude it, and its start.

The law: all contradicting options are reported together, before anything is read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from dnsproxy.cluster_dns.options import is_given
from sidecar.cli.options import BadUsage, Decorated, admin_option, log_options, run_program
from sidecar.cli.stray_signals import survive_stray_signals

if TYPE_CHECKING:
    from dnsproxy.install.run.survey import InstallRequest

ADMIN: Final = "127.0.0.1:8085"
ON_WATCHES: Final = ("admin", "admin_host", "log_format", "log_level")
"""Parameters that only --watch uses."""


def watch_options(command: Decorated) -> Decorated:
    """`--watch`, and the options only for it: `--admin`, `--admin-host`, `--log-format`, `--log-level`."""
    watch = click.option(
        "--watch",
        is_flag=True,
        help="Keep running: restore the stanza when it is undone, follow dnsproxy's address, and report both in "
        "Events, in the log and at --admin. At the end the stanza stays. Any number of watchers may run.",
    )
    return watch(admin_option(ADMIN)(log_options(command)))


def check_watch(ctx: click.Context, *, watch: bool, dry_run: bool, method: str) -> None:
    """Raises BadUsage for options that exclude --watch, or that only --watch uses."""
    if not watch:
        given = [param for param in ctx.command.params if param.name in ON_WATCHES and is_given(ctx, param)]
        faults = [f"{max(param.opts, key=len)}: is for --watch only" for param in given]
    else:
        together = {
            "--dry-run and --watch: one writes nothing, the other writes again and again; --dry-run alone shows what "
            "is written first, and the RBAC of both": dry_run,
            "--method print and --watch: the owner of the printed text keeps it in place": method == "print",
            "--output and --watch: a watch has no final result; for a log in JSON, use --log-format json": any(
                param.name == "output" and is_given(ctx, param) for param in ctx.command.params
            ),
        }
        faults = [fault for fault, is_so in together.items() if is_so]
    if faults:
        raise BadUsage(faults)


def run_watching(request: InstallRequest, values: dict[str, Any]) -> NoReturn:
    """Watch until a signal, with the values of the flags."""
    survive_stray_signals()
    from dnsproxy.install.watch.program import WatchSettings, run_watch  # noqa: PLC0415  # --help must not cost what a cluster needs
    from sidecar.cli.cluster_program import access_of  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    configure_logging(format=values["log_format"], level=values["log_level"], program="dnsproxy install --watch")
    run_program(run_watch, WatchSettings(request, access_of(values), values["dns"], values["timeout"]))
