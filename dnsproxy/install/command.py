"""The command lines of `dnsproxy install` and `dnsproxy uninstall`: on a cluster, or on a file.

The law: flags become checked values here; all contradicting options are reported together, before anything is read or
written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from dnsproxy.cluster_dns.options import (
    OBJECT_REF,
    OWN_SERVICE,
    cluster_options,
    is_given,
    make_service_ref,
    output_option,
)
from dnsproxy.corefile.stanza import Version
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.file_command import CorefileInput, install_file, read_corefile, uninstall_file
from dnsproxy.install.request_options import make_request, request_options
from dnsproxy.install.watch_options import ON_WATCHES, check_watch, run_watching, watch_options
from sidecar.cli.completion import complete_files
from sidecar.cli.options import (
    BadUsage,
    CheckedType,
    Command,
    Decorated,
    Endpoint,
    Seconds,
    add_options,
    run_program,
)

if TYPE_CHECKING:
    from dnsproxy.install.cluster_command import RunOptions

_VERSION: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:[-+].*)?")
_WAIT_SECONDS: Final = 120.0
"""Seconds. The kubelet updates a ConfigMap within a minute, and CoreDNS reloads it within 45 s more."""
_ON_CLUSTERS: Final = (
    *("kubeconfig", "context", "dns_service", "service", "dns", "method", "from", "timeout", "output"),
    *("accept_upstreams", "events", "watch", "operate", "stop_writers", "keep_stanza", "hook", *ON_WATCHES),
)
_ON_FILES: Final = ("in_place", "coredns_version")

INSTALL_EPILOG = """\b
Examples:
  dnsproxy install --dry-run                              a diff, and the RBAC that it takes
  dnsproxy install --context production --zone example.org
  dnsproxy install --output json | jq -r .verdict
  dnsproxy install --method print > stanza.yaml           for the owner of the DNS: an add-on, Helm, GitOps
  dnsproxy install --watch --admin '[::]:8085'            in the cluster: restore it whenever it is removed
  dnsproxy install --file Corefile --address 10.96.0.53 --in-place

\b
Exit status: 0 installed and loaded, 1 refused, or written and not loaded, 2 bad usage, 3 unknown.
"""

UNINSTALL_EPILOG = """\b
Examples:
  dnsproxy uninstall --dry-run
  dnsproxy uninstall --context production
  dnsproxy uninstall --stop-writers                       scales what would restore the stanza to 0 first
  dnsproxy uninstall --operate switchback/operate         deletes operate first, and what it made at the end
  dnsproxy uninstall --file Corefile --in-place

\b
RBAC, beside that of `dnsproxy install`: in the namespace of --service list pods, deployments, statefulsets, daemonsets,
cronjobs and events, and get the Lease switchback-operate; with --stop-writers patch deployments/scale.

