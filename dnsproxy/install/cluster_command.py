"""`dnsproxy install` and `dnsproxy uninstall` on a cluster: an order in, a proof out.

The law: what is about to be done is said before it is done; with --dry-run nothing is written. stdout has the result,
stderr what is said beside it. Status 0: done and, if asked, proven. 1: refused, or written and not loaded. 3: it could
not be found out, or the API server did not let us.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import click

from dnsproxy.cluster_dns.choice import choose_method
from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult, places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, load_client
from dnsproxy.cluster_dns.traces import find_traces
from dnsproxy.install.change.edits import format_diffs
from dnsproxy.install.change.refusal import Refusal
from dnsproxy.install.progress import Progress
from dnsproxy.install.report.outcome import Told, format_document, format_lines, judge_install, judge_uninstall
from dnsproxy.install.report.rights import WATCH_NAME, format_roles, grants_of, watch_grants_of
from dnsproxy.install.report.verdict import Report, Verdict
from dnsproxy.install.run import applying
from dnsproxy.install.run.applying import Planned, Settled
from dnsproxy.install.run.survey import Order
from dnsproxy.install.run.wait_loaded import GONE, LOADED, is_reachable, prove
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import ExitStatus, StartError
from sidecar.values.text import escape_controls, escaped_json, one_line

_COLOURS: Final = {0: "green", 1: "red"}


@dataclass(frozen=True, slots=True)
class Asking:
    """How a person wants it done and told."""

    kubeconfig: str | None
    context: str | None
    dns: Endpoint | None
    """Where the cluster's DNS is asked; None: at its Service."""
    seconds: float
    """How long it is asked; 0: not at all."""
    dry_run: bool
    as_json: bool


async def install(order: Order, asking: Asking) -> int:
    """Install by an order; the exit status."""
    async with await load_client(kubeconfig=asking.kubeconfig, context=asking.context) as client:
        try:
            return await _install(client, order, asking)
        except Refusal as refusal:
            raise StartError(str(refusal), status=ExitStatus.NO) from None


async def uninstall(where: ServiceRef, asking: Asking) -> int:
    """Take everything of ours out; the exit status."""
    async with await load_client(kubeconfig=asking.kubeconfig, context=asking.context) as client:
        try:
            return await _uninstall(client, where, asking)
        except Refusal as refusal:
            raise StartError(str(refusal), status=ExitStatus.NO) from None


async def _install(client: ApiClient, order: Order, asking: Asking) -> int:
    planned = await applying.plan(client, order)
    note = await applying.try_planned(planned)
    if note:
        planned = replace(planned, edits=replace(planned.edits, notes=(*planned.edits.notes, note)))
    told = _told(planned, asking)
    _announce(told, asking)
    if asking.dry_run:
        return _finish_dry(told, asking)
    asked = await _can_ask(planned.found, (".",), asking)
    settled = await applying.settle(client, lambda: applying.plan(client, order), planned)
    loaded = await _prove_loaded(settled, asking) if asked else ()
    found = await discover(client, order.where)
    report = await _report(found, planned, loaded)
    verdict = judge_install(
        report, planned.choice, wrote=settled.wrote, reverted=settled.reverted, asked=asking.seconds > 0
    )
    return _finish(replace(told, wrote=settled.wrote, loaded=loaded), verdict, asking)


async def _uninstall(client: ApiClient, where: ServiceRef, asking: Asking) -> int:
    planned = await applying.plan_out(client, where)
    told = _told(planned, asking)
    _announce(told, asking)
    if asking.dry_run:
        return _finish_dry(told, asking)
    zones = _zones(planned.edits.zones)
    asked = await _can_ask(planned.found, zones, asking)
    settled = await applying.settle(client, lambda: applying.plan_out(client, where), planned)
    loaded: tuple[ProbeResult, ...] = ()
    if asked:
        progress = Progress("the cluster's DNS to forget it", asking.seconds, silent=asking.as_json)
        # Where nothing was taken out, one look tells.
        seconds = asking.seconds if settled.wrote else 0.0
        loaded = await prove(_places(planned.found, asking), zones, GONE, seconds=seconds, progress=progress)
        progress.end()
    verdict = judge_uninstall(
        settled.last.edits, loaded, wrote=settled.wrote, reverted=settled.reverted, asked=asking.seconds > 0
    )
    return _finish(replace(told, wrote=settled.wrote, loaded=loaded), verdict, asking)


