"""`dnsproxy install` and `dnsproxy uninstall` on a cluster: plan, announce, write, and wait for the DNS to load it.

The law: the changes are announced before they are made; --dry-run writes nothing. stdout has the result, stderr the
notes. Status 0: done and, unless --timeout is 0, loaded. 1: refused, or written and not loaded. 3: unknown, or the API
server did not allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import click
import trio

from dnsproxy.cluster_dns.found import Found, ServiceRef
from dnsproxy.cluster_dns.method_choice import choose_method
from dnsproxy.cluster_dns.object_ref import ObjectRef
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult, places_to_ask, zones_to_ask
from dnsproxy.cluster_dns.probing import ask_all
from dnsproxy.cluster_dns.read import discover, load_client, read_one
from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.cluster_dns.requests import CONFIG_MAP, DEPLOYMENT, Fault, Request
from dnsproxy.cluster_dns.taken_hosts import find_taken_lines
from dnsproxy.cluster_dns.traces import find_traces, has_marks
from dnsproxy.install.change.config_map import format_diffs
from dnsproxy.install.change.rewrite_coverage import describe_rewrites, find_rewrite_coverage
from dnsproxy.install.progress import Progress
from dnsproxy.install.report import event_reasons
from dnsproxy.install.report.last_event import LastEvent, keeps_the_stanza
from dnsproxy.install.report.outcome import RunReport, format_document, format_lines, judge_install, judge_uninstall
from dnsproxy.install.report.rights import WATCH_NAME, Grant, format_roles, grants_of, watch_grants_of
from dnsproxy.install.report.verdict import StatusReport, Verdict
from dnsproxy.install.run import applying
from dnsproxy.install.run.applying import Planned, Settled
from dnsproxy.install.run.ending_operate import delete_objects_of_operate, end_operate
from dnsproxy.install.run.live_hostnames import read_taken_hosts
from dnsproxy.install.run.result_event import read_last_event, record_result
from dnsproxy.install.run.stanza_writers import (
    SCALE,
    SECONDS,
    Writer,
    check_none,
    check_scalable,
    find_writers,
    requests_of,
    stop_writers,
)
from dnsproxy.install.run.survey import InstallRequest
from dnsproxy.install.run.upstream_comparison import compare_upstreams
from dnsproxy.install.run.wait_loaded import GONE, LOADED, is_reachable, wait_loaded
from sidecar.kubernetes.events.event import Reason
from sidecar.kubernetes.hook import check_hook
from sidecar.kubernetes.http import ApiClient
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import escape_controls, escaped_json, one_line

_COLOURS: Final = {0: "green", 1: "red"}
_REASONS: Final[dict[int, Reason]] = {ExitStatus.DONE: event_reasons.INSTALLED, ExitStatus.NO: event_reasons.NOT_LOADED}
"""Of an install that has written, or found nothing to write."""
_WRITERS_SECONDS: Final = 3.0
"""Seconds after an uninstall's last write before its last look: a program that watches the cluster's DNS restores the
stanza within about one."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a command, and how to show its result."""

    kubeconfig: str | None
    context: str | None
    dns: Endpoint | None
    """The address for DNS queries to the cluster's DNS; None: that of its Service."""
    seconds: float
    """How long to ask it; 0: not at all."""
    dry_run: bool
    as_json: bool
    events: bool = False
    """Whether the result also becomes an Event."""
    namespace: str = ""
    """The namespace of the installation, in which the programs run that would restore the stanza."""
    stop_writers: bool = False
    """Whether an uninstall ends these."""
    operate: ObjectRef | None = None
    """A Deployment of `dnsproxy operate` that ends before its stanza is removed."""
    keep_stanza: bool = False
    """Whether the stanza belongs to the owner of the DNS, who removes it."""
    hook: ObjectRef | None = None
    """The Job that runs this as a hook of Helm."""


async def install(request: InstallRequest, options: RunOptions) -> int:
    """Install what the request says; the exit status."""
    async with await load_client(kubeconfig=options.kubeconfig, context=options.context) as client:
        try:
            return await _install(client, request, options)
        except ChangeRefused as refusal:
            failure = StartError(str(refusal), status=ExitStatus.NO)
            reason = event_reasons.REFUSED
        except StartError as error:
            failure, reason = error, event_reasons.FAILED
        await _record(client, request, options, reason, str(failure))
        raise failure from None