\b
Exit status: 0 everything is removed, 1 not everything could be removed, 2 bad usage, 3 unknown.
"""


def _parse_version(text: str) -> Version:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!a} is not a version such as 1.11.3")
    return tuple(map(int, match.groups()))


def _file_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        click.option(
            "--file",
            type=CheckedType("corefile", read_corefile),
            shell_complete=complete_files,
            is_eager=True,
            help="Change this Corefile, `-` for stdin, instead of a cluster; the result goes to stdout.",
        ),
        click.option("--in-place", is_flag=True, help="Write the result into --file instead."),
    )


def _run_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        output_option,
        click.option("--dry-run", is_flag=True, help="Write nothing; show a unified diff, and the RBAC that it takes."),
        click.option(
            "--timeout",
            type=Seconds(),
            default=_WAIT_SECONDS,
            help="How long to ask the cluster's DNS whether it has loaded the change; 0 for not at all.",
        ),
    )


@click.command(cls=Command, epilog=INSTALL_EPILOG)
@cluster_options
@request_options
@_run_options
@click.option(
    "--events",
    is_flag=True,
    help="Also report the result as a Kubernetes Event about --service, which outlives a Job. --watch always does.",
)
@watch_options
@_file_options
@click.option(
    "--coredns-version",
    type=CheckedType("version", _parse_version),
    help="The version of the CoreDNS that will read --file; without it, the stanza is for 1.9.4 and later.",
)
@click.pass_context
def install(
    ctx: click.Context,
    /,
    *,
    file: CorefileInput | None,
    in_place: bool,
    dry_run: bool,
    address: tuple[Endpoint, ...],
    zone: tuple[str, ...],
    coredns_version: Version | None,
    watch: bool,
    **on_cluster: Any,
) -> None:
    """Make the cluster's DNS ask dnsproxy first.

    Reads what serves the cluster's DNS, writes one stanza where it stays, and asks the DNS until it has loaded it.
    If there is a coredns on the PATH, it has to load the change on loopback before the change is written.
    The present upstreams stand second in the stanza, so the cluster's DNS works without dnsproxy too. Installing again
    follows a changed address; `dnsproxy uninstall` restores the configuration from before.
    """
    _check_together(ctx, file=file)
    if file is not None:
        zones = zone or (ROOT,)
        install_file(file, address, zones, coredns_version=coredns_version, in_place=in_place, dry_run=dry_run)
        return
    check_watch(ctx, watch=watch, dry_run=dry_run, method=on_cluster["method"])
    from dnsproxy.cluster_dns.method_choice import Method  # noqa: PLC0415
    from dnsproxy.install import cluster_command  # noqa: PLC0415  # --help must not cost what a cluster needs
    from dnsproxy.install.print_command import print_stanza  # noqa: PLC0415

    request = make_request({**on_cluster, "address": address, "zone": zone})
    if watch:
        run_watching(request, on_cluster)
    options = _options_of(on_cluster, dry_run=dry_run)
    run_program(print_stanza if request.method is Method.PRINT else cluster_command.install, request, options)


@click.command(cls=Command, epilog=UNINSTALL_EPILOG)
@cluster_options
@_run_options
@click.option(
    "--service",
    type=OBJECT_REF,
    default=OWN_SERVICE,
    help="dnsproxy's own Service. In its namespace, or that of --operate, `dnsproxy operate` and `dnsproxy install "
    "--watch` are looked for, which would restore the stanza.",
)
@click.option(
    "--stop-writers",
    is_flag=True,
    help="First scale the Deployments of these to 0, and wait until their pods have ended. Without it, uninstall "
    "refuses while one runs.",
)
@click.option(
    "--operate",
    type=OBJECT_REF,
    help="First delete this Deployment of `dnsproxy operate`, which would restore the stanza, and wait until its pods "
    "have ended; at the end delete its route Services and its Lease.",
)
@click.option(
    "--hook",
    type=OBJECT_REF,
    help="This runs as the Job of that name, a hook of Helm: refuse if another program than Helm made it.",
)
@click.option(
    "--keep-stanza",
    is_flag=True,
    help="With --operate: leave the stanza to the owner of the DNS, who was handed it (operate --method print).",
)
@_file_options
@click.pass_context
def uninstall(
    ctx: click.Context, /, *, file: CorefileInput | None, in_place: bool, dry_run: bool, **on_cluster: Any
) -> None:
    """Remove dnsproxy from the cluster's DNS; everything else stays as it is.

    Removes everything with dnsproxy's markers, whatever the method, also of an incomplete install, queries the DNS
    until it no longer asks dnsproxy, and looks again whether the stanza stays away.
    """
    _check_together(ctx, file=file)
    if file is not None:
        uninstall_file(file, in_place=in_place, dry_run=dry_run)
        return
    if on_cluster["keep_stanza"] and on_cluster["operate"] is None:
        raise BadUsage(["--keep-stanza: there is nothing else to remove without --operate"])
    from dnsproxy.install import cluster_command  # noqa: PLC0415  # as above

    where = make_service_ref(on_cluster["dns_service"])
    run_program(cluster_command.uninstall, where, _options_of(on_cluster, dry_run=dry_run))


def _options_of(values: dict[str, Any], *, dry_run: bool) -> RunOptions:
    from dnsproxy.install.cluster_command import RunOptions  # noqa: PLC0415  # as above

    return RunOptions(
        values["kubeconfig"],
        values["context"],
        values["dns"],
        values["timeout"],
        dry_run=dry_run,
        as_json=values["output"] == "json",
        events=values.get("events", False),
        namespace=(values.get("operate") or values["service"]).namespace,
        operate=values.get("operate"),
        stop_writers=values.get("stop_writers", False),
        keep_stanza=values.get("keep_stanza", False),
        hook=values.get("hook"),
    )


def _check_together(ctx: click.Context, *, file: CorefileInput | None) -> None:
    """Raises BadUsage with a line for each flag that is only for clusters, or only for files."""
    useless = _ON_FILES if file is None else _ON_CLUSTERS
    why = "is for --file only" if file is None else "is for clusters, and --file is a file"
    given = [param for param in ctx.command.params if param.name in useless and is_given(ctx, param)]
    if given:
        raise BadUsage([f"{max(param.opts, key=len)}: {why}" for param in given])
