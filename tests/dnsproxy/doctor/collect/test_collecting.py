"""Collecting: all parts of an API server become facts, whatever its answers, and private data does not."""

from __future__ import annotations

import json
import re
import zlib
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from dnsproxy.admin.subjects_document import format_subjects
from dnsproxy.doctor.collect import collecting, looking
from dnsproxy.doctor.collect.bounded_work import Finished
from dnsproxy.doctor.collect.collecting import read_cluster
from dnsproxy.doctor.collect.looking import look, look_outside
from dnsproxy.doctor.collect.read_own import ask_admin, with_metrics, with_subjects
from dnsproxy.doctor.facts.file import format_facts
from dnsproxy.doctor.facts.model import VERSION, Admin, Facts, Host, ReadFailure
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.paths import Paths, find_paths
from dnsproxy.doctor.judge.refusals import DIALLING, LOOKING_UP
from dnsproxy.hostnames.wide_wildcards import WideWildcard
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.dnsproxy.doctor.collect.cluster_api import (
    CLASSES,
    DAEMON_SETS,
    GATEWAY_API,
    INGRESS,
    INGRESSES,
    MAPS,
    PLACES,
    Api,
    service,
    workload,
)
from tests.kit.ports import free_port


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
    monkeypatch.setattr(looking, "public_server", lambda *_: None)
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

    monkeypatch.setattr(looking, "dial_with_headers", too_slow)
    monkeypatch.setattr(looking, "look_up_all", too_slow)
    monkeypatch.setattr(looking, "public_server", lambda *_: None)
    seen = Facts(VERSION, refusals=(ReadFailure("a", "b"),))
    seen = await (look if inside else look_outside)(seen, Paths(()), PLACES, lambda _: None)
    dialled = (ReadFailure("dial the ports", "5 of 5 connections did not finish within 30 s"),) if inside else ()
    looked_up = ReadFailure("look up the names", "5 of 5 look-ups did not finish within 30 s")
    assert seen.refusals == (ReadFailure("a", "b"), looked_up, *dialled)
    assert {one.what for one in (looked_up, *dialled)} <= {DIALLING, LOOKING_UP}


