"""The status report as a table for users; status_document.py has the JSON document for programs.

The law: both show the same report. A row names its subject, its state in one word, and details; no meaning is in a
colour alone. Text from the cluster is escaped. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Hook, Server, StubDomains
from dnsproxy.cluster_dns.image import Program, format_version
from dnsproxy.cluster_dns.original_upstreams import UpstreamCheck
from dnsproxy.cluster_dns.pod_files import NOT_READ
from dnsproxy.cluster_dns.probe_results import Presence, ProbeResult
from dnsproxy.cluster_dns.requests import Blame
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.model import Scope
from dnsproxy.corefile.rewrite_lines import hostnames_of
from dnsproxy.corefile.stanza import format_address
from dnsproxy.install.report.comparison import (
    Row,
    rows_of_coverage,
    rows_of_drift,
    rows_of_names,
)
from dnsproxy.install.report.hint_rows import rows_of_hints
from dnsproxy.install.report.steering_rows import rows_of_steering
from dnsproxy.install.report.verdict import StatusReport
from dnsproxy.install.report.version_rows import rows_of_versions
from sidecar.values.text import one_line

_MOST_FAULTS: Final = 20
_SCOPES: Final = {
    Scope.BLOCKS: "between the server blocks",
    Scope.ROOT_PLUGINS: "in the server block of .",
    Scope.OTHER: "in the server block of another zone",
}


_STATES: Final = {Presence.YES: "ok", Presence.PARTLY: "part", Presence.NO: "no", Presence.SILENT: "?"}


def format_rows(report: StatusReport) -> list[Row]:
    """The table, with escaped text."""
    rows = [*_found(report), *_chosen(report), *_installed(report), *_events(report)]
    rows += rows_of_steering(report.steering, report.steering_unknown)
    rows += rows_of_hints(report.hints)
    rows += [*rows_of_versions(report.versions), *_faults(report.found)]
    return [Row(row.what, row.state, one_line(row.detail)) for row in rows]


def _unknown(what: str, report: StatusReport, fact: str) -> Iterator[Row]:
    """Nothing for a fact that is known."""
    why = report.why_unknown(fact)
    if why:
        yield Row(what, "?", f"unknown: {why}")


def _or_no(what: str, report: StatusReport, fact: str, no: str) -> Row:
    """The row of a fact that is not there: `no` only if everything was read."""
    return next(_unknown(what, report, fact), Row(what, "no", no))


def _found(report: StatusReport) -> Iterator[Row]:
    found = report.found
    if found.service is None:
        no = f"no {found.where.service} in namespace {found.where.namespace}"
        yield _or_no("service", report, "service", no)
    else:
        addresses = ", ".join(found.service.addresses)
        yield Row("service", "ok", f"{found.service.namespace}/{found.service.name} at {addresses}")
    if found.server is None:
        yield _or_no("server", report, "server", "not found")
    else:
        yield from _rows_of_server("server", found.server)
    if found.node_local is not None:
        yield from _rows_of_server("node-local", found.node_local.server)
        at = ", ".join(found.node_local.addresses) or "an unknown address"
        verb = "it forwards" if found.node_local.passes_on else "it does not forward"
        if report.why_unknown("node_local"):
            verb = "it is unknown whether it forwards"
        yield Row("", "", f"pods ask it at {at}; {verb} public names to the cluster's DNS")
    else:
        yield from _unknown("node-local", report, "node_local")


def _rows_of_server(what: str, server: Server) -> Iterator[Row]:
    state = "ok" if server.ready >= server.wanted else "part" if server.ready else "no"
    version = f" {format_version(server.version)}" if server.program is Program.COREDNS else ""
    pods = f"{server.ready} of {server.wanted} pods ready"
    yield Row(what, state, f"{server}: {server.program.value}{version}, {pods}, image {server.image}")
    if server.corefile is not None:
        yield from _rows_of_corefile(server.corefile)
    if server.stub_domains is not None:
        yield from _rows_of_stubs(server.stub_domains)


def _rows_of_corefile(corefile: FoundCorefile) -> Iterator[Row]:
    state = "ok" if corefile.value else "no"
    where = f"{corefile.key} in ConfigMap {corefile.source}"
    yield Row("  Corefile", state, f"{where}, {len(corefile.text)} characters, read as {corefile.path}")
    owner = corefile.owner
    by = f" ({owner.evidence})" if owner.evidence else ""
    yield Row("  owner", "", f"{owner.name}{by}: {owner.remark}")
    for hook in corefile.hooks:
        state = "?" if hook.trouble.endswith(NOT_READ) else "no" if _is_useless(hook) else "ok"
        yield Row("  import", state, _hook(hook))
    for file in corefile.files:
        yield Row("  imported", "", f"{file.key} in ConfigMap {file.source}, as {file.path}")


def _rows_of_stubs(stub: StubDomains) -> Iterator[Row]:
    there = "" if stub.source.exists else ", which does not exist yet"
    zones = f"{len(stub.zones)} stub domains" if len(stub.zones) != 1 else "1 stub domain"
    yield Row("  stubDomains", "ok" if stub.readable else "no", f"{zones} in ConfigMap {stub.source}{there}")


def _is_useless(hook: Hook) -> bool:
    return bool(hook.trouble) or not hook.takes_forward


def _hook(hook: Hook) -> str:
    place = f"{hook.pattern} (line {hook.line}, {_SCOPES[hook.scope]})"
    if hook.trouble:
        return f"{place}: {hook.trouble}"
    there = "" if hook.source is None or hook.source.exists else ", which does not exist yet"
    late = "" if hook.takes_forward else "; a forward in it is never asked, because one before it takes every query"
    return f"{place}: ConfigMap {hook.source}{there}{late}"


def _chosen(report: StatusReport) -> Iterator[Row]:
    if report.why_unknown("choice"):
        yield from _unknown("method", report, "choice")
        return
    choice = report.choice
    form = f" of {choice.form.value}" if choice.form else ""
    yield Row("method", "ok" if choice.method else "no", f"{choice.method.value if choice.method else 'none'}{form}")
    # Faults have rows of their own.
    if choice.method is not None or not report.found.faults:
        yield Row("", "", choice.why)
    if choice.target is not None:
        yield Row("", "", f"writes {choice.target}")
    for text in choice.what_else:
        yield Row("", "", text)


def _installed(report: StatusReport) -> Iterator[Row]:
    for trace in report.traces:
        yield Row("installed", "no" if trace.fault else "ok", _trace(trace))
    if not report.traces:
        yield _or_no("installed", report, "installed", "nothing has Switchback's markers")
    yield from rows_of_drift(report.drift)
    if report.traces and report.drift is None:
        yield from _unknown("up to date", report, "drift")
    if report.coverage.unread is None:
        yield from rows_of_coverage(report.coverage)
    yield from _unknown("zones", report, "coverage")
    yield from (Row("hosts", "no", f"{text} before the stanza is asked") for text in report.taken.sentences())
    yield from _unknown("hosts", report, "taken")
    yield from rows_of_names(report.names)
    yield from _asks("loaded", report.loaded, "no address of the cluster's DNS is known")
    why = report.why_unknown("dnsproxy")
    yield from _asks("dnsproxy", report.answers, f"unknown: {why}" if why else "no address of it is known")
    yield from _upstreams(report.upstreams)


def _trace(trace: Trace) -> str:
    if trace.fault:
        return f"{trace.method.value}: {trace.target}: {trace.fault}"
    if trace.rewrites is not None:
        return f"{trace.method.value}: {trace.target}, {len(hostnames_of(trace.rewrites.rewrites))} names"
    addresses = ", ".join(map(format_address, trace.addresses))
    return f"{trace.method.value}: {trace.target}, for {', '.join(trace.zones)}, asks {addresses}"


def _asks(what: str, asks: Sequence[ProbeResult], nothing: str) -> Iterator[Row]:
    for asked in asks:
        where = f"{format_address(asked.endpoint)} for {asked.zone}"
        yield Row(what, _STATES[asked.state], f"{where}: {asked.said}")
    if not asks:
        yield Row(what, "?", f"not asked: {nothing}")


def _upstreams(check: UpstreamCheck) -> Iterator[Row]:
    """Where all other names go. If no dnsproxy answers, the row before says it."""
    for text in check.differences:
        yield Row("upstreams", "no", text)
    if check.differences and check.original.source:
        yield Row("", "", check.original.remedy)
    if check.unknown and check.asked:
        yield Row("upstreams", "?", f"whether dnsproxy forwards where the cluster's DNS would: {check.unknown}")
    elif check.asked and not check.differences:
        yield Row("upstreams", "ok", f"dnsproxy forwards where ConfigMap {check.original.source} does")


def _events(report: StatusReport) -> Iterator[Row]:
    if report.event is not None:
        state = "no" if report.event.warns else "ok"
        yield Row("installer", state, f"{report.event.time}: {report.event.reason}: {report.event.note}")
    yield from _unknown("installer", report, "event")


def _faults(found: Found) -> Iterator[Row]:
    for fault in found.faults[:_MOST_FAULTS]:
        yield Row("fault", "?" if fault.blame is Blame.ACCESS else "no", str(fault))
    if len(found.faults) > _MOST_FAULTS:
        yield Row("fault", "no", f"and {len(found.faults) - _MOST_FAULTS} more")
