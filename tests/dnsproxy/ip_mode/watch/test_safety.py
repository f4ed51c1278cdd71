"""Which load balancers a watcher refuses, from what the watch shows of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dnsproxy.ip_mode.status_writers import ManagedService
from dnsproxy.ip_mode.watch.safety import why_refused


def service(annotations: Any = None, *, load_balancer_class: str | None = None, ports: Any = None) -> ManagedService:
    body = {
        "metadata": {"name": "a", "namespace": "b", "resourceVersion": "7", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": load_balancer_class, "ports": ports},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }
    return msgspec.json.decode(json.dumps(body), type=ManagedService)


HARMFUL = [
    pytest.param(service({"metallb.io/ip-allocated-from-pool": "a"}), "", id="MetalLB by annotation"),
    pytest.param(service(load_balancer_class="kube-vip.io/kube-vip-class"), "", id="kube-vip by class"),
    pytest.param(service(load_balancer_class="io.cilium/l2-announcer"), "hcloud", id="a class beside a cloud"),
    pytest.param(service(), "azure", id="Azure by nodes"),
    pytest.param(service(), "gce", id="Google by nodes"),
]


@pytest.mark.parametrize(("found", "scheme"), HARMFUL)
@pytest.mark.parametrize("word", [False, True], ids=["unasked", "with the user's word"])
def test_a_balancer_that_passes_packets_is_refused_whatever_the_user_says(
    found: ManagedService, scheme: str, *, word: bool
) -> None:
    assert "cut off" in why_refused(found, scheme=scheme, ends_connections=word)


UNKNOWN = [
    pytest.param(service(), "", id="nothing known"),
    pytest.param(service(load_balancer_class="example.org/lb"), "hcloud", id="a class of its own"),
    pytest.param(service(), "kind", id="a cloud without a row"),
]


@pytest.mark.parametrize(("found", "scheme"), UNKNOWN)
def test_an_unknown_one_takes_the_user_s_word(found: ManagedService, scheme: str) -> None:
    assert "--balancer-ends-connections" in why_refused(found, scheme=scheme, ends_connections=False)
    assert why_refused(found, scheme=scheme, ends_connections=True) == ""


def test_one_that_is_set_to_send_the_header_ends_connections() -> None:
    found = service({"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"})
    assert why_refused(found, scheme="", ends_connections=False) == ""


def test_a_header_on_a_port_of_the_service_counts() -> None:
    key = "service.beta.kubernetes.io/linode-loadbalancer-port-8443"
    found = service({key: json.dumps({"proxy-protocol": "v2"})}, ports=[{"port": 8443, "name": "tls"}])
    assert why_refused(found, scheme="", ends_connections=False) == ""
