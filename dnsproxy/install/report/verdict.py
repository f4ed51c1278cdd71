"""The verdict on a cluster: whether the stanza is installed, whether it is loaded, and if not, why.

The law: `written` and `loaded` are different states, and what could not be read is neither yes nor no. The verdict
follows from the report alone. Text from the cluster is escaped before it is shown. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from dnsproxy.admin.steering_document import SteeringDocument
from dnsproxy.cluster_dns.found import Found
from dnsproxy.cluster_dns.method_choice import Choice, Method
from dnsproxy.cluster_dns.original_upstreams import UpstreamCheck, check_upstreams, find_original
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.cluster_dns.requests import CONFIG_MAP, DAEMON_SET, SERVICE, Blame, Fault
from dnsproxy.cluster_dns.taken_hosts import TakenHosts
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.model import Scope, listed
from dnsproxy.corefile.rewrite_lines import MOST, hostnames_of
from dnsproxy.corefile.stanza import format_address
from dnsproxy.corefile.zones import ROOT
from dnsproxy.install.change.coverage import Coverage
from dnsproxy.install.change.drift import Drift
from dnsproxy.install.change.rewrite_coverage import RewriteCoverage
from dnsproxy.install.report.hint_rows import Hints
from dnsproxy.install.report.last_event import LastEvent
from dnsproxy.install.report.steering_rows import faults_of_steering
from dnsproxy.install.report.version_rows import Versions
from sidecar.values.exit_status import ExitStatus

_NOT_JUDGED: Final = "versions"
"""No verdict depends on this fact."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A fact that could not be read."""

    fact: str
    """Its key in the JSON document."""
    fault: Fault
    """Why, with the request that was refused."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All that `dnsproxy status` shows."""

    found: Found
    choice: Choice
    traces: tuple[Trace, ...]
    loaded: tuple[ProbeResult, ...]
    """The answers of the cluster's DNS for the installed zones, or for the root if there are none."""
    answers: tuple[ProbeResult, ...]
    """The answers of dnsproxy itself; empty if no address of it is known."""
    drift: Drift | None = None
    """How the stanza differs from that of an install now; None if it does not, or was not compared."""
    coverage: Coverage = field(default_factory=Coverage)
    """The live hostnames outside the zones of the stanza."""
    taken: TakenHosts = field(default_factory=TakenHosts)
    """The live hostnames that another line of the cluster's DNS answers before the stanza."""
    event: LastEvent | None = None
    """The last Event of an installer; None if there is none, or if it may not be read."""
    steering: SteeringDocument | None = None
    """What `dnsproxy operate` says; None if it does not run, or could not be asked."""
    steering_unknown: str = ""
    """Why `dnsproxy operate` could not be asked."""
    names: RewriteCoverage | None = None
    """For rewrite lines: the names of dnsproxy's table; None if there are no lines."""
    versions: Versions | None = None
    """What runs in the cluster; None if it was not asked."""
    hints: Hints = field(default_factory=Hints)
    """What is worth knowing about the names."""
    unread: tuple[Unread, ...] = ()
    """The facts beside those of discovery that could not be read."""

    @property
    def unknown(self) -> tuple[Unread, ...]:
        """Every fact that is neither yes nor no, because an object could not be read."""
        return (*(Unread(fact, fault) for fault in self._blocked for fact in self._hidden_by(fault)), *self.unread)

    @property
    def unread_faults(self) -> tuple[str, ...]:
        """Everything that the verdict rests on and that could not be read, each once."""
        counted = (one.fault for one in self.unread if one.fact != _NOT_JUDGED)
        return tuple(dict.fromkeys(map(str, [*self._blocked, *counted])))

    @property
    def _blocked(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.found.faults if fault.blame is Blame.ACCESS)

    def _hidden_by(self, fault: Fault) -> Iterator[str]:
        """The facts of discovery that are unknown with this fault."""
        kind, cache = fault.request.kind if fault.request else None, self.found.node_local
        hidden = {
            "service": self.found.service is None,
            "server": self.found.server is None,
            "node_local": kind in (SERVICE, DAEMON_SET)
            if cache is None
            else kind in (SERVICE, CONFIG_MAP) and not cache.passes_on,
            "choice": True,
            "installed": not self.traces,
            "drift": True,
            "coverage": not self.coverage.hosts,
        }
        yield from (fact for fact, is_so in hidden.items() if is_so)

    def why_unknown(self, fact: str) -> str:
        """Why a fact is unknown, as text; empty if it is known."""
        return "; ".join(dict.fromkeys(str(one.fault) for one in self.unknown if one.fact == fact))

    @property
    def rewrites(self) -> bool:
        """Whether the cluster's DNS has rewrite lines, and asks dnsproxy for nothing."""
        return bool(self.traces) and all(trace.method is Method.OVERRIDE_REWRITES for trace in self.traces)

    @property
    def upstreams(self) -> UpstreamCheck:
        """Whether dnsproxy forwards all other names where the cluster's DNS would; through it if not asked directly."""
        if self.rewrites:
            return UpstreamCheck(find_original(self.found))
        zones = dict.fromkeys(zone for trace in self.traces for zone in trace.zones) or (ROOT,)
        direct = any(one.ours for answer in self.answers for one in answer.outcomes)
        placed = (address for trace in self.traces for address in trace.addresses)
        answering = (answer.endpoint for answer in self.answers if any(one.ours for one in answer.outcomes))
        original = find_original(self.found, tuple(dict.fromkeys((*placed, *answering))))
        return check_upstreams(original, zones, self.answers if direct else self.loaded)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run."""

    status: int
    """The exit status: 0 installed and loaded, 1 not or not completely, 3 unknown."""
    text: str
    """One sentence without a full stop."""


def judge(report: StatusReport) -> Verdict:
    """The verdict: the worst that is known. A `no` was read, and stays one beside facts that could not be."""
    unread = "; ".join(report.unread_faults)
    if (damage := _damage(report)) is not None:
        return damage
    if any(fault.blame is Blame.ACCESS for fault in report.found.faults):
        return Verdict(ExitStatus.UNKNOWN, f"could not read everything: {unread}")
    verdict = _judge_read(report)
    if verdict.status == ExitStatus.DONE and unread:
        return Verdict(ExitStatus.UNKNOWN, f"{verdict.text}; but could not read everything: {unread}")
    return verdict


def _judge_read(report: StatusReport) -> Verdict:
    states = {asked.state for asked in report.loaded}
    late = "; ".join((*_why_late(report), *faults_of_steering(report.steering)))
    if Presence.YES in states and not states & {Presence.NO, Presence.PARTLY}:
        if late:
            return Verdict(ExitStatus.NO, f"installed and loaded, and out of date: {late}")
        if report.taken.hosts:
            taken = "; ".join(report.taken.sentences())
            return Verdict(ExitStatus.NO, f"installed and loaded, and not asked for every host: {taken}")
        return Verdict(ExitStatus.DONE, f"installed and loaded: the cluster's DNS {_effect(report)}")
    if not report.traces:
        return _judge_without_marks(report, states)
    if states & {Presence.NO, Presence.PARTLY} or not states:
        return Verdict(ExitStatus.NO, f"written, not loaded: {'; '.join([*_why_late(report), *_causes(report)])}")
    if late:
        return Verdict(ExitStatus.NO, f"written, and out of date: {late}")
    where = ", ".join(format_address(asked.endpoint) for asked in report.loaded)
    text = f"written; whether it is loaded is unknown, because {where} does not answer from here"
    return Verdict(ExitStatus.UNKNOWN, f"{text}: run this in a pod")


def _damage(report: StatusReport) -> Verdict | None:
    damaged = next((trace for trace in report.traces if trace.fault), None)
    if damaged is None:
        return None
    return Verdict(ExitStatus.NO, f"installed, and damaged: {damaged.target}: {damaged.fault}")


def _why_late(report: StatusReport) -> Iterator[str]:
    """How the stanza is not the one that an install would write now."""
    again = "print it for the owner again" if report.choice.method is Method.PRINT else "run `dnsproxy install` again"
    if report.drift is not None and report.drift.refusal:
        yield f"{report.drift.target}: an install would be refused now: {report.drift.refusal}"
    elif report.drift is not None:
        yield f"{report.drift.target} differs from what an install would write now; {again}"
    coverage = report.coverage
    if coverage.zones and not coverage.chosen:
        yield f"its zones do not contain {listed(coverage.hosts)}; {again}, which adds {listed(coverage.zones)}"


def _effect(report: StatusReport) -> str:
    """What the cluster's DNS does."""
    if report.rewrites:
        return f"rewrites {_names(report)}"
    by = "" if report.traces else ", by a configuration without Switchback's markers"
    differs = "; ".join(report.upstreams.differences)
    return f"asks dnsproxy{by}{f'; but {differs}' if differs else ''}"


