"""Handshakes through a relay, with odd applications behind the controller; the relay is a controller that takes all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dnsproxy.operate.decide.facts import Subject
from dnsproxy.operate.decide.handshaking import RelayHandshake, RelayPort
from dnsproxy.operate.decide.probing import UNSERVED
from dnsproxy.operate.probe import endpoint_probe, relay_handshake
from dnsproxy.operate.probe.relay_handshake import shake_hands
from tests.dnsproxy.operate.probe.odd_controller import Application, OddController, running

A = Application
NAMES = ("a.example.org", "b.example.org", "c.example.org")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that hangs is waited for shortly."""
    short = replace(endpoint_probe.MANNER, answer_seconds=1.0)
    monkeypatch.setattr(relay_handshake, "MANNER", short)


def through(controller: OddController, *, hostnames: tuple[str, ...] = NAMES) -> RelayHandshake:
    ports = (RelayPort(80, controller.endpoint.port, tls=False),)
    return RelayHandshake(Subject("nginx"), "ingress-nginx/nginx", ports, hostnames)


@pytest.mark.parametrize("first", [A.HANGS, A.BAD_REQUEST, A.CLOSES], ids=lambda one: one.name)
async def test_an_odd_application_behind_the_first_name_lets_no_class_go(first: Application) -> None:
    hosts = {UNSERVED: A.CLOSES, "a.example.org": first, "b.example.org": A.WELL}
    async with running(hosts, demands=False) as controller:
        answered = await shake_hands(through(controller), ["127.0.0.1"], every_pod=False)
    assert answered.succeeded
    assert dict(controller.asked) == {UNSERVED: 1, "a.example.org": 1, "b.example.org": 1}


async def test_a_class_whose_applications_all_fail_has_a_controller_that_answers() -> None:
    async with running(dict.fromkeys(NAMES, A.BAD_REQUEST), demands=False) as controller:
        assert (await shake_hands(through(controller), ["127.0.0.1"], every_pod=False)).succeeded


async def test_where_the_controller_answers_by_itself_no_application_is_asked() -> None:
    async with running({"a.example.org": A.WELL}, demands=False) as controller:
        assert (await shake_hands(through(controller), ["127.0.0.1"], every_pod=True)).succeeded
    assert dict(controller.asked) == {UNSERVED: 1}


async def test_a_controller_that_gets_no_header_fails_and_the_first_name_tells_how() -> None:
    async with running({"a.example.org": A.WELL}, demands=True) as controller:
        answered = await shake_hands(through(controller), ["127.0.0.1"], every_pod=False)
    assert not answered.succeeded
    assert answered.taken
    assert "closed" in answered.detail
    assert not controller.asked


async def test_a_relay_that_takes_no_connection_is_asked_for_one_name() -> None:
    async with running({}) as controller:
        pass
    answered = await shake_hands(through(controller), ["127.0.0.1"], every_pod=False)
    assert not answered.succeeded
    assert not answered.taken


async def test_without_a_pod_nothing_is_dialled() -> None:
    async with running({}) as controller:
        answered = await shake_hands(through(controller), [], every_pod=True)
    assert (answered.succeeded, answered.taken) == (False, False)