async def uninstall(where: ServiceRef, options: RunOptions) -> int:
    """Remove everything that an install wrote; the exit status."""
    async with await load_client(kubeconfig=options.kubeconfig, context=options.context) as client:
        try:
            return await _uninstall_with_operate(client, where, options)
        except ChangeRefused as refusal:
            raise StartError(str(refusal), status=ExitStatus.NO) from None


async def _install(client: ApiClient, request: InstallRequest, options: RunOptions) -> int:
    planned = await applying.plan(client, request)
    notes = await applying.try_planned(planned), await compare_upstreams(planned, request, dns=options.dns)
    taken = await _read_taken(client, planned, request)
    more = (*filter(None, notes), *(f"{one} before the stanza is asked" for one in taken))
    planned = replace(planned, edits=replace(planned.edits, notes=(*planned.edits.notes, *more)))
    report = _run_report(planned, options)
    _announce(report, options)
    if options.dry_run:
        return _finish_dry(report, options)
    asked = await _can_ask(planned.found, (".",), options)
    settled = await applying.settle(client, lambda: applying.plan(client, request), planned)
    loaded = await _wait_loaded(settled, options) if asked else ()
    found = await discover(client, request.where)
    seen = await _status_report(found, planned, loaded)
    verdict = judge_install(
        seen, planned.choice, wrote=settled.wrote, reverted=settled.reverted, asked=options.seconds > 0
    )
    await _record(client, request, options, _REASONS.get(verdict.status, event_reasons.FAILED), verdict.text)
    return _finish(replace(report, wrote=settled.wrote, loaded=loaded), verdict, options)


async def _read_taken(client: ApiClient, planned: Planned, request: InstallRequest) -> tuple[str, ...]:
    """What other lines answer, for notes; without a right to read the hostnames, nothing."""
    lines = find_taken_lines(planned.found, planned.choice.method, planned.edits.zones)
    if not lines:
        return ()
    pods = (request.admin,) if request.admin else ()
    taken = await read_taken_hosts(client, pods, lines, planned.edits.zones)
    return taken.sentences()


async def _record(client: ApiClient, request: InstallRequest, options: RunOptions, reason: Reason, note: str) -> None:
    if options.events and not options.dry_run:
        why = await record_result(client, request.own, reason, note)
        if why and not options.as_json:
            click.echo(f"Note: {one_line(why)}", err=True)


async def _uninstall_with_operate(client: ApiClient, where: ServiceRef, options: RunOptions) -> int:
    if options.hook is not None:
        await check_hook(client, options.hook.namespace, options.hook.name)
    writers = () if options.keep_stanza else await _find_others(client, options)
    if not options.dry_run:
        await _stop(client, where, writers, options)
    status: int = ExitStatus.UNKNOWN
    try:
        status = await _uninstall_after_writers(client, where, options, writers)
    finally:
        if status != ExitStatus.DONE and not options.dry_run:
            _tell_stopped(writers)
    return status


async def _uninstall_after_writers(
    client: ApiClient, where: ServiceRef, options: RunOptions, writers: Sequence[Writer]
) -> int:
    operate = options.operate
    if operate is None or options.dry_run:
        return await _uninstall(client, where, options, writers)
    name = f"{operate.namespace}/{operate.name}"
    waiting = Progress(f"the pods of {name} to end", SECONDS, silent=options.as_json)
    await end_operate(client, operate, on_wait=lambda passed: waiting(passed, ()))
    waiting.end()
    status = ExitStatus.DONE if options.keep_stanza else await _uninstall(client, where, options, writers)
    if status == ExitStatus.DONE:
        deleted = await delete_objects_of_operate(client, operate)
        if not options.as_json:
            click.echo(f"Deleted {name}, {deleted} of its route Services, and its Lease", err=True)
    return status


async def _find_others(client: ApiClient, options: RunOptions) -> tuple[Writer, ...]:
    """What would restore the stanza, beside the Deployment that --operate deletes."""
    found = await find_writers(client, options.namespace)
    deleted = (DEPLOYMENT.name, options.operate.name) if options.operate else ()
    return tuple(writer for writer in found if (writer.kind, writer.name) != deleted)


