"""Tenants write annotations: other hostnames, addresses of their choice. And what `edit` does not let them write."""

from __future__ import annotations

import http.client
from typing import Final

import pytest

from tests.kit import gateway_api
from tests.kit.apiserver import ingress
from tests.kit.tenants.acts import attacker, balance, claim, victim
from tests.kit.tenants.rows import FORWARDED, RELAY, Row, Stage, both
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.targets import readable, service
from tests.kit.tenants.tenant import ALLOWED_LABEL

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")

HOSTNAME: Final = "switchback.dev/hostname"
TARGET: Final = "switchback.dev/target"

UNLABELLED: Final = {
    "loopback": "127.0.0.1",
    "metadata": "169.254.169.254",
    "a pod": "10.244.1.7",
    "the world": "198.51.100.66",
    "a tenant's Service": "service:team-b/web",
    "the cluster's DNS": "service:kube-system/kube-dns",
    "the API server": "service:default/kubernetes",
}
"""Targets in a namespace without the label."""
NEVER: Final = {
    "loopback": "127.0.0.1",
    "loopback by another address": "127.8.8.8",
    "loopback IPv6": "::1",
    "loopback in IPv6": "::ffff:127.0.0.1",
    "unspecified": "0.0.0.0",  # an answer, not a listener
    "unspecified IPv6": "::",
    "this network": "0.1.2.3",
    "metadata": "169.254.169.254",
    "metadata in IPv6": "::ffff:169.254.169.254",
    "metadata in a NAT64": "64:ff9b::a9fe:a9fe",
    "metadata of a cloud, IPv6": "fd00:ec2::254",
    "metadata of another cloud": "100.100.100.200",
    "metadata of a third one": "192.0.0.192",
    "metadata of a fourth one": "168.63.129.16",
    "link-local": "fe80::1",
    "multicast": "224.0.0.251",
    "multicast IPv6": "ff02::fb",
    "broadcast": "255.255.255.255",
    "a pod": "10.244.1.7",
    "the world": "198.51.100.66",
    "a good one and a bad one": "192.0.2.7,127.0.0.1",
    "another tenant's Service": "service:team-b/web",
    "the API server": "service:default/kubernetes",
}
"""Targets in a namespace with the label, whose owner named no network."""


