"""The claims of one object, given all others."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Rejection, Terms
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.istio.contribution import contribution
from dnsproxy.sources.istio.facts import read_facts
from dnsproxy.sources.istio.kinds import ISTIO_GATEWAY, VIRTUAL_SERVICE
from dnsproxy.sources.istio.object_graph import ObjectGraph
from dnsproxy.sources.istio.structs import VirtualService
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.istio.objects import INGRESS_CLASS, NEW, OLD, gateway, service

MAIN, OTHER = "IstioGateway infra/main", "IstioGateway infra/other"


def kind_of(one: Any) -> str:
    if isinstance(one, Unreadable):
        return VIRTUAL_SERVICE
    return VIRTUAL_SERVICE if isinstance(one, VirtualService) else ISTIO_GATEWAY


def contribute(
    *objects: Any, classes: tuple[str, ...] = (), most: int | None = None
) -> tuple[list[Claim], list[Rejection]]:
    """Of the first object."""
    graph, kind, key = ObjectGraph(), "", ""
    for one in reversed(objects):
        kind = kind_of(one)
        facts = read_facts(kind, one, most=most)
        key = f"{facts.origin.namespace}/{facts.origin.name}"
        graph.put(kind, key, facts)
    return contribution(kind, key, graph, classes=frozenset(classes))


def names(*objects: Any, **more: Any) -> list[str]:
    return [claim.hostname for claim in contribute(*objects, **more)[0]]


def reasons(*objects: Any, **more: Any) -> list[str]:
    return [rejection.reason for rejection in contribute(*objects, **more)[1]]


@pytest.mark.parametrize(
    ("own", "doors", "expected"),
    [
        pytest.param(["a.example.org"], ["a.example.org"], ["a.example.org"], id="equal"),
        pytest.param(["a.b.example.org"], ["*.example.org"], ["a.b.example.org"], id="two labels below a wildcard"),
        pytest.param(["*.example.org"], ["a.example.org"], ["a.example.org"], id="the server is the narrower"),
        pytest.param(["*.b.example.org"], ["*.example.org"], ["*.b.example.org"], id="two wildcards"),
        pytest.param(["*.example.org"], ["*.b.example.org"], ["*.b.example.org"], id="two wildcards, turned"),
        pytest.param(["a.example.org"], ["*"], ["a.example.org"], id="a server with every name"),
        pytest.param(["a.example.org"], ["web/*"], ["a.example.org"], id="every name for its namespace"),
        pytest.param(["*"], ["a.example.org", "*.b.org"], ["a.example.org", "*.b.org"], id="all of the servers"),
        pytest.param(["*"], ["web/a.org", "b.org", "shop/c.org"], ["a.org", "b.org"], id="all for its namespace"),
        pytest.param(["*", "c.org"], ["a.org", "*"], ["c.org", "a.org"], id="all and one beside them"),
        pytest.param(["a.org", "b.org"], ["web/a.org", "shop/b.org"], ["a.org"], id="a host for another namespace"),
        pytest.param(["a.org", "b.org"], ["b.org"], ["b.org"], id="half"),
        pytest.param(["example.org"], ["*.example.org"], [], id="the parent itself"),
        pytest.param(["newexample.org"], ["*.example.org"], [], id="no whole label"),
        pytest.param(["reviews"], ["*"], [], id="a short name"),
        pytest.param(["192.0.2.1"], ["*"], [], id="an address"),
    ],
)
def test_a_virtual_service_claims_what_it_and_the_servers_serve(
    own: list[str], doors: list[str], expected: list[str]
) -> None:
    claims, _ = contribute(service(*own), gateway(*doors))
    assert [claim.hostname for claim in claims] == expected
    assert all(claim.terms.routed for claim in claims)


def test_a_claim_has_the_reach_of_envoy_and_the_class_of_its_gateway() -> None:
    one = service("a.example.org", "*.example.org", created=NEW)
    claims, rejections = contribute(one, gateway("*"))
    origin = read_facts(VIRTUAL_SERVICE, one, most=None).origin
    assert claims == [
        Claim("a.example.org", Reach.NAME, origin, Terms(ingress_class=INGRESS_CLASS, gateway=MAIN)),
        Claim("*.example.org", Reach.ANY_LABELS, origin, Terms(ingress_class=INGRESS_CLASS, gateway=MAIN)),
    ]
    assert rejections == []


def test_without_a_selector_a_claim_has_no_class() -> None:
    open_to_all = gateway("a.example.org", selector=None)
    for objects in ([open_to_all], [service("a.example.org"), open_to_all]):
        (claim,), _ = contribute(*objects)
        assert claim.terms.ingress_class is None
        assert claim.terms.gateway == MAIN


def test_the_first_gateway_that_serves_a_name_gives_its_class() -> None:
    """In the order of the VirtualService, so that its owner decides."""
    others = [
        gateway("a.example.org", selector={"istio": "outer"}),
        gateway("*.example.org", place="infra/other", selector={"istio": "inner"}),
    ]
    for gateways, expected in (
        (["infra/other", "infra/main"], {"a.example.org": OTHER, "b.example.org": OTHER}),
        (["infra/main", "mesh", "infra/other"], {"a.example.org": MAIN, "b.example.org": OTHER}),
        (["infra/gone", "infra/other"], {"a.example.org": OTHER, "b.example.org": OTHER}),
    ):
        claims, rejections = contribute(service("a.example.org", "b.example.org", gateways=gateways), *others)
        assert {claim.hostname: claim.terms.gateway for claim in claims} == expected
        assert {claim.terms.ingress_class for claim in claims} <= {"istio=outer", "istio=inner"}
        assert rejections == []


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        pytest.param(["a.example.org"], ["a.example.org"], id="exact"),
        pytest.param(["web/a.org", "shop/a.org", "./b.org"], ["a.org", "b.org"], id="whoever may bind"),
        pytest.param(["*.example.org"], [], id="a wildcard is what may be served"),
        pytest.param(["*"], [], id="every name"),
        pytest.param(["?"], [], id="bad"),
        pytest.param([], [], id="none"),
    ],
)
def test_a_gateway_claims_its_exact_names_as_a_mere_listener(hosts: list[str], expected: list[str]) -> None:
    claims, _ = contribute(gateway(*hosts))
    assert [claim.hostname for claim in claims] == expected
    assert not any(claim.terms.routed for claim in claims)
    assert all((claim.terms.ingress_class, claim.terms.gateway) == (INGRESS_CLASS, MAIN) for claim in claims)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([service("a.org")], "a.org: IstioGateway infra/main does not exist", id="no Gateway"),
        pytest.param(
            [service("a.org"), gateway("b.org")],
            "a.org: no server of IstioGateway infra/main has it for namespace web",
            id="outside",
        ),
        pytest.param([service("a.org", "b.org"), gateway("b.org")], "a.org: no server", id="half"),
        pytest.param(
            [service("a.org", export_to=["."]), gateway("*")],
            "a.org: it is not exported to namespace infra",
            id="export",
        ),
        pytest.param(
            [service("a.org"), gateway("./*")], "a.org: no server of IstioGateway infra/main has", id="theirs"
        ),
        pytest.param(
            [service("*"), gateway("*")],
            "it serves every name: give it or IstioGateway infra/main a hostname",
            id="every name",
        ),
        pytest.param([service("*")], "IstioGateway infra/main does not exist", id="every name and no Gateway"),
        pytest.param([service("*"), gateway("./*")], "no server of IstioGateway infra/main", id="every name refused"),
        pytest.param(
            [service("reviews"), gateway("*")],
            "reviews: Istio completes a name without a dot to that of a Service in namespace web",
            id="short name",
        ),
        pytest.param([service("reviews")], "reviews: IstioGateway infra/main does not exist", id="short, no Gateway"),
        pytest.param([service("a*.org"), gateway("*")], "'a*.org': a label 'a*' is not a host label", id="bad name"),
        pytest.param(
            [service("a.org", gateways=["a/b/c"])], "gateways: 'a/b/c' is not NAMESPACE/NAME", id="bad gateway"
        ),
        pytest.param([service("a.org", gateways=["a/b/c"])], "a.org: it names no valid Gateway", id="no valid gateway"),
        pytest.param(
            [service("a.org", annotations={TARGET: "?"}), gateway("*")],
            "switchback.dev/target: '?' is not an IP address",
            id="bad annotation",
        ),
        pytest.param([gateway("a*.org")], "servers: 'a*.org'", id="bad server"),
        pytest.param([gateway("a.org", selector={"a": "b" * 1001})], "its selector 'a=bbb", id="long selector"),
        pytest.param([Unreadable(ObjectMeta("app", "web"), "Expected `str`")], "unreadable: Expected", id="unreadable"),
    ],
)
def test_a_name_that_is_not_served_is_rejected_with_the_reason(objects: list[Any], reason: str) -> None:
    rejections = contribute(*objects)[1]
    assert any(one.reason.startswith(reason) and not one.deliberate for one in rejections)
    assert all(one.reason.isprintable() for one in rejections)
    assert {str(one.origin) for one in rejections} == {
        str(read_facts(kind_of(objects[0]), objects[0], most=None).origin)
    }


@pytest.mark.parametrize(
    ("objects", "classes", "reason"),
    [
        pytest.param(
            [service("a.org", labels={IGNORE: "true"}), gateway("*")],
            (),
            "a.org: it is ignored (switchback.dev/ignore)",
            id="ignored VirtualService",
        ),
        pytest.param(
            [service("a.org"), gateway("*", annotations={IGNORE: "true"})],
            (),
            "a.org: IstioGateway infra/main is ignored (switchback.dev/ignore)",
            id="ignored Gateway",
        ),
        pytest.param([gateway("a.org", annotations={IGNORE: "true"})], (), "a.org: IstioGateway", id="its own names"),
        pytest.param(
            [service("a.org"), gateway("*")],
            ("istio=inner",),
            f"a.org: IstioGateway infra/main has the selector '{INGRESS_CLASS}', which --class-of excludes",
            id="class",
        ),
        pytest.param([gateway("a.org")], ("istio=inner",), "a.org: IstioGateway infra/main has", id="its own class"),
        pytest.param([service("a.org", gateways=None)], (), "a.org: it is for the mesh alone", id="mesh"),
        pytest.param([service("reviews", gateways=None)], (), "reviews: it is for the mesh alone", id="short in mesh"),
        pytest.param([service("*", gateways=["mesh"])], (), "it is for the mesh alone", id="every name in the mesh"),
        pytest.param([service(gateways=None)], (), "it has no hosts", id="delegate"),
        pytest.param(
            [service("a.svc.local", gateways=["mesh", "infra/main"]), gateway("a.org")],
            (),
            "a.svc.local: no server of IstioGateway infra/main has it",
            id="a host for the mesh",
        ),
        pytest.param(
            [service("reviews", gateways=["mesh", "infra/main"]), gateway("*")],
            (),
            "reviews: Istio completes",
            id="a short name for the mesh",
        ),
    ],
)
def test_an_intended_exclusion_is_deliberate(objects: list[Any], classes: tuple[str, ...], reason: str) -> None:
    claims, (rejection,) = contribute(*objects, classes=classes)
    assert claims == []
    assert rejection.reason.startswith(reason)
    assert rejection.deliberate


def test_an_egress_gateway_claims_nothing_unless_its_class_is_wanted() -> None:
    """Its hosts are names of other parties, to which the mesh sends requests."""
    leaving = gateway("api.example.net", selector={"istio": "egressgateway"})
    bound = service("api.example.net", gateways=["mesh", "infra/main"])
    assert names(leaving) == names(bound, leaving) == []
    assert all(one.deliberate for one in contribute(bound, leaving)[1])
    assert names(leaving, classes=("istio=egressgateway",)) == ["api.example.net"]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([service("a.org", gateways=["mesh", "infra/gone"])], id="beside the mesh"),
        pytest.param(
            [service("a.org", gateways=["infra/main", "infra/gone"]), gateway(labels={IGNORE: "true"})],
            id="beside an ignored Gateway",
        ),
        pytest.param(
            [service("a.org", gateways=["mesh", "infra/main"], annotations={HOSTNAME: "b.org"}), gateway("a.org")],
            id="an annotation that no server serves",
        ),
    ],
)
def test_a_fault_beside_an_intended_exclusion_is_a_fault(objects: list[Any]) -> None:
    (rejection,) = contribute(*objects)[1]
    assert not rejection.deliberate


def test_a_bad_name_harms_no_other() -> None:
    claims, rejections = contribute(service("**", "a.org", "b\n.org"), gateway("*.", "a.org"))
    assert [claim.hostname for claim in claims] == ["a.org"]
    assert len(rejections) == 2


def test_a_served_name_is_not_rejected_because_another_gateway_refused_it() -> None:
    assert reasons(service("a.org", gateways=["infra/gone", "infra/main"]), gateway("*")) == []
    assert reasons(service("*", gateways=["infra/gone", "infra/main"]), gateway("a.org")) == []


def test_reasons_of_many_gateways_are_cut() -> None:
    (reason,) = reasons(service("a.org", gateways=[f"infra/g{number}" for number in range(32)]))
    assert reason.endswith("; and 29 more")
    assert reason.count("does not exist") == 3


def test_a_gateway_that_was_read_in_part_says_so() -> None:
    many = gateway(*(f"h{number}.example.org" for number in range(100_000)))
    claims, rejections = contribute(many, most=10)
    assert (len(claims), len(rejections)) == (10, 1)
    (reason,) = reasons(service("h99.example.org"), many, most=10)
    assert "infra/main, of whose hosts not all were read, has it" in reason


@pytest.mark.parametrize(
    ("own", "of_gateway", "expected", "chosen_in"),
    [
        (None, None, None, ""),
        ("192.0.2.1", None, "192.0.2.1", ""),
        (None, "status", "status", "infra"),
        ("192.0.2.1", "status", "192.0.2.1", ""),
    ],
)
def test_the_target_of_a_virtual_service_goes_before_that_of_its_gateway(
    own: Any, of_gateway: Any, expected: Any, chosen_in: str
) -> None:
    """The right to choose a target is that of the namespace of the object that chose it."""
    one = service("a.org", annotations={TARGET: own})
    (claim,), _ = contribute(one, gateway("a.org", annotations={TARGET: of_gateway}))
    assert (claim.terms.target, claim.terms.target_from) == (expected, chosen_in)


@pytest.mark.parametrize(
    ("own", "marked", "doors", "annotated"),
    [
        pytest.param(["a.org"], "b.org", ["*"], ["b.org"], id="beside its own"),
        pytest.param(["a.org"], "a.org", ["*"], [], id="one of its own"),
        pytest.param(["*.a.org"], "x.a.org", ["x.a.org"], [], id="one that its own wildcard serves there"),
        pytest.param(["*.a.org"], "x.a.org", ["*"], ["x.a.org"], id="one that its own wildcard does not list"),
        pytest.param(["*"], "b.org", ["b.org"], [], id="the server's own name, which it serves anyway"),
        pytest.param(["*"], "b.org", ["*.org"], ["b.org"], id="below the server's wildcard"),
        pytest.param(["?"], "b.org", ["*"], ["b.org"], id="in place of an invalid one"),
        pytest.param(["c.net"], "*.org", ["b.org", "c.net"], ["b.org"], id="a wildcard that the server narrows"),
        pytest.param([], "b.org", ["*"], [], id="of a delegate"),
    ],
)
def test_a_hostname_that_only_an_annotation_adds_is_marked(
    own: list[str], marked: str, doors: list[str], annotated: list[str]
) -> None:
    claims, _ = contribute(service(*own, annotations={HOSTNAME: marked}), gateway(*doors))
    assert [claim.hostname for claim in claims if claim.terms.annotated] == annotated


def test_a_hostname_that_an_annotation_adds_to_a_gateway_is_marked() -> None:
    claims, _ = contribute(gateway("a.org", annotations={HOSTNAME: "a.org,b.org"}))
    assert [(claim.hostname, claim.terms.annotated) for claim in claims] == [("a.org", False), ("b.org", True)]


@pytest.mark.parametrize(
    ("host", "since"),
    [
        pytest.param("app.example.org", OLD, id="from the server that has exactly this name"),
        pytest.param("web/app.example.org", OLD, id="for its namespace"),
        pytest.param("*.example.org", "", id="not from one that has many names"),
        pytest.param("*", "", id="not from one that has every name"),
    ],
)
def test_a_virtual_service_is_as_old_as_the_gateway_that_it_takes_its_name_from(host: str, since: str) -> None:
    (found,), _ = contribute(service("app.example.org", created=NEW), gateway(host, created=OLD))
    assert found.terms.since == since


def test_of_several_gateways_the_oldest_that_has_the_name_gives_its_age() -> None:
    ages = {"infra/a": "2026-03-01T00:00:00Z", "infra/b": "2026-02-01T00:00:00Z", "infra/c": NEW}
    others = [gateway("a.org", place=place, created=age) for place, age in ages.items()]
    older = gateway("*.org", place="infra/d", created=OLD)
    one = service("a.org", gateways=[*ages, "infra/d"], created="2026-05-01T00:00:00Z")
    (found,), _ = contribute(one, *others, older)
    assert (found.terms.gateway, found.terms.since) == ("IstioGateway infra/a", "2026-02-01T00:00:00Z")


def test_an_annotation_does_not_move_a_name_to_another_gateway() -> None:
    """Through the first Gateway, only the annotation has the name; through the second, the wildcard has it anyway."""
    own = service("*.a.org", gateways=["infra/main", "infra/other"], annotations={HOSTNAME: "x.a.org"})
    claims, _ = contribute(own, gateway("*.org"), gateway("x.a.org", place="infra/other"))
    assert {one.hostname: (one.terms.gateway, one.terms.annotated) for one in claims} == {
        "*.a.org": (MAIN, False),
        "x.a.org": (OTHER, False),
    }


def test_a_virtual_service_that_is_older_than_its_gateway_keeps_its_own_age() -> None:
    young = gateway("app.example.org", created=NEW)
    (found,), _ = contribute(service("app.example.org", created=OLD), young)
    assert (found.terms.since, found.origin.created) == ("", OLD)


def test_another_namespaces_server_gives_no_age() -> None:
    (found,), _ = contribute(service("a.org", created=NEW), gateway("shop/a.org", "web/*", created=OLD))
    assert found.terms.since == ""


def test_a_stranger_of_an_object_claims_nothing() -> None:
    assert contribution(VIRTUAL_SERVICE, "web/gone", ObjectGraph(), classes=frozenset()) == ([], [])
