"""From a hostname to the Service through which its connections enter."""

from __future__ import annotations

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Class, Facts, Host, Port, ReadFailure, Service
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.paths import find_paths, near_names
from sidecar.values.exit_status import ExitStatus
from tests.dnsproxy.doctor.making import BALANCER, HOSTNAME, KEY, bad, facts, ids, named, service

NGINX = Class("nginx", "k8s.io/ingress-nginx")
LABELS = {"app.kubernetes.io/name": "ingress-nginx"}


def host(name: str, *status: str, ingress_class: str = "nginx") -> Host:
    return Host(name, f"Ingress web/{name}", ingress_class, status)


@pytest.mark.parametrize(
    ("hosts", "services", "paths", "unmatched"),
    [
        ([host("a", BALANCER)], [service()], [KEY], 0),
        ([host("a", "lb.example.org")], [service(points=HOSTNAME)], [KEY], 0),
        ([host("a", "10.96.0.80")], [service()], [KEY], 0),
        ([host("a", "2001:db8::1")], [service(points=(BalancerAddress(ip="2001:DB8:0::1"),))], [KEY], 0),
        ([host("a", "lb.example.org")], [service(points=(BalancerAddress(hostname="LB.Example.org."),))], [KEY], 0),
        ([host("a", "198.51.100.7")], [service(external_ips=("198.51.100.7",))], [KEY], 0),
        ([host("a")], [service(labels=LABELS)], [KEY], 0),
        ([host("a")], [service(labels={"app": "ingress-nginx"})], [KEY], 0),
        ([host("a", "192.0.2.99")], [service(labels=LABELS)], [KEY], 0),
        ([host("a", "192.0.2.99")], [service()], [], 1),
        ([host("a")], [service()], [], 1),
        ([host("a")], [service(labels=LABELS), service(labels=LABELS, key="other/nginx")], [], 1),
        ([host("a")], [service(labels=LABELS, ports=())], [], 1),
        ([host("a", ingress_class="none")], [service(labels=LABELS)], [], 1),
        ([host("a", ingress_class="")], [service(labels=LABELS)], [], 1),
        ([], [service()], [], 0),
        ([host("a", BALANCER)], [], [], 1),
        ([host("a", BALANCER, "203.0.113.11")],
         [service(), service(key="x/y", points=(BalancerAddress(ip="203.0.113.11"),), cluster_ips=())],
         [KEY, "x/y"], 0),
    ],
    ids=["by address", "by hostname", "by ClusterIP", "another spelling", "another case",
         "by external IP", "by label", "by the older label",
         "node addresses, by label", "foreign address", "no status", "two that fit", "headless", "class not known",
         "no class", "no hosts", "no Services", "two load balancers"],
)  # fmt: skip
def test_connections_enter_through_the_service_of_the_status(
    hosts: list[Host], services: list[object], paths: list[str], unmatched: int
) -> None:
    found = find_paths(facts(hosts=tuple(hosts), services=tuple(services), classes=(NGINX,)))
    assert [path.service.key for path in found.paths] == sorted(paths)
    assert len(found.unmatched) == unmatched


def test_a_hundred_hosts_with_one_cause_are_one_finding() -> None:
    hosts = tuple(host(f"h{number:03}.example.org", BALANCER) for number in range(100))
    finding = named(judge(facts(hosts=hosts)), "short-circuited")
    assert len(finding.hosts) == 100


def asked(name: str, *hosts: str) -> Facts:
    return facts(hosts=tuple(host(one, BALANCER) for one in hosts), hostname=name)


@pytest.mark.parametrize(
    ("name", "hosts", "found"),
    [
        ("a.example.org", ["a.example.org", "b.example.org"], {"a.example.org"}),
        ("a.example.org", ["*.example.org"], {"*.example.org"}),
        ("a.example.org", ["*.example.org", "a.example.org"], {"a.example.org"}),
        ("x.y.example.org", ["*.example.org"], set()),
        ("example.org", ["*.example.org"], set()),
        ("notexample.org", ["*.example.org"], set()),
        ("c.example.org", ["a.example.org"], set()),
        ("a.example.org", [], set()),
    ],
)
def test_the_requested_host_is_looked_for_in_every_object(name: str, hosts: list[str], found: set[str]) -> None:
    paths = find_paths(asked(name, *hosts)).paths
    assert {hostname for path in paths for hostname in path.hostnames} == found


