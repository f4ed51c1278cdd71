"""The outcome of an install or an uninstall, for users and for programs.

The law: `written`, `loaded` and `unknown` are different results. The verdict follows from what was read and asked last,
not from what was written. Text from the cluster is escaped before it is shown. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dnsproxy.cluster_dns.found import Found, Server
from dnsproxy.cluster_dns.method_choice import Choice
from dnsproxy.cluster_dns.owner import Habit, last_writer
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.corefile.stanza import format_address
from dnsproxy.install.change.config_map import ConfigMapChange, Edits, format_change
from dnsproxy.install.report.comparison import format_target
from dnsproxy.install.report.last_event import LastEvent
from dnsproxy.install.report.rights import WATCH_NAME, Grant, make_roles
from dnsproxy.install.report.status_document import format_asked
from dnsproxy.install.report.verdict import StatusReport, Verdict, judge
from sidecar.values.endpoints import Endpoint
from sidecar.values.exit_status import ExitStatus

_WORDS: Final = {"patch": "changes", "create": "creates", "delete": "deletes"}
_PRINT: Final = "give the stanza to the owner instead: dnsproxy install --method print"


@dataclass(frozen=True, slots=True)
class RunReport:
    """What is shown of a run, in addition to its verdict."""

    edits: Edits
    choice: Choice
    addresses: tuple[Endpoint, ...]
    zones_from: str
    grants: tuple[Grant, ...]
    watch_grants: tuple[Grant, ...] = ()
    """What --watch takes in addition; none for an uninstall."""
    wrote: bool = False
    dry_run: bool = False
    loaded: tuple[ProbeResult, ...] = ()
    names: str = ""
    """For rewrite lines: how many names there are, in one line."""
    stopped: tuple[str, ...] = ()
    """For an uninstall: the programs that were ended because they would restore the stanza, or would be."""
    writers: tuple[str, ...] = ()
    """Such programs for which an uninstall is refused."""


def judge_install(report: StatusReport, choice: Choice, *, wrote: bool, reverted: bool, asked: bool) -> Verdict:
    """The verdict on an install; `asked`: whether the run was to ask the cluster's DNS."""
    done = "written" if wrote else "unchanged"
    there = any(str(trace.target) == str(choice.target) for trace in report.traces)
    if reverted or not there:
        text = f"written, not loaded: it was undone, apparently by {_undoer(report.found, choice)}; {_PRINT}"
        return Verdict(ExitStatus.NO, text)
    if not asked:
        return Verdict(ExitStatus.DONE, f"{done}; whether it is loaded was not checked")
    verdict = judge(report)
    if verdict.status == ExitStatus.DONE:
        return verdict
    pods = _pods_not_ready(report.found.asked_by_pods)
    return replace(verdict, text=f"{verdict.text}; {pods}" if pods else verdict.text)


def judge_uninstall(
    edits: Edits,
    loaded: Sequence[ProbeResult],
    *,
    wrote: bool,
    reverted: bool,
    asked: bool,
    does: str = "asks dnsproxy",
    restored: LastEvent | None = None,
) -> Verdict:
    """The verdict on an uninstall; `loaded`: the last answers of the cluster's DNS, and `does` what it did.

    `restored`: of a program that restored the stanza lately, and may still run.
    """
    states = {one.state for one in loaded}
    if edits.refusals:
        return Verdict(ExitStatus.NO, f"not everything was removed: {'; '.join(edits.refusals)}")
    if reverted:
        text = (
            "not removed: another program has written it again, such as `dnsproxy operate` or `dnsproxy install "
            "--watch` outside of the namespace of --service; end it and run this again"
        )
        return Verdict(ExitStatus.NO, text)
    done = "removed" if wrote else "nothing has Switchback's markers"
    if states & {Presence.YES, Presence.PARTLY}:
        return Verdict(ExitStatus.NO, f"{done}, and the cluster's DNS still {does}: {_why_still(wrote)}")
    if not wrote:
        return Verdict(ExitStatus.DONE, "not installed: there is nothing to remove")
    if restored is not None:
        program = f"a program on {restored.instance or 'an unknown host'} restored it at {restored.time}"
        again = "may do so again after its pause: end it, and run this again 10 minutes later"
        return Verdict(ExitStatus.UNKNOWN, f"{done}; whether it stays so is unknown: {program}, and {again}")
    if not asked:
        return Verdict(ExitStatus.DONE, f"{done}; whether it is still loaded was not checked")
    if states <= {Presence.SILENT}:
        where = ", ".join(format_address(one.endpoint) for one in loaded) or "the cluster's DNS"
        text = f"{done}; whether it is still loaded is unknown, because {where} does not answer from here"
        return Verdict(ExitStatus.UNKNOWN, f"{text}: run this in a pod")
    return Verdict(ExitStatus.DONE, f"{done}, and the cluster's DNS no longer {does}")


