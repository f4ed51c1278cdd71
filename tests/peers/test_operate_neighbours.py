"""What others do beside `dnsproxy operate`: people's own route Services, other writers, a second replica, an outage.

The programs are real, as in test_operate_changes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit.networks import root
from tests.kit.operate_stage.controller import Controller, running_controller
from tests.kit.operate_stage.objects import (
    BALANCER,
    OWN,
    RELAY_LABELS,
    WEB,
    Object,
    ingress,
    ingress_class,
    pod,
    service,
    vip,
)
from tests.kit.operate_stage.stage import PEERS, Running, Stage, annotation, stage
from tests.kit.operate_stage.states import playing

__all__ = ["root", "stage"]

pytestmark = pytest.mark.peer(*PEERS)

HOST: Final = "app.example.org"
ADDRESS: Final = "10.244.3.1"
ROUTE: Final = "relay-nginx"
CLASS: Final = (
    service("nginx", "ingress-nginx", WEB, kind="LoadBalancer", points=vip(BALANCER)),
    pod("nginx-1", "ingress-nginx", {"app": "nginx"}, ADDRESS),
    ingress_class("nginx"),
    ingress("app", HOST, "nginx", points=vip(BALANCER)),
)
SOON: Final = 10.0
SECOND_ADMIN: Final = "127.0.0.1:8095"


@pytest.fixture
def controller(stage: Stage, tmp_path: Path) -> Iterator[Controller]:
    with running_controller(stage.network, tmp_path / "nginx", ADDRESS) as one:
        yield one


@pytest.fixture
def running(stage: Stage, controller: Controller) -> Iterator[Running]:  # noqa: ARG001  # runs before
    """A class that is steered."""
    with playing(stage, *CLASS) as one:
        stage.eventually("the class is steered", lambda: bool(stage.subject().get("steered")))
        stage.eventually("its requests succeed", lambda: stage.curl(HOST) == "200")
        yield one


def mine(name: str, relay_to: str, port: int = 22, target: int | str = 12022, **annotations: str) -> Object:
    """A route Service of a person; `annotations` as for Stage.annotate."""
    keys = {f"switchback.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    ports = [{"name": "port", "port": port, "targetPort": target, "protocol": "TCP"}]
    return service(name, OWN, ports, selector=RELAY_LABELS, annotations={"switchback.dev/relay-to": relay_to, **keys})


def cluster_ip(stage: Stage, name: str) -> str:
    return str(stage.routes()[name]["spec"]["clusterIP"])


def this_second() -> str:
    """As the API server writes a creationTimestamp."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def faults(stage: Stage) -> dict[str, str]:
    """By route Service, what operate says is wrong with it."""
    return {one["service"]: "; ".join(one["faults"]) for one in stage.steering()["routes"] if one["faults"]}


def clients(controller: Controller) -> set[str]:
    """The addresses of curl's requests, without operate's probes."""
    return {one["client"] for one in controller.seen() if one["agent"].startswith("curl")}


def test_a_route_service_of_a_person_is_relayed_at_any_port_with_nothing_else_configured(
    stage: Stage, running: Running, controller: Controller
) -> None:
    assert running
    # A Git server, whose pods are those of nginx here.
    ports = [{"name": "ssh", "port": 22, "targetPort": 443, "protocol": "TCP"}]
    git = service("ssh", "ingress-nginx", ports, selector={"app": "nginx"})
    stage.put(git, mine("git", "ingress-nginx/ssh"))
    stage.eventually("relayed", lambda: stage.curl("git.example.org", 22, at=cluster_ip(stage, "git")) == "200")
    assert faults(stage) == {}
    stage.eventually("logged", lambda: clients(controller) == {"10.244.0.2"})
    assert stage.subject()["steered"] is True


