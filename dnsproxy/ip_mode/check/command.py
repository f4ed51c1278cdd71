"""`dnsproxy ip-mode --check`: read, judge, print.

The law: stdout has the result, stderr the progress; the exit status does not depend on the output format.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from dnsproxy.cluster_dns.options import parse_object_ref
from dnsproxy.cluster_dns.read import load_client
from dnsproxy.ip_mode.check.checked import Checked, Cluster, status_of
from dnsproxy.ip_mode.check.printing import format_check, format_document
from dnsproxy.ip_mode.check.reading import CheckRequest, is_in_pod, read_check
from dnsproxy.ip_mode.check.trial import run_trial
from dnsproxy.ip_mode.check.trial_plan import trial_targets, why_no_trial
from sidecar.cli.logs import configure_logging
from sidecar.cli.progress_line import ProgressLine
from sidecar.cli.usage import BadUsage
from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.errors import ApiError
from sidecar.kubernetes.http import ApiClient
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escaped_json, one_line


def check_request_of(flags: Mapping[str, Any]) -> CheckRequest:
    """The request of a command line, of the values of its flags by name. Raises BadUsage."""
    if flags["trial"] and len(set(flags["services"])) > 1:
        raise BadUsage(["--trial tries one Service: give one --service"])
    return CheckRequest(
        flags["kubeconfig"],
        flags["context"],
        flags["host"] or "",
        tuple(dict.fromkeys(flags["services"])),
        seconds=flags["seconds"],
        ends_connections=flags["balancer_ends_connections"],
        as_json=flags["output"] == "json",
        trial=flags["trial"],
        yes=flags["yes"],
    )


async def check(request: CheckRequest) -> int:
    """Check, and print; the exit status. Raises StartError."""
    # What goes wrong while the writes are counted; stdout is the result alone.
    configure_logging(level="warning")
    line = ProgressLine()
    try:
        async with await load_client(kubeconfig=request.kubeconfig, context=request.context) as client:
            try:
                cluster, every = await read_check(client, request, line.show)
                line.clear()
                if request.trial:
                    return await _try(client, cluster, every, request, line)
            except ApiError as error:
                raise StartError(could_not_ask(client.cluster, error), status=ExitStatus.UNKNOWN) from None
    finally:
        line.clear()
    return _print(cluster, every, request, status_of(every))


async def _try(
    client: ApiClient, cluster: Cluster, every: tuple[Checked, ...], request: CheckRequest, line: ProgressLine
) -> int:
    """The trial of the one Service; the exit status. Raises StartError."""
    if len(every) > 1:
        names = ", ".join(one.service.key for one in every)
        raise BadUsage([f"--trial tries one Service, and there are {len(every)}: name it with --service ({names})"])
    one = every[0]
    reason = why_no_trial(one, in_pod=is_in_pod())
    if reason:
        _print(cluster, every, request, ExitStatus.NO)
        raise StartError(f"Service {one.service.key} is not tried: {reason}", status=ExitStatus.NO)
    _agree(one, request)
    ref = parse_object_ref(one.service.key)
    trial = await run_trial(client, ref, trial_targets(one.service, next(iter(one.hostnames), "")), line.show)
    line.clear()
    tried = replace(one, trial=trial)
    # A status that stays changed is no result, whatever the trial showed.
    return _print(cluster, (tried,), request, ExitStatus.UNKNOWN if trial.left else status_of((tried,)))


def _agree(one: Checked, request: CheckRequest) -> None:
    """Ask the user on a terminal. Raises BadUsage elsewhere, and click's Abort for a no."""
    if request.yes:
        return
    if not sys.stdin.isatty():
        raise BadUsage(["--trial writes the status of a Service for up to 30 s: agree with --yes"])
    text = f"Write ipMode Proxy into the status of Service {one.service.key} for up to 30 s, and then restore it?"
    click.confirm(text, abort=True, err=True)


def _print(cluster: Cluster, every: tuple[Checked, ...], request: CheckRequest, status: ExitStatus) -> ExitStatus:
    """Print the result of a run that ends with `status`; `status`."""
    if request.as_json:
        click.echo(escaped_json(format_document(cluster, every, status=status, dialled=is_in_pod()), indent=2))
        return status
    for text in format_check(cluster, every, dialled=is_in_pod()):
        indent = "  " if text.startswith(" ") else ""
        click.secho(f"{indent}{one_line(text.strip())}", bold=text.startswith("Service "))
    return status
