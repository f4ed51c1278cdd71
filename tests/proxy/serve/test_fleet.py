"""What the supervisor tells of its workers' routes from Services; the workers themselves are in test_supervisor.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from proxy.relay.counters import Counters
from proxy.serve.fleet import Fleet
from proxy.serve.silence import Silence
from proxy.serve.worker_reports import Report
from proxy.serve.worker_settings import WorkerSettings
from proxy.settings import Settings

WAITS = "waiting for the route Services: syncing"


def fleet_of(count: int, told: list[tuple[str, Mapping[int, str]]]) -> Fleet:
    settings = Settings(routes=(), resolv_conf=Path("/dev/null"))
    workers = [WorkerSettings(number, settings, 1, None, "info") for number in range(1, count + 1)]
    fleet = Fleet(workers, on_failures=lambda who, failures: told.append((who, dict(failures))))
    fleet._silences.update({worker.number: Silence() for worker in workers})
    return fleet


def report(waits: str | None = None, **failures: str) -> Report:
    return Report(10, Counters(), waits, {int(port.removeprefix("at_")): why for port, why in failures.items()})


@pytest.mark.parametrize(
    ("reports", "fault"),
    [
        pytest.param([], "no worker is up", id="no worker"),
        pytest.param([WAITS, WAITS], WAITS, id="all wait"),
        pytest.param([WAITS], WAITS, id="the only one waits"),
        pytest.param([WAITS, None], None, id="one knows the routes"),
        pytest.param([None, None], None, id="all know the routes"),
    ],
)
def test_the_fleet_waits_for_the_routes_while_all_workers_do(reports: list[str | None], fault: str | None) -> None:
    fleet = fleet_of(2, [])
    for number, waits in enumerate(reports, start=1):
        fleet._take(number, trio.Event(), report(waits))
    assert fleet.fault() == fault


def test_ports_that_a_worker_cannot_open_are_passed_on_until_it_ends() -> None:
    told: list[tuple[str, Mapping[int, str]]] = []
    fleet = fleet_of(2, told)
    fleet._take(2, trio.Event(), report(at_443="no file descriptor is left"))
    fleet._forget(2)
    assert told == [("worker 2", {443: "no file descriptor is left"}), ("worker 2", {})]
