"""The names that a real external-dns publishes for generated objects and those that we claim: each difference is known.

No controller runs: the test writes the statuses, pods, slices and a node that controllers and kubelets would.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import trio

from dnsproxy.cluster_dns.read import load_client
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.sources.external_dns.kinds import BESIDE, WATCHED
from dnsproxy.sources.external_dns.source import ExternalDnsSource
from dnsproxy.sources.source_follower import SourceFollower
from tests.kit.apiserver import ApiServer, running_apiserver, send
from tests.kit.external_dns import published_names

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "external-dns")

NEW: Final = "external-dns.kubernetes.io/"
OLD: Final = "external-dns.alpha.kubernetes.io/"
OBJECTS: Final = 240
HOSTS: Final = (
    "{0}.example.org", "{0}.Example.ORG.", "*.{0}.example.org", "{0}a.example.org,{0}b.example.org", "{0} .example.org",
    "{0}_u.example.org", "", " , ", "{0}.example.org,,{0}.example.org"
)  # fmt: skip
"""With the number of the object, so that no two objects name the same host."""
BAD_HOSTS: Final = ("-{0}.example.org", "{0}..example.org", "a.*.{0}.example.org", "{0}?.example.org")
TARGETS: Final = ("192.0.2.9", "2001:db8::9", "cdn.example.net", "192.0.2.9,192.0.2.10")
LEAD_ELSEWHERE: Final = ("NodePort", "ExternalName")
ELSEWHERE: Final = "its record leads elsewhere"


@dataclass
class Made:
    """One object, and what is special about it."""

    number: int
    kind: str
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    points: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"o{self.number}"

    def given(self, annotation: str) -> str:
        return self.annotations.get(NEW + annotation, self.annotations.get(OLD + annotation, ""))

    @property
    def is_headless(self) -> bool:
        return self.spec.get("clusterIP") == "None"

    def why_different(self) -> str:
        """Why external-dns and we differ in this object; empty if they must not."""
        if any(
            bad.format(self.name) in self.given(one) for bad in BAD_HOSTS for one in ("hostname", "internal-hostname")
        ):
            return "external-dns sends a text that is no hostname to its provider, and we reject it"
        elsewhere = self.given("target") and not self.points_here
        if self.spec.get("type") in LEAD_ELSEWHERE or elsewhere:
            return f"{ELSEWHERE}: to nodes, out of the cluster, to the annotation's target"
        if self.given("endpoints-type"):
            return f"{ELSEWHERE}: to nodes"
        if self.is_headless and "*" in self.given("hostname") + self.given("internal-hostname"):
            return "external-dns makes names such as p0.*.example.org for pods below a wildcard"
        if self.points_here and not self.points and not self.given("target"):
            return "external-dns waits for a load balancer, and our answer does not depend on it"
        return ""

    @property
    def points_here(self) -> bool:
        """Whether its names are answered with --target."""
        return self.kind == "Ingress" or self.spec.get("type") == "LoadBalancer"


def make(number: int, chance: random.Random) -> Made:
    one = Made(number, chance.choice(["Service", "Service", "Service", "Ingress"]))
    prefix = chance.choice([NEW, OLD])
    for annotation in chance.choice(
        [["hostname"], ["hostname"], ["internal-hostname"], ["hostname", "internal-hostname"]]
    ):
        hosts = chance.choice(BAD_HOSTS if chance.random() < 0.05 else HOSTS)
        # An internal name of its own, because external-dns joins the addresses of one name.
        inside = "in-" if annotation == "internal-hostname" and hosts.startswith("{0}") else ""
        one.annotations[prefix + annotation] = inside + hosts.format(one.name)
    if chance.random() < 0.2:
        one.annotations[prefix + "target"] = chance.choice(TARGETS)
    if chance.random() < 0.1:
        one.annotations[prefix + "controller"] = chance.choice(["dns-controller", "mine"])
    if chance.random() < 0.1:
        one.annotations[NEW + "hostname"] = f"newer{number}.example.org"
        one.annotations[OLD + "hostname"] = f"older{number}.example.org"
    if one.kind == "Ingress":
        if chance.random() < 0.2:
            one.annotations[prefix + "ingress-hostname-source"] = chance.choice(
                ["annotation-only", "defined-hosts-only"]
            )
    else:
        one.spec = chance.choice(
            [{"type": "LoadBalancer"}, {"type": "LoadBalancer"}, {"type": "ClusterIP"}, {"type": "ClusterIP"},
             {"type": "NodePort"}, {"type": "ExternalName", "externalName": "out.example.net"},
             *[{"clusterIP": "None", "publishNotReadyAddresses": chance.random() < 0.3}] * 3]
        )  # fmt: skip
        if one.is_headless and chance.random() < 0.1:
            one.annotations[prefix + "endpoints-type"] = chance.choice(["HostIP", "NodeExternalIP"])
    if one.points_here and chance.random() < 0.8:
        one.points = [chance.choice([{"ip": "192.0.2.22"}, {"hostname": "lb.example.net"}, {"ip": "2001:db8::22"}])]
    return one


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Of its own: both programs read the whole cluster's nodes."""
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as one:
        addresses = [{"type": "InternalIP", "address": "192.0.2.101"}, {"type": "ExternalIP", "address": "192.0.2.102"}]
        node = {"metadata": {"name": "node"}, "status": {"addresses": addresses}}
        one.request("POST", "/api/v1/nodes", node)
        one.request("PUT", "/api/v1/nodes/node/status", node)
        yield one