def test_the_wildcard_of_a_gateway_covers_more_than_one_label() -> None:
    route = Host("*.example.org", "HTTPRoute web/shop", "cilium", (BALANCER,))
    assert find_paths(facts(hosts=(route,), hostname="x.y.example.org")).paths[0].hosts == (route,)


SHARED = "192.0.2.7"
REGISTRY = service(key="registry/registry", ports=(Port(5000, "registry"),), points=(BalancerAddress(ip=SHARED),))
TRAEFIK = service(key="kube-system/traefik", points=(BalancerAddress(ip=SHARED),), labels={"app": "traefik"})
ANOTHER = service(key="web/another", points=(BalancerAddress(ip=SHARED),))
ADMISSION = service(
    key="ingress-nginx/controller-admission", type="ClusterIP", points=(), labels=LABELS,
    ports=(Port(443, "https-webhook"),),
)  # fmt: skip
NODE_PORT = service(type="NodePort", points=(), labels=LABELS)
INTERNAL = service(key="ingress-nginx/internal", type="ClusterIP", points=(), labels=LABELS)


@pytest.mark.parametrize(
    ("ingress_class", "status", "services", "paths"),
    [
        ("traefik", (SHARED,), (TRAEFIK, REGISTRY), ["kube-system/traefik"]),
        ("none", (SHARED,), (TRAEFIK, REGISTRY), ["kube-system/traefik"]),
        ("none", (SHARED,), (TRAEFIK, ANOTHER, REGISTRY), ["kube-system/traefik", "web/another"]),
        ("traefik", (SHARED,), (TRAEFIK, ANOTHER, REGISTRY), ["kube-system/traefik"]),
        ("none", (SHARED,), (REGISTRY,), ["registry/registry"]),
        ("nginx", (), (NODE_PORT, ADMISSION), [KEY]),
        ("nginx", ("192.0.2.99",), (NODE_PORT, ADMISSION), [KEY]),
        ("nginx", (), (NODE_PORT, ADMISSION, INTERNAL), [KEY]),
        ("nginx", (), (ADMISSION,), []),
    ],
    ids=["the class decides", "the ports decide", "two are judged", "the class before the ports", "no web port",
         "its admission has its labels", "a stale status", "what clients outside reach", "its admission alone"],
)  # fmt: skip
def test_of_several_services_those_are_meant_that_serve_the_hosts(
    ingress_class: str, status: tuple[str, ...], services: tuple[Service, ...], paths: list[str]
) -> None:
    classes = (NGINX, Class("traefik", "traefik.io/ingress-controller"))
    seen = facts(hosts=(host("a", *status, ingress_class=ingress_class),), services=services, classes=classes)
    assert [path.service.key for path in find_paths(seen).paths] == paths


def test_an_unknown_host_is_reported_with_similar_names() -> None:
    seen = asked("shop.exmaple.org", "shop.example.org", "mail.example.net")
    finding = named(judge(seen), "host-unknown")
    assert near_names(seen) == ("shop.example.org",)
    assert finding.steps[0].lines == ("dnsproxy doctor shop.example.org",)
    assert judge(seen).status == ExitStatus.NO


def test_a_rejected_host_is_reported_with_the_reason() -> None:
    rejected = ("Ingress web/shop: shop.example.org: it is ignored (switchback.dev/ignore)", "Ingress a/b: other")
    finding = named(judge(facts(hosts=(), hostname="shop.example.org", rejected=rejected)), "host-unknown")
    assert finding.evidence == rejected[:1]


def test_a_cluster_without_hosts_is_healthy() -> None:
    diagnosis = judge(facts(hosts=()))
    assert ids(diagnosis) == {"no-hosts"}
    assert diagnosis.status == ExitStatus.DONE


def test_a_host_whose_load_balancer_is_elsewhere_is_no_fault_and_one_without_any_is() -> None:
    assert bad(judge(facts(hosts=(host("a", "192.0.2.99"),)))) == set()
    assert bad(judge(facts(hosts=(host("a"),)))) == {"no-road"}


def test_what_rbac_refuses_is_neither_good_nor_bad() -> None:
    refusal = ReadFailure("list services", "forbidden: 403: services is forbidden")
    diagnosis = judge(facts(hosts=(), services=(), refusals=(refusal,)))
    assert bad(diagnosis) == set()
    assert diagnosis.status == ExitStatus.UNKNOWN
    assert diagnosis.unseen[0].what == "list services"
    assert diagnosis.unseen[0].steps
