"""What one object with annotations of external-dns claims."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Rejection, Terms
from dnsproxy.sources.external_dns.contribution import contribution
from dnsproxy.sources.external_dns.facts import read
from dnsproxy.sources.external_dns.headless import endpoints_of
from tests.dnsproxy.sources.external_dns.objects import (
    CREATED,
    HOSTNAME,
    INTERNAL,
    NEW,
    TARGET,
    endpoint,
    endpoint_slice,
    gateway,
    headless,
    ingress,
    service,
)

DB = "db.example.org"
OURS = "switchback.dev/"


def of(one: Any, *endpoints: Any, **more: Any) -> tuple[list[Claim], list[Rejection]]:
    facts = read(one, most=more.get("most"))
    assert facts is not None
    return contribution(facts, endpoints=endpoints_of(endpoint_slice(*endpoints)), **more)


def claim(name: str = DB, *, kind: str = "Service", origin: str = "db", **fields: Any) -> Claim:
    place = Origin(kind, origin, "shop", CREATED)
    return Claim(name, Reach.NAME, place, Terms(**{"annotated": True, **fields}))


def own(*addresses: str, name: str = DB) -> Claim:
    return claim(name, target="own", status=addresses)


LB = claim(status=("192.0.2.22",))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(service({HOSTNAME: DB}), [LB], id="a load balancer"),
        pytest.param(service({HOSTNAME: DB}, points=()), [claim()], id="a load balancer without a status"),
        pytest.param(service({HOSTNAME: DB, INTERNAL: DB}), [LB], id="one name twice"),
        pytest.param(
            service({HOSTNAME: DB, INTERNAL: "in.example.org"}),
            [LB, own("10.96.0.7", name="in.example.org")],
            id="a load balancer, and its ClusterIP",
        ),
        pytest.param(
            service({HOSTNAME: DB, TARGET: "192.0.2.9,cdn.example.com"}),
            [claim(status=("192.0.2.22",), declared=("192.0.2.9", "cdn.example.com"))],
            id="a record that its writer points elsewhere",
        ),
        pytest.param(
            service({INTERNAL: DB, TARGET: "192.0.2.9"}),
            [claim(status=("192.0.2.22",), declared=("192.0.2.9",))],
            id="an internal name that its writer points elsewhere",
        ),
        pytest.param(
            service({HOSTNAME: DB}, externalIPs=["192.0.2.66", None]),
            [claim(status=("192.0.2.22",), declared=("192.0.2.66",))],
            id="external addresses are no proof",
        ),
        pytest.param(
            service({HOSTNAME: DB, OURS + "target": "service:shop/x"}, type="NodePort"),
            [claim(target="service:shop/x", status=("192.0.2.22",))],
            id="a target of ours makes any type an answer",
        ),
        pytest.param(service({INTERNAL: DB}, type="ClusterIP"), [own("10.96.0.7")], id="a ClusterIP"),
        pytest.param(service({INTERNAL: DB}, type=None), [own("10.96.0.7")], id="the default type"),
        pytest.param(
            service({INTERNAL: DB}, type="ClusterIP", clusterIPs=["10.96.0.7", "fd00:10::7", "None", None]),
            [own("10.96.0.7", "fd00:10::7")],
            id="both families",
        ),
        pytest.param(service({INTERNAL: DB}, type="ClusterIP", clusterIP=None), [own()], id="no ClusterIP yet"),
        pytest.param(headless({HOSTNAME: DB}), [own()], id="no pods"),
    ],
)
def test_a_service_claims_as_external_dns_publishes(one: Any, expected: list[Claim]) -> None:
    assert of(one) == (expected, [])


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        pytest.param(service({HOSTNAME: DB}, type="ClusterIP"), "internal-hostname", id="a hostname of a ClusterIP"),
        pytest.param(service({HOSTNAME: DB}, type="NodePort"), "points it to nodes", id="a NodePort"),
        pytest.param(
            service({INTERNAL: DB}, type="NodePort"), "points it to nodes", id="an internal one of a NodePort"
        ),
        pytest.param(service({HOSTNAME: DB}, type="ExternalName"), "this ExternalName leads", id="an ExternalName"),
        pytest.param(
            service({HOSTNAME: DB, TARGET: "192.0.2.9"}, type="ClusterIP"), "'192.0.2.9'", id="a ClusterIP elsewhere"
        ),
        pytest.param(
            service({INTERNAL: DB, TARGET: "192.0.2.9"}, type="ClusterIP"), "'192.0.2.9'", id="even an internal one"
        ),
        pytest.param(
            headless({HOSTNAME: DB, TARGET: "192.0.2.9"}), "not to this Service", id="a headless one elsewhere"
        ),
        pytest.param(headless({HOSTNAME: DB, NEW + "endpoints-type": "HostIP"}), "to nodes", id="addresses of hosts"),
        pytest.param(
            headless({HOSTNAME: DB, NEW + "endpoints-type": "NodeExternalIP"}), "to nodes", id="addresses of nodes"
        ),
        pytest.param(service({HOSTNAME: DB, NEW + "controller": "x"}), "another controller", id="another controller"),
        pytest.param(service({HOSTNAME: DB, OURS + "ignore": "true"}), "is ignored", id="ignored"),
        pytest.param(
            service({HOSTNAME: DB}, labels={OURS + "instance": "x"}), "Switchback itself", id="what we published"
        ),
        pytest.param(
            ingress({HOSTNAME: DB, NEW + "ingress-hostname-source": "defined-hosts-only"}),
            "takes no annotation",
            id="an Ingress with its spec alone",
        ),
    ],
)
def test_what_external_dns_does_not_point_here_is_forwarded_on_purpose(one: Any, reason: str) -> None:
    claims, (rejection,) = of(one, endpoint("10.244.0.7"))
    assert claims == []
    assert (rejection.reason.partition(": ")[0], rejection.deliberate) == (DB, True)
    assert reason in rejection.reason


@pytest.mark.parametrize(
    ("one", "reasons"),
    [
        pytest.param(service({HOSTNAME: f"?,{DB}"}), ["'?'"], id="a bad hostname"),
        pytest.param(
            service({HOSTNAME: DB, OURS + "target": "relay"}), ["'relay'", "invalid annotation"], id="a bad target"
        ),
        pytest.param(service({HOSTNAME: DB, OURS + "ignore": "1"}), ["'1'", "invalid annotation"], id="a bad ignore"),
        pytest.param(ingress({HOSTNAME: DB}, class_name="x" * 300), ["longer than 253"], id="a long class"),
        pytest.param(gateway({HOSTNAME: DB}, "a.example.org"), ["no listener"], id="a Gateway without its listener"),
    ],
)
def test_a_mistake_is_reported(one: Any, reasons: list[str]) -> None:
    _, rejections = of(one)
    assert len(rejections) == len(reasons)
    assert all(part in one.reason and not one.deliberate for part, one in zip(reasons, rejections, strict=True))


def test_a_headless_service_is_answered_with_its_pods_and_each_pod_by_its_hostname() -> None:
    pods = endpoint("10.244.0.8", "db-1"), endpoint("10.244.0.7", "db-0"), endpoint("10.244.0.9")
    claims, rejections = of(headless({HOSTNAME: DB, INTERNAL: "in.example.org"}), *pods)
    assert claims == [
        own("10.244.0.8", "10.244.0.7", "10.244.0.9"),
        own("10.244.0.8", "10.244.0.7", "10.244.0.9", name="in.example.org"),
        own("10.244.0.7", name=f"db-0.{DB}"),
        own("10.244.0.8", name=f"db-1.{DB}"),
        own("10.244.0.7", name="db-0.in.example.org"),
        own("10.244.0.8", name="db-1.in.example.org"),
    ]
    assert rejections == []


@pytest.mark.parametrize("hostname", ["*", "a..b", "x" * 64, "", "-a", "a b", "a.b"], ids=str)
def test_a_pod_whose_hostname_is_none_has_no_name_of_its_own(hostname: str) -> None:
    claims, _ = of(headless({HOSTNAME: DB}), endpoint("10.244.0.7", hostname))
    assert claims == [own("10.244.0.7")]


def test_below_a_wildcard_pods_have_no_names() -> None:
    (one,), _ = of(headless({HOSTNAME: "*.example.org"}), endpoint("10.244.0.7", "db-0"))
    assert (one.hostname, one.reach) == ("*.example.org", Reach.ANY_LABELS)


def test_of_many_pods_the_first_are_answered() -> None:
    pods = [endpoint(f"10.244.{n // 250}.{n % 250}", f"db-{n}") for n in range(1_000)]
    claims, (addresses, names) = of(headless({HOSTNAME: DB}), *pods, most=10)
    assert (len(claims), len(claims[0].terms.status)) == (10, 64)
    assert "1,000 endpoints: only 64 are answered" in addresses.reason
    assert "more than 10 names" in names.reason


@pytest.mark.parametrize(
    ("class_name", "default", "expected"),
    [("nginx", "other", "nginx"), (None, "other", "other"), (None, None, None)],
    ids=["its own", "the default", "none"],
)
def test_an_ingress_has_its_class(class_name: str | None, default: str | None, expected: str | None) -> None:
    one = ingress({HOSTNAME: DB, TARGET: "cdn.example.com"}, class_name=class_name, points=[{"ip": "192.0.2.1"}])
    fields: Any = {"status": ("192.0.2.1",), "declared": ("cdn.example.com",)}
    wanted = claim(kind="Ingress", origin="web", ingress_class=expected, **fields)
    assert of(one, default_class=default) == ([wanted], [])


def test_an_ingress_has_the_class_of_its_annotation_and_wildcards_as_in_dns() -> None:
    marks = {HOSTNAME: "*.example.org", "kubernetes.io/ingress.class": "old", OURS + "target": "service:shop/x"}
    (one,), _ = of(ingress(marks, class_name=None))
    assert (one.terms.ingress_class, one.reach, one.terms.target) == ("old", Reach.ANY_LABELS, "service:shop/x")


@pytest.mark.parametrize("host", [None, DB, "*.example.org", "*.org"], ids=str)
def test_a_gateway_claims_what_a_listener_serves(host: str | None) -> None:
    one = gateway({HOSTNAME: DB, TARGET: "192.0.2.9"}, "other.example.com", host)
    expected = claim(
        kind="Gateway",
        origin="edge",
        ingress_class="envoy",
        routed=False,
        gateway="shop/edge",
        declared=("192.0.2.9",),
    )
    assert of(one) == ([expected], [])


def test_a_gateway_that_no_controller_accepts_is_not_accepted() -> None:
    (one,), _ = of(gateway({HOSTNAME: DB}, status=None))
    assert not one.terms.accepted


def test_a_class_that_is_longer_than_names_are_is_not_kept() -> None:
    facts = read(ingress({HOSTNAME: DB, "kubernetes.io/ingress.class": "x" * 200_000}, class_name=None), most=None)
    assert len(repr(facts)) < 2_000
    assert facts is not None
    claims, (rejection,) = contribution(facts)
    assert (claims, "longer than 253 characters" in rejection.reason) == ([], True)