def create(server: ApiServer, objects: list[Made], chance: random.Random) -> None:
    with server.connection() as connection:
        for one in objects:
            metadata = {"name": one.name, "namespace": "default", "annotations": one.annotations}
            body: dict[str, Any] = {"metadata": metadata, "spec": one.spec}
            if one.kind == "Ingress":
                path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
                backend = {"service": {"name": "web", "port": {"number": 80}}}
                body["spec"] = {"defaultBackend": backend}
            else:
                path = "/api/v1/namespaces/default/services"
                body["spec"] = {"ports": [{"port": 80}], "selector": {"app": one.name}, **one.spec}
            made = send(connection, "POST", path, body)
            if one.points:
                made["status"] = {"loadBalancer": {"ingress": one.points}}
                send(connection, "PUT", f"{path}/{one.name}/status", made)
            if one.is_headless:
                create_pods(connection, one, chance)


def create_pods(connection: Any, one: Made, chance: random.Random) -> None:
    endpoints = []
    for number in range(chance.randrange(4)):
        name, hostname = f"{one.name}-{number}", chance.choice([None, f"p{number}"])
        spec = {"containers": [{"name": "c", "image": "c"}], "nodeName": "node", "subdomain": one.name}
        named = {"hostname": hostname} if hostname else {}
        pod = {"metadata": {"name": name, "labels": {"app": one.name}}, "spec": spec | named}
        send(connection, "POST", "/api/v1/namespaces/default/pods", pod)
        ref = {"kind": "Pod", "namespace": "default", "name": name}
        ready = {"ready": chance.choice([True, True, False])}
        address = f"10.244.{one.number}.{number}"
        endpoints.append({"addresses": [address], "conditions": ready, "targetRef": ref, **named})
    labels = {"kubernetes.io/service-name": one.name, "service.kubernetes.io/headless": ""}
    made = {"metadata": {"name": one.name, "labels": labels}, "addressType": "IPv4", "endpoints": endpoints}
    send(connection, "POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", made)


async def claimed(server: ApiServer) -> ClaimStore:
    """What a follower of the real API server claims, once all is read."""
    store, synced = ClaimStore(), trio.Event()
    async with await load_client(kubeconfig=str(server.kubeconfig), context=None) as client:
        follower = SourceFollower(
            client,
            store,
            ExternalDnsSource(store, most=1_000),
            name="external-dns",
            kinds=WATCHED,
            beside=BESIDE,
            on_claims=lambda _: None,
            on_synced=synced.set,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follower.run)
            with trio.fail_after(60):
                await synced.wait()
            nursery.cancel_scope.cancel()
    return store


def owner_of(name: str) -> int:
    """The number of the object in a name."""
    found = re.search(r"(?:o|newer|older)([0-9]+)", name)
    assert found is not None, name
    return int(found[1])


async def test_the_names_that_external_dns_publishes_are_those_that_we_claim(server: ApiServer) -> None:
    chance = random.Random(0)  # noqa: S311  # the same objects each time
    objects = {number: make(number, chance) for number in range(OBJECTS)}
    create(server, list(objects.values()), chance)
    sources = ["service", "ingress"]
    published = published_names(server.kubeconfig, "default", "--enable-legacy-annotation-prefix", sources=sources)
    # Of an empty item in a list it makes records without a name, and of a pod below it.
    theirs = {name for name in published if name.endswith(".example.org")}
    store = await claimed(server)
    # A claim to own addresses without any is forwarded, like a name without a record.
    ours = {one.hostname: one for one in store.claims() if one.terms.target != "own" or one.terms.status}
    different = {owner_of(name) for name in ours.keys() ^ theirs}
    assert {number: objects[number] for number in different if not objects[number].why_different()} == {}
    assert len(different) > 20, "the differences are seen at all"
    assert len(ours.keys() & theirs) > 100
    elsewhere = {number for number, one in objects.items() if one.why_different().startswith(ELSEWHERE)}
    assert not elsewhere & {owner_of(name) for name in ours}
    own = {name: set(one.terms.status) for name, one in ours.items() if one.terms.target == "own"}
    assert own == {name: published[name] for name in own}
    assert len(own) > 50
