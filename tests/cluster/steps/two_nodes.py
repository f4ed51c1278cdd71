"""Steps of the scene that one node cannot show: ways between nodes, a node that dies, a node that is drained.

The law: as in scenes.py. Client and controller are on different nodes. What a dead node costs others is counted in the
same seconds, by loads that have nothing to do with Switchback.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.acting import manifest, seen_by_nginx, under_loads
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.balancer import CONTROLLER, SPACE

NEAR: Final = "near"
"""A client's pod on the controller's node; it outlives the other node."""
HOST: Final = "app.example.org"
URL: Final = f"http://{HOST}/"
LAST: Final = 2
"""The number of the node that dies."""
SETTLED: Final = 5.0
"""Seconds of load after the dead node has left every Service."""
NOTICED: Final = 150.0
"""Seconds until its pods count as not ready; the controllers wait 50."""
_POLICIES: Final = ("Local", "Cluster")


def every_way_leads_to_the_page(stage: Stage) -> None:
    """Clients and relays on both nodes, externalTrafficPolicy Cluster and Local: pages, with the client's address."""
    stage.kubectl("apply", "-f", "-", given=near(stage))
    stage.kubectl("wait", f"pod/{NEAR}", "--for=condition=Ready", "--timeout=120s")
    expect_spread(stage)
    relays = pods_of(stage, "relay")
    ports = {one["port"]: one["targetPort"] for one in stage.relay()["spec"]["ports"]}
    for policy in _POLICIES:
        set_policy(stage, "externalTrafficPolicy", policy)
        for pod in ("client", NEAR):
            for relay in relays:
                way = f"{pod} by the relay of {relay['spec']['nodeName']}, {policy}"
                expect_page(stage, way, pod=pod, address=relay["status"]["podIP"], ports=ports)
            expect_page(stage, f"{pod} by the name, {policy}", pod=pod)


def pods_of(stage: Stage, program: str) -> list[Any]:
    """The pods of one of our programs."""
    found: list[Any] = stage.get("pods", "-n", "switchback", "-l", f"app.kubernetes.io/name={program}")["items"]
    return found


def expect_spread(stage: Stage) -> None:
    """Both nodes have each of our replicated programs, also after a rollout."""
    for program in ("dnsproxy", "relay"):
        there = {one["spec"]["nodeName"] for one in pods_of(stage, program)}
        stage.expect(f"nodes with {program}", saw=there, wanted=names(stage))


def expect_page(stage: Stage, way: str, *, pod: str, address: str = "", ports: Mapping[int, int] | None = None) -> None:
    """Pages over HTTP and HTTPS, and the client's own address in the controller's log."""
    for scheme, port in (("http", 80), ("https", 443)):
        path = f"way-{time.monotonic_ns()}"
        there = ("--connect-to", f"{HOST}:{port}:{stage.at.in_url(address)}:{(ports or {})[port]}") if address else ()
        said = stage.curl(f"{scheme}://{HOST}/{path}", *there, pod=pod)
        stage.expect(f"{way}: {scheme}", saw=said, wanted=(0, f"hello from {HOST}"))
        line = seen_by_nginx(stage, path)
        stage.expect(f"{way}: the client that nginx saw", saw=line.split()[0], wanted=stage.client_address(pod))
    stage.say(f"{way}: seen as {line.split()[0]}")


def local_policy_of_a_target_loses_nobody(stage: Stage) -> None:
    """A target becomes internalTrafficPolicy Local, which drops clients on other nodes: its names are forwarded."""
    plain = stage.get("service", "plain", "-n", SPACE)["spec"]["clusterIP"]
    stage.expect("before", saw=stage.dig("plain.example.org"), wanted=[plain])
    patch = json.dumps({"spec": {"internalTrafficPolicy": "Local"}})
    stage.kubectl("patch", "service", "plain", "-n", SPACE, "-p", patch)
    # Its public record leads to the load balancer of the other class, as that of any name here.
    relay = stage.relay_address()
    lasted = stage.eventually("the other's relay", lambda: stage.dig("plain.example.org") == [relay], seconds=30)
    stage.say(f"forwarded {lasted:.1f} s after the policy is Local")
    back = json.dumps({"spec": {"internalTrafficPolicy": "Cluster"}})
    stage.kubectl("patch", "service", "plain", "-n", SPACE, "-p", back)
    stage.eventually("the answer again", lambda: stage.dig("plain.example.org") == [plain], seconds=30)


def node_dies(stage: Stage) -> None:
    """A node dies hard: a living CoreDNS loses no lookup; failed requests are counted beside another Service's."""
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "each.yaml"))
    stage.rolled_out("daemonset/each", namespace=SPACE)
    expect_spread(stage)
    dns, each = survivor(stage), stage.get("service", "each", "-n", SPACE)["spec"]["clusterIP"]
    loads = [
        ("paced-dns", dns, "apps.example.org", stage.relay_address()),
        ("paced-dns", dns, "outside.example.org", stage.relay_address()),
        ("paced-dns", stage.at.dns, "apps.example.org", stage.relay_address()),
        ("paced-dns", stage.at.dns, "default.svc.cluster.local", "NXDOMAIN"),
        ("paced-http", URL),
        ("paced-http", f"http://{stage.at.in_url(each)}/"),
    ]

    def act() -> None:
        begun = time.monotonic()
        stage.cluster.kill_node(LAST)
        stage.eventually("no endpoint on the dead node", lambda: not endpoints_of(stage, LAST), seconds=NOTICED)
        stage.say(f"the dead node's pods left every Service after {time.monotonic() - begun:.0f} s")
        time.sleep(SETTLED)

    told = under_loads(stage, loads, act=act, pod=NEAR)
    for name, said in zip(("claimed", "others"), told, strict=False):
        lost = {outcome for outcome in said if outcome not in {"ok", "another address"}}
        stage.expect(f"lookups of {name} names lost by the living CoreDNS", saw=lost, wanted=set())
    compare(stage, "requests", ours=told[4], theirs=told[5])
    compare(stage, "lookups by the Service of the DNS", ours=told[2], theirs=told[3])
    bring_back(stage)


