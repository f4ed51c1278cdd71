"""The page on ip-mode has each key of the JSON documents with its type, and no other key; tests/peers has real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from dnsproxy.doctor.collect.dial_targets import MOST_PORTS
from dnsproxy.doctor.facts.probes import Header, Outcome, Probe
from dnsproxy.doctor.judge.ip_mode_judgement import IpModeJudgement, Open
from dnsproxy.doctor.judge.short_circuit import Answer
from dnsproxy.ip_mode.changes import Refusal
from dnsproxy.ip_mode.check.checked import Checked, Cluster, Count
from dnsproxy.ip_mode.check.printing import format_document as format_check
from dnsproxy.ip_mode.check.trial import LASTS, RESTORES
from dnsproxy.ip_mode.check.trial_result import Trial
from dnsproxy.ip_mode.check.unlisted_port import WayOut
from dnsproxy.ip_mode.outcome import Report, format_document, judge
from dnsproxy.ip_mode.planning import make_apply, make_remove
from dnsproxy.ip_mode.results import Effect, Proof, Rewrite
from dnsproxy.ip_mode.status_writers import StatusWriter
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import HOST, HOSTNAME, IP, service
from tests.dnsproxy.ip_mode.shapes import WEB, present, request, stored
from tests.dnsproxy.ip_mode.shapes import service as stored_service
from tests.kit.ip_mode_documents import PAGE, compare, table

CHECK: Final = "--check"
WRITE: Final = "--apply and --remove"
SAFE: Final = IpModeJudgement(Answer.NO, "it sends the header")
CLUSTER: Final = Cluster("kube-proxy 1.36.3", "DaemonSet kube-system/kube-proxy", "v1.36.3", "v1")
PROBE: Final = Probe("203.0.113.10", 80, HOST, False, Header.PLAIN, Outcome.ANSWERED)
TRIAL: Final = Trial((PROBE,), (PROBE,), 2.04)


def checked(judgement: IpModeJudgement = SAFE, **changes: Any) -> Checked:
    return replace(Checked(service(points=(*IP, *HOSTNAME)), (HOST,), "Hetzner", judgement), **changes)


CHECKS: Final = [
    format_check(CLUSTER, [checked()], status=ExitStatus.DONE, dialled=False),
    format_check(
        replace(CLUSTER, api_version="", why_no_policy="upgrade", unread=("list nodes: 403",)),
        [
            checked(
                replace(SAFE, open=(Open("whether", "look"),)),
                writers=(StatusWriter("hcloud-ccm", "Update", "2026-01-01T00:00:00Z"),),
                count=Count(60.0, 2),
                ways=(WayOut(Answer.YES, "203.0.113.10:64999: refused"),),
            ),
            checked(replace(SAFE, obstacles=("an old kube-proxy",)), trial=TRIAL),
            checked(selected=True, proof=Proof(Effect.YES, WEB, "it becomes Proxy"), trial=replace(TRIAL, left="x")),
        ],
        status=ExitStatus.UNKNOWN,
        dialled=True,
    ),
    format_check(CLUSTER, [], status=ExitStatus.UNKNOWN, dialled=True),
]
ASKED: Final = request(services=(WEB,), ends_connections=True)
APPLY: Final = make_apply(present(named=(stored_service(),)), ASKED)
REMOVE: Final = make_remove(present(stored(), named=(stored_service(annotation="Proxy"),)), ASKED)
REPORTS: Final = [
    Report(APPLY, dry_run=True),
    Report(APPLY, APPLY.grants, blocked=True),
    Report(
        APPLY,
        made=APPLY.changes,
        proof=Proof(Effect.YES, WEB, "so"),
        rewrites=(Rewrite(WEB, ("VIP",), ("Proxy",)),),
        rewrote=True,
    ),
    Report(replace(APPLY, version="", refusals=(Refusal("Service shop/web", "no"),), notes=("a note",))),
    Report(REMOVE, made=REMOVE.changes),
]
DOCUMENTS: Final = {
    CHECK: json.loads(json.dumps(CHECKS)),
    WRITE: json.loads(json.dumps([format_document(one, judge(one)) for one in REPORTS])),
}


@pytest.mark.parametrize("mode", [CHECK, WRITE])
def test_the_page_has_each_key_with_its_type_and_no_other_key(mode: str) -> None:
    rows = table(mode)
    keys, faults = compare(DOCUMENTS[mode], rows)
    assert faults == []
    assert sorted(rows.keys() - keys) == []


@pytest.mark.parametrize("mode", [CHECK, WRITE])
def test_a_key_that_the_page_calls_null_sometimes_is_null(mode: str) -> None:
    stated = {key for key, row in table(mode).items() if row["type"].endswith(" or null")}
    kinds = {key: kinds_of(DOCUMENTS[mode], key) for key in stated}
    assert [key for key, found in kinds.items() if found != {True, False}] == []


def kinds_of(documents: Any, key: str) -> set[bool]:
    """Whether the values of a key in the documents are null."""
    found = documents
    for name in key.replace("[]", ".[]").split("."):
        found = [one for many in found for one in many] if name == "[]" else [one[name] for one in found if one]
    return {one is None for one in found}


WRONG = [
    pytest.param(lambda found: found.pop("mode"), "mode is missing", id="a key less"),
    pytest.param(lambda found: found.update(more=1), "more is not on the page", id="a key more"),
    pytest.param(lambda found: found.update(status="0"), "status is string, and on the page integer", id="a type"),
    pytest.param(lambda found: found.update(wrote=1), "wrote is integer, and on the page boolean", id="1 for true"),
    pytest.param(lambda found: found.update(api_version=1.0), "api_version is number, and", id="a third type"),
    pytest.param(lambda found: found["services"][0].pop("result"), "services[].result is missing", id="below a list"),
    pytest.param(lambda found: found["in_effect"].update(at=""), "in_effect.at is not on", id="more in an object"),
    pytest.param(lambda found: found.update(notes=[{}]), "notes is list of objects, and", id="of another type"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_document_that_differs_from_the_page_is_found(change: Any, said: str) -> None:
    document = json.loads(json.dumps(DOCUMENTS[WRITE][0]))
    change(document)
    assert any(fault.startswith(said) for fault in compare([document], table(WRITE))[1])


@pytest.mark.parametrize("bound", [f" {LASTS:.0f} s", f" {RESTORES:.0f} s", f" up to {MOST_PORTS} "])
def test_the_page_states_the_bounds_of_a_trial(bound: str) -> None:
    trial = PAGE.partition("\n## Try it for half a minute\n")[2].partition("\n## ")[0]
    assert bound in trial