BAD: Final = {
    "nowhere": (mine("nowhere", "no/where", 443, 12099), "no/where"),
    "garbage": (mine("garbage", "???"), "switchback.dev/relay-to"),
    "loop": (mine("loop", f"{OWN}/{ROUTE}", 443, 12443), "this relay itself"),
    "named": (mine("named", "ingress-nginx/nginx", 80, "web"), "targetPort"),
    "header": (mine("header", "ingress-nginx/nginx", 80, 12080, proxy_protocol="v3"), "switchback.dev/proxy-protocol"),
}


def test_a_bad_route_service_gets_an_event_and_moves_no_other(stage: Stage, running: Running) -> None:
    before = stage.routes()[ROUTE]
    with stage.visited(HOST) as visits:
        stage.put(*(one for one, _ in BAD.values()))
        # The second with this port; the first is older and keeps it. The API server counts ages in whole seconds.
        taken = int(before["spec"]["ports"][0]["targetPort"])
        stage.eventually("a second passed", lambda: this_second() > before["metadata"]["creationTimestamp"])
        stage.put(mine("clash", "ingress-nginx/nginx", 443, taken))
        wanted = {f"{OWN}/{name}" for name in (*BAD, "clash")}
        stage.eventually("all faults are told", lambda: faults(stage).keys() == wanted)
        found = faults(stage)
        for name, (_, said) in BAD.items():
            assert said in found[f"{OWN}/{name}"]
        assert str(taken) in found[f"{OWN}/clash"]

        def told() -> dict[str, str]:
            return {name: note for reason, name, note in stage.events() if reason == "RouteFault"}

        stage.eventually("an Event for each", lambda: told().keys() == {*BAD, "clash"})
        stage.annotate(BAD["nowhere"][0], relay_to="ingress-nginx/nginx")
        stage.eventually("one is mended", lambda: f"{OWN}/nowhere" not in faults(stage))
        visits.wait_for_more(50)
        assert visits.failed() == []
    assert stage.routes()[ROUTE] == before
    assert running.log("operate").count("Traceback") == 0
    assert running.log("relay").count("Traceback") == 0


def test_a_service_of_a_person_answers_for_a_class_and_ours_gives_way(stage: Stage, running: Running) -> None:
    assert running
    stage.put(mine("theirs", "ingress-nginx/nginx", 443, 12443, **{"for": "ingressclass/nginx"}))
    stage.eventually("left alone", lambda: stage.subject()["decision"] == "leave alone", seconds=SOON)
    stage.eventually("the name is theirs", lambda: stage.dig(HOST) == (cluster_ip(stage, "theirs"),), seconds=SOON)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=SOON)
    assert "which we do not manage" in "; ".join(stage.subject()["evidence"])


EDITS: Final[dict[str, dict[str, Any]]] = {
    "names": {"metadata": {"annotations": {"switchback.dev/for": None}}},
    "header": {"metadata": {"annotations": {"switchback.dev/proxy-protocol": "none"}}},
    "backend": {"metadata": {"annotations": {"switchback.dev/relay-to": "web/other"}}},
    "pods": {"spec": {"selector": {"app.kubernetes.io/name": "other"}}},
    "protocol": {"spec": {"ports": [{"name": "dns", "port": 443, "protocol": "UDP"}]}},
    "type": {"spec": {"type": "ExternalName", "externalName": "other.example.org"}},
    "load balancer": {"spec": {"type": "LoadBalancer"}},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_what_another_writes_into_our_service_is_put_right(
    stage: Stage, running: Running, edit: dict[str, Any]
) -> None:
    assert running
    before = stage.routes()[ROUTE]
    stage.request("PATCH", f"/api/v1/namespaces/{OWN}/services/{ROUTE}", edit)

    def as_before() -> bool:
        now = stage.routes()[ROUTE]
        same_names = all(annotation(now, key) == annotation(before, key) for key in ("for", "relay-to"))
        # A Service that was an ExternalName gets another ClusterIP.
        same_spec = all(now["spec"].get(key) == before["spec"][key] for key in ("ports", "selector", "type"))
        return same_names and same_spec and annotation(now, "proxy-protocol") == "v1"

    # The names come back after a handshake, where another backend or header was written.
    stage.eventually("as before", as_before, seconds=30)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=30)


