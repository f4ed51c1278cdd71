"""States of a cluster for `dnsproxy operate`: a class or Gateway, what is behind it, and what has to be decided.

The law: each state has objects of its own, so that many are in one cluster at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.kit.doctor_stage.servers import Server
from tests.kit.operate_stage.objects import WEB, Object, gateway, ingress, ingress_class, pod, service
from tests.kit.operate_stage.stage import PUBLIC, Running, Stage

RELAY, NOTHING, ALONE = "relay", "nothing", "leave alone"


@dataclass(frozen=True)
class State:
    """One distribution: what its cluster has, and what is decided."""

    name: str
    """Also the host, under example.org."""
    objects: tuple[Object, ...]
    subject: str
    decision: str
    evidence: str = ""
    port: int = 443

    @property
    def host(self) -> str:
        return f"{self.name}.example.org"


def controller(key: str, server: Server, points: list[Object], **options: Any) -> tuple[Object, ...]:
    """A LoadBalancer Service and its one pod."""
    namespace, _, name = key.partition("/")
    ports = options.pop("ports", WEB)
    addresses = options.pop("addresses", (server.ipv4, server.ipv6))
    labels = {"app": f"{namespace}-{name}"}
    return (
        service(name, namespace, ports, kind="LoadBalancer", points=points, selector=labels, **options),
        pod(f"{name}-1", namespace, labels, *addresses),
    )


def with_class(
    name: str,
    key: str,
    server: Server,
    points: list[Object],
    decision: str,
    evidence: str = "",
    *,
    class_name: str = "",
    more: tuple[Object, ...] = (),
    metadata: dict[str, Any] | None = None,
    **options: Any,
) -> State:
    """A class with one Ingress, whose status is that of the Service."""
    used = class_name or name
    objects = (
        *controller(key, server, points, **options),
        ingress_class(used, **metadata or {}),
        ingress(name, f"{name}.example.org", used, points=points),
        *more,
    )
    return State(name, objects, f"ingressclass/{used}", decision, evidence)


def of_gateway(name: str, key: str, addresses: tuple[str, ...], decision: str, *more: Object, **options: Any) -> State:
    """A Gateway with one route; `more` are the objects behind it."""
    objects = (*more, *gateway(name, f"{name}.example.org", *addresses, **options))
    return State(name, objects, f"gateway/infra/{name}", decision, key)


def placeholder(name: str, namespace: str) -> Object:
    """The EndpointSlice that Cilium writes for the Service of a Gateway."""
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.192.192.192"]}],
        "ports": [{"port": 9999}],
    }


@contextmanager
def playing(stage: Stage, *objects: Object) -> Iterator[Running]:
    """Switchback in a cluster with these objects."""
    stage.put(*objects)
    with stage.cluster() as running:
        yield running


def check(stage: Stage, state: State) -> None:
    """Wait for the decision, and look what a pod gets."""
    steers = state.decision == RELAY
    stage.eventually(
        f"{state.subject}: {state.decision}",
        lambda: (row := stage.subject(state.subject)).get("decision") == state.decision and row["steered"] is steers,
    )
    row = stage.subject(state.subject)
    assert state.evidence in "; ".join(row["evidence"])
    if steers:
        stage.eventually("the name is answered", lambda: stage.dig(state.host) not in [(), (PUBLIC,)])
        assert stage.curl(state.host) == "200"
    else:
        assert stage.dig(state.host) == (PUBLIC,)
        assert row["relay"] == ""
