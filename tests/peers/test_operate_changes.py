"""What a pod's requests notice when the cluster around `dnsproxy operate` changes: real programs, steady requests.

The public address never answers a pod here, as in a cluster without Switchback: kube-proxy takes it, without a header.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.operate.decide.handshaking import SUCCEEDING
from dnsproxy.operate.decide.plan import PARTING
from tests.kit.altered import altered
from tests.kit.doctor_stage.objects import kube_proxy, path_of
from tests.kit.doctor_stage.servers import Server
from tests.kit.networks import root
from tests.kit.operate_stage.controller import Controller, running_controller
from tests.kit.operate_stage.objects import (
    BALANCER,
    WEB,
    Object,
    ingress,
    ingress_class,
    named,
    pod,
    service,
    vip,
)
from tests.kit.operate_stage.stage import PEERS, PUBLIC, Running, Stage, annotation, stage
from tests.kit.operate_stage.states import RELAY, check, playing, with_class

__all__ = ["root", "stage"]

pytestmark = pytest.mark.peer(*PEERS)

HOST: Final = "app.example.org"
NGINX: Final = service("nginx", "ingress-nginx", WEB, kind="LoadBalancer", points=vip(BALANCER))
INGRESS: Final = ingress("app", HOST, "nginx", points=vip(BALANCER))
CLASS: Final = (kube_proxy("v1.36.3"), NGINX, ingress_class("nginx"), INGRESS)
FIRST, SECOND = "10.244.3.1", "10.244.3.2"
ROUTE: Final = "relay-nginx"
SOON: Final = 10.0
"""Seconds in which a change is followed that needs no probe of its minute, also on a busy machine."""
INTERVAL: Final = 15.0
"""Seconds between two probes of a port that shows no change, with `hurried`; more than the 10 s of a change."""
KEPT: Final = 2.0
"""Seconds in which a client's answer of before a change is out of use; its TTL is 1."""


def pod_at(address: str) -> Object:
    return pod(f"nginx-{address.rpartition('.')[2]}", "ingress-nginx", {"app": "nginx"}, address)


@pytest.fixture
def hurried(stage: Stage, tmp_path: Path) -> Iterator[None]:
    """The minute between probes is shorter."""
    probing = "dnsproxy.operate.decide.probing"
    constants = {f"{probing}.INTERVAL": INTERVAL, f"{probing}.SPREAD": INTERVAL / 2}
    stage.environments["operate"] = altered(tmp_path, constants)
    yield
    stage.environments.clear()


@pytest.fixture
def controller(stage: Stage, tmp_path: Path) -> Iterator[Controller]:
    """A controller that demands the header."""
    with running_controller(stage.network, tmp_path / "first", FIRST) as one:
        yield one


@pytest.fixture
def running(stage: Stage, controller: Controller) -> Iterator[Running]:  # noqa: ARG001  # runs before
    """A class that is steered to the controller."""
    with playing(stage, *CLASS, pod_at(FIRST)) as one:
        steered(stage)
        yield one


def steered(stage: Stage, *, seconds: float = 30.0) -> None:
    stage.eventually("the class is steered", lambda: bool(stage.subject().get("steered")), seconds=seconds)
    stage.eventually("its name is answered", lambda: stage.dig(HOST) not in [(), (PUBLIC,)], seconds=SOON)


def let_go(stage: Stage, *, seconds: float) -> None:
    stage.eventually("the class is let go", lambda: stage.subject().get("steered") is False, seconds=seconds)
    stage.eventually("its name is forwarded", lambda: stage.dig(HOST) == (PUBLIC,), seconds=SOON)


def evidence(stage: Stage) -> str:
    return "; ".join(stage.subject().get("evidence", ()))


def reasons(stage: Stage) -> list[str]:
    """Of the Events about the class."""
    return [reason for reason, name, _ in stage.events() if name == "nginx"]


