"""The hosts of Ingresses that may become zones."""

from __future__ import annotations

from typing import Any

import msgspec
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


TLS = (IngressTls(("b.example.org",)), IngressTls(None))


def test_hosts_of_rules_count_and_gaps_do_not() -> None:
    rules = (IngressRule("a.example.org"), IngressRule(None), IngressRule(""))
    ingresses = [
        Ingress(Metadata("x"), IngressSpec(rules, TLS)),
        Ingress(Metadata("y")),
        Ingress(Metadata("z"), IngressSpec()),
    ]
    assert hosts_of(ingresses) == ["a.example.org"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"rules": [{"host": "*.example.org"}]}, ["*.example.org", "b.example.org"], id="a wildcard"),
        pytest.param({"rules": [{"http": {"paths": [{"path": "/"}]}}]}, ["b.example.org"], id="a rule for every name"),
        pytest.param({"defaultBackend": {"service": {"name": "web"}}}, ["b.example.org"], id="a backend alone"),
        pytest.param({"rules": [{}]}, [], id="a rule without paths"),
        pytest.param({"rules": [{"host": "a.example.org"}], "defaultBackend": {}}, ["a.example.org"], id="a rule, too"),
        pytest.param({"rules": None, "defaultBackend": None}, [], id="nothing"),
    ],
)
def test_a_host_of_a_certificate_counts_if_the_rules_serve_it(spec: dict[str, Any], expected: list[str]) -> None:
    """As `dnsproxy serve` takes it: a zone for the other names of a certificate would have none of its hosts."""
    one = {"metadata": {"name": "x"}, "spec": spec | {"tls": [{"hosts": ["b.example.org"]}]}}
    assert hosts_of([msgspec.convert(one, Ingress)]) == expected
