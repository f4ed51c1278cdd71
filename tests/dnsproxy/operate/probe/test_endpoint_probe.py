"""Probes of a controller with odd applications."""

# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

from dataclasses import replace

import pytest
from trio.testing import MockClock

from dnsproxy.doctor.judge.header_mode import HeaderMode
from dnsproxy.operate.decide.probing import UNSERVED, BalancerProbe, EndpointProbe
from dnsproxy.operate.probe import endpoint_probe
from dnsproxy.operate.probe.endpoint_probe import probe_endpoint, reach_balancer
from tests.dnsproxy.operate.probe.odd_controller import Application, OddController, running

A = Application
HOST = "a.example.org"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that hangs is waited for shortly."""
    short = replace(endpoint_probe.MANNER, answer_seconds=1.0)
    monkeypatch.setattr(endpoint_probe, "MANNER", short)


def at(controller: OddController) -> EndpointProbe:
    return EndpointProbe(("web/nginx", 80, controller.endpoint), tls=False, hostnames=(HOST,), in_turn=False)


@pytest.mark.parametrize("demands", [True, False], ids=["demands it", "rejects it"])
@pytest.mark.parametrize("application", list(Application), ids=lambda one: one.name)
async def test_the_application_behind_the_name_does_not_matter(
    application: Application, demands: bool, clock: MockClock
) -> None:
    async with running({HOST: application}, demands=demands) as controller:
        found = await probe_endpoint(at(controller))
    assert found.mode is (HeaderMode.REQUIRES if demands else HeaderMode.REJECTS)


async def test_no_application_is_asked_where_the_controller_answers_for_itself() -> None:
    async with running({HOST: A.WELL}) as controller:
        found = await probe_endpoint(at(controller))
    assert found.versions == ("v1",)
    assert dict(controller.asked) == {UNSERVED: 1}


async def test_where_unknown_names_are_closed_an_application_shows_the_header() -> None:
    async with running({UNSERVED: A.CLOSES, HOST: A.WELL}) as controller:
        found = await probe_endpoint(at(controller))
    assert (found.mode, found.versions) == (HeaderMode.REQUIRES, ("v1",))
    assert dict(controller.asked) == {UNSERVED: 1, HOST: 1}


@pytest.mark.parametrize("unserved", [None, A.CLOSES], ids=["unknown names are answered", "they are closed"])
@pytest.mark.parametrize("application", list(Application), ids=lambda one: one.name)
async def test_a_load_balancer_is_reached_if_any_name_is_answered(
    application: Application, unserved: Application | None, clock: MockClock
) -> None:
    hosts = {HOST: application, "b.example.org": A.WELL} | ({UNSERVED: unserved} if unserved else {})
    async with running(hosts, demands=False) as controller:
        ports = ((controller.endpoint, False),)
        assert await reach_balancer(BalancerProbe("web/nginx", ports, (HOST, "b.example.org")))
    async with running(hosts, demands=True) as controller:
        ports = ((controller.endpoint, False),)
        assert not await reach_balancer(BalancerProbe("web/nginx", ports, (HOST, "b.example.org")))


async def test_a_controller_that_answers_nobody_is_unclear(clock: MockClock) -> None:
    async with running({HOST: A.HANGS, UNSERVED: A.HANGS}) as controller:
        found = await probe_endpoint(at(controller))
    assert found.mode in {HeaderMode.SILENT, HeaderMode.UNKNOWN}


async def test_where_nobody_listens_nothing_else_is_tried() -> None:
    async with running({}) as controller:
        pass
    assert (await probe_endpoint(at(controller))).mode is HeaderMode.DEAD