def test_a_class_is_steered_after_a_handshake_and_not_before(stage: Stage, controller: Controller) -> None:
    with stage.cluster(relay=False) as one:
        stage.put(*CLASS, pod_at(FIRST), one.relay_pod)
        stage.eventually("a relay Service", lambda: ROUTE in stage.routes())
        stage.eventually("probed", lambda: stage.subject().get("decision") == "relay")
        assert stage.curl(HOST, at=PUBLIC) == "000"
        assert stage.subject()["steered"] is False
        assert stage.dig(HOST) == (PUBLIC,)
        one.start_relay()
        steered(stage)
        assert stage.curl(HOST) == "200"
        stage.eventually("an Event", lambda: reasons(stage) == ["Steered"])
    # The relay states the pod's own address, as a load balancer would.
    assert {one["client"] for one in controller.seen() if one["agent"].startswith("curl")} == {"10.244.0.2"}


def test_an_application_that_is_down_behind_tls_that_is_passed_through_takes_no_header_from_its_class(
    stage: Stage, tmp_path: Path
) -> None:
    other = ingress("shop", "shop.example.org", "nginx", points=vip(BALANCER))
    with (
        running_controller(stage.network, tmp_path / "passing", FIRST, down=HOST),
        playing(stage, *CLASS, other, pod_at(FIRST)),
    ):
        steered(stage)
        assert annotation(stage.routes()[ROUTE], "proxy-protocol") == "v1"
        assert stage.subject()["undecided"] is False
        assert stage.curl(HOST) == "000"
        assert stage.curl("shop.example.org") == "200"


def test_a_relay_without_a_ready_pod_forwards_and_gets_its_names_back(stage: Stage, running: Running) -> None:
    stage.set_ready(running.relay_pod, ready=False)
    stage.eventually("forwarded", lambda: stage.dig(HOST) == (PUBLIC,), seconds=SOON)
    stage.set_ready(running.relay_pod, ready=True)
    stage.eventually("answered", lambda: stage.dig(HOST) != (PUBLIC,), seconds=SOON)
    # kube-proxy follows the same EndpointSlice, and writes its rules at its own pace.
    stage.eventually("served", lambda: stage.curl(HOST) == "200", seconds=30)
    assert stage.subject()["steered"] is True


def test_a_controller_that_is_rolled_to_plain_loses_no_request(stage: Stage, running: Running, tmp_path: Path) -> None:
    """`helm upgrade` turns use-proxy-protocol off: a new pod first, the old one leaves when its successor is ready."""
    assert running
    first, second = pod_at(FIRST), pod_at(SECOND)
    with (
        running_controller(stage.network, tmp_path / "second", SECOND, demands=False) as plain,
        stage.visited(HOST) as visits,
    ):
        stage.put(second)
        stage.eventually("both kinds", lambda: "80@" in annotation(stage.routes()[ROUTE], "endpoint-headers"))
        stage.eventually("requests at both", lambda: any(one["agent"] == "visitor" for one in plain.seen()))
        stage.set_ready(first, ready=False)
        stage.remove(first)
        let_go(stage, seconds=PARTING.total_seconds() + SOON)
        visits.wait_for_more(100)
        assert visits.addresses()[-1] == PUBLIC
        assert visits.failed() == []


def test_a_single_pod_that_is_rolled_to_plain_gets_its_header_until_it_is_gone(
    stage: Stage, running: Running, tmp_path: Path
) -> None:
    """The relay holds back the new pod for some seconds, and uses the one that terminates."""
    assert running
    first, second = pod_at(FIRST), pod_at(SECOND)
    with (
        running_controller(stage.network, tmp_path / "second", SECOND, demands=False),
        stage.visited(HOST) as visits,
    ):
        stage.put(second)
        stage.request("DELETE", f"{path_of(first)}?gracePeriodSeconds=30")
        stage.eventually(
            "an exception for the pod that leaves",
            lambda: annotation(stage.routes()[ROUTE], "endpoint-headers") == f"80@{FIRST}=v1,443@{FIRST}=v1",
        )
        assert annotation(stage.routes()[ROUTE], "proxy-protocol") == "v1,80=none,443=none"
        visits.wait_for_more(100)
        stage.request("DELETE", f"{path_of(first)}?gracePeriodSeconds=0")
        stage.eventually("no exception", lambda: not annotation(stage.routes()[ROUTE], "endpoint-headers"))
        let_go(stage, seconds=PARTING.total_seconds() + SOON)
        visits.wait_for_more(100)
        assert visits.failed() == []