def format_lines(report: RunReport) -> Iterator[str]:
    """The changes that the run is about to make."""
    edits = report.edits
    if edits.method is not None:
        yield f"method   {edits.method.value}: {report.choice.target}"
        if edits.rewrites is not None:
            yield f"names    {report.names}"
        else:
            yield f"zones    {', '.join(edits.zones)}" + (f" (from {report.zones_from})" if report.zones_from else "")
            yield f"asks     {', '.join(map(format_address, report.addresses))}"
    for change in edits.changes:
        if change.changed:
            yield f"{_WORDS[change.verb]}  ConfigMap {change.source} ({_keys(change)})"


def format_document(report: RunReport, verdict: Verdict) -> dict[str, Any]:
    """The run as JSON values; names and texts as they are in the cluster."""
    edits = report.edits
    return {
        "status": verdict.status,
        "verdict": verdict.text,
        "method": edits.method.value if edits.method else None,
        "target": format_target(report.choice.target) if edits.method else None,
        "zones": list(edits.zones),
        "zones_from": report.zones_from,
        "addresses": list(map(str, report.addresses)),
        "names": _names(edits),
        "dry_run": report.dry_run,
        "wrote": report.wrote,
        "changes": [
            {
                "config_map": str(change.source),
                "verb": change.verb,
                "keys": [entry.name for entry in change.data if entry.old != entry.new],
                "annotations": [entry.name for entry in change.annotations if entry.old != entry.new],
                "diff": format_change(change),
            }
            for change in edits.changes
            if change.changed
        ],
        "notes": list(edits.notes),
        "refusals": list(edits.refusals),
        "stopped": list(report.stopped),
        "writers": list(report.writers),
        "loaded": list(map(format_asked, report.loaded)),
        "rbac": make_roles(report.grants),
        "rbac_watch": make_roles(report.watch_grants, WATCH_NAME),
    }


def _names(edits: Edits) -> dict[str, Any] | None:
    """The names of rewrite lines; null for other methods."""
    chosen = edits.rewrites
    if chosen is None:
        return None
    return {
        "rewritten": list(chosen.names),
        "left_out": list(chosen.beyond),
        "kept": list(chosen.kept),
        "refused": dict(chosen.refused),
    }


def _undoer(found: Found, choice: Choice) -> str:
    source = choice.target.source if choice.target else None
    writer = last_writer(source.object.metadata) if source and source.object else None
    server = found.asked_by_pods
    owner = server.corefile.owner if server and server.corefile else None
    if owner is not None and owner.habit is Habit.REVERTS:
        return f"{owner.name}: {owner.remark}"
    return f"{writer}, which wrote to it too" if writer else "a writer without a name"


def _why_still(wrote: bool) -> str:
    if wrote:
        return "a ConfigMap takes up to two minutes to be loaded, and without the plugin reload a restart of CoreDNS"
    return (
        "by a configuration without them, which its owner has to remove, or by one that was removed less than two "
        "minutes ago"
    )


def _pods_not_ready(server: Server | None) -> str:
    if server is None or server.ready >= server.wanted:
        return ""
    return f"{server.ready} of {server.wanted} pods of {server} are ready, see the log of the others"


def _keys(change: ConfigMapChange) -> str:
    if change.removes:
        return "created by the install, and nothing else is in it"
    return ", ".join(entry.name for entry in (*change.data, *change.annotations) if entry.old != entry.new)
