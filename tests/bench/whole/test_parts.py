"""The table of parts: each command takes its arguments, and its JSON becomes rows (it tests all page_rows.py, too)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import pytest

from docs.speed.headlines import HEADLINES
from docs.speed.run import Row
from tests.bench.faults.outcome import Outcome
from tests.bench.sync import report as sync
from tests.bench.whole.part import Part
from tests.bench.whole.parts import PARTS
from tests.bench.whole.run import read_rows
from tests.bench.wholeip_events.report import Figures, to_json

SPREAD: Final = {"median": 2.0, "low": 1.0, "high": 3.0}
OUTCOME: Final = Outcome(9, 1, 0, 0, 9, 0, 0.001, 1.5, 4.5, 0.2, {})
WORKLOADS: Final = ("table", "edns", "case", "wildcard", "100k", "forward", "two", "tap", "rest-1000", "rest-100")
RELAYED: Final = ("new", "keep-alive", "download", "upload", "latency", "latency-new", "idle")


def dns_row(workload: str, server: str, **more: Any) -> dict[str, Any]:
    summary = {"qps": SPREAD, "cpu_us": SPREAD}
    times = {"p50_ms": SPREAD, "p99_ms": SPREAD}
    return {"workload": workload, "server": server, "summary": summary, "fault": "", **times, **more}


def relay_row(workload: str, relay: str) -> dict[str, Any]:
    summary = {"rate": SPREAD, "cpu_us": SPREAD, "memory_kib": SPREAD}
    added = {"added_p50_ms": 0.1, "added_p99_ms": 0.2}
    return {"workload": workload, "relay": relay, "summary": summary, "fault": "", **added}


def fleet_row(workload: str, what: str) -> dict[str, Any]:
    return {"workload": workload, "what": what, "unit": "ms", "figures": {"ours": SPREAD, "nsd": SPREAD}}


def sync_rows(size: int) -> list[dict[str, Any]]:
    shown = (sync.READY, sync.ANSWERED_P99, "kubernetes informer: start to synced", "something else")
    return [{"size": size, "what": what, "figure": SPREAD, "unit": "s", "goal": 8.0, "fault": ""} for what in shown]


def sync_fault(size: int, what: str, why: str) -> dict[str, Any]:
    return {"size": size, "what": what, "figure": None, "unit": "", "goal": None, "fault": why}


def doctor_row(command: str, what: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "way": "kubeconfig", "what": what, "figure": SPREAD, "goal": None, "fault": "", **more}


def memory_row(command: str, what: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "way": "", "what": what, "figure": SPREAD, "goal": None, "fault": "", **more}


TRAFFIC: Final = {"gigabits": [1.0], "datagram_cpu": [2.0, 3.0], "flow_cpu": [5.0]}
CONTENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "dns": {
        "rounds": 3,
        "rows": [
            *(dns_row(workload, server) for workload in WORKLOADS for server in ("ours", "nsd")),
            dns_row(
                "table", "unbound", summary=None, p50_ms=None, p99_ms=None, fault="it ended; its log ends: /a/path"
            ),
            dns_row("rest-100", "unbound", summary=None, p50_ms=None, p99_ms=None, fault="it answered no query"),
            dns_row("table", "C loop"),
            dns_row("during swap", "ours", summary=None),
        ],
    },
    "relay": {
        "rounds": 2,
        "rows": [
            relay_row(workload, relay)
            for workload in RELAYED
            for relay in ("ours", "ours, /usr/bin/python3.11 (3.11.2)", "haproxy", "no relay")
        ]
        + [{**relay_row("latency", "nginx stream"), "added_p50_ms": None, "added_p99_ms": None, "fault": "it ended"}],
    },
    "faults": {
        "rounds": 1,
        "rows": [
            {"coredns": "1.14.7", "fault": "killed", "outcome": asdict(OUTCOME), "trouble": ""},
            {"coredns": "1.14.7", "fault": "hung", "outcome": None, "trouble": "it did not start"},
        ],
    },
    "sync": {"rounds": 1, "rows": [*sync_rows(10_000), sync_fault(10_000, "creations", "it ended")]},
    "sync-100k": {"rounds": 1, "rows": sync_rows(100_000)},
    "doctor": {
        "rounds": 1,
        "ingresses": 10_000,
        "services": 2_000,
        "nodes": 500,
        "rows": [
            doctor_row("status", "time", goal=1.5),
            doctor_row("status", "peak resident", goal=120.0),
            doctor_row("status", "requests"),
            doctor_row("host", "time", goal=3.0),
            doctor_row("host", "peak resident", goal=120.0),
        ],
    },
    "memory": {
        "rounds": 2,
        "rows": [
            memory_row("dnsproxy serve", "resident"),
            memory_row("dnsproxy serve", "processor time"),
            memory_row("dnsproxy serve", "unique"),
            memory_row("proxy", "resident", figure=None, fault="it ended"),
        ],
    },
    "wholeip": {
        "rounds": 2,
        "traffic": [{"way": way, **TRAFFIC} for way in ("tracked", "ours", "stateless")],
        "applied": [{"mappings": 1000, "whole": 0.5, "packet": [0.01, 0.02]}],
        "resync": {"mappings": 10_000, "quiet": [0.01], "clean": [0.02, 0.03], "repairing": [0.04]},
    },
    "wholeip-events": to_json(Figures(1000, 1.0, 1.0, 1, 0.0, [0.01, 0.02], [0.01])),
    "fleet": {
        "rounds": 1,
        "names": 20_000,
        "secondaries": 500,
        "faults": ["bind: it did not start: no memory"],
        "rows": [fleet_row("one", "AXFR, p50"), fleet_row("one", "in the queue")],
    },
}


def rows_of(name: str) -> dict[str, Row]:
    part = next(one for one in PARTS if one.name == name)
    return {row.id: row for row in read_rows(part, CONTENTS[name])}


def test_every_part_has_a_name_of_its_own_and_contents_in_this_test() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
    assert set(CONTENTS) == {part.name for part in PARTS}


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
def test_a_command_takes_the_arguments_of_its_part(part: Part, quick: bool) -> None:
    minus_m, module, *arguments = part.command(2, quick=quick)
    assert minus_m == "-m"
    context = importlib.import_module(f"{module}.__main__").main.make_context(module, [*arguments, "--json", "x"])
    assert context.params["rounds" if part.rounds else "json_file"]


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_figures_become_rows_of_the_part(part: Part) -> None:
    rows = read_rows(part, CONTENTS[part.name])
    assert rows
    assert {row.bench for row in rows} == {part.name}
    assert all(row.figures and row.title for row in rows)
    assert all(row.ours[0] in row.figures for row in rows)


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_another_form_is_refused(part: Part) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_rows(part, {"rounds": 1, "traffic": 3, "rows": [{}]})


def test_every_headline_is_a_row_of_some_part() -> None:
    identifiers = {identifier for name in CONTENTS for identifier in rows_of(name)}
    assert {one.row for one in HEADLINES} <= identifiers


def test_answers_have_all_servers_and_those_that_failed_with_the_reason() -> None:
    row = rows_of("dns")["dns-table-answers"]
    assert list(row.figures) == ["Switchback", "NSD", "C loop"]
    assert row.faults == {"Unbound": "it ended"}
    assert row.figures["NSD"].rounds == 3


def test_a_python_is_named_by_its_version_and_not_by_its_folder() -> None:
    row = rows_of("relay")["relay-new-cpu"]
    assert list(row.figures) == ["Switchback", "Switchback, optimised Python 3.11.2", "haproxy"]
    assert row.ours == ["Switchback", "Switchback, optimised Python 3.11.2"]


def test_latency_is_what_a_relay_adds() -> None:
    rows = rows_of("relay")
    assert rows["relay-latency-p99"].figures["haproxy"].median == 0.2
    assert "no relay" not in rows["relay-latency-p99"].figures


def test_without_the_time_of_no_relay_every_relay_has_the_reason() -> None:
    direct = {**relay_row("latency", "no relay"), "summary": None, "fault": "it ended"}
    ours = {**relay_row("latency", "ours"), "added_p50_ms": None, "added_p99_ms": None}
    (part,) = (one for one in PARTS if one.name == "relay")
    rows = {row.id: row for row in read_rows(part, {"rounds": 1, "rows": [ours, direct]})}
    assert rows["relay-latency-p99"].faults == {"Switchback": "without a relay: it ended"}


def test_a_fault_that_was_not_played_has_its_reason() -> None:
    row = rows_of("faults")["faults-slowest"]
    assert row.figures["killed, CoreDNS 1.14.7"].median == 1.5
    assert row.faults == {"hung, CoreDNS 1.14.7": "it did not start"}
    assert row.peers == []


def test_that_no_lookup_fails_is_a_goal() -> None:
    assert rows_of("faults")["faults-failed"].goal == 0.0


def test_the_informer_is_beside_the_start_alone() -> None:
    rows = rows_of("sync")
    assert list(rows) == ["sync-10000-start-to-ready", "sync-10000-created-to-answered-10-s-p99"]
    assert rows["sync-10000-start-to-ready"].peers == ["kubernetes informer"]
    assert rows["sync-10000-start-to-ready"].goal == 8.0


def test_only_figures_with_a_title_are_shown_of_a_fleet() -> None:
    assert list(rows_of("fleet")) == ["fleet-one-axfr-p50"]


@pytest.mark.parametrize(
    ("part", "row", "faults"),
    [
        pytest.param("dns", "dns-table-p99", {"Unbound": "it ended"}, id="an answer after a load"),
        pytest.param("dns", "dns-rest-100-p50", {"Unbound": "it answered no query"}, id="an answer at rest"),
        pytest.param("relay", "relay-latency-p50", {"nginx stream": "it ended"}, id="what a relay adds"),
        pytest.param("fleet", "fleet-one-axfr-p50", {"BIND": "it did not start: no memory"}, id="a primary"),
        pytest.param("memory", "memory-processor-time", {"proxy": "it ended"}, id="the other figure of a command"),
    ],
)
def test_a_program_without_a_figure_is_named_with_the_reason(part: str, row: str, faults: Mapping[str, str]) -> None:
    assert rows_of(part)[row].faults == faults


def test_a_measurement_without_a_row_is_a_fault_of_its_part() -> None:
    faults = {part.name: list(part.faults(CONTENTS[part.name])) for part in PARTS}
    assert faults == {**{part.name: [] for part in PARTS}, "sync": ["10,000, creations: it ended"]}


@pytest.mark.parametrize(
    ("row", "goal"),
    [
        pytest.param("doctor-peak-resident", 120.0, id="every command has the same"),
        pytest.param("doctor-time", None, id="each command has its own"),
    ],
)
def test_a_goal_is_drawn_if_all_commands_share_it(row: str, goal: float | None) -> None:
    assert rows_of("doctor")[row].goal == goal


def test_a_command_is_named_with_the_way_it_reaches_the_api_server() -> None:
    rows = rows_of("doctor")
    assert list(rows) == ["doctor-time", "doctor-peak-resident"]
    assert list(rows["doctor-time"].figures) == ["dnsproxy status (kubeconfig)", "dnsproxy doctor HOST (kubeconfig)"]


def test_of_the_memory_at_rest_a_command_that_did_not_start_has_its_reason() -> None:
    rows = rows_of("memory")
    assert list(rows) == ["memory-resident", "memory-processor-time"]
    assert list(rows["memory-resident"].figures) == ["dnsproxy serve"]
    assert rows["memory-resident"].faults == {"proxy": "it ended"}


def test_seconds_become_the_milliseconds_of_the_chart() -> None:
    assert rows_of("wholeip-events")["wholeip-events-kernel"].figures["Switchback, all"].median == 20
    assert rows_of("wholeip")["wholeip-packet-0-99"].figures["1,000 mappings"].median == 20
    assert rows_of("wholeip")["wholeip-resync-0-99"].figures["during a comparison"].median == 30
