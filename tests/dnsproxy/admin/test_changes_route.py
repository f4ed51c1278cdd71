"""The route `/changes`: the last changes, newest first."""

from __future__ import annotations

import json

from dnsproxy.admin.changes_route import PATH, changes_route
from dnsproxy.answers.table import Host
from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin
from dnsproxy.hostnames.table_changes import TableChanges
from dnsproxy.hostnames.verdict import Verdict
from sidecar.admin.answers import Answer


def shown(changes: TableChanges) -> list[dict[str, object]]:
    answer = changes_route(changes)[PATH]({})
    assert isinstance(answer, Answer)
    assert isinstance(answer.body, bytes)
    found: list[dict[str, object]] = json.loads(answer.body)["changes"]
    return found


def test_nothing_changed_yet_is_an_empty_list() -> None:
    assert shown(TableChanges(on_swap=lambda _: None)) == []


def test_a_change_has_time_name_object_and_answer() -> None:
    changes = TableChanges(on_swap=lambda _: None, now=lambda: 7.0)
    claim = Claim("a.example.org", Reach.NAME, Origin("Ingress", "web", "shop"))
    changes.judged(Host("a.example.org", Reach.NAME, ("192.0.2.1",)), Verdict(claim, ("192.0.2.1",), ()), before=())
    changes.judged(Host("a.example.org", Reach.NAME, ()), Verdict(None, (), ()), before=("192.0.2.1",))
    gone, new = shown(changes)
    assert (gone["what"], gone["after"], new["what"], new["before"]) == ("removed", None, "added", None)
    assert new["time"] == 7.0
    assert new["origin"] == {"kind": "Ingress", "name": "web", "namespace": "shop", "created": ""}
