"""Reading hosts: those of the server, with TLS, and nothing passes for absent that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dnsproxy.doctor.facts.model import Facts, Host, Port
from dnsproxy.sources.ingress_nginx import ALIAS
from tests.dnsproxy.doctor.collect.cluster_api import CLASSES, GATEWAY_API, INGRESSES, Api, service
from tests.dnsproxy.doctor.collect.test_read_sources import dnsproxy

BETA = "/apis/gateway.networking.k8s.io/v1beta1"
X_API = "/apis/gateway.networking.x-k8s.io/v1alpha1"
GATEWAYS = {"name": "gateways", "verbs": ["list", "watch"]}
ROUTES = {"name": "httproutes", "verbs": ["list", "watch"]}


def ingress(rules: list[str], tls: Any) -> Any:
    spec = {"rules": [{"host": host} for host in rules], "tls": tls}
    return {"metadata": {"name": "shop", "namespace": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("rules", "tls", "expected"),
    [
        (["a.example.org"], [{"hosts": ["a.example.org"]}], {"a.example.org"}),
        (["a.example.org", "b.example.org"], [{"hosts": ["b.example.org"]}], {"b.example.org"}),
        (["a.example.org", "b.example.org"], [{}], {"a.example.org", "b.example.org"}),
        (["a.example.org"], [{"hosts": []}], {"a.example.org"}),
        (["a.example.org"], [{"hosts": ["*.example.org"]}], {"a.example.org"}),
        (["A.example.org"], [{"hosts": ["a.Example.org"]}], {"a.example.org"}),
        (["a.b.example.org"], [{"hosts": ["*.example.org", "x.example.org"]}], set()),
        (["*.example.org"], [{"hosts": ["a.example.org"]}], {"a.example.org"}),
        (["a.example.org"], [{"hosts": ["bad host", None]}], set()),
        (["a.example.org"], [None], set()),
        (["a.example.org"], [], set()),
        (["a.example.org"], None, set()),
    ],
    ids=["exact", "one of two", "section without hosts", "empty hosts", "wildcard", "capitals", "two labels below",
         "narrower", "invalid", "null section", "empty", "null"],
)  # fmt: skip
async def test_tls_of_an_ingress_covers_the_hosts_of_its_sections(
    rules: list[str], tls: Any, expected: set[str]
) -> None:
    seen = await Api({INGRESSES: [ingress(rules, tls)]}).read()
    assert {host.hostname for host in seen.hosts if host.tls} == expected
    assert {host.hostname for host in seen.hosts} >= {rule.lower() for rule in rules}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"DNSPROXY_TLS_HOSTS": "rules"}, []),
        ({"DNSPROXY_TLS_HOSTS": "all"}, ["mail.example.org"]),
        ({"DNSPROXY_TLS_HOSTS": "ALL"}, []),
        ({"DNSPROXY_TLS_HOSTS": ""}, []),
    ],
    ids=["default", "rules", "all", "another case", "empty"],
)
async def test_a_host_that_no_rule_has_counts_as_the_settings_of_dnsproxy_say(
    settings: dict[str, str], expected: list[str]
) -> None:
    objects = {INGRESSES: [ingress(["a.example.org"], [{"hosts": ["mail.example.org"]}])], **dnsproxy(**settings)}
    seen = await Api(objects).read()
    assert [host.hostname for host in seen.hosts] == ["a.example.org", *expected]
    assert [one for one in seen.rejected if "mail.example.org" in one] == [
        "Ingress web/shop: mail.example.org: no rule has this host of the TLS section (--tls-hosts all claims it)"
    ] * (not expected)


async def test_tls_belongs_to_one_object_and_not_to_the_hostname() -> None:
    bare = ingress(["a.example.org"], None) | {"metadata": {"name": "solver", "namespace": "web"}}
    seen = await Api({INGRESSES: [ingress(["a.example.org"], [{}]), bare]}).read()
    assert {host.origin: host.tls for host in seen.hosts} == {"Ingress web/shop": True, "Ingress web/solver": False}


async def test_a_server_alias_is_a_host_of_a_class_of_ingress_nginx_alone() -> None:
    controllers = {"nginx": "k8s.io/ingress-nginx", "traefik": "traefik.io/ingress-controller"}
    classes = [{"metadata": {"name": name}, "spec": {"controller": one}} for name, one in controllers.items()]
    ingresses = [
        {
            "metadata": {"name": name, "namespace": "web", "annotations": {ALIAS: f"{name}-alias.example.org"}},
            "spec": {"ingressClassName": name, "rules": [{"host": f"{name}.example.org"}]},
        }
        for name in controllers
    ]
    seen = await Api({INGRESSES: ingresses, CLASSES: classes}).read()
    assert [host.hostname for host in seen.hosts] == [
        "nginx-alias.example.org", "nginx.example.org", "traefik.example.org"
    ]  # fmt: skip


def listener(name: str, protocol: str, hostname: str | None = None) -> Any:
    port = {"HTTP": 80, "HTTPS": 443, "TLS": 8443}[protocol]
    return {"name": name, "protocol": protocol, "port": port} | ({"hostname": hostname} if hostname else {})


def gateway_api(listeners: list[Any], section: str | None = None) -> dict[str, Any]:
    gateway = {
        "metadata": {"name": "main", "namespace": "infra"},
        "spec": {"gatewayClassName": "public", "listeners": listeners},
        "status": {"addresses": [{"type": "IPAddress", "value": "203.0.113.10"}]},
    }
    parent = {"name": "main"} | ({"sectionName": section} if section else {})
    route = {
        "metadata": {"name": "shop", "namespace": "infra"},
        "spec": {"parentRefs": [parent], "hostnames": ["gw.example.org"]},
    }
    return {
        GATEWAY_API: {"resources": [GATEWAYS, ROUTES]},
        f"{GATEWAY_API}/gateways": [gateway],
        f"{GATEWAY_API}/httproutes": [route],
        f"{GATEWAY_API}/gatewayclasses": [
            {"metadata": {"name": "public"}, "spec": {"controllerName": "example.org/gateway"}}
        ],
        "/api/v1/namespaces": [{"metadata": {"name": "infra"}}],
        "/api/v1/services": [service("gateway")],
    }


@pytest.mark.parametrize(
    ("listeners", "section", "tls"),
    [
        ([listener("a", "HTTP")], None, False),
        ([listener("a", "HTTPS")], None, True),
        ([listener("a", "HTTP"), listener("b", "HTTPS")], None, True),
        ([listener("a", "HTTP"), listener("b", "HTTPS")], "a", False),
        ([listener("a", "HTTP"), listener("b", "HTTPS")], "b", True),
        ([listener("a", "HTTP"), listener("b", "HTTPS", "*.example.org")], None, True),
        ([listener("a", "HTTP"), listener("b", "HTTPS", "other.example.org")], None, False),
        ([listener("a", "HTTP"), listener("b", "TLS")], None, False),
    ],
    ids=["http", "https", "both", "section http", "section https", "wildcard", "another host", "tls takes TLSRoutes"],
)
async def test_tls_of_a_route_is_that_of_the_listeners_that_take_it(
    listeners: list[Any], section: str | None, tls: bool
) -> None:
    seen = await Api(gateway_api(listeners, section)).read()
    expected = Host("gw.example.org", "HTTPRoute infra/shop", "public", ("203.0.113.10",), tls)
    assert [host for host in seen.hosts if host.hostname == "gw.example.org"] == [expected]
    assert [one.controller for one in seen.classes] == ["example.org/gateway"]


async def test_classes_are_read_once_and_with_their_controllers() -> None:
    default = {"metadata": {"name": "b", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
               "spec": {"controller": "example.org/b"}}  # fmt: skip
    api = Api({CLASSES: [{"metadata": {"name": "a"}}, default], INGRESSES: [ingress(["a.example.org"], None)]})
    seen = await api.read()
    assert [(one.name, one.controller) for one in seen.classes] == [("a", ""), ("b", "example.org/b")]
    assert [host.ingress_class for host in seen.hosts] == ["b"]
    assert [path for _, path in api.asked].count(CLASSES) == 1


def failed(seen: Facts) -> set[str]:
    return {failure.what for failure in seen.refusals}


@pytest.mark.parametrize("code", [403, 500, 503, 429, 400])
async def test_kinds_whose_discovery_failed_are_lists_that_could_not_be_read(code: int) -> None:
    seen = await Api({}, status={GATEWAY_API: code}).read()
    assert failed(seen) == {
        f"list {kind}" for kind in ("gateways", "httproutes", "grpcroutes", "tlsroutes", "listenersets")
    }
    assert all(str(code) in failure.why for failure in seen.refusals)


async def test_a_version_that_the_server_does_not_have_is_an_absence() -> None:
    assert failed(await Api({}).read()) == set()
    assert failed(await Api({}, status={X_API: 403}).read()) == {"list xlistenersets"}


async def test_a_kind_that_another_version_has_is_read_in_that_version() -> None:
    objects = {path.replace(GATEWAY_API, BETA): one for path, one in gateway_api([listener("a", "HTTP")]).items()}
    seen = await Api(objects, status={GATEWAY_API: 503}).read()
    assert [host.hostname for host in seen.hosts] == ["gw.example.org"]
    assert not {"list gateways", "list httproutes"} & failed(seen)
    assert "list grpcroutes" in failed(seen)


async def test_an_answer_that_is_no_list_of_resources_is_a_failure() -> None:
    assert "list gateways" in failed(await Api({GATEWAY_API: "<html>"}).read())


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        ({"externalTrafficPolicy": "Local", "loadBalancerSourceRanges": ["198.51.100.0/24"]}, {},
         ("Local", ("198.51.100.0/24",))),
        ({"externalTrafficPolicy": None, "loadBalancerSourceRanges": None}, {}, ("", ())),
        ({}, {"service.beta.kubernetes.io/load-balancer-source-ranges": "198.51.100.0/24, 192.0.2.0/24,"},
         ("", ("198.51.100.0/24", "192.0.2.0/24"))),
        ({"loadBalancerSourceRanges": ["198.51.100.0/24"]},
         {"service.beta.kubernetes.io/load-balancer-source-ranges": "192.0.2.0/24"}, ("", ("198.51.100.0/24",))),
    ],
    ids=["fields", "nulls", "annotation", "field before annotation"],
)  # fmt: skip
async def test_a_service_has_its_traffic_policy_and_the_networks_that_it_takes(
    spec: Mapping[str, Any], annotations: Mapping[str, str], expected: tuple[str, tuple[str, ...]]
) -> None:
    raw = service("ingress", **spec)
    raw["metadata"]["annotations"] |= annotations
    (one,) = (await Api({"/api/v1/services": [raw]}).read()).services
    assert (one.external_traffic_policy, one.source_ranges) == expected


async def test_the_service_of_an_admission_webhook_is_told_by_its_port() -> None:
    controller = service("ingress", ports=[{"port": 80, "name": "http"}, {"port": 443, "name": "https"}])
    admission = service(
        "admission", type="ClusterIP", ports=[{"port": 443, "name": "https-webhook", "appProtocol": "https"}]
    )
    for one in (controller, admission):
        one["metadata"]["labels"] = {"app.kubernetes.io/name": "ingress-nginx"}
    seen = await Api({"/api/v1/services": [controller, admission | {"status": {}}]}).read()
    assert {one.key: one.ports for one in seen.services} == {
        "web/admission": (Port(443, "https-webhook", "https"),),
        "web/ingress": (Port(80, "http"), Port(443, "https")),
    }