def compare(stage: Stage, what: str, *, ours: Mapping[str, int], theirs: Mapping[str, int]) -> None:
    """Report the failed share beside that of a load that does not know Switchback."""
    shares = [100 * (1 - said.get("ok", 0) / sum(said.values())) for said in (ours, theirs)]
    stage.say(f"{what} that failed: {shares[0]:.1f} %; without Switchback {shares[1]:.1f} %")


def bring_back(stage: Stage) -> None:
    """The machine starts again, with its images; all pods are ready, and both nodes have each part."""
    stage.cluster.start_node(LAST)
    stage.rolled_out("deployment/coredns", namespace="kube-system")
    stage.rolled_out("deployment/dnsproxy", "deployment/relay", "deployment/operate")
    stage.eventually("each Service on the node again", lambda: endpoints_of(stage, LAST))
    stage.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=120s")
    stage.eventually("the page, there", lambda: stage.curl(URL)[0] == 0, seconds=60)


def drain_costs_nothing(stage: Stage) -> None:
    """A drain of a node with dnsproxy, relay and CoreDNS: no request fails, and the other CoreDNS loses no lookup."""
    # A request resolves nothing: CoreDNS ends five seconds after the drain began, and a kube-proxy that is slower sends
    # it lookups still, of our names and of others.
    loads = [
        ("paced-dns", survivor(stage), "apps.example.org", stage.relay_address()),
        ("paced-http", URL, stage.relay_address()),
        ("paced-dns", stage.at.dns, "apps.example.org", stage.relay_address()),
        ("paced-dns", stage.at.dns, "default.svc.cluster.local", "NXDOMAIN"),
    ]

    def act() -> None:
        begun = time.monotonic()
        words = ("--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=app notin (client,machine)")
        stage.kubectl("drain", f"node-{LAST}", *words, "--timeout=180s")
        stage.say(f"drained in {time.monotonic() - begun:.0f} s")
        stage.rolled_out("deployment/dnsproxy", "deployment/relay")

    lookups, requests, ours, theirs = under_loads(stage, loads, act=act, pod=NEAR)
    stage.expect("requests", saw=set(requests), wanted={"ok"})
    stage.expect("lookups", saw=set(lookups) - {"another address"}, wanted={"ok"})
    # The drained CoreDNS is the cluster's own matter.
    compare(stage, "lookups by the Service of the DNS", ours=ours, theirs=theirs)
    stage.kubectl("uncordon", f"node-{LAST}")
    for workload in ("dnsproxy", "relay"):
        # The scheduler moves nothing back by itself.
        stage.kubectl("rollout", "restart", f"deployment/{workload}", "-n", "switchback")
    dns = stage.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-dns")["items"]
    stage.kubectl("delete", "pod", dns[0]["metadata"]["name"], "-n", "kube-system")
    stage.rolled_out("deployment/coredns", namespace="kube-system")
    stage.rolled_out("deployment/dnsproxy", "deployment/relay")


def near(stage: Stage) -> str:
    """The manifest of the client's pod on the controller's node."""
    return manifest(stage, "client.yaml", CLIENT_NAME=NEAR, CLIENT_NODE="node-1")


def names(stage: Stage) -> set[str]:
    """Of all nodes."""
    return {node.name for node in stage.nodes}


def set_policy(stage: Stage, field: str, value: str) -> None:
    """Set one of the controller's Service's policies."""
    stage.kubectl("patch", "service", CONTROLLER, "-n", SPACE, "-p", json.dumps({"spec": {field: value}}))


def survivor(stage: Stage) -> str:
    """The address of a CoreDNS on the first node."""
    pods = stage.get("pods", "-n", "kube-system", "-l", "k8s-app=kube-dns")["items"]
    found = [one["status"]["podIP"] for one in pods if one["spec"]["nodeName"] == "node-1"]
    if not found:
        raise StepFailed("no CoreDNS runs on node-1")
    return str(found[0])


def endpoints_of(stage: Stage, number: int) -> list[str]:
    """The Services with a ready endpoint on a node."""
    slices = stage.get("endpointslices", "-A")["items"]
    return [
        one["metadata"]["name"]
        for one in slices
        for endpoint in one["endpoints"] or ()
        if endpoint.get("nodeName") == f"node-{number}" and is_ready(endpoint)
    ]


def is_ready(endpoint: Mapping[str, Any]) -> bool:
    """Whether a Service sends it traffic; without the condition, it is ready."""
    return bool((endpoint.get("conditions") or {}).get("ready", True))