async def _stop(client: ApiClient, where: ServiceRef, writers: Sequence[Writer], options: RunOptions) -> None:
    """Scale the writers to 0 with --stop-writers. Raises ChangeRefused and StartError; no stanza was touched then."""
    (check_scalable if options.stop_writers else check_none)(writers)
    if not writers:
        return
    # A writer that was ended in vain would leave a stanza that nothing keeps.
    if refusals := (await applying.plan_out(client, where)).edits.refusals:
        raise ChangeRefused(f"{'; '.join(refusals)}; nothing was changed")
    waiting = Progress(
        f"the pods of {' and '.join(one.name for one in writers)} to end", SECONDS, silent=options.as_json
    )
    await stop_writers(client, options.namespace, writers, on_wait=lambda passed: waiting(passed, ()))
    waiting.end()
    for one in writers if not options.as_json else ():
        click.echo(one_line(f"Scaled {one.kind} {one.namespace}/{one.name} to 0; its pods have ended"), err=True)


def _tell_stopped(writers: Sequence[Writer]) -> None:
    """How to undo what --stop-writers did, if the stanza is still there."""
    for one in writers:
        command = f"kubectl -n {one.namespace} scale deployment {one.name} --replicas=1"
        click.echo(one_line(f"Note: {one} may be at 0 replicas now; `{command}` starts it again"), err=True)


async def _uninstall(client: ApiClient, where: ServiceRef, options: RunOptions, writers: Sequence[Writer]) -> int:
    planned = await applying.plan_out(client, where)
    report = _run_report(planned, options, writers)
    _announce(report, options)
    if options.dry_run:
        return _finish_dry(report, options)
    traces = find_traces(planned.found)
    if not traces:
        await _check_seen(client, planned)
    zones = zones_to_ask(traces)
    asked = await _can_ask(planned.found, zones, options)
    settled = await applying.settle(client, lambda: applying.plan_out(client, where), planned)
    written_at = trio.current_time()
    loaded: tuple[ProbeResult, ...] = ()
    if asked:
        progress = Progress("the cluster's DNS to drop it", options.seconds, silent=options.as_json)
        # Also if nothing was removed: an earlier run, or a person, may have done it a moment ago.
        places = _places(planned.found, options)
        loaded = await wait_loaded(places, zones, GONE, seconds=options.seconds, progress=progress)
        progress.end()
    only_rewrites = bool(traces) and all(trace.rewrites for trace in traces)
    last = settled.last
    if settled.wrote and not settled.reverted:
        await trio.sleep_until(written_at + _WRITERS_SECONDS)
        last = await _look_again(client, where)
    restored = await _restored_lately(client, options, writers) if settled.wrote else None
    verdict = judge_uninstall(
        last.edits,
        loaded,
        wrote=settled.wrote,
        reverted=last.edits.changed,
        asked=options.seconds > 0,
        does="rewrites names" if only_rewrites else "asks dnsproxy",
        restored=restored,
    )
    return _finish(replace(report, wrote=settled.wrote, loaded=loaded), verdict, options)


async def _check_seen(client: ApiClient, planned: Planned) -> None:
    """Raises StartError with status 3 if a stanza may be where no configuration of the cluster's DNS was found."""
    found = planned.found
    if any(one and (one.corefile or one.stub_domains) for one in (found.server, found.asked_by_pods)):
        return
    namespace = found.service.namespace if found.service else found.where.namespace
    listed = await read_one(client, Request(CONFIG_MAP, namespace))
    marked = [] if isinstance(listed, Fault) else [one.metadata.name for one in listed or () if has_marks(one)]
    text = f"whether anything is installed is unknown: {planned.choice.why}"
    if marked:
        text += f"; Switchback's marks are in ConfigMap {' and '.join(f'{namespace}/{name}' for name in marked)}"
    raise StartError(text, status=ExitStatus.UNKNOWN)


async def _restored_lately(client: ApiClient, options: RunOptions, ended: Sequence[Writer]) -> LastEvent | None:
    """The Event of a program that restored the stanza, and may do so after its pause; None if it was ended."""
    last = (await read_last_event(client, (options.namespace,))).last
    if last is None or not keeps_the_stanza(last, datetime.now(UTC)):
        return None
    names = [one.name for one in ended] + ([options.operate.name] if options.operate else [])
    return None if any(last.instance == name or last.instance.startswith(f"{name}-") for name in names) else last


async def _look_again(client: ApiClient, where: ServiceRef) -> Planned:
    """The plan for what stands there now: nothing to change, unless another program wrote."""
    try:
        return await applying.plan_out(client, where)
    except StartError as error:
        text = f"removed; whether the stanza is there again is unknown: {error}"
        raise StartError(text, status=ExitStatus.UNKNOWN) from None


