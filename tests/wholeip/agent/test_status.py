"""The readiness and the summary of an agent."""

from __future__ import annotations

from typing import Any

import pytest

from sidecar.kubernetes.errors import Forbidden, ServerTrouble
from sidecar.kubernetes.follower_status import FollowerState, FollowerStatus
from tests.kit.wholeip_objects import ip, tcp
from wholeip.agent.status import (
    DURATION_BOUNDS,
    AgentStatus,
    Durations,
)
from wholeip.mappings.mapping import Mapping, OpenPort
from wholeip.mappings.plan import Part, Plan
from wholeip.mappings.reports import Reason, Report

MAPPING = Mapping(
    "default/vm", ip("192.0.2.1"), ip("10.0.0.1"), tcp(80) | {OpenPort("udp", 53)}, icmp=True, egress=True, here=False
)
PLAN = Plan(
    {
        "default/vm": Part((MAPPING,)),
        "default/x": Part(reports=(Report("default/x", Reason.NO_ENDPOINT, "no pod is ready"),)),
    }
)


def status(**values: Any) -> AgentStatus:
    watches = (FollowerStatus("Service", synced=True), FollowerStatus("Node", synced=True))
    known: dict[str, Any] = {"watches": watches, "in_step": True, "plan": PLAN, "services": 2, "node": "n1"}
    return AgentStatus(**(known | values))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param({}, "", id="ready"),
        pytest.param({"watches": ()}, "the cluster is not known yet", id="nothing is watched yet"),
        pytest.param(
            {"watches": (FollowerStatus("Service", synced=True), FollowerStatus("Node"))},
            "known yet; Node: syncing",
            id="not all",
        ),
        pytest.param({"in_step": False}, "does not have the rules yet", id="nothing is written yet"),
        pytest.param({"trouble": "busy"}, "refuses the rules: busy", id="refused"),
        pytest.param({"stopping": True, "trouble": "busy"}, "stopping", id="stopping"),
    ],
)
def test_why_an_agent_is_not_ready(values: dict[str, Any], reason: str) -> None:
    why = status(**values).why_not_ready()
    assert reason in why
    assert bool(why) is bool(reason)


def test_a_ready_agent_says_what_it_has_and_what_is_amiss() -> None:
    away = FollowerStatus("Service", FollowerState.RETRYING, ServerTrouble("503: so it goes"), synced=True)
    hidden = FollowerStatus("Node", FollowerState.RETRYING, Forbidden("403: not yours"), synced=True)
    summary = status(watches=(away, hidden), advice=("set net.ipv4.ip_forward=1",)).describe()
    assert summary == "1 mappings of 2 Services; set net.ipv4.ip_forward=1; Service: retrying: 503: so it goes"


def test_durations_are_counted_by_the_bound_that_holds_them() -> None:
    durations = Durations()
    for seconds in (0.0, DURATION_BOUNDS[0], 0.006, 1000.0):
        durations.add(seconds)
    assert durations.counts == [2, 1, *[0] * (len(DURATION_BOUNDS) - 2), 1]
    assert durations.total == pytest.approx(1000.011)
