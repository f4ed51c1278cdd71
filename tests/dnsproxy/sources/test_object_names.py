"""Every source reads only so many names in other scripts of one object, because checking them takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from dnsproxy.dns.names import MOST_IN_OTHER_SCRIPTS
from dnsproxy.sources.annotations import AnnotatedMetadata, read_annotations
from dnsproxy.sources.described.contribution import contribution
from dnsproxy.sources.external_dns.annotations import ExternalDnsMetadata, read_wanted
from dnsproxy.sources.external_dns.dns_endpoint import DnsEndpoint, read_records
from dnsproxy.sources.gateway import facts as gateway_facts
from dnsproxy.sources.gateway import structs as gateway_structs
from dnsproxy.sources.gateway.kinds import HTTP_ROUTE
from dnsproxy.sources.ingress import Ingress, claims_of
from dnsproxy.sources.istio.facts import GatewayFacts, VirtualServiceFacts, read_facts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from tests.dnsproxy.sources.described.objects import decode, kind_named
from tests.dnsproxy.sources.istio.objects import gateway, service

NAMES = [f"xn--bcher-kva.{number}.example.org" for number in range(900)]
METADATA = {"name": "a", "namespace": "b"}


def of_ingress(names: Sequence[str]) -> int:
    one = {"metadata": METADATA, "spec": {"rules": [{"host": name} for name in names]}}
    return len(claims_of(msgspec.convert(one, Ingress), tls_only=False)[0])


def of_annotation(names: Sequence[str]) -> int:
    one: Any = METADATA | {"annotations": {"switchback.dev/hostname": ",".join(names)}}
    return len(read_annotations(msgspec.convert(one, AnnotatedMetadata)).hostnames)


def of_external_dns(names: Sequence[str]) -> int:
    one: Any = METADATA | {"annotations": {"external-dns.alpha.kubernetes.io/hostname": ",".join(names)}}
    wanted = read_wanted(msgspec.convert(one, ExternalDnsMetadata))
    assert wanted is not None
    return len(wanted.names)


def of_dns_endpoint(names: Sequence[str]) -> int:
    endpoints = [{"dnsName": name, "recordType": "A", "targets": ["192.0.2.1"]} for name in names]
    one = {"metadata": METADATA, "spec": {"endpoints": endpoints}}
    return len(read_records(msgspec.convert(one, DnsEndpoint), most=None).names)


def of_custom_kind(names: Sequence[str]) -> int:
    kind = kind_named("crd:sites.example.org:spec.hosts[*]")
    return len(contribution(kind, decode(kind, {"hosts": list(names)}), class_name=None, most=None)[0])


def of_istio_gateway(names: Sequence[str]) -> int:
    facts = read_facts(ISTIO_GATEWAY, gateway(*names), most=None)
    assert isinstance(facts, GatewayFacts)
    return len(list(facts.hosts.exact_names()))


def of_virtual_service(names: Sequence[str]) -> int:
    facts = read_facts(VIRTUAL_SERVICE, service(*names), most=None)
    assert isinstance(facts, VirtualServiceFacts)
    return len(facts.hosts)


def of_route(names: Sequence[str]) -> int:
    one = msgspec.convert({"metadata": METADATA, "spec": {"hostnames": names}}, gateway_structs.Route)
    facts = gateway_facts.read_facts(HTTP_ROUTE, one)
    assert isinstance(facts, gateway_facts.RouteFacts)
    return len(facts.hostnames or ())


@pytest.mark.parametrize(
    "read",
    [
        of_ingress,
        of_annotation,
        of_external_dns,
        of_dns_endpoint,
        of_custom_kind,
        of_istio_gateway,
        of_virtual_service,
        of_route,
    ],
    ids=lambda one: one.__name__,
)
def test_of_an_object_only_so_many_names_in_other_scripts_count(read: Callable[[Sequence[str]], int]) -> None:
    assert read(NAMES[:100]) == 100
    found = read(NAMES)
    assert found < len(NAMES)
    assert found * len(NAMES[0]) <= MOST_IN_OTHER_SCRIPTS
    plain = [name.replace("xn--", "") for name in NAMES]
    assert read(plain) == len(plain)
