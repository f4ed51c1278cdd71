"""What one object of each described kind claims."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Origin, Terms
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.described.contribution import contribution
from dnsproxy.sources.described.table import KINDS
from tests.dnsproxy.sources.described.objects import ADMITTED, CREATED, decode, http_proxy, kind_named

VALID: Final = {"currentStatus": "valid"}
ROUTED: Final = {"ingress": [{"routerName": "default", "conditions": [ADMITTED]}]}


def invalid(*errors: Any) -> dict[str, Any]:
    """The status of an HTTPProxy with these errors."""
    conditions = [{"type": "Valid", "status": "False", "errors": list(errors)}]
    return {"currentStatus": "invalid", "description": "see Errors", "conditions": conditions}


def claimed(kind: str, one: Any, **options: Any) -> tuple[list[Claim], list[str]]:
    claims, rejections = contribution(kind_named(kind), one, **{"class_name": None, "most": None} | options)
    return claims, [rejection.reason for rejection in rejections]


def hostnames(kind: str, spec: Any, status: Any = None) -> list[str]:
    return [claim.hostname for claim in claimed(kind, decode(kind_named(kind), spec, status))[0]]


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        pytest.param("IngressRoute",
                     {"routes": [{"match": "Host(`a.example.org`)"}, {"match": "Host(`b.example.org`)"}]}, None,
                     ["a.example.org", "b.example.org"], id="IngressRoute"),
        pytest.param("IngressRoute", {"routes": [{"match": "PathPrefix(`/`)"}]}, None, [], id="a rule for every host"),
        pytest.param("IngressRouteTCP", {"routes": [{"match": "HostSNI(`a.example.org`)"}], "tls": {}}, None,
                     ["a.example.org"], id="IngressRouteTCP"),
        pytest.param("IngressRoute", {"routes": [{"kind": "Odd", "match": "Host(`a.example.org`)"}, None, 7]}, None, [],
                     id="routes that are no rules"),
        pytest.param("IngressRoute of containo.us", {"routes": [{"match": "Host(`a.example.org`, `b.example.org`)"}]},
                     None, ["a.example.org", "b.example.org"], id="several hosts of one matcher, until Traefik 2"),
        pytest.param("IngressRouteTCP", {"routes": [{"match": "HostSNI(`*`)"}]}, None, [], id="every server name"),
        pytest.param("Route", {"host": "a.example.org"}, ROUTED, ["a.example.org"], id="Route"),
        pytest.param("Route", {"host": "www.apps.example.org", "wildcardPolicy": "Subdomain"}, ROUTED,
                     ["*.apps.example.org"], id="Route for a subdomain"),
        pytest.param("Route", {"host": "a.example.org", "wildcardPolicy": "None"}, ROUTED, ["a.example.org"],
                     id="Route for one host"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, VALID, ["a.example.org"], id="HTTPProxy"),
        pytest.param("HTTPProxy", {"routes": [{"services": []}]}, VALID, [], id="HTTPProxy that others include"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}},
                     invalid({"type": "ServiceError"}, {"type": "IncludeError"}), ["a.example.org"],
                     id="HTTPProxy that is served in part"),
        pytest.param("crd:sites.example.org:spec.hosts[*]", {"hosts": ["a.example.org", "*.b.example.org"]}, None,
                     ["a.example.org", "*.b.example.org"], id="custom, each item"),
        pytest.param("crd:sites.example.org:spec.hosts", {"hosts": ["a.example.org", 7, None, ""]}, None,
                     ["a.example.org"], id="custom, the whole list"),
    ],
)  # fmt: skip
def test_each_kind_names_its_hosts(kind: str, spec: Any, status: Any, expected: list[str]) -> None:
    assert hostnames(kind, spec, status) == expected


@pytest.mark.parametrize(
    ("kind", "spec", "status", "reach"),
    [
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "*.example.org"}}, VALID, Reach.ONE_LABEL, id="HTTPProxy"),
        pytest.param("Route", {"host": "a.example.org", "wildcardPolicy": "Subdomain"}, ROUTED, Reach.ONE_LABEL,
                     id="Route"),
        pytest.param("crd:sites.example.org:spec.host", {"host": "*.example.org"}, None, Reach.ANY_LABELS, id="custom"),
    ],
)  # fmt: skip
def test_a_wildcard_covers_what_its_controller_serves(kind: str, spec: Any, status: Any, reach: Reach) -> None:
    (claim,), reasons = claimed(kind, decode(kind_named(kind), spec, status))
    assert (claim.hostname, claim.reach, reasons) == ("*.example.org", reach, [])


def test_a_server_name_without_tls_is_refused_as_traefik_does() -> None:
    one = decode(
        kind_named("IngressRouteTCP"), {"routes": [{"match": "HostSNI(`a.example.org`)"}, {"match": "HostSNI(`*`)"}]}
    )
    claims, reasons = claimed("IngressRouteTCP", one)
    assert claims == []
    assert ["a.example.org" in reason and "spec.tls" in reason for reason in reasons] == [True]


def test_a_claim_has_its_origin_its_class_and_its_load_balancer() -> None:
    point = {"ip": "192.0.2.7", "hostname": "lb.example.net"}
    status = VALID | {"loadBalancer": {"ingress": [point, {"ip": "no address"}, None, 7]}}
    one = decode(kind_named("HTTPProxy"), {"virtualhost": {"fqdn": "a.example.org"}}, status)
    (claim,), _ = claimed("HTTPProxy", one, class_name="internal")
    assert claim == Claim(
        "a.example.org",
        Reach.NAME,
        Origin("HTTPProxy", "shop", "web", CREATED),
        Terms(ingress_class="internal", status=("192.0.2.7", "lb.example.net")),
    )


def test_only_the_routers_that_admit_a_route_are_its_load_balancers() -> None:
    refused = {"routerCanonicalHostname": "no.example.net", "conditions": [{"type": "Admitted", "status": "False"}]}
    admits = {"routerCanonicalHostname": "yes.example.net", "conditions": [ADMITTED]}
    (claim,), _ = claimed(
        "Route", decode(kind_named("Route"), {"host": "a.example.org"}, {"ingress": [refused, admits]})
    )
    assert claim.terms.status == ("yes.example.net",)


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, None,
                     "a.example.org: no Contour has judged it yet", id="no status"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, {"currentStatus": "NotReconciled"},
                     "a.example.org: no Contour has judged it yet", id="the status of its creation"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}},
                     {"currentStatus": "invalid", "description": "two roots"},
                     "a.example.org: Contour says that it is 'invalid': 'two roots'", id="invalid"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}},
                     invalid({"type": "ServiceError"}, {"type": "VirtualHostError", "message": "two roots"}),
                     "a.example.org: Contour says that it is 'invalid': 'two roots'", id="invalid as a whole"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, invalid(),
                     "a.example.org: Contour says that it is 'invalid': 'see Errors'", id="invalid without an error"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, invalid({"type": ["ServiceError"]}, 7),
                     "a.example.org: Contour says that it is 'invalid': 'see Errors'", id="errors of other types"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}},
                     invalid({"type": "ServiceError"}) | {"currentStatus": "orphaned"},
                     "a.example.org: Contour says that it is 'orphaned': 'see Errors'", id="orphaned"),
        pytest.param("HTTPProxy", {"virtualhost": {"fqdn": "a.example.org"}}, {"currentStatus": ["valid"]},
                     "a.example.org: no Contour has judged it yet", id="a status of another type"),
        pytest.param("Route", {"host": "a.example.org"}, None,
                     "a.example.org: no router has admitted it yet", id="no router"),
        pytest.param("Route", {"host": "a.example.org"}, {"ingress": [{"conditions": [
            {"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed", "message": "another has it"}]}]},
                     "a.example.org: no router admits it: 'HostAlreadyClaimed: another has it'", id="refused"),
        pytest.param("Route", {"host": "a.example.org"}, {"ingress": [{"conditions": [
            {"type": "Admitted", "status": "False"}]}]},
                     "a.example.org: no router admits it", id="refused without a reason"),
        pytest.param("Route", {"host": "a.example.org"}, {"ingress": [{"conditions": [
            {"type": "Admitted", "status": "Unknown", "reason": {"a": 1}, "message": "another has it"}]}]},
                     "a.example.org: no router admits it: 'another has it'", id="a reason of another type"),
        pytest.param("Route", {"host": "a.example.org"}, {"ingress": "x"},
                     "a.example.org: no router has admitted it yet", id="routers of another type"),
    ],
)  # fmt: skip
def test_an_object_that_its_controller_does_not_serve_claims_nothing(
    kind: str, spec: Any, status: Any, expected: str
) -> None:
    claims, reasons = claimed(kind, decode(kind_named(kind), spec, status))
    assert claims == []
    assert [reason.replace('"', "'") for reason in reasons] == [expected]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"hosts": ["a.example.org", "not a host"]}, "not a host", id="a bad host"),
        pytest.param({"hosts": ["a.example.org", "b..example.org"]}, "b..example.org", id="an empty label"),
        pytest.param({"hosts": ["a.example.org", {"name": "b.example.org"}]}, "a map is", id="a map in the list"),
        pytest.param({"hosts": ["a.example.org", ["b.example.org"]]}, "a list is", id="a list in the list"),
        pytest.param({"hosts": ["a.example.org", None, "", 7]}, "'7' is", id="a number in the list"),
        pytest.param({"hosts": [f"{number}.example.org" for number in range(100_000)]}, "more than 3", id="too many"),
    ],
)
def test_a_bad_host_rejects_only_itself(spec: Any, reason: str) -> None:
    kind = "crd:sites.example.org:spec.hosts"
    claims, reasons = claimed(kind, decode(kind_named(kind), spec), most=3)
    assert claims
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_without_a_limit_every_fault_is_kept() -> None:
    """As doctor reads an object."""
    kind = "crd:sites.example.org:spec.hosts[*],spec.other[*]"
    one = decode(kind_named(kind), {"hosts": [{}, 7], "other": ["-"]}, annotations={HOSTNAME: "?"})
    _, reasons = claimed(kind, one, most=None)
    assert [reason.partition(" ")[0] for reason in reasons] == [f"{HOSTNAME}:", "a", "'7'", "'-':"]


@pytest.mark.parametrize("other", ["a.example.org", "", None, 7], ids=["the same host", "empty", "null", "a number"])
def test_what_is_no_further_host_of_a_list_takes_no_place(other: Any) -> None:
    kind = "crd:sites.example.org:spec.hosts"
    one = decode(kind_named(kind), {"hosts": ["a.example.org", *[other] * 10, "b.example.org"]})
    claims, _ = claimed(kind, one, most=2)
    assert [claim.hostname for claim in claims] == ["a.example.org", "b.example.org"]


def routes(*rules: str) -> dict[str, Any]:
    return {"routes": [{"match": rule} for rule in rules]}


FIRST: Final = "Host(`a.example.org`)"
SITES: Final = "crd:sites.example.org:spec.hosts[*]"
RULES: Final = "crd:sites.example.org:spec.rules[*].hosts[*]"
LONG: Final = " || ".join(f"Host(`{number}.example.org`)" for number in range(5_000))


@pytest.mark.parametrize(
    ("kind", "spec", "expected", "reason"),
    [
        pytest.param("IngressRoute", routes(FIRST, LONG, FIRST), ["a.example.org"], "from route 2 on",
                     id="a long rule"),
        pytest.param("IngressRoute", routes(*[FIRST] * 1_000, *[LONG[:3_000]] * 22), ["a.example.org"],
                     "characters of rules", id="long rules together"),
        pytest.param("IngressRoute", routes(FIRST, *["PathPrefix(`/`)"] * 3_000), ["a.example.org"],
                     "from route 2,001 on", id="many routes"),
        pytest.param("IngressRouteTCP", routes("HostSNI(`a.example.org`)", *["ALPN(`h2`)"] * 3_000) | {"tls": {}},
                     ["a.example.org"], "from route 2,001 on", id="many routes for TCP"),
        pytest.param(SITES, {"hosts": ["a.example.org"] * 100_000}, ["a.example.org"], "10,000 values", id="one name"),
        pytest.param(SITES, {"hosts": ["a.example.org", *[7] * 100_000]}, ["a.example.org"], "10,000 values",
                     id="values of another type"),
        pytest.param(RULES, {"rules": [{"hosts": ["a.example.org"]}, *[{}] * 10_000, {"hosts": ["b.example.org"]}]},
                     ["a.example.org"], "10,000 values", id="items without a host"),
        pytest.param(RULES, {"rules": [{"hosts": ["a.example.org"]}, *[{"hosts": []}] * 10_000,
                                       {"hosts": ["b.example.org"]}]},
                     ["a.example.org"], "10,000 values", id="empty lists"),
        pytest.param(RULES, {"rules": [{"hosts": ["a.example.org"]}, *[{"hosts": [None]}] * 10_000,
                                       {"hosts": ["b.example.org"]}]},
                     ["a.example.org"], "10,000 values", id="nulls"),
    ],
)  # fmt: skip
def test_of_an_object_that_takes_long_to_read_only_the_first_part_counts(
    kind: str, spec: Any, expected: list[str], reason: str
) -> None:
    """Nothing is answered meanwhile, and its writer may change it every second."""
    claims, reasons = claimed(kind, decode(kind_named(kind), spec), most=1_000)
    assert [claim.hostname for claim in claims] == expected
    assert any(reason in one for one in reasons)


def deep_map() -> Any:
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    return deep


def test_a_reason_of_any_depth_is_none() -> None:
    condition = {"type": "Admitted", "status": "False", "reason": "x", "message": deep_map()}
    one = replace(
        decode(kind_named("Route"), {"host": "a.example.org"}), status={"ingress": [{"conditions": [condition]}]}
    )
    assert claimed("Route", one) == ([], ["a.example.org: no router admits it: 'x'"])


def test_a_map_of_any_depth_is_a_fault_like_any_other() -> None:
    deep = deep_map()
    one = replace(decode(kind_named(SITES), {}), spec={"hosts": [deep, "a.example.org"]})
    claims, reasons = claimed(SITES, one)
    assert [claim.hostname for claim in claims] == ["a.example.org"]
    assert reasons == ["a map is not a hostname"]


def test_annotations_count_as_on_an_ingress() -> None:
    annotations = {HOSTNAME: "more.example.org, *.deep.example.org", TARGET: "192.0.2.9"}
    claims, reasons = claimed("HTTPProxy", http_proxy("a.example.org", annotations=annotations))
    assert [(claim.hostname, claim.terms.annotated, claim.terms.target) for claim in claims] == [
        ("a.example.org", False, "192.0.2.9"),
        ("more.example.org", True, "192.0.2.9"),
        ("*.deep.example.org", True, "192.0.2.9"),
    ]
    assert claims[2].reach is Reach.ANY_LABELS
    assert reasons == []


def test_an_ignored_object_says_so_for_each_name() -> None:
    one = http_proxy("a.example.org", labels={IGNORE: "true"})
    claims, rejections = contribution(kind_named("HTTPProxy"), one, class_name=None, most=None)
    assert claims == []
    assert [(one.reason, one.deliberate) for one in rejections] == [(f"a.example.org: it is ignored ({IGNORE})", True)]


def test_a_class_as_long_as_a_book_is_rejected() -> None:
    claims, (reason,) = claimed("HTTPProxy", http_proxy("a.example.org"), class_name="x" * 254)
    assert claims == []
    assert "longer than 253 characters" in reason


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["a.example.org", "*", "", "Host(`", "valid", "True"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "routes",
                    "match",
                    "host",
                    "virtualhost",
                    "fqdn",
                    "ingress",
                    "conditions",
                    "loadBalancer",
                    "ip",
                    "status",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(st.sampled_from(KINDS), values, values)
def test_no_content_of_an_object_fails(kind: Any, spec: Any, status: Any) -> None:
    one = decode(kind, spec, status)
    claims, _ = contribution(kind, one, class_name=next(iter(kind.classes(one)), None), most=5)
    assert len(claims) <= 5