def _names(report: StatusReport) -> str:
    lines = [trace.rewrites for trace in report.traces if trace.rewrites]
    standing = sum(len(hostnames_of(one.rewrites)) for one in lines)
    left_out = report.names.beyond if report.names else 0
    more = f"; {left_out} more are left out beyond {MOST} lines" if left_out else ""
    return f"{standing} names to their Services{more}"


def _judge_without_marks(report: StatusReport, states: set[Presence]) -> Verdict:
    text = f"not installed; {_offer(report.choice)}"
    if states == {Presence.SILENT} and report.choice.method in (Method.PRINT, Method.OVERRIDE_REWRITES):
        # A configuration that its owner renders from settings has lost the markers.
        reason = "nothing has Switchback's markers, and whether the owner was given a stanza is unknown from here"
        return Verdict(ExitStatus.UNKNOWN, f"{reason}: run this in a pod")
    return Verdict(ExitStatus.NO, text)


def _offer(choice: Choice) -> str:
    if choice.method is None:
        return f"no method fits: {choice.why}"
    form = f" ({choice.form.value})" if choice.form else ""
    return f"the method {choice.method.value}{form} fits"


def _causes(report: StatusReport) -> Iterator[str]:
    """Reasons why a written stanza may not be loaded, the likeliest first."""
    direct = set() if report.rewrites else {asked.state for asked in report.answers}
    if direct and direct <= {Presence.NO, Presence.SILENT}:
        asked = ", ".join(dict.fromkeys(format_address(one.endpoint) for one in report.answers))
        yield f"dnsproxy does not answer at {asked}, so the second upstream does"
    server = report.found.asked_by_pods
    corefile = server.corefile if server else None
    targets = {str(trace.target.source) for trace in report.traces}
    for hook in corefile.hooks if corefile else ():
        late = hook.scope is Scope.ROOT_PLUGINS and not hook.takes_forward and not report.rewrites
        if late and _stands_at(hook.path, report.traces):
            yield f"import {hook.pattern} stands after a forward that takes every query"
    if corefile is not None and not corefile.reloads:
        yield f"there is no reload plugin: restart {server}"
    if corefile is not None and not corefile.updates and str(corefile.source) in targets:
        yield f"{corefile.path} is mounted by subPath: restart {server}"
    if any(asked.state is Presence.PARTLY for asked in report.loaded):
        yield "some pods have loaded it and others not yet"
    yield "a ConfigMap takes up to two minutes to be loaded; CoreDNS never loads one with an error (see its log)"


def _stands_at(path: str, traces: Sequence[Trace]) -> bool:
    suffix = path.rpartition("*")[2]
    return any(trace.target.key.endswith(suffix) for trace in traces)