def test_a_controller_that_is_rolled_to_the_header_is_steered_at_once(
    stage: Stage, controller: Controller, tmp_path: Path
) -> None:
    controller.switch(demands=False)
    first, second = pod_at(FIRST), pod_at(SECOND)
    with (
        playing(stage, *CLASS, first) as running,
        running_controller(stage.network, tmp_path / "second", SECOND),
        stage.visited(HOST) as visits,
    ):
        stage.eventually("decided", lambda: stage.subject().get("decision") == "nothing")
        visits.wait_for_more(50)
        assert visits.failed() == []
        stage.put(second)
        stage.eventually("steered", lambda: bool(stage.subject().get("steered")), seconds=SOON)
        # Until then the public address leads to both pods; an answer is kept for its TTL of a second.
        steered_at = time.time() + KEPT
        visits.wait_for_more(100)
        stage.set_ready(first, ready=False)
        stage.remove(first)
        visits.wait_for_more(100)
        assert visits.failed(since=steered_at) == []
        assert running.log("operate").count('"event": "Steered"') == 1


@pytest.fixture
def rarely_probed(stage: Stage, tmp_path: Path) -> Iterator[None]:
    """No regular probe comes while a test runs."""
    probing = "dnsproxy.operate.decide.probing"
    stage.environments["operate"] = altered(tmp_path, {f"{probing}.INTERVAL": 3600.0, f"{probing}.SPREAD": 0.0})
    yield
    stage.environments.clear()


@pytest.mark.usefixtures("rarely_probed")
def test_a_controller_that_stops_to_take_the_header_is_served_again_after_one_handshake(
    stage: Stage, running: Running, controller: Controller
) -> None:
    controller.switch(demands=False)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=SUCCEEDING + SOON)
    let_go(stage, seconds=PARTING.total_seconds() + SOON)
    assert stage.curl(HOST) == "200"
    assert running.log("operate").count('"event": "handshake failed"') == 1


@pytest.mark.usefixtures("hurried")
def test_a_controller_that_is_switched_while_it_runs_is_served_again_within_a_minute(
    stage: Stage, running: Running, controller: Controller
) -> None:
    begun = time.monotonic()
    controller.switch(demands=False)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=INTERVAL + SOON)
    let_go(stage, seconds=PARTING.total_seconds() + SOON)
    assert stage.curl(HOST) == "200"
    controller.switch(demands=True)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=INTERVAL + 3 * SOON)
    stage.eventually("the class is steered", lambda: stage.subject()["steered"] is True)
    # Polite: a probe of port 80 in a minute, the handshakes, and the few around a change.
    probes = [one for one in controller.seen() if one["agent"] == "switchback-operate"]
    lasted = time.monotonic() - begun
    assert len(probes) <= 9 + lasted / INTERVAL + lasted / SUCCEEDING
    assert running.log("operate").count('"event": "LetGo"') == 1


@pytest.mark.usefixtures("hurried")
def test_the_relay_follows_the_controller_of_a_class_that_has_two_candidates(
    stage: Stage, running: Running, controller: Controller
) -> None:
    """Another Service at the same address, as klipper-lb gives each those of the nodes: the last decision stays."""
    assert running
    other = service("other", "elsewhere", {"http-alt": 8080}, kind="LoadBalancer", points=vip(BALANCER))
    stage.put(other)
    stage.eventually("kept", lambda: stage.subject()["decision"] == "keep", seconds=SOON)
    assert stage.curl(HOST) == "200"
    controller.switch(demands=False)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=INTERVAL + 3 * SOON)
    assert (stage.subject()["decision"], stage.subject()["steered"]) == ("keep", True)
    stage.remove(other)
    let_go(stage, seconds=PARTING.total_seconds() + SOON)
    assert stage.curl(HOST) == "200"