async def _wait_loaded(settled: Settled, options: RunOptions) -> tuple[ProbeResult, ...]:
    if settled.reverted:
        return ()
    found = settled.last.found
    progress = Progress("the cluster's DNS to load it", options.seconds, silent=options.as_json)
    zones = zones_to_ask(find_traces(found))
    loaded = await wait_loaded(_places(found, options), zones, LOADED, seconds=options.seconds, progress=progress)
    progress.end()
    return loaded


async def _status_report(found: Found, planned: Planned, loaded: tuple[ProbeResult, ...]) -> StatusReport:
    """The report for the verdict; dnsproxy itself is asked only if the cluster's DNS does not ask it."""
    answers: tuple[ProbeResult, ...] = ()
    if any(one.state in (Presence.NO, Presence.PARTLY) for one in loaded) and planned.wanted is not None:
        answers = await ask_all(planned.wanted.addresses, (".",))
    if planned.survey and planned.survey.own and planned.survey.own.ready:
        # Its Service has ready pods; the ClusterIP may have no route from here.
        answers = tuple(one for one in answers if one.state is not Presence.SILENT)
    silent = loaded or tuple(ProbeResult(place, ".", ()) for place in places_to_ask(found))
    traces = find_traces(found)
    chosen, live = planned.edits.rewrites, planned.survey.rewrites if planned.survey else None
    standing = [row for trace in traces if trace.rewrites for row in trace.rewrites.rewrites]
    names = find_rewrite_coverage(standing, chosen, live) if live is not None else None
    return StatusReport(found, choose_method(found), traces, silent, answers, names=names)


async def _can_ask(found: Found, zones: Sequence[str], options: RunOptions) -> bool:
    return options.seconds > 0 and await is_reachable(_places(found, options), zones)


def _places(found: Found, options: RunOptions) -> tuple[Endpoint, ...]:
    return (options.dns,) if options.dns else places_to_ask(found)


def _run_report(planned: Planned, options: RunOptions, writers: Sequence[Writer] = ()) -> RunReport:
    """`writers`: those that an uninstall ends, or is refused for."""
    survey = planned.survey
    stopped = [one for one in writers if options.stop_writers and one.scales]
    asked = survey.asked if survey else planned.found.asked
    chosen, live = planned.edits.rewrites, survey.rewrites if survey else None
    return RunReport(
        planned.edits,
        planned.choice,
        planned.wanted.addresses if planned.wanted else (),
        survey.zones_from if survey else "",
        grants_of([*asked, *requests_of(options.namespace)], planned.edits.changes) + _scaling(stopped),
        watch_grants_of(asked, planned.edits.changes) if survey else (),
        dry_run=options.dry_run,
        names=describe_rewrites(chosen, live) if chosen and live else "",
        stopped=tuple(map(str, stopped)),
        writers=tuple(str(one) for one in writers if one not in stopped),
    )


def _scaling(writers: Iterable[Writer]) -> tuple[Grant, ...]:
    return tuple(Grant(one.namespace, SCALE.group, SCALE.plural, one.name, "patch") for one in writers)


def _announce(report: RunReport, options: RunOptions) -> None:
    if options.as_json:
        return
    for note in (*report.edits.notes, *report.edits.refusals):
        click.echo(f"Note: {one_line(note)}", err=True)
    for writer in report.writers:
        without = "" if options.stop_writers else ", without --stop-writers"
        click.echo(one_line(f"Note: refused while it runs{without}: {writer}"), err=True)
    for writer in report.stopped if options.dry_run else ():
        click.echo(one_line(f"Note: scaled to 0 first: {writer}"), err=True)
    for line in format_lines(report):
        click.echo(one_line(line), err=options.dry_run)


def _finish_dry(report: RunReport, options: RunOptions) -> int:
    refused = bool(report.edits.refusals or report.writers)
    verdict = Verdict(
        ExitStatus.NO if refused else ExitStatus.DONE, "nothing was written: these are the changes that would be made"
    )
    if options.as_json:
        return _finish(report, verdict, options)
    if not report.edits.changed:
        click.echo("Nothing would change", err=True)
    text = format_diffs(report.edits) + format_roles(report.grants)
    if report.watch_grants:
        text += f"# Also needed for --watch:\n{format_roles(report.watch_grants, WATCH_NAME)}"
    click.echo(escape_controls(text, keep="\n\t"), nl=False)
    return verdict.status


def _finish(report: RunReport, verdict: Verdict, options: RunOptions) -> int:
    if options.as_json:
        click.echo(escaped_json(format_document(report, verdict), indent=2))
    else:
        click.secho(one_line(verdict.text), fg=_COLOURS.get(verdict.status, "yellow"), bold=True)
    return verdict.status
