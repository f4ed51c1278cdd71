"""The outcome of --apply and of --remove, for people and for programs.

The law: written, in effect and rewritten are three results; the verdict follows from what was asked last. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dnsproxy.install.report.rights import Grant, make_roles
from dnsproxy.install.report.verdict import Verdict
from dnsproxy.ip_mode.changes import Change
from dnsproxy.ip_mode.planning import Plan
from dnsproxy.ip_mode.present import modes_of, ref_of
from dnsproxy.ip_mode.results import Effect, Proof, Rewrite
from dnsproxy.ip_mode.rights import ROLE_NAME
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.status_writes import VIP, format_kubectl
from sidecar.kubernetes.structs.network import Service
from sidecar.values.exit_status import ExitStatus

_UNASKED: Final = Proof(Effect.UNASKED)


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown of a run."""

    plan: Plan
    missing: tuple[Grant, ...] = ()
    """The rights that the account lacks."""
    blocked: bool = False
    """Whether the run ends because of them."""
    dry_run: bool = False
    made: tuple[Change, ...] = ()
    """The changes that were written."""
    proof: Proof = _UNASKED
    undone: bool = False
    """Whether they were taken out again, because of what the proof says."""
    rewrites: tuple[Rewrite, ...] = ()
    rewrote: bool = False
    """Whether statuses were to be written anew."""
    changed: str = ""
    """What another program has changed by the last look, for people."""
    unseen: str = ""
    """Why the last look saw nothing."""


def judge(report: Report) -> Verdict:
    """The exit status, and the last line."""
    plan = report.plan
    if plan.refusals:
        return Verdict(ExitStatus.NO, "nothing was written: refused")
    if report.undone:
        return Verdict(ExitStatus.NO, f"taken out again: {report.proof.text}")
    if report.blocked:
        return Verdict(ExitStatus.UNKNOWN, f"nothing was written: {_lacking(report)}")
    if report.dry_run:
        return Verdict(ExitStatus.DONE, "nothing was written: these are the changes that would be made")
    failed = sum(rewrite.result == "failed" for rewrite in report.rewrites)
    if failed:
        return Verdict(ExitStatus.NO, f"{_done(report)}; {failed} of {len(report.rewrites)} statuses are not rewritten")
    if report.changed:
        text = f"{_done(report)}, and changed again by another program ({report.changed}): end it and run this again"
        return Verdict(ExitStatus.NO, text)
    if report.unseen:
        return Verdict(ExitStatus.UNKNOWN, f"{_done(report)}; whether it stays so is unknown: {report.unseen}")
    return _judge_remove(report) if plan.mode == "remove" else _judge_apply(report)


def format_lines(report: Report) -> Iterator[str]:
    """The changes that the run is about to make."""
    for change in report.plan.changes:
        yield str(change)


def format_statuses(report: Report) -> Iterator[str]:
    """What the statuses are, and what happens to them."""
    for rewrite in report.rewrites:
        yield f"Service {rewrite.service}: {_rewritten(rewrite)}"
    if not report.rewrote:
        wanted = wanted_mode(report.plan.mode)
        for service in report.plan.services:
            if set(modes_of(service)) != {wanted}:
                yield from _pending(service, wanted)


def format_document(report: Report, verdict: Verdict) -> dict[str, Any]:
    """The run as JSON values: a promise to programs, in docs/pages/ip-mode.md."""
    plan, proof = report.plan, report.proof
    return {
        "status": verdict.status,
        "verdict": verdict.text,
        "mode": plan.mode,
        "api_version": plan.version or None,
        "dry_run": report.dry_run,
        "wrote": bool(report.made) and not report.undone,
        "changes": [_change(change) for change in (plan.changes if report.dry_run else report.made)],
        "notes": list(plan.notes),
        "refusals": [{"object": refusal.name, "why": refusal.why} for refusal in plan.refusals],
        "in_effect": {
            "state": proof.effect.value,
            "service": str(proof.service) if proof.service else None,
            "why": proof.text,
        },
        "services": list(_services(report)),
        "rbac": make_roles(plan.grants, ROLE_NAME),
        "rbac_missing": make_roles(report.missing, ROLE_NAME),
    }


def wanted_mode(mode: str) -> str:
    """The ipMode that statuses get after --apply or --remove."""
    return PROXY if mode == "apply" else VIP


def _judge_apply(report: Report) -> Verdict:
    done, proof = _done(report), report.proof
    match proof.effect:
        case Effect.YES:
            return Verdict(ExitStatus.DONE, f"{done}, and in effect: {proof.text}")
        case Effect.NO:
            return Verdict(ExitStatus.NO, f"{done}, and not in effect: {proof.text}")
        case Effect.UNKNOWN:
            return Verdict(ExitStatus.UNKNOWN, f"{done}; whether it is in effect is unknown: {proof.text}")
    return Verdict(ExitStatus.DONE, f"{done}; whether it is in effect shows only at a selected Service with an address")


def _judge_remove(report: Report) -> Verdict:
    if not report.made and not any(rewrite.result == "rewritten" for rewrite in report.rewrites):
        return Verdict(ExitStatus.DONE, "there is nothing to remove")
    return Verdict(ExitStatus.DONE, _done(report))


def _done(report: Report) -> str:
    if report.plan.mode == "remove":
        return "removed" if report.made else "nothing was left to remove"
    return "written" if report.made else "unchanged"


def _lacking(report: Report) -> str:
    count = len(report.missing)
    return "one right is missing" if count == 1 else f"{count} rights are missing"


def _rewritten(rewrite: Rewrite) -> str:
    match rewrite.result:
        case "rewritten":
            return f"{_modes(rewrite.before)} -> {_modes(rewrite.after)}"
        case "failed":
            return f"failed, it is {_modes(rewrite.after)}: {rewrite.failure}"
        case "deleted":
            return "was deleted meanwhile"
    return f"unchanged, it is {_modes(rewrite.after)}"


def _pending(service: Service, wanted: str) -> Iterator[str]:
    now = _modes(modes_of(service))
    yield f"Service {ref_of(service)} stays {now} until its provider writes the status again, or --rewrite does, or:"
    yield f"  {format_kubectl(ref_of(service), service, wanted)}"


def _services(report: Report) -> Iterator[dict[str, Any]]:
    outcomes = {rewrite.service: rewrite for rewrite in report.rewrites}
    wanted = wanted_mode(report.plan.mode)
    for service in report.plan.services:
        ref, now = ref_of(service), modes_of(service)
        found = outcomes.get(ref)
        pending = found is None and set(now) != {wanted}
        yield {
            "service": str(ref),
            "before": list(found.before if found else now),
            "after": list(found.after if found else now),
            "result": found.result if found else ("pending" if pending else "unchanged"),
            "failure": found.failure if found else "",
            "rewrite": format_kubectl(ref, service, wanted) if pending else "",
        }


def _change(change: Change) -> dict[str, str]:
    return {"kind": change.kind, "name": change.name, "verb": change.verb, "diff": change.diff}


def _modes(modes: tuple[str, ...]) -> str:
    return ", ".join(dict.fromkeys(modes)) or "without an address"
