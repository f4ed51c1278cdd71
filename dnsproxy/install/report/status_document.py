"""The status report as a JSON document for programs.

The law: it has all that the table of status_report.py shows; names and texts are as they are in the cluster. Pure.
Tested in test_status_report.py.
"""

from __future__ import annotations

from typing import Any

from dnsproxy.cluster_dns.found import Found, FoundCorefile, Server
from dnsproxy.cluster_dns.image import format_version
from dnsproxy.cluster_dns.original_upstreams import UpstreamCheck
from dnsproxy.cluster_dns.probe_results import ProbeResult
from dnsproxy.cluster_dns.traces import Trace
from dnsproxy.corefile.rewrite_lines import hostnames_of
from dnsproxy.install.report.comparison import format_coverage, format_drift, format_names, format_target
from dnsproxy.install.report.hint_rows import format_hints
from dnsproxy.install.report.steering_rows import format_steering_values
from dnsproxy.install.report.verdict import StatusReport, Unread, Verdict
from dnsproxy.install.report.version_rows import format_versions


def format_document(report: StatusReport, verdict: Verdict) -> dict[str, Any]:
    """The report as JSON values."""
    found = report.found
    return {
        "status": verdict.status,
        "verdict": verdict.text,
        "service": _service(found),
        "server": _server(found.server),
        "node_local": _node_local(report),
        "choice": _choice(report),
        "installed": list(map(_trace, report.traces)),
        "drift": format_drift(report.drift),
        "coverage": format_coverage(report.coverage),
        "taken": [{"hostname": host, "by": what} for host, what in report.taken.hosts],
        "names": format_names(report.names),
        "loaded": list(map(format_asked, report.loaded)),
        "dnsproxy": list(map(format_asked, report.answers)),
        "upstreams": _upstreams(report.upstreams),
        "event": _event(report),
        "steering": format_steering_values(report.steering, report.steering_unknown),
        "hints": format_hints(report.hints),
        "versions": format_versions(report.versions),
        "unknown": list(map(_unread, report.unknown)),
        "faults": [{"blame": fault.blame.value, "text": fault.text, "remedy": fault.remedy} for fault in found.faults],
        "read": list(map(str, found.asked)),
    }


def _unread(one: Unread) -> dict[str, Any]:
    request = one.fault.request
    right = None
    # Only a refusal has a remedy: an answer that is unreadable is no missing right.
    if request is not None and one.fault.remedy:
        right = {
            "verb": request.verb,
            "resource": request.kind.resource,
            "name": request.name,
            "namespace": request.namespace or None,
        }
    return {"fact": one.fact, "why": str(one.fault), "right": right}


def _service(found: Found) -> dict[str, Any] | None:
    service = found.service
    if service is None:
        return None
    return {"name": f"{service.namespace}/{service.name}", "addresses": list(service.addresses)}


def _node_local(report: StatusReport) -> dict[str, Any] | None:
    cache = report.found.node_local
    if cache is None:
        return None
    return {
        **(_server(cache.server) or {}),
        "addresses": list(cache.addresses),
        "passes_on": None if report.why_unknown("node_local") else cache.passes_on,
    }


def _choice(report: StatusReport) -> dict[str, Any]:
    choice = report.choice
    return {
        "method": choice.method.value if choice.method else None,
        "why": choice.why,
        "what_else": list(choice.what_else),
        "target": format_target(choice.target),
        "form": choice.form.value if choice.form else None,
        "needs_zones": choice.needs_zones,
    }


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "method": trace.method.value,
        "target": format_target(trace.target),
        "zones": list(trace.zones),
        "addresses": list(map(str, trace.addresses)),
        "fault": trace.fault,
        "names": list(hostnames_of(trace.rewrites.rewrites)) if trace.rewrites else [],
    }


def _upstreams(check: UpstreamCheck) -> dict[str, Any]:
    return {
        "config_map": check.original.source,
        "before": list(map(str, check.original.routes)),
        "differences": list(check.differences),
        "unknown": check.unknown,
    }


def _event(report: StatusReport) -> dict[str, Any] | None:
    event = report.event
    if event is None:
        return None
    return {"time": event.time, "reason": event.reason, "note": event.note, "warns": event.warns}


def _server(server: Server | None) -> dict[str, Any] | None:
    if server is None:
        return None
    corefile, stub = server.corefile, server.stub_domains
    return {
        "workload": str(server),
        "container": server.container,
        "image": server.image,
        "program": server.program.value,
        "version": None if server.version is None else format_version(server.version),
        "ready": server.ready,
        "wanted": server.wanted,
        "corefile": None if corefile is None else _corefile(corefile),
        "stub_domains": None
        if stub is None
        else {
            "config_map": str(stub.source),
            "exists": stub.source.exists,
            "zones": {zone: list(servers) for zone, servers in stub.zones.items()},
            "upstreams": list(stub.upstreams),
            "readable": stub.readable,
        },
    }


def _corefile(corefile: FoundCorefile) -> dict[str, Any]:
    owner = corefile.owner
    return {
        "config_map": str(corefile.source),
        "key": corefile.key,
        "path": corefile.path,
        "immutable": corefile.source.immutable,
        "reloads": corefile.reloads,
        "updates": corefile.updates,
        "owner": {
            "name": owner.name,
            "habit": owner.habit.value,
            "remark": owner.remark,
            "evidence": owner.evidence,
        },
        "imports": [
            {
                "pattern": hook.pattern,
                "line": hook.line,
                "scope": hook.scope.value,
                "path": hook.path,
                "takes_forward": hook.takes_forward,
                "config_map": str(hook.source) if hook.source else None,
                "exists": hook.source.exists if hook.source else False,
                "trouble": hook.trouble,
            }
            for hook in corefile.hooks
        ],
        "files": [
            {"path": file.path, "config_map": str(file.source), "key": file.key, "scope": file.scope.value}
            for file in corefile.files
        ],
    }


def format_asked(asked: ProbeResult) -> dict[str, Any]:
    """The answers of one server as JSON values."""
    return {
        "endpoint": str(asked.endpoint),
        "zone": asked.zone,
        "state": asked.state.value,
        "ours": sum(outcome.ours for outcome in asked.outcomes),
        "asks": len(asked.outcomes),
        "said": asked.said,
    }
