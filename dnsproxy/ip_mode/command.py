"""The command line of `dnsproxy ip-mode`: print the policy, or do one of the other things that a flag names.

The law: without a flag nothing is written to the cluster; one flag, one mode.
"""

from __future__ import annotations

from typing import Any

import click

from dnsproxy.dns.names import parse_hostname
from dnsproxy.ip_mode.options import chosen_mode, mode_options
from dnsproxy.ip_mode.selection import parse_load_balancer_class
from dnsproxy.ip_mode.watch_options import run_watching, watch_options
from sidecar.cli.options import CheckedType, Command, StartError, kubeconfig_options, run_program
from sidecar.values.exit_status import ExitStatus

EPILOG = """\b
Examples:
  dnsproxy ip-mode | kubectl apply -f -        the policy, for the cluster's version
  dnsproxy ip-mode --class example.org/lb      also for Services of this loadBalancerClass
  dnsproxy ip-mode --api-version v1            ask no cluster
  dnsproxy ip-mode --check app.example.org     whether it would help, and why
  dnsproxy ip-mode --check --trial --service ingress-nginx/controller
  dnsproxy ip-mode --apply --dry-run           a diff, and the RBAC that it takes
  dnsproxy ip-mode --apply --service ingress-nginx/controller --rewrite
  dnsproxy ip-mode --apply --output json | jq -r .in_effect.state
  dnsproxy ip-mode --remove --service ingress-nginx/controller --rewrite
  dnsproxy ip-mode --watch --service ingress-nginx/controller

\b
RBAC rights:
  to print   none beyond those of every account (discovery)
  --apply    get, create, patch of the policy and its binding by name; get, patch of each --service;
             get, patch of services/status of the Services to prove it with and to rewrite;
             list nodes, because the provider tells whether ipMode Proxy would do harm;
             if granted, list services: those that others annotated may come to harm too
  --remove   get, delete of the policy and its binding by name; get, patch of each --service;
             with --rewrite get, patch of services/status
  both       list services, without --service or with --class
  --watch    list, watch of services and patch of services/status, by the name of each --service; create of
             events.k8s.io in its namespace; if granted, list of nodes, which shows the cloud
  --check    what `dnsproxy doctor` reads; if the policy is there, patch of services/status for a dry run;
             with --trial get of the Service and patch of services/status
"""


@click.command("ip-mode", cls=Command, epilog=EPILOG)
@click.argument("host", required=False, type=CheckedType("host", parse_hostname))
@kubeconfig_options("How to reach the cluster.")
@click.option(
    "--class",
    "classes",
    type=CheckedType("class", parse_load_balancer_class),
    multiple=True,
    help="Select the Services of this loadBalancerClass too, beside those with the annotation. Repeatable. These flags "
    "are all classes of the policy: --apply without one takes out those that it has, and --dry-run shows that; with "
    "--service alone they stay.",
)
@click.option(
    "--api-version",
    type=click.Choice(["v1", "v1beta1"]),
    help="Print the policy for this version of its API.  [default: the best that the API server serves]",
)
@mode_options
@watch_options
@click.pass_context
def ip_mode(ctx: click.Context, /, **flags: Any) -> None:
    """Let every provider write `ipMode: Proxy`: print the admission policy that does it, apply it, or remove it.

    Pods then reach the load balancer itself, which adds the PROXY header: no DNS, no relay, no pod of Switchback.

    Exit status: 0 printed or done, 1 no, such as a cluster that cannot have the policy, 2 bad usage, 3 could not find
    out.
    """
    # --help must not cost what a cluster needs.
    match chosen_mode(ctx):
        case "apply":
            from dnsproxy.ip_mode.apply_command import apply  # noqa: PLC0415
            from dnsproxy.ip_mode.request import request_of  # noqa: PLC0415

            run_program(apply, request_of(flags))
        case "remove":
            from dnsproxy.ip_mode.remove_command import remove  # noqa: PLC0415
            from dnsproxy.ip_mode.request import request_of  # noqa: PLC0415

            run_program(remove, request_of(flags))
        case "watch":
            run_watching(flags)
        case "check":
            from dnsproxy.ip_mode.check.command import check, check_request_of  # noqa: PLC0415

            run_program(check, check_request_of(flags))
        case _:
            run_program(_print, flags["kubeconfig"], flags["context"], flags["classes"], flags["api_version"])


async def _print(kubeconfig: str | None, context: str | None, classes: tuple[str, ...], api_version: str | None) -> int:
    from dnsproxy.cluster_dns.read import load_client  # noqa: PLC0415
    from dnsproxy.ip_mode.discovery import find_version  # noqa: PLC0415
    from dnsproxy.ip_mode.policy import format_policy  # noqa: PLC0415
    from dnsproxy.ip_mode.selection import Selection  # noqa: PLC0415

    if not api_version:
        async with await load_client(kubeconfig=kubeconfig, context=context) as client:
            found = await find_version(client)
        if not found.version:
            raise StartError(found.why_none, status=ExitStatus.NO)
        api_version = found.version
    click.echo(format_policy(api_version, Selection(classes)), nl=False)
    return ExitStatus.DONE
