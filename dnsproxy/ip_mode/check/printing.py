"""The result of --check as lines and as JSON values.

The law: the verdict comes first, then its evidence, then what to type. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any, Final

import msgspec

from dnsproxy.doctor.judge.header_mode import describe
from dnsproxy.doctor.judge.ip_mode_judgement import side_effects
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.check.checked import Checked, Cluster
from dnsproxy.ip_mode.check.trial_result import Trial
from dnsproxy.ip_mode.results import Effect
from sidecar.values.exit_status import ExitStatus

_SHOWN: Final = 5
"""Hostnames of one Service; --output json has all."""


def format_check(cluster: Cluster, every: Sequence[Checked], *, dialled: bool) -> Iterator[str]:
    """The lines; those of evidence begin with two spaces."""
    for one in every:
        yield f"Service {one.service.key}: {one.verdict}"
        yield from (f"  {line}" for line in _evidence(one, cluster))
    yield from _cluster(cluster)
    helped = [one for one in every if one.helps is not Answer.NO and not one.judgement.already]
    if helped:
        yield "Side effects:"
        yield from (f"  {text}" for text in side_effects(one.service for one in helped))
        if not dialled:
            yield "Nothing was dialled, because this is no pod of the cluster; to see whether pods reach it, in a pod:"
            yield "  dnsproxy ip-mode --check" + "".join(f" --service {quote(one.service.key)}" for one in helped)
        yield "Next:"
        yield from (f"  {line}" for line in _next(cluster, helped))


def _evidence(one: Checked, cluster: Cluster) -> Iterator[str]:
    if one.hostnames:
        more = " ..." if len(one.hostnames) > _SHOWN else ""
        yield f"hosts: {', '.join(one.hostnames[:_SHOWN])}{more}"
    yield from (f"status: {_entry(point.ip, point.hostname, point.ip_mode)}" for point in one.service.points)
    yield f"load balancer: {one.judgement.why}"
    yield from (f"in the way: {text}" for text in one.obstacles)
    yield from (f"open: {each.what}; {each.how}" for each in one.questions)
    if one.writers:
        named = ", ".join(f"{each.manager} ({each.operation}, last at {each.time})" for each in one.writers)
        yield f"written by: {named}"
    if one.count is not None:
        yield f"writes of the status in {one.count.seconds:g} s: {one.count.writes}"
    yield from (f"from here: {way.why}" for way in one.ways)
    if one.trial is not None:
        yield from (f"before the trial: {text}" for text in describe(one.trial.before))
        yield f"trial: {one.trial.why}"
        yield f"after the trial: {_left(one.trial)}"
    if cluster.has_policy:
        yield f"policy: {_policy(one)}"


def _left(trial: Trial) -> str:
    return f"the status could not be restored; do it with: {trial.left}" if trial.left else "the status is as it was"


def _entry(ip: str, hostname: str, mode: str) -> str:
    named = " and ".join(part for part in (ip, hostname) if part) or "an empty entry"
    return f"{named}, ipMode {mode or 'absent, which means VIP'}" if ip else named


def _policy(one: Checked) -> str:
    if not one.selected:
        return "it is in the cluster, and this Service is not selected"
    said = {Effect.YES: "in effect", Effect.NO: "not in effect"}.get(
        one.proof.effect, "whether it is in effect is unknown"
    )
    return f"{said}: {one.proof.text}" if one.proof.text else said


def _cluster(cluster: Cluster) -> Iterator[str]:
    yield f"Data plane: {cluster.plane} ({cluster.plane_why})"
    yield f"Policy API: {cluster.api_version or cluster.why_no_policy}"
    yield from (f"Not read: {what}" for what in cluster.unread)


def _next(cluster: Cluster, helped: Sequence[Checked]) -> Iterator[str]:
    mode = "--apply" if cluster.api_version else "--watch"
    for one in helped:
        word = "" if one.helps is Answer.YES else " --balancer-ends-connections   # if you know that"
        rewrite = " --rewrite" if cluster.api_version else ""
        yield f"dnsproxy ip-mode {mode} --service {quote(one.service.key)}{rewrite}{word}"


def format_document(cluster: Cluster, every: Sequence[Checked], *, status: ExitStatus, dialled: bool) -> dict[str, Any]:
    """JSON values: a promise to programs, in docs/pages/ip-mode.md. `status` is that of the run."""
    return {
        "status": int(status),
        "mode": "check",
        "data_plane": {"name": cluster.plane, "why": cluster.plane_why},
        "server_version": cluster.server_version,
        "api_version": cluster.api_version or None,
        "why_no_policy": cluster.why_no_policy,
        "policy_exists": cluster.has_policy,
        "dialled": dialled,
        "side_effects": list(side_effects(one.service for one in every)),
        "unread": list(cluster.unread),
        "services": [_service(one) for one in every],
    }


def _service(one: Checked) -> dict[str, Any]:
    return {
        "service": one.service.key,
        "helps": one.helps.value,
        "verdict": one.verdict,
        "harms": one.judgement.harms.value,
        "why_harms": one.judgement.why,
        "provider": one.provider,
        "hosts": list(one.hostnames),
        "entries": list(msgspec.to_builtins(one.service.points)),
        "obstacles": list(one.obstacles),
        "open": [{"what": each.what, "how": each.how} for each in one.questions],
        "writers": [{"manager": each.manager, "operation": each.operation, "time": each.time} for each in one.writers],
        "writes": None if one.count is None else {"seconds": one.count.seconds, "count": one.count.writes},
        "ways_out": [{"answer": way.answer.value, "why": way.why} for way in one.ways],
        "trial": None if one.trial is None else _trial(one.trial),
        "selected": one.selected,
        "in_effect": {"state": one.proof.effect.value, "why": one.proof.text},
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "answer": trial.answer.value,
        "seconds": round(trial.seconds, 1),
        "before": list(describe(trial.before)),
        "after": list(describe(trial.after)),
        "failure": trial.failure,
        "restored": not trial.left,
        "restore_with": trial.left,
    }