async def _prove_loaded(settled: Settled, asking: Asking) -> tuple[ProbeResult, ...]:
    if settled.reverted:
        return ()
    found = settled.last.found
    progress = Progress("the cluster's DNS to load it", asking.seconds, silent=asking.as_json)
    zones = zones_to_ask(find_traces(found))
    loaded = await prove(_places(found, asking), zones, LOADED, seconds=asking.seconds, progress=progress)
    progress.end()
    return loaded


async def _report(found: Found, planned: Planned, loaded: tuple[ProbeResult, ...]) -> Report:
    """What is to be judged; dnsproxy itself is asked only where the cluster's DNS does not ask it."""
    answers: tuple[ProbeResult, ...] = ()
    if any(one.state in (Presence.NO, Presence.PARTLY) for one in loaded) and planned.wanted is not None:
        answers = await ask_all(planned.wanted.addresses, (".",))
    if planned.survey and planned.survey.own and planned.survey.own.ready:
        # It is there by its Service, whose ClusterIP may lead nowhere from here.
        answers = tuple(one for one in answers if one.state is not Presence.SILENT)
    silent = loaded or tuple(ProbeResult(place, ".", ()) for place in places_to_ask(found))
    return Report(found, choose_method(found), find_traces(found), silent, answers)


async def _can_ask(found: Found, zones: Sequence[str], asking: Asking) -> bool:
    return asking.seconds > 0 and await is_reachable(_places(found, asking), zones)


def _places(found: Found, asking: Asking) -> tuple[Endpoint, ...]:
    return (asking.dns,) if asking.dns else places_to_ask(found)


def _zones(zones: Iterable[str]) -> tuple[str, ...]:
    return tuple(zones)[:5] or (".",)


def _told(planned: Planned, asking: Asking) -> Told:
    survey = planned.survey
    asked = survey.asked if survey else planned.found.asked
    return Told(
        planned.edits,
        planned.choice,
        planned.wanted.addresses if planned.wanted else (),
        survey.zones_from if survey else "",
        grants_of(asked, planned.edits.changes),
        watch_grants_of(asked, planned.edits.changes) if survey else (),
        dry_run=asking.dry_run,
    )


def _announce(told: Told, asking: Asking) -> None:
    if asking.as_json:
        return
    for note in (*told.edits.notes, *told.edits.refusals):
        click.echo(f"Note: {one_line(note)}", err=True)
    for line in format_lines(told):
        click.echo(one_line(line), err=asking.dry_run)


def _finish_dry(told: Told, asking: Asking) -> int:
    verdict = Verdict(
        ExitStatus.NO if told.edits.refusals else ExitStatus.DONE, "nothing was written: this is what would be"
    )
    if asking.as_json:
        return _finish(told, verdict, asking)
    if not told.edits.changed:
        click.echo("Nothing would change", err=True)
    text = format_diffs(told.edits) + format_roles(told.grants)
    if told.watch_grants:
        text += f"# Only for --watch, besides:\n{format_roles(told.watch_grants, WATCH_NAME)}"
    click.echo(escape_controls(text, keep="\n\t"), nl=False)
    return verdict.status


def _finish(told: Told, verdict: Verdict, asking: Asking) -> int:
    if asking.as_json:
        click.echo(escaped_json(format_document(told, verdict), indent=2))
    else:
        click.secho(one_line(verdict.text), fg=_COLOURS.get(verdict.status, "yellow"), bold=True)
    return verdict.status
