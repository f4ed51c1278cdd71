"""The hostnames that annotations of ingress-nginx add, and their claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claim_store import ClaimStore
from dnsproxy.hostnames.claims import Claim, Rejection
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.name_limits import NameLimits
from dnsproxy.hostnames.name_shares import NameShares
from dnsproxy.hostnames.registry import Registry
from dnsproxy.hostnames.rights import Rights
from dnsproxy.hostnames.targets import Targets
from dnsproxy.sources.annotations import HOSTNAME, IGNORE
from dnsproxy.sources.ingress import Ingress, IngressClass, claims_of
from dnsproxy.sources.ingress_nginx import ALIAS, CANARY, WWW
from dnsproxy.sources.ingress_source import IngressSource
from dnsproxy.sources.settings import IngressOptions

HOST, OTHER = "shop.example.org", "alias.example.org"


def parse(annotations: Any, *hosts: str | None, name: str = "shop", tls: Any = None, **spec: Any) -> Ingress:
    rules = [{"host": host, "http": {"paths": [{"path": "/"}]}} for host in hosts or (HOST,)]
    metadata = {"name": name, "namespace": "web", "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {"rules": rules, "tls": tls} | spec}, Ingress)


def read(annotations: Any, *hosts: str | None, tls_only: bool = False, **more: Any) -> tuple[list[str], list[str]]:
    """The additional hostnames, and the reasons of the rejections."""
    claims, rejections = claims_of(parse(annotations, *hosts, **more), tls_only=tls_only, most=1_000)
    return [one.hostname for one in claims if one.is_additional], [one.reason for one in rejections]


@pytest.mark.parametrize(
    ("annotations", "hosts", "expected"),
    [
        pytest.param({ALIAS: OTHER}, (HOST,), [OTHER], id="an alias"),
        pytest.param({ALIAS: f" {OTHER} ,, B.Example.org,"}, (HOST,), [OTHER, "b.example.org"], id="a list"),
        pytest.param({ALIAS: f"{OTHER},{OTHER}"}, (HOST,), [OTHER], id="repeated"),
        pytest.param({ALIAS: "*.example.net"}, (HOST,), ["*.example.net"], id="a wildcard of nginx"),
        pytest.param({ALIAS: f"{HOST},{OTHER}"}, (HOST,), [OTHER], id="its own host"),
        pytest.param({ALIAS: OTHER}, (None,), [OTHER], id="of the default server"),
        pytest.param({ALIAS: ""}, (HOST,), [], id="an empty list"),
        pytest.param({WWW: "true"}, (HOST,), [f"www.{HOST}"], id="www of a host"),
        pytest.param({WWW: "true"}, ("www.example.org",), ["example.org"], id="the host of www"),
        pytest.param({WWW: "T"}, (HOST, "a.org"), [f"www.{HOST}", "www.a.org"], id="each rule, Go's true"),
        pytest.param({WWW: "true"}, (HOST, f"www.{HOST}"), [], id="both halves have rules"),
        pytest.param({WWW: "true"}, (None,), [], id="www of no host"),
        pytest.param({WWW: "false"}, (HOST,), [], id="false"),
        pytest.param({WWW: "yes"}, (HOST,), [], id="not Go's true"),
        pytest.param({ALIAS: OTHER, WWW: "true", CANARY: "true"}, (HOST,), [], id="a canary has no server"),
        pytest.param({ALIAS: OTHER, CANARY: "false"}, (HOST,), [OTHER], id="no canary"),
        pytest.param({"nginx.org/server-alias": OTHER}, (HOST,), [], id="of another controller"),
        pytest.param(None, (HOST,), [], id="none"),
    ],
)
def test_annotations_add_hostnames(annotations: Any, hosts: tuple[str | None, ...], expected: list[str]) -> None:
    assert read(annotations, *hosts) == (expected, [])


def test_hosts_of_tls_alone_have_no_server_and_so_no_other_half() -> None:
    names, (reason,) = read({WWW: "true"}, tls=[{"hosts": ["secure.example.org"]}])
    assert names == [f"www.{HOST}"]
    assert reason.startswith("secure.example.org: no rule has this host")


def test_no_rule_adds_nothing() -> None:
    assert read({ALIAS: OTHER, WWW: "true"}, rules=[None]) == ([], [])


def test_a_rule_without_paths_has_aliases_and_no_redirect() -> None:
    assert read({ALIAS: OTHER, WWW: "true"}, rules=[{"host": HOST}]) == ([OTHER], [])


def test_tls_only_takes_none() -> None:
    assert read({ALIAS: OTHER, WWW: "true"}, tls_only=True) == ([], [])


@pytest.mark.parametrize(
    "bad",
    [r"~^www\d+\.example\.org$", "~.*", ".example.org", "www.example.*", "*", "a.*.example.org", "*.*.org",
     "alias.example.org.", "192.0.2.1", "a..example.org", "https://x.org", "x" * 64 + ".org", "x" * 200_000],
)  # fmt: skip
def test_a_pattern_or_an_invalid_alias_is_rejected_alone_and_shown_short(bad: str) -> None:
    names, (reason,) = read({ALIAS: f"{bad},{OTHER}"})
    assert names == [OTHER]
    assert reason.startswith(ALIAS)
    assert len(reason) < 300
    assert reason.isprintable()


@pytest.mark.parametrize("bad", ["a b.example.org", "b\u00fccher.example.org", "a;b.org", "a\nb.org", '"a".org'])
def test_what_ingress_nginx_refuses_costs_the_whole_list(bad: str) -> None:
    names, (reason,) = read({ALIAS: f"{OTHER},{bad}", WWW: "true"})
    assert names == []
    assert "refuses" in reason
    assert reason.isprintable()


def test_a_long_list_is_cut_and_never_pushes_out_a_host_of_a_rule() -> None:
    aliases = ",".join(f"a{number}.example.org" for number in range(10_000))
    names, (reason,) = read({ALIAS: aliases})
    assert (len(names), "1,000 hostnames" in reason) == (1_000, True)
    store = ClaimStore()
    source = IngressSource(NameShares(store, limits=NameLimits(per_object=3)), options=IngressOptions(), most=3)
    source.change_ingresses({"web/shop": parse({ALIAS: aliases})})
    assert {one.hostname for one in store.claims()} == {HOST, "a0.example.org", "a1.example.org"}


def test_the_other_half_of_a_wildcard_is_rejected() -> None:
    names, (reason,) = read({WWW: "true"}, "*.example.org")
    assert names == []
    assert reason.startswith(WWW)


def test_an_additional_hostname_has_the_terms_of_a_rule() -> None:
    own, other = claims_of(parse({ALIAS: "*.example.net"}, ingressClassName="nginx"), tls_only=False)[0]
    assert (other.origin, other.reach) == (own.origin, Reach.ONE_LABEL)
    assert other.terms.ingress_class == "nginx"
    assert not other.terms.annotated


def test_an_annotation_of_ours_may_lack_a_right_that_the_alias_does_not_need() -> None:
    claims, _ = claims_of(parse({ALIAS: OTHER, HOSTNAME: OTHER}), tls_only=False)
    assert [(one.hostname, one.is_additional, one.terms.annotated) for one in claims] == [
        (HOST, False, False), (OTHER, False, True), (OTHER, True, False)
    ]  # fmt: skip


def test_an_ignored_object_rejects_its_additional_hostnames_too() -> None:
    _, reasons = read({ALIAS: OTHER, IGNORE: "true"})
    assert reasons == [f"{name}: it is ignored ({IGNORE})" for name in (HOST, OTHER)]


@given(st.text(), st.text(), st.lists(st.text() | st.none()))
def test_any_text_is_a_claim_or_a_rejection(alias: str, www: str, hosts: list[str | None]) -> None:
    claims, rejections = claims_of(parse({ALIAS: alias, WWW: www}, *hosts), tls_only=False)
    assert all(isinstance(one, Claim) for one in claims)
    assert all(isinstance(one, Rejection) and one.reason.isprintable() for one in rejections)


def ingress_class(name: str, controller: str | None, *, default: bool = False) -> IngressClass:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"} if default else None
    spec = {"controller": controller} if controller is not None else None
    return msgspec.convert({"metadata": {"name": name, "annotations": mark}, "spec": spec}, IngressClass)


NGINX, TRAEFIK = "k8s.io/ingress-nginx", "traefik.io/ingress-controller"


@pytest.mark.parametrize(
    ("named", "classes", "why"),
    [
        pytest.param("a", [ingress_class("a", NGINX)], "", id="ingress-nginx"),
        pytest.param("a", [ingress_class("a", "k8s.io/internal-ingress-nginx")], "", id="a second ingress-nginx"),
        pytest.param(None, [ingress_class("a", NGINX, default=True)], "", id="by the default class"),
        pytest.param("b", [ingress_class("a", NGINX), ingress_class("b", TRAEFIK)], "'b'", id="another controller"),
        pytest.param("b", [ingress_class("b", "nginx.org/ingress-controller")], "'b'", id="another nginx"),
        pytest.param("nginx", [ingress_class("nginx", None)], "'nginx'", id="a class without a controller"),
        pytest.param("nginx", [], "'nginx'", id="no IngressClass, or RBAC hides them"),
        pytest.param(None, [ingress_class("a", NGINX)], "has no class", id="no class"),
        pytest.param(None, [ingress_class("b", TRAEFIK, default=True)], "'b'", id="another default"),
    ],
)
@pytest.mark.parametrize("classes_first", [True, False])
def test_only_a_class_of_ingress_nginx_gets_them(
    named: str | None, classes: list[IngressClass], why: str, classes_first: bool
) -> None:
    registry = Registry(targets=Targets(("192.0.2.1",)), guards=Guards(), rights=Rights())
    source = IngressSource(registry.store, options=IngressOptions())
    assert answered(registry) == ()
    known = {one.metadata.name: one for one in classes}
    if classes_first:
        source.change_classes(known)
    source.change_ingresses({"web/shop": parse({ALIAS: OTHER}, ingressClassName=named)})
    source.change_classes(known)
    assert answered(registry) == ()
    assert "not read yet" in registry.verdict(OTHER, Reach.NAME).excluded[0].reason
    registry.set_rights(classes=source.class_names, nginx_classes=source.nginx_classes)
    assert answered(registry) == (() if why else ("192.0.2.1",))
    assert all(why in one.reason for one in registry.verdict(OTHER, Reach.NAME).excluded)
    assert registry.verdict(HOST, Reach.NAME).addresses == ("192.0.2.1",)


def answered(registry: Registry) -> tuple[str, ...]:
    return registry.verdict(OTHER, Reach.NAME).addresses
