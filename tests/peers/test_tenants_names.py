"""Tenants claim names that resolvers build by themselves, names above everybody's, and other spellings of names."""

from __future__ import annotations

import http.client
from typing import Final

import pytest

from tests.kit.apiserver import ingress
from tests.kit.tenants.acts import claim
from tests.kit.tenants.rows import FORWARDED, SUCCEEDS, Row, Stage, both
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.tenant import ALLOWED_LABEL

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")

HOSTNAME: Final = "switchback.dev/hostname"
_A_LABEL: Final = "\uff41\uff50\uff49".encode("punycode").decode()


def taken(row: str, what: str, host: str, *asked: str) -> Row:
    """A host in a rule, which is never answered."""
    return Row(row, what, claim(host), dict.fromkeys(asked or (host,), FORWARDED))


def spelled(row: str, what: str, text: str, *asked: str) -> Row:
    """A hostname in an annotation of a namespace that may use it."""
    does = claim("spelled.apps.example.org", annotations={HOSTNAME: text}, labels=ALLOWED_LABEL)
    return Row(row, what, does, dict.fromkeys(asked, FORWARDED))


def by_two_tenants(scene: Scene) -> None:
    claim("wpad.corp.example.net")(scene)
    claim("wpad.corp.example.net", ingress_class="other")(scene)


ROWS: Final = (
    taken("search-before-world", "claims what a pod asks for before github.com", "github.com.ec2.internal"),
    taken("search-metadata", "claims the metadata service of a cloud", "metadata.google.internal"),
    taken("search-wpad", "claims the proxy settings of the node's search domain", "wpad.ec2.internal"),
    taken("search-wpad-registered", "the same below a search domain with public names", "wpad.corp.example.net"),
    taken("search-world-registered", "claims what a pod asks for before github.com, below a domain with public names",
          "github.com.corp.example.net"),
    taken("search-wildcard", "claims a wildcard of the search domain", "*.ec2.internal",
          "github.ec2.internal", "wpad2.ec2.internal"),
    taken("search-wildcard-registered", "the same below a domain with public names", "*.corp.example.net",
          "app.corp.example.net"),
    taken("search-wildcard-below", "claims a wildcard below the search domain", "*.com.ec2.internal",
          "stripe.com.ec2.internal"),
    taken("search-wildcard-above", "claims a wildcard that covers the search domain itself", "*.example.net",
          "corp.example.net"),
    taken("search-apex", "claims the search domain itself", "corp.example.net"),
    Row("search-two-tenants", "claims it from two namespaces", by_two_tenants, {"wpad.corp.example.net": FORWARDED}),
    taken("label-registry", "claims a name of one label", "registry"),
    taken("label-com", "claims a top-level domain", "com"),
    taken("label-wildcard-com", "claims every name of a top-level domain", "*.com", "anything.com"),
    taken("suffix", "claims a public suffix", "co.uk"),
    taken("suffix-wildcard", "claims a wildcard of a public suffix", "*.co.uk", "bank.co.uk"),
    taken("suffix-private", "claims a wildcard of a private suffix", "*.github.io", "someone.github.io"),
    taken("suffix-exception", "claims a wildcard of a suffix that only a wildcard rule of the list has", "*.ck",
          "anything.ck"),
    taken("internal", "claims the domain of clouds", "internal"),
    taken("internal-wildcard", "claims every name of it", "*.internal", "anything.internal"),
    taken("internal-below", "claims a name of another cloud's zone", "vm1.c.project.internal"),
    taken("local", "claims a name of the local link", "printer.local"),
    taken("local-wildcard", "claims every name of it", "*.local", "nas.local"),
    taken("home", "claims a name of homes", "router.home.arpa"),
    taken("localdomain", "claims a name that many nodes have as theirs", "localhost.localdomain"),
    taken("invalid", "claims a name that must not exist", "any.invalid"),
    taken("service", "claims a Service's name as a pod asks for it", "kubernetes.default.svc"),
    Row("service-short", "claims a Service's name without its zone, as pods with ndots:1 ask for it",
        claim("kubernetes.default"), {"kubernetes.default": FORWARDED}, default=SUCCEEDS),
    taken("cluster-domain", "claims a Service's whole name", "kubernetes.default.svc.cluster.local"),
    taken("cluster-domain-wildcard", "claims a wildcard above it", "*.cluster.local", "svc.cluster.local"),
    spelled("full-width", "writes another name in full-width letters", "\uff41\uff50\uff49.world.example.com",
            "api.world.example.com"),
    spelled("full-stop", "writes it with an ideographic full stop", "api2\u3002world\u3002example\u3002com",
            "api2.world.example.com"),
    spelled("soft-hyphen", "writes it with a soft hyphen", "ap\u00adi3.world.example.com", "api3.world.example.com"),
    spelled("joiner", "writes it with a zero-width joiner", "ap\u200di4.world.example.com", "api4.world.example.com"),
    spelled("kelvin", "writes a letter as the Kelvin sign", "ban\u212a.world.example.com", "bank.world.example.com"),
    spelled("circled", "writes a digit in a circle", "api\u2460.world.example.com", "api1.world.example.com"),
    spelled("sharp-s", "writes ss as a sharp s", "stra\u00dfe.world.example.com", "strasse.world.example.com"),
    spelled("upper-search", "writes a name of the search domain in capitals, with a dot at its end",
            "GitHub.com.EC2.Internal.", "github.com.ec2.internal"),
    spelled("upper-wildcard-search", "the same as a wildcard", "*.EC2.INTERNAL.", "anyone.ec2.internal"),
    spelled("spaces", "hides it between spaces and empty items", " ,, \tmetadata.google.internal ,",
            "metadata.google.internal"),
    spelled("full-width-address", "writes an address in full-width digits",
            "\uff11\uff12\uff17.\uff10.\uff10.\uff11", "127.0.0.1"),
    spelled("bad-a-label", "writes an A-label that is no name", "xn--zzzzzz-.example.com", "xn--zzzzzz-.example.com"),
    taken("full-width-a-label", "writes full-width letters as an A-label", f"xn--{_A_LABEL}.world2.example.com"),
)  # fmt: skip

REFUSED: Final = {
    "dot at its end": "login.example.com.",
    "capitals": "Login.example.com",
    "full-width": "\uff41.example.com",
    "address": "192.0.2.1",
    "star only": "*",
    "inner star": "a.*.example.com",
    "underscore": "_acme-challenge.example.com",
}
"""Hosts of rules that the API server itself refuses: only an annotation can spell these."""


@pytest.fixture(scope="module", autouse=True)
def _made(stage: Stage) -> None:
    stage.all_at_once(ROWS)


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_no_tenant_gets_such_a_name(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)


@pytest.mark.parametrize("host", REFUSED.values(), ids=REFUSED)
def test_a_rule_cannot_spell_a_name_otherwise(stage: Stage, host: str) -> None:
    tenant = stage.scene.tenant()
    manifest = ingress("web", [host], namespace=tenant.namespace)
    path = f"/apis/networking.k8s.io/v1/namespaces/{tenant.namespace}/ingresses"
    assert tenant.call("POST", path, manifest)[0] == http.client.UNPROCESSABLE_ENTITY


def test_a_valid_name_in_another_script_is_answered(stage: Stage) -> None:
    """Otherwise the spellings could be refused because annotations do not count at all."""
    scene = stage.scene
    claim("b.apps.example.org", annotations={HOSTNAME: "b\u00fccher.apps.example.org"}, labels=ALLOWED_LABEL)(scene)
    scene.wait_for("xn--bcher-kva.apps.example.org", scene.relay)