def label_of(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def targeted(kind: str, text: str, target: str, *, labelled: bool) -> Row:
    host = f"{kind}-{label_of(text)}.apps.example.org"
    labels = ALLOWED_LABEL if labelled else None
    does = claim(host, annotations={TARGET: target}, labels=labels)
    return Row(f"{kind}-{label_of(text)}", f"names as a target: {text}", does, {host: FORWARDED})


def by_label(scene: Scene) -> None:
    """Labels count like annotations."""
    tenant = scene.tenant()
    manifest = ingress("web", ["label.apps.example.org"], ingress_class="public")
    manifest["metadata"]["labels"] = {TARGET: "127.0.0.1", HOSTNAME: "label.world.example.com"}
    tenant.create(manifest)
    balance(scene, tenant)


def by_route(scene: Scene) -> None:
    tenant = scene.tenant()
    note = {HOSTNAME: "route2.world.example.com", TARGET: "127.0.0.1"}
    one = gateway_api.route("HTTPRoute", "annotated.gw.example.org", annotations=note)
    one["spec"]["parentRefs"][0]["namespace"] = "owner"
    tenant.create(one)


def by_owning_a_service(scene: Scene) -> None:
    """A Service of its own, which dnsproxy may even read, that is an alias of another host."""
    tenant = scene.tenant(labels=ALLOWED_LABEL)
    tenant.create(service("web", type="ExternalName", externalName="login.example.com"))
    readable(scene, tenant, "web")
    tenant.ingress("external.apps.example.org", annotations={TARGET: f"service:{tenant.namespace}/web"})
    balance(scene, tenant)


def by_external_addresses(scene: Scene) -> None:
    """A Service of its own with an address of the world among its external ones."""
    tenant = scene.tenant(labels=ALLOWED_LABEL)
    tenant.create(service("web", clusterIP="None", externalIPs=["10.244.1.7"], ports=[{"port": 80}]))
    readable(scene, tenant, "web")
    tenant.ingress("headless.apps.example.org", annotations={TARGET: f"service:{tenant.namespace}/web"})
    balance(scene, tenant)


def by_losing_the_label(scene: Scene) -> None:
    """The owner takes the right away again."""
    tenant = scene.tenant(labels=ALLOWED_LABEL)
    tenant.ingress("lost.apps.example.org", annotations={HOSTNAME: "was-allowed.apps.example.org"})
    balance(scene, tenant)
    scene.wait_for("was-allowed.apps.example.org", scene.relay)
    patch = {"metadata": {"labels": {"switchback.dev/annotations": None}}}
    path = f"/api/v1/namespaces/{tenant.namespace}"
    scene.server.request("PATCH", path, patch)
    (elsewhere,) = scene.forwarded("was-allowed.apps.example.org").addresses
    scene.wait_for("was-allowed.apps.example.org", elsewhere)


def by_ignoring(scene: Scene) -> None:
    """What a tenant ignores is its own."""
    victim(scene, "ignored.apps.example.org")
    attacker(scene, "ignored.apps.example.org", annotations={"switchback.dev/ignore": "true"})


ROWS: Final = (
    *(targeted("unlabelled", text, target, labelled=False) for text, target in UNLABELLED.items()),
    *(targeted("labelled", text, target, labelled=True) for text, target in NEVER.items()),
    Row("hostname", "names another host, past an admission policy on the hosts of rules",
        claim("annotated.apps.example.org", annotations={HOSTNAME: "annotated.world.example.com"}),
        {"annotated.world.example.com": FORWARDED, "annotated.apps.example.org": RELAY}),
    Row("hostname-wildcard", "the same with a wildcard",
        claim("annotated2.apps.example.org", annotations={HOSTNAME: "*.registered5.com"}),
        {"www.registered5.com": FORWARDED, "annotated2.apps.example.org": RELAY}),
    Row("label", "writes labels in place of annotations", by_label,
        {"label.apps.example.org": FORWARDED, "label.world.example.com": FORWARDED}),
    Row("route", "annotates a route", by_route,
        {"annotated.gw.example.org": FORWARDED, "route2.world.example.com": FORWARDED}),
    Row("external-name", "names a Service of its own that is an alias", by_owning_a_service,
        {"external.apps.example.org": FORWARDED}),
    Row("external-addresses", "names a headless Service of its own with external addresses", by_external_addresses,
        {"headless.apps.example.org": FORWARDED}),
    Row("lost-label", "keeps an annotation after the owner has taken the label away", by_losing_the_label,
        {"was-allowed.apps.example.org": FORWARDED, "lost.apps.example.org": RELAY}),
    Row("ignore", "ignores a claim of its own to another's name", by_ignoring, {"ignored.apps.example.org": RELAY}),
)  # fmt: skip

INGRESSES: Final = "/apis/networking.k8s.io/v1/namespaces/{}/ingresses/web"
FORBIDDEN: Final = {
    "label its namespace": ("PATCH", "/api/v1/namespaces/{}", {"metadata": {"labels": dict(ALLOWED_LABEL)}}),
    "write a status": ("PATCH", f"{INGRESSES}/status", {"status": {}}),
    "write a class": ("POST", "/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"name": "mine"}}),
    "write endpoint slices": ("POST", "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", {}),
    "write a gateway's status": ("PATCH", "/apis/gateway.networking.k8s.io/v1/namespaces/{}/gateways/main/status", {}),
    "write our Service": ("PATCH", "/api/v1/namespaces/switchback/services/relay", {}),
    "write our settings": ("POST", "/api/v1/namespaces/switchback/configmaps", {"metadata": {"name": "mine"}}),
    "write the Corefile": ("PATCH", "/api/v1/namespaces/kube-system/configmaps/coredns", {}),
}


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_annotations_do_not_count(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)


@pytest.mark.parametrize(("method", "path", "body"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_tenant_may_not(stage: Stage, method: str, path: str, body: object) -> None:
    tenant = stage.scene.tenant()
    status, said = tenant.call(method, path.format(tenant.namespace), body)
    assert status == http.client.FORBIDDEN, said


def test_a_created_status_does_not_count(stage: Stage) -> None:
    """The API server drops what a tenant states as the status of a new object, and its age."""
    tenant = stage.scene.tenant()
    manifest = ingress("web", ["forged.apps.example.org"])
    manifest["status"] = {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}
    manifest["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
    tenant.create(manifest)
    made = stage.scene.server.request("GET", INGRESSES.format(tenant.namespace))
    assert made["status"] == {"loadBalancer": {}}
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
