"""The verdicts, lines and JSON of --apply and --remove; showing.py is tested here too."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dnsproxy.ip_mode.changes import Refusal
from dnsproxy.ip_mode.outcome import Report, format_document, format_statuses, judge
from dnsproxy.ip_mode.planning import make_apply, make_remove
from dnsproxy.ip_mode.results import Effect, Proof, Rewrite
from dnsproxy.ip_mode.selection import PROXY
from dnsproxy.ip_mode.showing import announce, finish
from dnsproxy.ip_mode.status_writes import VIP
from tests.dnsproxy.ip_mode.shapes import WEB, present, request, service, stored

ASKED = request(services=(WEB,), ends_connections=True)
APPLY = make_apply(present(named=(service(),)), ASKED)
DONE = make_apply(present(stored(), named=(service(annotation="Proxy"),)), ASKED)
PROXIED = service(annotation="Proxy", ingress=[{"ip": "192.0.2.1", "ipMode": PROXY}])
REMOVE = make_remove(present(stored(), named=(PROXIED,)), ASKED)
GONE = make_remove(present(named=(service(),)), ASKED)
EVIL = Refusal("Service shop/web", "is\x1b[2J\nnot ours")

REWRITTEN = Rewrite(WEB, (VIP, VIP), (PROXY, PROXY))
FAILED = Rewrite(WEB, (VIP,), (VIP,), failure="403: no")
DELETED = Rewrite(WEB, (VIP,), (VIP,), gone=True)
SAME = Rewrite(WEB, (PROXY,), (PROXY,))


def report(plan: Any = APPLY, **changes: Any) -> Report:
    return Report(plan, **changes)


@pytest.mark.parametrize(
    ("found", "status", "text"),
    [
        pytest.param(
            report(made=APPLY.changes, proof=Proof(Effect.YES, WEB, "so")), 0, "written, and in effect", id="yes"
        ),
        pytest.param(report(DONE, proof=Proof(Effect.YES, WEB, "so")), 0, "unchanged, and in effect", id="unchanged"),
        pytest.param(report(proof=Proof(Effect.NO, WEB, "so")), 1, "not in effect: so", id="no"),
        pytest.param(report(proof=Proof(Effect.UNKNOWN, WEB, "so")), 3, "is unknown: so", id="unknown"),
        pytest.param(
            report(made=APPLY.changes, proof=Proof(Effect.UNKNOWN, WEB, "so", refused=True), undone=True),
            1,
            "taken out again: so",
            id="denied",
        ),
        pytest.param(report(made=APPLY.changes), 0, "shows only at a selected Service", id="nothing to prove it with"),
        pytest.param(report(dry_run=True), 0, "nothing was written", id="a dry run"),
        pytest.param(report(missing=APPLY.grants, blocked=True), 3, "rights are missing", id="no rights"),
        pytest.param(report(missing=APPLY.grants[:1], blocked=True), 3, "one right is missing", id="one right"),
        pytest.param(
            report(missing=APPLY.grants, dry_run=True), 0, "nothing was written", id="no rights for a dry run"
        ),
        pytest.param(
            report(proof=Proof(Effect.YES, WEB, "so"), rewrites=(REWRITTEN, FAILED)),
            1,
            "1 of 2 statuses",
            id="one failed",
        ),
        pytest.param(report(proof=Proof(Effect.YES, WEB, "so"), rewrites=(DELETED,)), 0, "in effect", id="deleted"),
        pytest.param(report(REMOVE, made=REMOVE.changes), 0, "removed", id="removed"),
        pytest.param(report(GONE), 0, "there is nothing to remove", id="nothing there"),
        pytest.param(report(REMOVE, made=REMOVE.changes, rewrites=(FAILED,)), 1, "1 of 1 statuses", id="still Proxy"),
    ],
)
def test_the_verdict_follows_from_what_was_asked_last(found: Report, status: int, text: str) -> None:
    verdict = judge(found)
    assert (verdict.status, text in verdict.text) == (status, True), verdict


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        pytest.param(report(rewrites=(REWRITTEN,), rewrote=True), ["Service shop/web: VIP -> Proxy"], id="rewritten"),
        pytest.param(
            report(rewrites=(SAME,), rewrote=True), ["Service shop/web: unchanged, it is Proxy"], id="unchanged"
        ),
        pytest.param(
            report(rewrites=(FAILED,), rewrote=True), ["Service shop/web: failed, it is VIP: 403: no"], id="failed"
        ),
        pytest.param(
            report(rewrites=(DELETED,), rewrote=True), ["Service shop/web: was deleted meanwhile"], id="deleted"
        ),
        pytest.param(
            report(),
            [
                "Service shop/web stays VIP until its provider writes the status again, or --rewrite does, or:",
                "  kubectl -n shop patch service web --subresource=status --type=merge -p '{}'",
            ],
            id="not asked to",
        ),
        pytest.param(report(GONE), [], id="as wanted"),
    ],
)
def test_each_status_is_one_line_or_the_command_that_writes_it(found: Report, lines: list[str]) -> None:
    assert list(format_statuses(found)) == lines


KEYS = [
    "status",
    "verdict",
    "mode",
    "api_version",
    "dry_run",
    "wrote",
    "changes",
    "notes",
    "refusals",
    "in_effect",
    "services",
    "rbac",
    "rbac_missing",
]


@pytest.mark.parametrize("plan", [APPLY, DONE, REMOVE, GONE], ids=["apply", "applied", "remove", "removed"])
def test_the_document_always_has_the_same_keys(plan: Any) -> None:
    found = report(plan)
    document = json.loads(json.dumps(format_document(found, judge(found))))
    assert list(document) == KEYS
    assert set(document["in_effect"]) == {"state", "service", "why"}
    keys = {key for one in document["services"] for key in one}
    assert keys == {"service", "before", "after", "result", "failure", "rewrite"}


def test_only_a_pending_status_has_a_command_that_writes_it() -> None:
    found = report(APPLY, rewrites=(REWRITTEN,), rewrote=True)
    (done,) = format_document(found, judge(found))["services"]
    (pending,) = format_document(report(REMOVE), judge(report(REMOVE)))["services"]
    assert (done["result"], done["rewrite"]) == ("rewritten", "")
    assert pending["result"] == "pending"
    assert '"value": "VIP"' in pending["rewrite"]


def test_text_of_the_cluster_neither_controls_the_terminal_nor_forges_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = report(replace(APPLY, refusals=(EVIL,), notes=("a\x1b[2J\nb",), changes=()))
    announce(found, ASKED)
    assert finish(found, ASKED) == 1
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert len(said.err.splitlines()) == 2


def test_json_is_the_only_thing_on_stdout_and_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = request(services=(WEB,), as_json=True)
    found = report(missing=APPLY.grants, blocked=True)
    announce(found, quiet)
    assert finish(found, quiet) == 3
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out)["rbac_missing"]


def test_a_blocked_run_prints_the_missing_rights_alone_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(missing=APPLY.grants[:1], blocked=True)
    announce(found, ASKED)
    assert finish(found, ASKED) == 3
    said = capsys.readouterr()
    assert said.out.startswith("---\napiVersion: rbac.authorization.k8s.io/v1\n")
    assert "creates" not in said.out + said.err
