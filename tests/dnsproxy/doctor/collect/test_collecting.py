"""Reading an API server: all kinds of objects and failures become facts, and private data does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import pytest

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.own_service import ObjectRef
from dnsproxy.doctor.collect import collecting
from dnsproxy.doctor.collect.bounded_work import Finished
from dnsproxy.doctor.collect.collecting import Places, look, look_outside, read_cluster
from dnsproxy.doctor.collect.controller_settings import config_map_of
from dnsproxy.doctor.collect.read_own import ask_admin, with_metrics
from dnsproxy.doctor.collect.read_workloads import mode_of
from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.file import format_facts
from dnsproxy.doctor.facts.model import VERSION, Admin, Facts, Host, ReadFailure
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.paths import Paths, find_paths
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.structs.network import Service
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit.faulty_api import cluster_at
from tests.kit.manifest_api import respond
from tests.kit.ports import free_port

GATEWAY_API: Final = "/apis/gateway.networking.k8s.io/v1"
PLACES: Final = Places(ServiceRef(), ObjectRef("switchback", "dnsproxy"))


class Api:
    """An API server that serves a mapping of paths; a list is served as `items`."""

    def __init__(self, objects: Mapping[str, Any], *, status: Mapping[str, int] | None = None) -> None:
        self.objects = {"/version": {"gitVersion": "v1.34.4"}} | dict(objects)
        self.status = dict(status or {})
        self.asked: list[tuple[str, str]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        self.asked.append((request.method, path))
        if path in self.status:
            return respond(self.status[path], b'{"kind": "Status", "message": "no"}')
        if path not in self.objects:
            return respond(404, b'{"kind": "Status", "code": 404}')
        found = self.objects[path]
        if isinstance(found, str):
            return respond(200, found.encode())
        if isinstance(found, list):
            start = int(request.url.params.get("continue", 0))
            size = int(request.url.params.get("limit", 500))
            more = {"continue": str(start + size)} if start + size < len(found) else {}
            found = {"metadata": more, "items": found[start : start + size]}
        return respond(200, json.dumps(found).encode())

    def client(self) -> ApiClient:
        return ApiClient(cluster_at("http://api.example.org"), transport=httpx2.MockTransport(self.answer))

    async def read(self, hostname: str = "") -> Facts:
        async with self.client() as client:
            facts, paths = await read_cluster(client, hostname, PLACES, lambda _: None)
        assert paths == find_paths(facts)
        return facts


def workload(name: str, *, image: str = "x:1", namespace: str = "kube-system", args: Any = (), **fields: Any) -> Any:
    container = {"name": name, "image": image, "args": list(args), **fields}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


def service(name: str, namespace: str = "web", **spec: Any) -> Any:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name, "team": "secret-project"},
            "annotations": {
                "load-balancer.hetzner.cloud/location": "fsn1",
                "kubectl.kubernetes.io/last-applied-configuration": "a-secret",
            },
        },
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.80", "selector": {"app": name},
                 "ports": [{"port": 80, "name": "http"}, {"port": 443, "protocol": "UDP"}]} | spec,
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10", "ipMode": "VIP"}]}},
    }  # fmt: skip


INGRESS: Final = {
    "metadata": {"name": "shop", "namespace": "web"},
    "spec": {"rules": [{"host": "app.example.org"}, {"host": "bad host"}]},
    "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}},
}
INGRESSES: Final = "/apis/networking.k8s.io/v1/ingresses"
CLASSES: Final = "/apis/networking.k8s.io/v1/ingressclasses"
DAEMON_SETS: Final = "/apis/apps/v1/daemonsets"
MAPS: Final = "/api/v1/namespaces/kube-system/configmaps"


async def test_a_cluster_is_read_with_get_and_list_only() -> None:
    default = {"metadata": {"name": "nginx", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
               "spec": {"controller": "k8s.io/ingress-nginx"}}  # fmt: skip
    api = Api(
        {
            INGRESSES: [INGRESS],
            CLASSES: [default],
            "/api/v1/services": [service("ingress"), service("plain", type="ClusterIP") | {"status": {}}],
            "/api/v1/nodes": [{"metadata": {"name": "n"}, "spec": {"providerID": "hcloud://1"}}],
            DAEMON_SETS: [workload("kube-proxy", image="registry.k8s.io/kube-proxy:v1.34.4")],
            f"{MAPS}/kube-proxy": {"metadata": {"name": "kube-proxy"}, "data": {"config.conf": 'mode: "ipvs"\n'}},
            "/apis/apps/v1/namespaces/web/deployments": [
                workload("ingress", namespace="web", args=["--configmap=web/c"])
            ],
            "/api/v1/namespaces/web/configmaps/c": {
                "metadata": {"name": "c"},
                "data": {"use-proxy-protocol": "true", "password": "a-secret"},
            },
        }
    )
    seen = await api.read()
    assert {method for method, _ in api.asked} == {"GET"}
    assert not [path for _, path in api.asked if "secret" in path.rpartition("/")[2]]
    assert seen.hosts == (Host("app.example.org", "Ingress web/shop", "nginx", ("203.0.113.10",)),)
    assert len(seen.rejected) == 1
    assert "bad host" in seen.rejected[0]
    assert (seen.server_version, seen.provider) == ("v1.34.4", "hcloud")
    (one,) = seen.services
    assert one.key == "web/ingress"
    assert [port.port for port in one.ports] == [80]
    assert one.points[0].ip_mode == "VIP"
    assert one.settings == {"use-proxy-protocol": "true"}
    assert one.settings_from == "ConfigMap web/c"
    assert [(part.name, part.version, part.settings) for part in seen.components] == [
        ("kube-proxy", "v1.34.4", {"mode": "ipvs"})
    ]
    assert b"secret" not in format_facts(seen)
    assert seen.refusals == ()


async def test_paths_are_found_once_and_have_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Facts] = []

    def counting(seen: Facts) -> Paths:
        calls.append(seen)
        return find_paths(seen)

    monkeypatch.setattr(collecting, "find_paths", counting)
    monkeypatch.setattr(collecting, "public_server", lambda *_: None)
    workloads = [workload("ingress", namespace="web", args=["--configmap=web/c"])]
    data = {"metadata": {"name": "c"}, "data": {"use-proxy-protocol": "true"}}
    api = Api(
        {
            INGRESSES: [INGRESS],
            "/api/v1/services": [service("ingress")],
            "/apis/apps/v1/namespaces/web/deployments": workloads,
            "/api/v1/namespaces/web/configmaps/c": data,
        }
    )
    async with api.client() as client:
        seen, paths = await read_cluster(client, "", PLACES, lambda _: None)
    seen = await look_outside(seen, paths, PLACES, lambda _: None)
    assert len(calls) == 1
    (path,) = paths.paths
    assert path.service.settings == {"use-proxy-protocol": "true"}
    assert judge(seen, paths) == judge(seen)


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
async def test_what_was_not_looked_at_in_time_is_a_failure(monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    async def too_slow(*_: object) -> Finished[Any]:
        return Finished((), 5, 30)

    monkeypatch.setattr(collecting, "dial_with_headers", too_slow)
    monkeypatch.setattr(collecting, "look_up_all", too_slow)
    monkeypatch.setattr(collecting, "public_server", lambda *_: None)
    seen = Facts(VERSION, refusals=(ReadFailure("a", "b"),))
    seen = await (look if inside else look_outside)(seen, Paths(()), PLACES, lambda _: None)
    dialled = (ReadFailure("dial the ports", "5 of 5 connections did not finish within 30 s"),) if inside else ()
    looked_up = ReadFailure("look up the hostnames", "5 of 5 look-ups did not finish within 30 s")
    assert seen.refusals == (ReadFailure("a", "b"), looked_up, *dialled)


async def test_hosts_of_gateways_are_those_of_the_server() -> None:
    gateway = {
        "metadata": {"name": "main", "namespace": "infra"},
        "spec": {"gatewayClassName": "public", "listeners": [{"name": "a", "protocol": "HTTP", "port": 80}]},
        "status": {"addresses": [{"type": "IPAddress", "value": "203.0.113.10"}]},
    }
    route = {
        "metadata": {"name": "shop", "namespace": "infra"},
        "spec": {"parentRefs": [{"name": "main"}], "hostnames": ["gw.example.org"]},
    }
    kinds = [{"name": name, "verbs": ["list", "watch"]} for name in ("gateways", "httproutes")]
    api = Api(
        {
            GATEWAY_API: {"resources": kinds},
            f"{GATEWAY_API}/gateways": [gateway],
            f"{GATEWAY_API}/httproutes": [route],
            f"{GATEWAY_API}/gatewayclasses": [
                {"metadata": {"name": "public"}, "spec": {"controllerName": "example.org/gateway"}}
            ],
            "/api/v1/namespaces": [{"metadata": {"name": "infra"}}],
            "/api/v1/services": [service("gateway")],
        }
    )
    seen = await api.read()
    assert seen.hosts == (Host("gw.example.org", "HTTPRoute infra/shop", "public", ("203.0.113.10",)),)
    assert [one.controller for one in seen.classes] == ["example.org/gateway"]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (
            {DAEMON_SETS: [workload("cilium", image="quay.io/cilium/cilium:v1.18.0@sha256:0")],
             f"{MAPS}/cilium-config": {"metadata": {"name": "c"},
                                       "data": {"kube-proxy-replacement": "true", "x": "y"}}},
            [("cilium", "v1.18.0", {"kube-proxy-replacement": "true"})],
        ),
        (
            {DAEMON_SETS: [workload("antrea-agent", image="antrea/antrea-agent-ubuntu:v1.15.0")],
             f"{MAPS}/antrea-config": {"metadata": {"name": "c"},
                                       "data": {"antrea-agent.conf": "antreaProxy:\n  proxyLoadBalancerIPs: false\n"}}},
            [("antrea", "v1.15.0", {"proxyLoadBalancerIPs": "false"})],
        ),
        (
            {DAEMON_SETS: [workload("calico-node", image="docker.io/calico/node:v3.30.1")],
             "/apis/crd.projectcalico.org/v1/felixconfigurations/default":
                 {"metadata": {"name": "default"}, "spec": {"bpfEnabled": True}}},
            [("calico", "v3.30.1", {"bpfEnabled": "true", "service-proxy": "true"})],
        ),
        ({DAEMON_SETS: [workload("calico-node", image="calico/node:v3.30.1")]}, [("calico", "v3.30.1", {})]),
        ({DAEMON_SETS: [workload("kube-router", args=["--run-service-proxy=true"])]},
         [("kube-router", "1", {"service-proxy": "true"})]),
        ({DAEMON_SETS: [workload("kube-proxy", image="kube-proxy@sha256:0")]}, [("kube-proxy", "", {})]),
        ({DAEMON_SETS: [workload("fluentd"), {"metadata": {"name": "kube-proxy"}}]}, [("kube-proxy", "", {})]),
        ({DAEMON_SETS: [{"metadata": {}}, {"metadata": {"name": 5}}]}, []),
        ({}, []),
    ],
    ids=["cilium", "antrea", "calico ebpf", "calico", "kube-router", "digest", "without pods", "unreadable", "none"],
)  # fmt: skip
async def test_the_data_plane_is_recognised_by_its_workloads(objects: Mapping[str, Any], expected: list[Any]) -> None:
    seen = await Api(objects).read()
    assert [(one.name, one.version, one.settings) for one in seen.components] == expected


@pytest.mark.parametrize("code", [403, 500, 503, 429, 400])
@pytest.mark.parametrize(
    ("path", "what"),
    [
        (INGRESSES, "list ingresses"),
        ("/api/v1/services", "list services"),
        (DAEMON_SETS, "list daemonsets.apps"),
        ("/api/v1/nodes", "list nodes"),
    ],
)
async def test_a_failed_read_is_noted_and_the_rest_is_read(path: str, what: str, code: int) -> None:
    seen = await Api({INGRESSES: [INGRESS]}, status={path: code}).read()
    assert what in {refusal.what for refusal in seen.refusals}
    assert seen.server_version == "v1.34.4"


@pytest.mark.parametrize("code", [401, 500, 503])
async def test_a_server_that_cannot_be_used_ends_the_look(code: int) -> None:
    with pytest.raises(StartError, match="could not be asked") as caught:
        await Api({}, status={"/version": code}).read()
    assert caught.value.status == 3


async def test_a_missing_version_does_not_end_the_look() -> None:
    assert (await Api({}, status={"/version": 403}).read()).server_version == ""
    assert (await Api({"/version": ["a"]}).read()).server_version == ""


async def test_long_lists_come_in_pages_and_a_bad_object_is_skipped() -> None:
    good = [{"metadata": {"name": f"s{number}", "namespace": "a"}} for number in range(1200)]
    api = Api({"/api/v1/services": [*good, {"metadata": {"name": None}}, {"spec": {}}]})
    async with api.client() as client:
        reader = Reader(client)
        found = await reader.list("/api/v1/services", Service, "list services")
    assert found is not None
    assert len(found) == 1200
    assert len(api.asked) == 2
    assert next(refusal.what for refusal in reader.failures) == "one of list services"


async def test_our_own_pods_are_asked_through_the_api_server() -> None:
    base = "/api/v1/namespaces/switchback"
    own = {"metadata": {"name": "dnsproxy"}, "spec": {"clusterIP": "10.96.0.53", "ports": [{"port": 53}]}}
    endpoints = [{"addresses": ["10.244.0.5"], "targetRef": {"kind": "Pod", "name": "dnsproxy-0"}}]
    slices = [{"metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "dnsproxy"}}, "endpoints": endpoints}]
    metrics = 'dnsproxy_source_contact_age_seconds{source="Ingress"} 900\n'
    api = Api(
        {
            f"{base}/services/dnsproxy": own,
            "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices": slices,
            f"{base}/pods/dnsproxy-0:8081/proxy/readyz": "ready, 3 names\n",
            f"{base}/pods/dnsproxy-0:8081/proxy/metrics": metrics,
        }
    )
    seen = await api.read()
    assert seen.dnsproxy is not None
    assert (seen.dnsproxy.found, seen.dnsproxy.ready, seen.dnsproxy.pods) == (True, 1, ("10.244.0.5",))
    page = seen.admin[0]
    assert (page.where, page.ready, page.text, page.ages) == (
        "pod switchback/dnsproxy-0", True, "ready, 3 names", {"Ingress": 900.0}
    )  # fmt: skip


@pytest.mark.parametrize(("program", "command"), [("dnsproxy", "`dnsproxy serve`"), ("relay", "`proxy`")])
async def test_an_admin_port_without_a_server_is_reported_with_the_program_that_was_asked(
    program: str, command: str
) -> None:
    page = await ask_admin(Endpoint("127.0.0.1", free_port()), program)
    assert (page.program, page.ready) == (program, None)
    assert f"is {command} running" in page.text


@pytest.mark.parametrize(
    ("configuration", "words", "mode"),
    [
        ('mode: ""\n', [], {}),
        ("mode: nftables\n", [], {"mode": "nftables"}),
        ("mode: 'ipvs'\n", [], {"mode": "ipvs"}),
        ("ipvs:\n  mode: x\n", [], {}),
        ("mode: ipvs\n", ["--proxy-mode=iptables"], {"mode": "iptables"}),
        ("", [], {}),
        ("\x00garbage", ["--proxy-mode="], {}),
    ],
)
def test_the_mode_of_kube_proxy_is_its_flag_or_its_file(
    configuration: str, words: list[str], mode: dict[str, str]
) -> None:
    assert mode_of(configuration, words) == mode


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--configmap=a/b"], ("a", "b")),
        (["--configmap=$(POD_NAMESPACE)/b"], ("web", "b")),
        (["--configmap=$(NAMESPACE)/b"], ("web", "b")),
        (["--config-map=b"], ("web", "b")),
        (["/nginx", "--x=y", "--configmap=a/b"], ("a", "b")),
        (["--configmap=$(OTHER)/b"], None),
        (["--configmap"], None),
        ([], None),
    ],
)
def test_the_config_map_of_a_controller_is_named_by_its_arguments(words: list[str], expected: Any) -> None:
    assert config_map_of(words, "web") == expected


@pytest.mark.parametrize("text", ["", "garbage {", "<html>", 'a{source="x"} not-a-number\n', "\x00"])
def test_invalid_metrics_change_nothing(text: str) -> None:
    page = Admin("dnsproxy", "a", True)
    assert with_metrics(page, text) == page