def test_a_service_of_ours_that_is_deleted_is_made_again(stage: Stage, running: Running) -> None:
    assert running
    before = stage.routes()[ROUTE]
    stage.remove({"kind": "Service", "metadata": {"name": ROUTE, "namespace": OWN}})

    def is_new() -> bool:
        return bool(stage.routes().get(ROUTE, before)["metadata"]["uid"] != before["metadata"]["uid"])

    stage.eventually("another Service", is_new, seconds=SOON)
    stage.eventually("steered again", lambda: bool(stage.subject().get("steered")), seconds=30)
    stage.eventually("requests succeed", lambda: stage.curl(HOST) == "200", seconds=SOON)
    # The same ports: the relay keeps its listeners.
    assert [one["targetPort"] for one in stage.routes()[ROUTE]["spec"]["ports"]] == [
        one["targetPort"] for one in before["spec"]["ports"]
    ]


def test_a_name_that_another_service_has_stops_one_class_with_an_event(stage: Stage, controller: Controller) -> None:
    assert controller
    other = service(ROUTE, OWN, {"http": 80})
    with playing(stage, *CLASS, other):
        stage.eventually(
            "an Event", lambda: any(reason == "RouteNotWritten" for reason, _, _ in stage.events()), seconds=40
        )
        assert "we do not manage" in stage.subject()["fault"]
        assert stage.subject()["steered"] is False


def test_nothing_is_probed_but_what_is_behind_hostnames(stage: Stage, controller: Controller, tmp_path: Path) -> None:
    quiet = "10.244.3.9"
    balancer = service("quiet", "quiet", WEB, kind="LoadBalancer", points=vip("203.0.113.90"))
    behind = pod("quiet-1", "quiet", {"app": "quiet"}, quiet)
    with (
        running_controller(stage.network, tmp_path / "quiet", quiet, demands=False) as other,
        playing(stage, *CLASS, balancer, behind, ingress_class("quiet")),
    ):
        stage.eventually("the class is steered", lambda: bool(stage.subject().get("steered")))
        stage.eventually("two probes", lambda: len(agents(controller)) >= 1)
        assert other.seen() == []


def agents(controller: Controller) -> list[str]:
    return [one["agent"] for one in controller.seen() if one["agent"] == "switchback-operate"]


def test_a_second_replica_takes_over_and_changes_nothing(stage: Stage, running: Running) -> None:
    before = stage.routes()[ROUTE]
    with stage.visited(HOST) as visits:
        running.start_operate(name="second", admin=SECOND_ADMIN)
        stage.eventually("it knows", lambda: stage.subject(at=SECOND_ADMIN).get("steered") is True)
        assert stage.steering(at=SECOND_ADMIN)["leads"] is False
        running.end("operate")
        stage.eventually("it leads", lambda: stage.steering(at=SECOND_ADMIN).get("leads") is True)
        visits.wait_for_more(50)
        assert visits.failed() == []
    assert stage.routes()[ROUTE] == before


def test_an_api_server_that_is_away_changes_nothing_and_is_caught_up_with(stage: Stage, running: Running) -> None:
    before = stage.routes()[ROUTE]
    second = ingress("late", "late.example.org", "nginx", points=vip(BALANCER))
    with stage.visited(HOST) as visits:
        with stage.api.hanging():
            visits.wait_for_more(150)
        stage.put(second)
        stage.eventually("a new name", lambda: stage.curl("late.example.org") == "200", seconds=90)
        assert visits.failed() == []
    stage.eventually("it leads", lambda: bool(stage.steering().get("leads")))
    assert stage.routes()[ROUTE] == before
    assert running.log("operate").count("Traceback") == 0
