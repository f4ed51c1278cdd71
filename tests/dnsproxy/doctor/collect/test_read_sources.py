"""Sources: a host is found in the objects of every kind that dnsproxy follows, and in no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from dnsproxy.doctor.collect.read_sources import followed_sources
from dnsproxy.doctor.facts.file import format_facts, parse_facts
from dnsproxy.doctor.facts.model import Facts, Host, ReadFailure
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.paths import find_paths
from dnsproxy.doctor.judge.refusals import could_not_list
from dnsproxy.sources.settings import SourceOptions
from tests.dnsproxy.doctor.collect.cluster_api import CLASSES, Api, service, workload

HOST = "app.example.org"
BALANCER = "203.0.113.10"
_OWN = "/api/v1/namespaces/switchback/services/dnsproxy"


def dnsproxy(*flags: str, **settings: str) -> dict[str, Any]:
    """The Service and the Deployment of a dnsproxy with these flags and variables."""
    variables = [{"name": name, "value": value} for name, value in settings.items()]
    return {
        _OWN: {
            "metadata": {"name": "dnsproxy", "namespace": "switchback"},
            "spec": {"clusterIP": "10.96.0.53", "ports": [{"port": 53}], "selector": {"app": "dnsproxy"}},
        },
        "/apis/apps/v1/namespaces/switchback/deployments": [
            workload("dnsproxy", namespace="switchback", args=["serve", *flags], env=variables)
        ],
    }


def kinds(version: str, *resources: str) -> dict[str, Any]:
    """The resources that the API server has in a version."""
    path = version if version.startswith("/") else f"/apis/{version}"
    return {path: {"resources": [{"name": one, "verbs": ["list", "watch"]} for one in resources]}}


def made(name: str = "shop", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "web"} | fields.pop("metadata", {})
    return {"metadata": metadata, **fields}


def traefik(*, tls: bool = False, host: str = HOST) -> dict[str, Any]:
    spec = {"routes": [{"match": f"Host(`{host}`)"}]} | ({"tls": {"secretName": "tls"}} if tls else {})
    return kinds("traefik.io/v1alpha1", "ingressroutes") | {
        "/apis/traefik.io/v1alpha1/ingressroutes": [made(spec=spec)]
    }


ADMITTED = {
    "ingress": [
        {
            "routerName": "default",
            "routerCanonicalHostname": "router.example.org",
            "conditions": [{"type": "Admitted", "status": "True"}],
        }
    ]
}
OPENSHIFT = kinds("route.openshift.io/v1", "routes") | {
    "/apis/route.openshift.io/v1/routes": [made(spec={"host": HOST, "tls": {"termination": "edge"}}, status=ADMITTED)]
}
CONTOUR = kinds("projectcontour.io/v1", "httpproxies") | {
    "/apis/projectcontour.io/v1/httpproxies": [
        made(
            spec={"virtualhost": {"fqdn": HOST, "tls": {"secretName": "tls"}}},
            status={"currentStatus": "valid", "loadBalancer": {"ingress": [{"ip": BALANCER}]}},
        )
    ]
}
_SELECTOR = {"istio": "ingressgateway"}
ISTIO = kinds("networking.istio.io/v1", "gateways", "virtualservices") | {
    "/apis/networking.istio.io/v1/gateways": [
        made("door", spec={"selector": _SELECTOR, "servers": [{"hosts": [HOST], "port": {"protocol": "HTTP"}}]})
    ],
    "/apis/networking.istio.io/v1/virtualservices": [made(spec={"hosts": [HOST], "gateways": ["door"]})],
}
ENDPOINTS = kinds("externaldns.k8s.io/v1alpha1", "dnsendpoints") | {
    "/apis/externaldns.k8s.io/v1alpha1/dnsendpoints": [
        made(spec={"endpoints": [{"dnsName": HOST, "recordType": "A", "targets": [BALANCER]}]})
    ]
}
ALIASES = kinds("externaldns.k8s.io/v1alpha1", "dnsendpoints") | {
    "/apis/externaldns.k8s.io/v1alpha1/dnsendpoints": [
        made(spec={"endpoints": [{"dnsName": HOST, "recordType": "CNAME", "targets": ["lb.example.net"]}]})
    ]
}
SITES = "crd:sites.example.org:spec.hosts[*]"
CUSTOM = (
    {"/apis/example.org": {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}}
    | kinds("example.org/v1", "sites")
    | {"/apis/example.org/v1/sites": [made(spec={"hosts": [HOST]})]}
)


def annotated(annotations: Mapping[str, str]) -> dict[str, Any]:
    one = service("mail")
    one["metadata"]["annotations"] = dict(annotations)
    return kinds("/api/v1", "services") | {"/api/v1/services": [one]}


ROWS = [
    pytest.param("traefik", traefik(), Host(HOST, "IngressRoute web/shop"), id="IngressRoute"),
    pytest.param("traefik", traefik(tls=True), Host(HOST, "IngressRoute web/shop", tls=True), id="with TLS"),
    pytest.param(
        "openshift", OPENSHIFT, Host(HOST, "Route web/shop", "default", ("router.example.org",), tls=True), id="Route"
    ),
    pytest.param("contour", CONTOUR, Host(HOST, "HTTPProxy web/shop", "", (BALANCER,), tls=True), id="HTTPProxy"),
    pytest.param("istio", ISTIO, Host(HOST, "VirtualService web/shop", "istio=ingressgateway"), id="VirtualService"),
    pytest.param("dnsendpoint", ENDPOINTS, Host(HOST, "DNSEndpoint web/shop", "", (BALANCER,)), id="DNSEndpoint"),
    pytest.param("dnsendpoint", ALIASES, Host(HOST, "DNSEndpoint web/shop", "", ("lb.example.net",)), id="an alias"),
    pytest.param(SITES, CUSTOM, Host(HOST, "sites.example.org web/shop"), id="custom"),
    pytest.param(
        "service",
        annotated({"switchback.dev/hostname": HOST}),
        Host(HOST, "Service web/mail", "", (BALANCER,)),
        id="annotated Service",
    ),
    pytest.param(
        "external-dns",
        annotated({"external-dns.alpha.kubernetes.io/hostname": HOST}),
        Host(HOST, "Service web/mail", "", (BALANCER,)),
        id="Service of external-dns",
    ),
]


@pytest.mark.parametrize(("source", "objects", "host"), ROWS)
async def test_a_host_is_found_in_the_objects_of_a_source_that_dnsproxy_follows(
    source: str, objects: Mapping[str, Any], host: Host
) -> None:
    seen = await Api({**objects, **dnsproxy(DNSPROXY_SOURCE="ingress", DNSPROXY_SOURCE_MORE=source)}).read(HOST)
    assert seen.refusals == ()
    assert [one for one in seen.hosts if one.origin == host.origin] == [host]
    assert seen.sources == (source,)
    assert "host-unknown" not in {finding.id for finding in judge(seen).findings}


@pytest.mark.parametrize("flags", [["--source=contour"], ["--source", "contour"]], ids=" ".join)
async def test_beside_the_flag_no_variable_of_a_source_counts(flags: list[str]) -> None:
    """As for `dnsproxy serve` itself."""
    objects = dnsproxy(*flags, DNSPROXY_SOURCE="openshift", DNSPROXY_SOURCE_MORE="traefik")
    assert (await Api({**CONTOUR, **objects}).read(HOST)).sources == ("contour",)


async def test_paths_of_one_kind_by_the_user_and_by_dnsproxy_add_up() -> None:
    sites = made(spec={"hosts": [HOST], "other": "other.example.org"})
    objects = {**CUSTOM, "/apis/example.org/v1/sites": [sites], **dnsproxy(DNSPROXY_SOURCE=SITES)}
    seen = await Api(objects).read(HOST, sources=("crd:sites.example.org:spec.other",))
    assert {host.hostname for host in seen.hosts} == {HOST, "other.example.org"}


@pytest.mark.parametrize(("source", "objects", "host"), ROWS)
async def test_a_source_that_the_user_names_is_read_without_dnsproxy(
    source: str, objects: Mapping[str, Any], host: Host
) -> None:
    assert host in (await Api(objects).read(HOST, sources=(source,))).hosts


@pytest.mark.parametrize(("source", "objects", "host"), ROWS)
async def test_what_dnsproxy_does_not_follow_is_not_read(source: str, objects: Mapping[str, Any], host: Host) -> None:
    api = Api({**objects, **dnsproxy(DNSPROXY_SOURCE="ingress gateway")})
    seen = await api.read(HOST)
    assert source
    assert (seen.hosts, seen.sources) == ((), ())
    (found,) = (finding for finding in judge(seen).findings if finding.id == "host-unknown")
    assert any("--source traefik" in line for step in found.steps for line in step.lines)
    assert host not in seen.hosts


async def test_a_host_that_no_followed_source_has_is_unknown_by_the_names_of_the_sources() -> None:
    api = Api({**traefik(), **dnsproxy(DNSPROXY_SOURCE="ingress traefik contour")})
    (found,) = (one for one in judge(await api.read("other.example.org")).findings if one.id == "host-unknown")
    assert found.text == "no Ingress, Gateway or object of contour, traefik of this cluster serves other.example.org"


@pytest.mark.parametrize(
    ("settings", "named", "expected"),
    [
        ({}, (), ()),
        ({"DNSPROXY_SOURCE": "ingress gateway"}, (), ()),
        ({"DNSPROXY_SOURCE": "traefik  istio"}, (), ("istio", "traefik")),
        ({"DNSPROXY_SOURCE": "traefik", "DNSPROXY_SOURCE_A": "traefik contour"}, ("istio",),
         ("contour", "istio", "traefik")),
        ({"DNSPROXY_SOURCE": f"{SITES} service"}, (), (SITES, "service")),
        ({"DNSPROXY_SOURCE": "rpz:rpz.example.org@192.0.2.1:53"}, (), ()),
        ({"DNSPROXY_SOURCE": "nonsense crd: crd:x Traefik \x00"}, (), ()),
        ({"DNSPROXY_SOURCES": "traefik", "PROXY_SOURCE": "istio"}, (), ()),
        ({"DNSPROXY_SOURCE": f"{SITES},spec.other traefik"}, ("crd:sites.example.org:spec.host,spec.other",),
         ("crd:sites.example.org:spec.host,spec.other,spec.hosts[*]", "traefik")),
    ],
    ids=["nothing", "always read", "two", "gathered", "custom", "another table", "not a source", "other variables",
         "two paths of one kind"],
)  # fmt: skip
def test_the_sources_are_those_of_the_settings_and_the_user(
    settings: Mapping[str, str], named: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert tuple(one.name for one in followed_sources(settings, named)) == expected


def test_only_the_classes_of_istio_decide_what_is_read() -> None:
    settings = {"DNSPROXY_SOURCE": "istio traefik", "DNSPROXY_CLASS_OF": "istio=istio=egress traefik=internal bad"}
    assert followed_sources(settings) == (SourceOptions("istio", frozenset({"istio=egress"})), SourceOptions("traefik"))


async def test_the_flags_of_its_command_line_count() -> None:
    objects = dnsproxy()
    container = objects["/apis/apps/v1/namespaces/switchback/deployments"][0]["spec"]["template"]["spec"]
    container["containers"][0]["args"] = ["serve", "--source", "ingress", "--source=traefik"]
    assert (await Api({**traefik(), **objects}).read()).sources == ("traefik",)


@pytest.mark.parametrize("code", [403, 500, 503])
@pytest.mark.parametrize(
    ("source", "path", "objects", "what"),
    [
        ("traefik", "/apis/traefik.io/v1alpha1/ingressroutes", traefik(), "list ingressroutes.traefik.io"),
        ("traefik", "/apis/traefik.io/v1alpha1", traefik(), "list ingressroutes.traefik.io"),
        ("istio", "/apis/networking.istio.io/v1", ISTIO, "list gateways.networking.istio.io"),
        (SITES, "/apis/example.org", CUSTOM, "list sites.example.org"),
        (SITES, "/apis/example.org/v1/sites", CUSTOM, "list sites.example.org"),
    ],
    ids=["list", "discovery", "one of several versions", "discovery of a group", "list of a custom kind"],
)
async def test_a_list_that_could_not_be_read_may_have_hosts(
    source: str, path: str, objects: Mapping[str, Any], what: str, code: int
) -> None:
    seen = await Api(objects, status={path: code}).read(HOST, sources=(source,))
    failures = {one.what: one for one in seen.refusals}
    assert failures[what].names_hosts
    assert str(code) in failures[what].why
    assert could_not_list(seen)
    assert "host-unknown" not in {finding.id for finding in judge(seen).findings}


async def test_a_kind_that_the_cluster_does_not_have_is_an_absence() -> None:
    seen = await Api({}).read(sources=("traefik", "openshift", "contour", "istio", "dnsendpoint", SITES))
    assert (seen.hosts, seen.refusals) == ((), ())


async def test_an_object_that_is_nested_too_deeply_is_read_and_leaves_the_others() -> None:
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    objects = kinds("traefik.io/v1alpha1", "ingressroutes") | {
        "/apis/traefik.io/v1alpha1/ingressroutes": [
            made("deep", spec={"routes": [{"match": "Host(`deep.example.org`)", "x": deep}]}),
            made(spec={"routes": [{"match": f"Host(`{HOST}`)"}]}),
        ]
    }
    seen = await Api(objects).read(sources=("traefik",))
    assert {one.hostname for one in seen.hosts} == {"deep.example.org", HOST}


async def test_an_object_that_cannot_be_served_is_named_with_the_reason() -> None:
    seen = await Api(traefik(host="bad host")).read(sources=("traefik",))
    assert [one for one in seen.rejected if one.startswith("IngressRoute web/shop: ")]


async def test_an_ingress_of_external_dns_is_one_host() -> None:
    annotations = {"external-dns.alpha.kubernetes.io/hostname": HOST}
    ingress = made(metadata={"annotations": annotations}, spec={"rules": [{"host": HOST}], "tls": [{"hosts": [HOST]}]})
    path = "/apis/networking.k8s.io/v1"
    seen = await Api({**kinds(path, "ingresses"), f"{path}/ingresses": [ingress]}).read(sources=("external-dns",))
    assert seen.hosts == (Host(HOST, "Ingress web/shop", tls=True),)


async def test_a_wildcard_covers_as_many_labels_as_its_kind_says() -> None:
    spec = {"routes": [{"match": "Host(`*.example.org`)"}]}
    objects = kinds("traefik.io/v1alpha1", "ingressroutes") | {
        "/apis/traefik.io/v1alpha1/ingressroutes": [made(spec=spec)]
    }
    seen = parse_facts(format_facts(await Api(objects).read(sources=("traefik",))))
    assert [(one.hostname, one.one_label) for one in seen.hosts] == [("*.example.org", True)]

    def hosts(hostname: str, facts: Facts = seen) -> int:
        return len(find_paths(replace(facts, hostname=hostname)).unmatched)

    assert (hosts("a.example.org"), hosts("a.b.example.org")) == (1, 0)


@pytest.mark.parametrize(
    ("source", "objects", "controller", "label"),
    [
        ("traefik", traefik(), "traefik.io/ingress-controller", "traefik"),
        ("istio", ISTIO, "", "istio-ingressgateway"),
    ],
    ids=["Traefik", "Istio"],
)
async def test_a_host_without_a_status_enters_through_the_service_of_its_kind_of_controller(
    source: str, objects: Mapping[str, Any], controller: str, label: str
) -> None:
    one = service("door")
    one["metadata"]["labels"] = {"app.kubernetes.io/name": label, "app": label}
    classes = [{"metadata": {"name": "other"}, "spec": {"controller": controller}}] if controller else []
    for rows in ([], classes):
        seen = await Api({**objects, CLASSES: rows, "/api/v1/services": [one]}).read(HOST, sources=(source,))
        (path,) = find_paths(seen).paths
        assert (path.service.key, path.guessed) == ("web/door", True)


def test_a_failure_without_a_mark_is_as_in_older_files() -> None:
    assert ReadFailure("list services", "forbidden") == ReadFailure("list services", "forbidden", names_hosts=False)
