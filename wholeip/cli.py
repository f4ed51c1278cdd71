"""The command `wholeip`: its subcommands and flags.

The law: every text becomes a checked value here, and the programs get frozen settings. stdout has the answer, stderr
the notes, and the exit status does not depend on the output format.
"""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from sidecar.cli.completion import completion_command
from sidecar.cli.deferred_modules import defer_unused_modules
from sidecar.cli.options import (
    BadUsage,
    CheckedType,
    Endpoint,
    EndpointType,
    Group,
    Program,
    Seconds,
    admin_option,
    kubeconfig_options,
    log_options,
    run_program,
)
from sidecar.values.build import DISTRIBUTION
from wholeip.options import ADMIN, cluster_options, make_cluster, parse_job, parse_namespace

# Before a command imports the libraries.
defer_unused_modules()

EPILOG = """\b
Examples:
  wholeip rules                  what this node's rules would be; needs no root
  wholeip run --cluster-network 10.244.0.0/16
  wholeip status
  wholeip uninstall --dry-run
"""
RUN_EPILOG = """\b
Examples:
  wholeip run --node-name node-1 --cluster-network 10.244.0.0/16 --cluster-network 10.96.0.0/12
  wholeip run --proxy-name my-proxy --allow 203.0.113.0/24 --protect 203.0.113.0/28

\b
Requires CAP_NET_ADMIN in the network of the node.
RBAC: list and watch on services, endpointslices, nodes and servicecidrs, with --endpoints verified on pods; with
--events create on events of events.k8s.io.
"""
RULES_EPILOG = """\b
Examples:
  wholeip rules --context production --node-name node-1
  wholeip rules --output json | jq -r '.reports[].detail'
  wholeip rules | nft --check --file -
"""
STATUS_EPILOG = """\b
Examples:
  wholeip status
  wholeip status --output json | jq '.mappings[] | select(.here)'
  kubectl -n switchback-wholeip exec ds/wholeip -- wholeip status
"""
UNINSTALL_EPILOG = """\b
Examples:
  wholeip uninstall --dry-run
  wholeip uninstall
  wholeip uninstall --every-node switchback-wholeip     ends the agents, then a Job on each node
"""


@click.group(cls=Group, epilog=EPILOG, context_settings={"auto_envvar_prefix": "WHOLEIP"})
@click.version_option(package_name=DISTRIBUTION, prog_name="wholeip", allow_from_autoenv=False)
def main() -> None:
    """Give a pod the whole address of a load balancer, in and out."""


main.add_command(completion_command("wholeip"))


@main.command(cls=Program, epilog=RUN_EPILOG)
@cluster_options
@click.option(
    "--resync",
    type=Seconds(1),
    default=60.0,
    help="Seconds between two comparisons with the kernel, while it notifies of no change.",
)
@click.option(
    "--end-flows/--keep-flows",
    default=True,
    help="Whether to end flows that a change no longer allows (of a moved address, to a closed port), and those that a "
    "pod began before it got its address.",
)
@click.option(
    "--end-connections",
    is_flag=True,
    help="When a pod gets its address, also end its TCP and SCTP connections to the outside that have another one.",
)
@click.option(
    "--events",
    is_flag=True,
    help="Also report what is excluded, and why, as a Kubernetes Event about its Service: one for all agents, if it "
    "lasts. Takes the right to create events.",
)
@click.option(
    "--remove-on-exit",
    is_flag=True,
    help="Remove the rules at the end, after SIGTERM; else they stay for the next run.",
)
@admin_option(ADMIN)
@log_options
def run(
    *, admin: Endpoint | None, admin_host: tuple[str, ...], log_format: str | None, log_level: str, **values: Any
) -> None:
    """Keep this node's rules equal to what the cluster asks for. They stay until `wholeip uninstall`.

    Exit status: 0 stopped, 2 bad usage, 3 the cluster's address or nftables is not available.
    """
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415  # --help must not cost what an agent needs
    from wholeip.agent.program import run_agent  # noqa: PLC0415
    from wholeip.settings import RunSettings  # noqa: PLC0415

    if values["end_connections"] and not values["end_flows"]:
        raise BadUsage(["--end-connections and --keep-flows: give one of them"])
    settings = RunSettings(cluster=make_cluster(values), admin=admin, admin_hosts=admin_host, **values)
    configure_logging(format=log_format, level=log_level, program="wholeip run")
    run_program(run_agent, settings)


@main.command(epilog=RULES_EPILOG)
@cluster_options
@click.option(
    "--output", "-o", type=click.Choice(["nft", "json"]), default="nft", help="The table, or mappings and reports too."
)
def rules(*, output: str, **values: Any) -> None:
    """Print the rules for the cluster's present state. Changes nothing, needs no root.

    Exit status: 0 printed, 2 bad usage, 3 the cluster is out of reach.
    """
    from wholeip.rules_command import print_rules  # noqa: PLC0415  # as above

    run_program(print_rules, make_cluster(values), output)


@main.command(epilog=STATUS_EPILOG)
@click.option("--admin", type=EndpointType(), default=ADMIN, help="The admin port of the agent to ask.")
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Columns for people, or JSON."
)
def status(admin: Endpoint, output: str) -> None:
    """Show what a running agent has in the kernel, and what is excluded and why.

    Exit status: 0 the kernel has what the cluster asks for, 1 it does not, 2 bad usage, 3 the agent is out of reach.
    """
    from wholeip.status_command import print_status  # noqa: PLC0415  # as above

    run_program(print_status, admin, output)


@main.command(epilog=UNINSTALL_EPILOG)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and change nothing.")
@click.option(
    "--every-node",
    type=CheckedType("namespace", parse_namespace),
    help="On all Linux nodes of the cluster: end the agents in this namespace, then run a Job on each node.",
)
@click.option(
    "--hook",
    type=CheckedType("ns/name", parse_job),
    help="With --every-node: this runs as the Job of that name, a hook of Helm: refuse if another program made it.",
)
@kubeconfig_options("How to reach the cluster, for --every-node.")
@click.pass_context
def uninstall(
    ctx: click.Context,
    /,
    *,
    dry_run: bool,
    every_node: str | None,
    hook: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Remove the rules from this node's kernel and nothing else. Stop the agent first, or it restores them.

    Exit status: 0 there are no rules (any more), 1 a node still has rules, 2 bad usage, 3 nftables or the cluster is
    not available.
    """
    if every_node is not None:
        from wholeip.every_node_command import run_on_every_node  # noqa: PLC0415  # as above

        run_program(run_on_every_node, every_node, hook, kubeconfig, context, dry_run)
    # Of the command line: a variable may be there for other commands.
    flags = ("hook", "kubeconfig", "context")
    given = [one for one in flags if ctx.get_parameter_source(one) is ParameterSource.COMMANDLINE]
    if given:
        raise BadUsage(
            [f"--{one}: is for --every-node only; without it, this node's rules are removed" for one in given]
        )
    from wholeip.uninstall_command import run_uninstall  # noqa: PLC0415  # as above

    run_program(run_uninstall, dry_run)
