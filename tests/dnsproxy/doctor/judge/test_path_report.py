"""The path of one host, in lines."""

from __future__ import annotations

from msgspec.structs import replace

from dnsproxy.doctor.facts.model import Class, Host
from dnsproxy.doctor.facts.probes import Lookup
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import format_document
from dnsproxy.doctor.judge.served_ways import NOT_CHECKED
from tests.dnsproxy.doctor.making import BALANCER, HOST, IP, installed, service

HETZNER = {"load-balancer.hetzner.cloud/location": "fsn1"}


def test_the_path_goes_from_object_to_address() -> None:
    seen = installed(service(HETZNER, points=IP), hostname=HOST, classes=(Class("nginx", "k8s.io/ingress-nginx"),))
    seen = replace(seen, lookups=(*seen.lookups, Lookup(HOST, "public", "192.0.2.53:53", (BALANCER,))))
    assert judge(seen).path == (
        "Ingress web/shop, class nginx (k8s.io/ingress-nginx), enters through Service "
        "ingress-nginx/ingress-nginx-controller",
        "Service ingress-nginx/ingress-nginx-controller: LoadBalancer of Hetzner, ClusterIP 10.96.0.80, load balancer "
        "203.0.113.10 (ipMode VIP)",
        "the cluster's DNS at 10.96.0.10:53: 10.96.0.90 (the relay)",
        "public DNS at 192.0.2.53:53: 203.0.113.10 (the load balancer)",
        "pods ask Service kube-system/kube-dns at 10.96.0.10, with no cache in between",
        "10.96.0.90:80 (HTTP): plain answered",
        NOT_CHECKED,
    )
    assert len(format_document(judge(seen))["road"]) == 7


def test_what_is_missing_is_reported() -> None:
    seen = installed(service(points=(), cluster_ips=()), hostname=HOST)
    assert seen.dns is not None
    dns = replace(seen.dns, node_local="DaemonSet kube-system/node-local-dns")
    hosts = (Host("*.example.org", "Ingress web/wild"),)
    lookups = (Lookup(HOST, "public", "x", (), ("cdn.example.net",)), Lookup(HOST, "cluster", "y", fault="SERVFAIL"))
    assert judge(replace(seen, dns=dns, hosts=hosts, lookups=lookups)).path == (
        "Ingress web/wild for *.example.org, class none, but no Service of the cluster matches it",
        "public DNS at x: no address, by way of cdn.example.net",
        "the cluster's DNS at y: no answer (SERVFAIL)",
        "pods ask DaemonSet kube-system/node-local-dns first, which does not forward public names to the cluster's DNS",
    )


def test_for_all_hosts_there_is_no_path_report() -> None:
    assert judge(installed()).path == ()