def whole_cluster() -> dict[str, Any]:
    """Something at each place that the doctor reads."""
    base, discovery = "/api/v1/namespaces/switchback", "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices"
    kinds = [{"name": name, "verbs": ["list", "watch"]} for name in ("gateways", "httproutes")]
    endpoints = [{"addresses": ["10.244.0.5"], "targetRef": {"kind": "Pod", "name": "dnsproxy-0"}}]
    own = [workload("dnsproxy", namespace="switchback", envFrom=[{"configMapRef": {"name": "settings"}}])]
    # A container that was injected stands before ours.
    containers = own[0]["spec"]["template"]["spec"]["containers"]
    containers[0] |= {"command": ["dnsproxy"], "image": "registry.example.org/switchback:1"}
    containers.insert(0, {"name": "mesh", "command": ["mesh"], "image": "mesh:1"})
    return {
        INGRESSES: [INGRESS],
        CLASSES: [{"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}],
        GATEWAY_API: {"resources": kinds},
        "/api/v1/services": [service("ingress")],
        "/api/v1/nodes": [{"metadata": {"name": "n"}, "spec": {"providerID": "hcloud://1"}}],
        DAEMON_SETS: [workload("kube-proxy"), workload("calico-node")],
        f"{MAPS}/kube-proxy": {"metadata": {"name": "kube-proxy"}, "data": {"config.conf": "mode: ipvs"}},
        "/apis/apps/v1/namespaces/web/deployments": [workload("ingress", namespace="web", args=["--configmap=web/c"])],
        "/api/v1/namespaces/web/configmaps/c": {"metadata": {"name": "c"}, "data": {"use-proxy-protocol": "true"}},
        f"{base}/services/dnsproxy": {
            "metadata": {"name": "dnsproxy", "namespace": "switchback"},
            "spec": {"clusterIP": "10.96.0.53", "ports": [{"port": 53}], "selector": {"app": "dnsproxy"}},
        },
        discovery: [{"metadata": {"name": "a"}, "endpoints": endpoints}],
        "/apis/apps/v1/namespaces/switchback/deployments": own,
        f"{base}/configmaps/settings": {"metadata": {"name": "settings"}, "data": {"DNSPROXY_TARGET": "service:a/b"}},
        f"{base}/pods/dnsproxy-0:8081/proxy/readyz": "ready",
        f"{base}/pods/dnsproxy-0:8081/proxy/metrics": "",
        f"{base}/pods/dnsproxy-0:8081/proxy/subjects": '{"subjects":[]}',
    }


NAMES = {
    INGRESSES: "list ingresses",
    CLASSES: "list ingressclasses",
    GATEWAY_API: "list gateways",
    "/apis/gateway.networking.k8s.io/v1alpha3": "list tlsroutes",
    "/apis/gateway.networking.k8s.io/v1alpha2": "list tlsroutes",
    "/apis/gateway.networking.x-k8s.io/v1alpha1": "list xlistenersets",
    f"{GATEWAY_API}/gateways": "list gateways",
    f"{GATEWAY_API}/httproutes": "list httproutes",
    f"{GATEWAY_API}/gatewayclasses": "list gatewayclasses",
    "/api/v1/namespaces": "list namespaces",
    "/api/v1/services": "list services",
    "/api/v1/nodes": "list nodes",
    DAEMON_SETS: "list daemonsets.apps",
    f"{MAPS}/kube-proxy": "get configmaps kube-proxy in namespace kube-system",
    "/apis/crd.projectcalico.org/v1/felixconfigurations/default": "get felixconfigurations default",
    "/apis/apps/v1/namespaces/web/deployments": "list deployments.apps in namespace web",
    "/api/v1/namespaces/web/configmaps/c": "get configmaps c in namespace web",
    "/api/v1/namespaces/switchback/services/dnsproxy": "get services dnsproxy in namespace switchback",
    "/api/v1/namespaces/a/services/b": "get services b in namespace a",
    "/apis/discovery.k8s.io/v1/namespaces/switchback/endpointslices": "list endpointslices in namespace switchback",
    "/apis/apps/v1/namespaces/switchback/deployments": "list deployments.apps in namespace switchback",
    "/api/v1/namespaces/switchback/configmaps/settings": "get configmaps settings in namespace switchback",
}
"""From the path of each read to the name of its failure."""
ELSEWHERE = {
    "/version",
    "/apis/gateway.networking.k8s.io/v1beta1",
    "/apis/admissionregistration.k8s.io/v1",
    "/apis/admissionregistration.k8s.io/v1beta1",
    "/apis/apps/v1/namespaces/switchback/daemonsets",
    "/api/v1/namespaces/kube-system/services",
    "/api/v1/namespaces/kube-system/services/kube-dns",
    "/api/v1/namespaces/kube-system/services/coredns",
    "/api/v1/namespaces/kube-system/services/rke2-coredns-rke2-coredns",
    "/api/v1/namespaces/openshift-dns/services/dns-default",
    "/api/v1/namespaces/switchback/pods/dnsproxy-0:8081/proxy/readyz",
    "/api/v1/namespaces/switchback/pods/dnsproxy-0:8081/proxy/metrics",
    "/api/v1/namespaces/switchback/pods/dnsproxy-0:8081/proxy/subjects",
}
"""Reads whose failures are other facts: of the cluster's DNS, of an admin port, or of a version that nothing needs."""


async def test_every_read_has_a_name_for_its_failure() -> None:
    api = Api(whole_cluster())
    seen = await api.read()
    assert seen.refusals == ()
    assert {path for _, path in api.asked} == NAMES.keys() | ELSEWHERE
    assert seen.dnsproxy is not None
    assert seen.dnsproxy.image == "registry.example.org/switchback:1"


@pytest.mark.parametrize(("path", "what"), NAMES.items(), ids=NAMES)
async def test_a_read_that_is_forbidden_is_named_and_the_rest_is_read(path: str, what: str) -> None:
    whole, seen = await Api(whole_cluster()).read(), await Api(whole_cluster(), status={path: 403}).read()
    found = {failure.what: failure.why for failure in seen.refusals}
    assert found[what].startswith("forbidden: 403")
    assert seen.server_version == "v1.34.4"
    assert seen.dns == whole.dns


@pytest.mark.parametrize("code", [500, 503, 429, 400])
@pytest.mark.parametrize("path", [INGRESSES, "/api/v1/services", DAEMON_SETS, "/api/v1/nodes", GATEWAY_API])
async def test_a_failure_of_the_server_is_named_as_well(path: str, code: int) -> None:
    seen = await Api(whole_cluster(), status={path: code}).read()
    assert NAMES[path] in {failure.what for failure in seen.refusals}


DEEP = "[" * 3000 + "]" * 3000


def deepened(found: Any) -> Any:
    """An answer whose objects have a field that is nested too deeply for a decoder."""
    if isinstance(found, str):
        return found
    one = {"metadata": {}, "items": found} if isinstance(found, list) else found
    return json.dumps(one).replace('{"metadata": {"', f'{{"deep": {DEEP}, "metadata": {{"')


@pytest.mark.parametrize("path", sorted(whole_cluster().keys() - {GATEWAY_API}))
async def test_an_object_that_is_nested_too_deeply_is_read_like_any_other(path: str) -> None:
    whole, cluster = await Api(whole_cluster()).read(), whole_cluster()
    cluster[path] = deepened(cluster[path])
    seen = await Api(cluster).read()
    assert replace(seen, taken="") == replace(whole, taken="")


@pytest.mark.parametrize("answer", [DEEP, f'{{"a": {DEEP}}}', f'{{"metadata": {{"name": {DEEP}}}}}', "{" * 5000])
async def test_a_server_that_answers_everything_with_nested_text_ends_with_facts(answer: str) -> None:
    paths = [*NAMES, *ELSEWHERE]
    seen = await Api(dict.fromkeys(paths, answer) | {"/version": answer}).read()
    assert seen.hosts == ()
    assert seen.refusals


async def test_a_slow_server_costs_a_few_rounds_of_requests(autojump_clock: MockClock) -> None:
    begun = autojump_clock.current_time()
    shown: list[str] = []
    api = Api(whole_cluster(), delay=lambda _: 1.0)
    seen = await api.read(progress=shown.append)
    assert autojump_clock.current_time() - begun < 10
    assert len(api.asked) > 25
    # Reads that start together start in any order, and a line names the first of them.
    reading = [line for line in shown if line.startswith("reading: ")]
    assert len(reading) > len(api.asked)
    assert all(re.fullmatch(r"reading: \S.* \(\d+ of \d+\)", line) for line in reading)
    assert {what for what in NAMES.values() for line in reading if what in line}
    assert seen.refusals == ()


def uneven_delay(number: int, path: str) -> float:
    """Another order of the answers for each number."""
    return zlib.crc32(f"{number} {path}".encode()) % 100 / 100


async def test_the_facts_do_not_depend_on_the_order_of_the_answers(autojump_clock: MockClock) -> None:
    forbidden = dict.fromkeys((CLASSES, "/api/v1/nodes", "/api/v1/namespaces/web/configmaps/c"), 403)
    read = []
    for number in range(3):
        api = Api(whole_cluster(), status=forbidden, delay=partial(uneven_delay, number))
        read.append(await api.read())
    assert len({format_facts(replace(seen, taken="")) for seen in read}) == 1
    assert autojump_clock.current_time() > 0


async def test_the_number_of_requests_does_not_grow_with_the_hosts() -> None:
    rows = [INGRESS | {"metadata": {"name": f"i{number}", "namespace": "web"}} for number in range(450)]
    few, many = Api(whole_cluster()), Api(whole_cluster() | {INGRESSES: rows})
    await few.read()
    assert len((await many.read()).hosts) == 450
    assert len(few.asked) == len(many.asked) == 35


@pytest.mark.parametrize("code", [401, 500, 503])
async def test_a_server_that_cannot_be_used_ends_the_look(code: int) -> None:
    with pytest.raises(StartError, match="could not be asked") as caught:
        await Api({}, status={"/version": code}).read()
    assert caught.value.status == 3


async def test_a_missing_version_does_not_end_the_look() -> None:
    assert (await Api({}, status={"/version": 403}).read()).server_version == ""
    assert (await Api({"/version": ["a"]}).read()).server_version == ""


WIDE = WideWildcard(hostname="*.example.org", origin="Ingress shop/web")


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
            f"{base}/pods/dnsproxy-0:8081/proxy/subjects": format_subjects((), wide=[WIDE])[0].decode(),
        }
    )
    seen = await api.read()
    assert seen.dnsproxy is not None
    assert (seen.dnsproxy.found, seen.dnsproxy.ready, seen.dnsproxy.pods) == (True, 1, ("10.244.0.5",))
    page = seen.admin[0]
    assert (page.where, page.ready, page.text, page.ages) == (
        "pod switchback/dnsproxy-0", True, "ready, 3 names", {"Ingress": 900.0}
    )  # fmt: skip
    assert (page.wide, page.unknown_addresses) == ((WIDE,), ())
    older = await Api(api.objects, status={f"{base}/pods/dnsproxy-0:8081/proxy/subjects": 404}).read()
    assert older.admin == (replace(page, wide=()),)
    assert older.refusals == seen.refusals


@pytest.mark.parametrize(("program", "command"), [("dnsproxy", "`dnsproxy serve`"), ("relay", "`proxy`")])
async def test_an_admin_port_without_a_server_is_reported_with_the_program_that_was_asked(
    program: str, command: str
) -> None:
    page = await ask_admin(Endpoint("127.0.0.1", free_port()), program)
    assert (page.program, page.ready) == (program, None)
    assert f"is {command} running" in page.text


@pytest.mark.parametrize("text", ["", "{}", "<html>", '{"subjects":1}', '{"subjects":[],"wide":[1]}', "\x00", "\ud800"])
def test_another_document_than_that_of_the_subjects_changes_nothing(text: str) -> None:
    page = Admin("dnsproxy", "a", True)
    assert with_subjects(page, text) == page


@pytest.mark.parametrize("text", ["", "garbage {", "<html>", 'a{source="x"} not-a-number\n', "\x00"])
def test_invalid_metrics_change_nothing(text: str) -> None:
    page = Admin("dnsproxy", "a", True)
    assert with_metrics(page, text) == page
