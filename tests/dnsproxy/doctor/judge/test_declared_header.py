"""The header mode that settings declare: by the controller's program, and for the sources of this cluster's pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dnsproxy.doctor.facts.model import BalancerAddress, Port
from dnsproxy.doctor.judge.declared_header import declared
from dnsproxy.doctor.judge.header_mode import HeaderMode
from tests.dnsproxy.doctor.making import facts, service

M = HeaderMode
USE = "use-proxy-protocol"
KEY = "proxy-protocol"
ON = "enable-proxy-protocol"
ALLOWED = "proxy-allow-cidrs"
ALL = "entrypoints"
WITH = "entrypoints-with-proxy-protocol"
PODS = ("10.244.0.0/16",)
TWO = (*PODS, "2001:db8:1::/64")
NODES = ("192.0.2.11", "192.0.2.12")
READ = "ConfigMap ingress/controller"
V6 = {"cluster_ips": ("10.96.0.80", "2001:db8::80")}
PORTS = {"ports": (Port(80, "web"), Port(443, "websecure"))}
GATEWAY = {"gateway.networking.k8s.io/gateway-name": "main"}


def mode_of(settings: Mapping[str, str], *, source: str = READ, **fields: Any) -> HeaderMode:
    known = {key: fields.pop(key) for key in ("pod_networks", "node_addresses") if key in fields}
    one = service(settings=settings, settings_from=source, **fields)
    return declared(one, facts(one, **({"pod_networks": PODS, "node_addresses": NODES} | known)))


@pytest.mark.parametrize(
    ("program", "settings", "expected"),
    [
        pytest.param("ingress-nginx", {USE: "true"}, M.REQUIRES, id="nginx on"),
        pytest.param("ingress-nginx", {USE: "True"}, M.REQUIRES, id="nginx on in capitals"),
        pytest.param("ingress-nginx", {USE: "false"}, M.REJECTS, id="nginx off"),
        pytest.param("ingress-nginx", {}, M.REJECTS, id="nginx absent"),
        pytest.param("ingress-nginx", {USE: "maybe"}, M.UNKNOWN, id="nginx garbage"),
        pytest.param("ingress-nginx", {USE: ""}, M.UNKNOWN, id="nginx empty"),
        pytest.param("ingress-nginx", {KEY: "0.0.0.0/0"}, M.REJECTS, id="nginx with the key of another program"),
        pytest.param("haproxy-ingress", {USE: "true"}, M.REQUIRES, id="haproxy-ingress on"),
        pytest.param("haproxy-ingress", {KEY: "v2"}, M.REJECTS, id="haproxy-ingress to its backends"),
        pytest.param("nginx-ingress", {KEY: "True"}, M.REQUIRES, id="F5 on"),
        pytest.param("nginx-ingress", {KEY: "False"}, M.REJECTS, id="F5 off"),
        pytest.param("nginx-ingress", {}, M.REJECTS, id="F5 absent"),
        pytest.param("nginx-ingress", {KEY: "10.0.0.0/8"}, M.UNKNOWN, id="F5 with networks"),
        pytest.param("cilium", {"enable-ingress-proxy-protocol": "true"}, M.REQUIRES, id="cilium on"),
        pytest.param("cilium", {"enable-ingress-proxy-protocol": "false"}, M.REJECTS, id="cilium off"),
        pytest.param("cilium", {"enable-gateway-api-proxy-protocol": "true"}, M.REJECTS, id="cilium, gateways only"),
        pytest.param("contour", {USE: "true"}, M.REQUIRES, id="contour on"),
        pytest.param("contour", {USE: "false"}, M.UNKNOWN, id="contour off, maybe on elsewhere"),
        pytest.param("contour", {}, M.UNKNOWN, id="contour absent"),
        pytest.param("envoy-gateway", {KEY: "required"}, M.REQUIRES, id="envoy-gateway on"),
        pytest.param("envoy-gateway", {KEY: "optional"}, M.ACCEPTS, id="envoy-gateway optional"),
        pytest.param("envoy-gateway", {}, M.UNKNOWN, id="envoy-gateway, maybe on elsewhere"),
        pytest.param("skipper", {}, M.UNKNOWN, id="skipper, maybe on elsewhere"),
        pytest.param("skipper", {ON: "false"}, M.UNKNOWN, id="skipper off, maybe on elsewhere"),
        pytest.param("skipper", {ON: "true"}, M.REJECTS, id="skipper allows no network"),
        pytest.param("skipper", {ON: "true", ALLOWED: "0.0.0.0/0,::/0"}, M.ACCEPTS, id="skipper for everybody"),
        pytest.param("skipper", {ON: "true", ALLOWED: "198.51.100.0/24"}, M.REJECTS, id="skipper for others"),
        pytest.param("skipper", {ON: "true", ALLOWED: "10.244.0.0/16"}, M.UNKNOWN, id="skipper for pods, not nodes"),
        pytest.param(
            "skipper",
            {ON: "true", ALLOWED: "0.0.0.0/0", "proxy-deny-cidrs": "10.244.1.0/24"},
            M.UNKNOWN,
            id="skipper but",
        ),
        pytest.param("kubernetes-ingress", {}, M.REJECTS, id="haproxy absent"),
        pytest.param("kubernetes-ingress", {KEY: ""}, M.REJECTS, id="haproxy empty"),
        pytest.param("kubernetes-ingress", {KEY: "garbage"}, M.REJECTS, id="haproxy without a valid network"),
        pytest.param("kong", {USE: "true"}, M.REQUIRES, id="another program"),
        pytest.param("", {USE: "true"}, M.REQUIRES, id="unknown program on"),
        pytest.param("", {KEY: "True"}, M.REQUIRES, id="unknown program with a boolean of F5"),
        pytest.param("", {KEY: "0.0.0.0/0"}, M.REQUIRES, id="unknown program with networks of HAProxy"),
        pytest.param("", {KEY: "v1"}, M.UNKNOWN, id="unknown program with a version"),
        pytest.param("", {KEY: ""}, M.UNKNOWN, id="unknown program with an empty key"),
        pytest.param("", {}, M.UNKNOWN, id="unknown program absent"),
    ],
)
def test_a_key_means_what_its_program_makes_of_it(
    program: str, settings: Mapping[str, str], expected: HeaderMode
) -> None:
    assert mode_of(settings, program=program) is expected


@pytest.mark.parametrize(
    "program", ["ingress-nginx", "haproxy-ingress", "kubernetes-ingress", "nginx-ingress", "cilium"]
)
def test_an_absent_key_is_off_only_if_the_settings_were_read(program: str) -> None:
    assert mode_of({}, program=program, source="") is M.UNKNOWN
    assert mode_of({}, program=program) is M.REJECTS


def test_cilium_has_one_switch_for_ingresses_and_one_for_gateways() -> None:
    settings = {"enable-ingress-proxy-protocol": "false", "enable-gateway-api-proxy-protocol": "true"}
    assert mode_of(settings, program="cilium") is M.REJECTS
    assert mode_of(settings, program="cilium", labels=GATEWAY) is M.REQUIRES


@pytest.mark.parametrize(
    ("networks", "fields", "expected"),
    [
        pytest.param("0.0.0.0/0", {}, M.REQUIRES, id="everybody"),
        pytest.param("0.0.0.0/0", {"pod_networks": ()}, M.REQUIRES, id="everybody, unknown pods"),
        pytest.param("0.0.0.0/1, 128.0.0.0/1", {"pod_networks": ()}, M.REQUIRES, id="everybody in two halves"),
        pytest.param("10.244.0.0/16, 192.0.2.0/24", {}, M.REQUIRES, id="pods and nodes"),
        pytest.param("10.244.0.0/17,10.244.128.0/17,192.0.2.11,192.0.2.12", {}, M.REQUIRES, id="pods in two halves"),
        pytest.param("10.244.0.0/16", {"node_addresses": ()}, M.REQUIRES, id="pods, unknown nodes"),
        pytest.param("10.244.0.0/16", {}, M.UNKNOWN, id="pods, but not the nodes that hide them"),
        pytest.param("192.0.2.0/24", {}, M.UNKNOWN, id="nodes that may hide pods"),
        pytest.param("10.244.3.0/24", {}, M.UNKNOWN, id="a part of the pods"),
        pytest.param("192.0.2.11", {}, M.UNKNOWN, id="one node"),
        pytest.param("198.51.100.0/24", {}, M.REJECTS, id="the load balancer alone"),
        pytest.param("198.51.100.7", {}, M.REJECTS, id="one address"),
        pytest.param("198.51.100.0/24", {"pod_networks": ()}, M.UNKNOWN, id="unknown pods"),
        pytest.param("2001:db8::/32", {}, M.REJECTS, id="the other family alone"),
        pytest.param("0.0.0.0/0", V6, M.UNKNOWN, id="one of two families, unknown pods of the other"),
        pytest.param("0.0.0.0/0,::/0", V6, M.REQUIRES, id="both families"),
        pytest.param("0.0.0.0/0", V6 | {"pod_networks": TWO}, M.UNKNOWN, id="one of two families"),
        pytest.param("nonsense, 0.0.0.0/0", {}, M.REQUIRES, id="a word that HAProxy skips"),
    ],
)
def test_networks_of_haproxy_must_hold_all_sources_of_pods_or_none(
    networks: str, fields: dict[str, Any], expected: HeaderMode
) -> None:
    fields = {"points": (BalancerAddress(ip="203.0.113.10"),)} | fields
    assert mode_of({KEY: networks}, program="kubernetes-ingress", **fields) is expected


@pytest.mark.parametrize(
    ("settings", "fields", "expected"),
    [
        pytest.param({ALL: "web,websecure", WITH: "web,websecure"}, PORTS, M.ACCEPTS, id="all"),
        pytest.param({ALL: "metrics,web,websecure", WITH: "web,websecure"}, PORTS, M.ACCEPTS, id="all of the Service"),
        pytest.param({ALL: "Web,WebSecure", WITH: "web,websecure"}, PORTS, M.ACCEPTS, id="capitals"),
        pytest.param({ALL: "web,websecure", WITH: "websecure"}, PORTS, M.UNKNOWN, id="one of two"),
        pytest.param({ALL: "metrics,web,websecure", WITH: "metrics"}, PORTS, M.REJECTS, id="another port"),
        pytest.param({ALL: "web,websecure"}, PORTS, M.REJECTS, id="none"),
        pytest.param({ALL: "a,b", WITH: "a,b"}, PORTS, M.ACCEPTS, id="all, with other names"),
        pytest.param({ALL: "a,b", WITH: "a"}, PORTS, M.UNKNOWN, id="some, with other names"),
        pytest.param({}, PORTS, M.UNKNOWN, id="unread"),
        pytest.param({"trusted-ips": "10.0.0.0/8"}, PORTS, M.UNKNOWN, id="an older file of facts"),
    ],
)
def test_an_entry_point_of_traefik_with_the_setting_takes_both_from_every_source(
    settings: Mapping[str, str], fields: dict[str, Any], expected: HeaderMode
) -> None:
    assert mode_of(settings, program="traefik", **fields) is expected