def test_a_status_that_becomes_a_hostname_and_an_address_again(stage: Stage, running: Running) -> None:
    assert running
    with stage.visited(HOST) as visits:
        stage.set_status(NGINX, named("lb.example.net"))
        # It is `nothing` until the class is let go, and the class may be let go before this looks.
        decided = ("nothing", True), ("nothing", False), ("leave alone", False)
        stage.eventually(
            "decided", lambda: (stage.subject()["decision"], stage.subject()["steered"]) in decided, seconds=SOON
        )
        stage.set_status(INGRESS, named("lb.example.net"))
        let_go(stage, seconds=PARTING.total_seconds() + SOON)
        # kube-proxy has no rule for the public address any more; the world outside of this network is not there.
        stage.eventually("the evidence", lambda: "hostname" in evidence(stage), seconds=30)
        stage.set_status(NGINX, vip(BALANCER))
        stage.set_status(INGRESS, vip(BALANCER))
        steered(stage, seconds=SOON)
        assert stage.curl(HOST) == "200"
        returned = time.time() + KEPT
        visits.wait_for_more(50)
        assert visits.failed(since=returned) == []


def test_an_ip_mode_that_appears_lets_the_class_go_without_a_lost_request(stage: Stage, running: Running) -> None:
    assert running
    with stage.visited(HOST) as visits:
        stage.set_status(NGINX, vip(BALANCER, mode="Proxy"))
        stage.eventually("decided", lambda: stage.subject()["decision"] == "nothing", seconds=SOON)
        assert visits.failed() == []
        let_go(stage, seconds=PARTING.total_seconds() + SOON)


def test_a_second_controller_is_steered_and_the_first_notices_nothing(stage: Stage, running: Running) -> None:
    assert running
    second = with_class("second", "other/haproxy", Server.HAPROXY, vip("203.0.113.11"), RELAY)
    before = stage.routes()[ROUTE]["metadata"]["resourceVersion"]
    with stage.visited(HOST) as visits:
        stage.put(*second.objects)
        check(stage, second)
        stage.remove(*second.objects)
        stage.eventually("the second is gone", lambda: stage.subject("ingressclass/second") == {})
        visits.wait_for_more(20)
        assert visits.failed() == []
    assert stage.routes()[ROUTE]["metadata"]["resourceVersion"] == before


def test_a_controller_that_calls_its_own_host_is_served_and_makes_no_loop(stage: Stage, running: Running) -> None:
    for _ in range(5):
        assert stage.curl(HOST, source=FIRST) == "200"
    assert "loop" not in running.log("relay")


def test_operate_that_dies_leaves_everything_and_writes_nothing_when_it_is_back(stage: Stage, running: Running) -> None:
    before = stage.routes()[ROUTE]
    with stage.visited(HOST) as visits:
        running.end("operate")
        visits.wait_for_more(20)
        running.start_operate()
        stage.eventually("it leads", lambda: bool(stage.steering().get("leads")))
        stage.eventually("the class is steered", lambda: bool(stage.subject().get("steered")))
        visits.wait_for_more(50)
        assert visits.failed() == []
    assert stage.routes()[ROUTE] == before


def test_a_rollout_right_after_a_restart_of_operate_loses_no_request(
    stage: Stage, running: Running, controller: Controller, tmp_path: Path
) -> None:
    """The replica before may have probed a moment ago, so what it knew waits for its minute; a new pod does not."""
    running.end("operate", politely=True)
    polite = len(probes_at(controller))
    running.start_operate()
    stage.eventually("endpoints are read", lambda: "was not probed yet" in evidence(stage), seconds=10)
    first, second = pod_at(FIRST), pod_at(SECOND)
    with (
        running_controller(stage.network, tmp_path / "second", SECOND, demands=False) as plain,
        stage.visited(HOST) as visits,
    ):
        visits.wait_for_more(50)
        assert len(probes_at(controller)) == polite
        stage.put(second)
        stage.eventually(
            "both kinds", lambda: "80@" in annotation(stage.routes()[ROUTE], "endpoint-headers"), seconds=SOON
        )
        stage.eventually("requests at both", lambda: any(one["agent"] == "visitor" for one in plain.seen()))
        stage.set_ready(first, ready=False)
        stage.remove(first)
        let_go(stage, seconds=PARTING.total_seconds() + SOON)
        visits.wait_for_more(100)
        assert visits.failed() == []


def probes_at(controller: Controller) -> list[Object]:
    """Those of port 80; over TLS nothing is logged."""
    return [one for one in controller.seen() if one["agent"] == "switchback-operate"]
