"""`wholeip rules`: prints the ruleset for the cluster's present state, without applying it.

The law: it reads the cluster, never the kernel. If several pods are ready, a running agent may have kept another pod,
because this command does not know the earlier choice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import click
import trio

from sidecar.kubernetes.cluster import could_not_ask
from sidecar.kubernetes.errors import ApiError, Forbidden, NotFound
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.one_shot import list_all
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import one_line
from wholeip.agent.document import Document, format_json, show_mapping, show_report
from wholeip.agent.following import new_state, open_client
from wholeip.mappings.api_server import API_SERVICE, API_SLICES, SERVICE_RANGES
from wholeip.mappings.cluster_state import ClusterState
from wholeip.mappings.endpoints import slice_collection
from wholeip.mappings.nodes import NODES
from wholeip.mappings.plan import Plan
from wholeip.mappings.pods import PODS, Proof
from wholeip.mappings.services import service_collection
from wholeip.ruleset.ruleset import Ruleset, format_ruleset, make_ruleset
from wholeip.settings import ClusterSettings

READ_SECONDS: Final = 60.0


async def print_rules(settings: ClusterSettings, output: str) -> int:
    """Print the rules; the exit status. Raises StartError."""
    async with await open_client(settings) as client:
        try:
            with trio.fail_after(READ_SECONDS):
                state = await read_state(client, settings)
        except ApiError as error:
            raise StartError(could_not_ask(client.cluster, error), status=ExitStatus.UNKNOWN) from None
        except trio.TooSlowError:
            message = could_not_ask(client.cluster, f"not all answers came within {READ_SECONDS:g} s")
            raise StartError(message, status=ExitStatus.UNKNOWN) from None
    plan = state.plan()
    ruleset = make_ruleset(plan.mappings, cluster=state.networks)
    _print(settings, state, plan, ruleset, output)
    return 0


async def read_state(client: ApiClient, settings: ClusterSettings) -> ClusterState:
    """The present state of the cluster. Raises ApiError."""
    state = await new_state(settings, client)
    state.change_services(await list_all(client, service_collection(settings.proxy_name)))
    if settings.endpoints is Proof.VERIFIED:
        state.change_pods(await list_all(client, PODS))
    state.change_slices(await list_all(client, slice_collection(settings.proxy_name)))
    state.change_api_services(await list_all(client, API_SERVICE))
    state.change_api_slices(await list_all(client, API_SLICES))
    try:
        state.change_nodes(await list_all(client, NODES))
    except Forbidden as error:
        click.echo(f"Note: nodes and their networks are unknown: {one_line(str(error))}", err=True)
    # Without it, the state advises to state the range of Services.
    with suppress(Forbidden, NotFound):
        state.change_ranges(await list_all(client, SERVICE_RANGES))
    return state


def _print(settings: ClusterSettings, state: ClusterState, plan: Plan, ruleset: Ruleset, output: str) -> None:
    summary = f"{len(plan.mappings)} mappings of {len(state)} Services"
    if output == "json":
        shown = Document(
            settings.node_name,
            True,
            summary,
            tuple(map(show_mapping, plan.mappings)),
            tuple(map(show_report, plan.reports)),
        )
        click.echo(format_json(shown, ruleset=format_ruleset(ruleset)))
        return
    click.echo(format_ruleset(ruleset), nl=False)
    for report in plan.reports:
        click.echo(f"Note: {report.service}: {one_line(report.detail)} ({report.reason})", err=True)
    click.echo(f"For node {settings.node_name}: {summary}.", err=True)
    for line in state.advise():
        click.echo(f"Note: {line}.", err=True)
