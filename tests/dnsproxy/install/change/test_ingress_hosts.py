"""The hosts of Ingresses that may become zones."""

from __future__ import annotations

import pytest

from dnsproxy.install.change.ingress_hosts import hosts_of
from sidecar.kubernetes.structs.metadata import Metadata
from sidecar.kubernetes.structs.network import Ingress, IngressRule, IngressSpec, IngressTls


@pytest.mark.parametrize(
    "host",
    ["com", "registry", "*.org", "co.uk", "*.github.io", "github.com.ec2.internal", "printer.local", "nas.home.arpa"],
)
def test_hosts_that_no_object_gets_do_not_count(host: str) -> None:
    """Otherwise an Ingress would send all lookups of `com` to dnsproxy."""
    rules, tls = (IngressRule(host), IngressRule("a.example.org")), (IngressTls((host,)),)
    assert hosts_of([Ingress(Metadata("x"), IngressSpec(rules, tls))]) == ["a.example.org"]


def test_hosts_of_rules_and_of_certificates_count_and_gaps_do_not() -> None:
    rules = (IngressRule("a.example.org"), IngressRule(None), IngressRule(""))
    tls = (IngressTls(("b.example.org",)), IngressTls(None))
    ingresses = [
        Ingress(Metadata("x"), IngressSpec(rules, tls)),
        Ingress(Metadata("y")),
        Ingress(Metadata("z"), IngressSpec()),
    ]
    assert hosts_of(ingresses) == ["a.example.org", "b.example.org"]
