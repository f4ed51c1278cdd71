"""The claims of one object, given all others."""

from __future__ import annotations

from typing import Any

import pytest

from dnsproxy.dns.names import Reach
from dnsproxy.hostnames.claims import Claim, Rejection, Terms
from dnsproxy.sources.annotations import HOSTNAME, IGNORE, TARGET
from dnsproxy.sources.gateway.contribution import contribution
from dnsproxy.sources.gateway.facts import read_facts
from dnsproxy.sources.gateway.kinds import GATEWAY, GRPC_ROUTE, HTTP_ROUTE, LISTENER_SET, TLS_ROUTE, Ref
from dnsproxy.sources.gateway.object_graph import ObjectGraph
from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.dnsproxy.sources.gateway.objects import (
    ALL_SETS,
    NEW,
    OLD,
    TO_BACKEND,
    TO_GATEWAY,
    TO_HTTPS,
    TO_SET,
    gateway,
    listener,
    listener_set,
    parent_ref,
    route,
)

STATUS = {"addresses": [{"value": "192.0.2.7"}, {"type": "Hostname", "value": "lb.example.org"}]}


def contribute(*objects: Any, classes: tuple[str, ...] = ()) -> tuple[list[Claim], list[Rejection]]:
    """Of the first object."""
    graph = ObjectGraph()
    for kind, one in reversed(objects):
        facts = read_facts(kind, one)
        ref = Ref(kind, facts.origin.namespace, facts.origin.name)
        graph.put(ref, facts)
    return contribution(ref, graph, classes=frozenset(classes))


def names(*objects: Any, classes: tuple[str, ...] = ()) -> list[str]:
    return [claim.hostname for claim in contribute(*objects, classes=classes)[0]]


def reasons(*objects: Any, classes: tuple[str, ...] = ()) -> list[str]:
    return [rejection.reason for rejection in contribute(*objects, classes=classes)[1]]


@pytest.mark.parametrize(
    ("own", "doors", "expected"),
    [
        pytest.param(["a.example.org"], ["a.example.org"], ["a.example.org"], id="equal"),
        pytest.param(["a.b.example.org"], ["*.example.org"], ["a.b.example.org"], id="two labels below a wildcard"),
        pytest.param(["*.example.org"], ["a.example.org"], ["a.example.org"], id="the listener is the narrower"),
        pytest.param(["*.b.example.org"], ["*.example.org"], ["*.b.example.org"], id="two wildcards"),
        pytest.param(["*.example.org"], ["*.b.example.org"], ["*.b.example.org"], id="two wildcards, turned"),
        pytest.param(["*.example.org"], ["*.example.org"], ["*.example.org"], id="equal wildcards"),
        pytest.param([], ["a.example.org", "*.b.org"], ["*.b.org", "a.example.org"], id="the listeners' own"),
        pytest.param([], ["a.example.org", None], ["a.example.org"], id="the listeners' own, one without"),
        pytest.param(["a.example.org"], [None], ["a.example.org"], id="a listener without hostname"),
        pytest.param(["*.example.org"], [None], ["*.example.org"], id="wildcard, a listener without hostname"),
        pytest.param(["a.org"], [None, "b.org"], ["a.org"], id="a listener without hostname beside another"),
        pytest.param(["a.org", "b.org"], ["a.org", "b.org", "c.org"], ["a.org", "b.org"], id="several"),
        pytest.param(["a.org"], ["a.org", "a.org"], [], id="two listeners of one name, which nobody can tell apart"),
        pytest.param(["*.org"], ["a.org", "*.b.org", "org"], ["*.b.org", "a.org"], id="one name, several listeners"),
        pytest.param(["example.org"], ["*.example.org"], [], id="a wildcard leaves out its parent"),
        pytest.param(["a.example.net"], ["*.example.org"], [], id="nothing in common"),
        pytest.param(["*", "192.0.2.1"], [None, "a.example.org"], [], id="only bad names"),
        pytest.param([], [None], [], id="every name"),
        pytest.param([], [], [], id="no listener"),
    ],
)
def test_a_route_claims_what_it_serves_with_its_listeners(
    own: list[str], doors: list[str | None], expected: list[str]
) -> None:
    listeners = [listener(hostname, f"l{number}") for number, hostname in enumerate(doors)]
    for kind in (HTTP_ROUTE, GRPC_ROUTE):
        claims, rejections = contribute((kind, route(*own)), (GATEWAY, gateway(*listeners)))
        assert sorted(claim.hostname for claim in claims) == expected
        assert bool(claims or rejections)
        assert all(claim.terms.routed for claim in claims)


@pytest.mark.parametrize(
    ("own", "marked", "doors", "expected", "left"),
    [
        pytest.param(["a.org"], "b.org", [None], ["a.org", "b.org"], [], id="beside its own"),
        pytest.param([], "b.org", [None], ["b.org"], [], id="in place of every name"),
        pytest.param([], "b.org", [None, "c.org"], ["b.org", "c.org"], [], id="beside the listeners'"),
        pytest.param([], "b.org", ["b.org"], ["b.org"], [], id="one that a listener has too"),
        pytest.param(["a.org"], "*.b.org", ["a.org", "c.b.org"], ["a.org", "c.b.org"], [], id="narrowed by a listener"),
        pytest.param(["a.org"], "b.org", ["a.org"], ["a.org"], ["b.org"], id="not what the listener does not leave it"),
        pytest.param([], "b.org", ["a.org"], ["a.org"], ["b.org"], id="nor where the route has no names itself"),
        pytest.param(["a.org"], "b.org,?", ["*.org"], ["a.org", "b.org"], [HOSTNAME], id="a bad one"),
        pytest.param(["*"], "b.org", [None], ["b.org"], ["'*'"], id="beside a bad one of its own"),
        pytest.param(["a.org"], "b.org", [], [], ["a.org", "b.org"], id="no listener"),
    ],
)
def test_the_hostnames_of_an_annotation_are_served_like_a_routes_own(
    own: list[str], marked: str, doors: list[str | None], expected: list[str], left: list[str]
) -> None:
    listeners = [listener(hostname, f"l{number}") for number, hostname in enumerate(doors)]
    claims, rejections = contribute(
        (HTTP_ROUTE, route(*own, annotations={HOSTNAME: marked})), (GATEWAY, gateway(*listeners))
    )
    assert sorted(claim.hostname for claim in claims) == expected
    assert [one.reason.partition(":")[0].partition(" ")[0] for one in rejections] == left


@pytest.mark.parametrize(
    ("own", "doors", "expected", "left"),
    [
        pytest.param([], ["*.example.org"], [], ["*.example.org"], id="the listener's wildcard"),
        pytest.param([], ["*.a.org", None, "*.b.org"], [], ["*.a.org", "*.b.org"], id="several"),
        pytest.param([], ["a.org", "*.b.org"], ["a.org"], ["*.b.org"], id="the exact name of a listener beside it"),
        pytest.param(["*.org"], ["*.b.org"], [], ["*.b.org"], id="where both have a part"),
        pytest.param(["*.org"], ["*.b.org", "a.org"], ["a.org"], ["*.b.org"], id="where one part is exact"),
        pytest.param(["a.b.org", "*.org"], ["*.b.org"], ["a.b.org"], ["*.b.org"], id="its own name beside the part"),
        pytest.param(["a.b.org"], ["*.b.org"], ["a.b.org"], [], id="its own name"),
        pytest.param(["*.a.b.org"], ["*.b.org"], ["*.a.b.org"], [], id="its own wildcard"),
        pytest.param(["*.b.org"], ["*.b.org"], ["*.b.org"], [], id="its own wildcard, which the listener has too"),
        pytest.param(["*.b.org"], [None], ["*.b.org"], [], id="its own wildcard at a listener for every name"),
        pytest.param([], ["a.org"], ["a.org"], [], id="the listener's exact name"),
    ],
)
def test_a_route_that_only_redirects_claims_no_wildcard_of_a_listener(
    own: list[str], doors: list[str | None], expected: list[str], left: list[str]
) -> None:
    """The names below it that are served have routes of their own, and the others may be elsewhere."""
    listeners = [listener(hostname, f"l{number}") for number, hostname in enumerate(doors)]
    main = (GATEWAY, gateway(*listeners))
    claims, rejections = contribute((HTTP_ROUTE, route(*own, rules=[TO_HTTPS, TO_HTTPS])), main)
    assert sorted(claim.hostname for claim in claims) == expected
    assert [one.reason.partition(":")[0] for one in rejections] == ([", ".join(left)] if left else [])
    assert all(one.deliberate and "only redirects" in one.reason for one in rejections)
    for kind, rules in ((HTTP_ROUTE, [TO_HTTPS, TO_BACKEND]), (GRPC_ROUTE, [TO_HTTPS]), (HTTP_ROUTE, [])):
        found = contribute((kind, route(*own, rules=rules)), main)[0]
        assert sorted(claim.hostname for claim in found) == sorted([*expected, *left])


def test_a_wildcard_that_an_annotation_names_is_claimed_by_the_annotation_though_the_route_only_redirects() -> None:
    """So that it counts only where annotations do."""
    marked = route(rules=[TO_HTTPS], annotations={HOSTNAME: "*.example.org"})
    (claim,), rejections = contribute((HTTP_ROUTE, marked), (GATEWAY, gateway(listener("*.example.org"))))
    assert (claim.hostname, claim.terms.annotated) == ("*.example.org", True)
    assert rejections == []


def test_a_name_that_no_listener_has_is_rejected_beside_a_wildcard_below_which_the_route_only_redirects() -> None:
    one = (HTTP_ROUTE, route("*.example.org", "a.example.net", rules=[TO_HTTPS]))
    rejections = contribute(one, (GATEWAY, gateway(listener("*.b.example.org"))))[1]
    assert [(one.reason.partition(":")[0], one.deliberate) for one in rejections] == [
        ("*.b.example.org", True), ("a.example.net", False)
    ]  # fmt: skip


def test_the_wildcards_of_many_listeners_are_one_short_rejection() -> None:
    listeners = [listener(f"*.h{number}.org", f"l{number}") for number in range(64)]
    claims, (rejection,) = contribute((HTTP_ROUTE, route(rules=[TO_HTTPS])), (GATEWAY, gateway(*listeners)))
    assert claims == []
    assert "and 54 more: it only redirects" in rejection.reason
    assert len(rejection.reason) < 300


def test_a_gateway_and_a_listener_set_listen_for_the_hostnames_of_their_annotations() -> None:
    """Wildcards too, because they are explicit. An object that routes the name wins."""
    mark = {HOSTNAME: "mqtt.example.org,*.example.net"}
    main = (GATEWAY, gateway(listener("a.example.org"), annotations=mark, allowedListeners=ALL_SETS))
    claims, rejections = contribute(main)
    assert [(claim.hostname, claim.reach) for claim in claims] == [
        ("a.example.org", Reach.NAME),
        ("mqtt.example.org", Reach.NAME),
        ("*.example.net", Reach.ANY_LABELS),
    ]
    assert not any(claim.terms.routed for claim in claims)
    assert rejections == []
    extra = (LISTENER_SET, listener_set(listener(), annotations={HOSTNAME: "ssh.example.org"}))
    assert names(extra, main) == ["ssh.example.org"]
    refused = (LISTENER_SET, listener_set(annotations={HOSTNAME: "ssh.example.org"}))
    assert reasons(refused, (GATEWAY, gateway(listener())))[0].startswith("ssh.example.org: ")


def test_a_claim_has_the_reach_of_the_specification_and_the_class_and_status_of_its_gateway() -> None:
    claims, rejections = contribute(
        (HTTP_ROUTE, route("a.example.org", "*.example.org", created=NEW)),
        (GATEWAY, gateway(listener(), class_name="inner", status=STATUS)),
    )
    origin = read_facts(HTTP_ROUTE, route(created=NEW)).origin
    status = ("192.0.2.7", "lb.example.org")
    assert claims == [
        Claim("a.example.org", Reach.NAME, origin, Terms(ingress_class="inner", status=status, gateway="infra/main")),
        Claim(
            "*.example.org", Reach.ANY_LABELS, origin, Terms(ingress_class="inner", status=status, gateway="infra/main")
        ),
    ]
    assert rejections == []


def test_a_tls_route_is_served_by_tls_listeners_alone() -> None:
    listeners = listener("a.example.org", "web"), listener("b.example.org", "tls", protocol="TLS")
    assert names((TLS_ROUTE, route("*.example.org")), (GATEWAY, gateway(*listeners))) == ["b.example.org"]


def test_the_first_parent_that_serves_a_name_gives_its_class() -> None:
    """In the order of the route's parents, so that its owner decides."""
    others = [
        (GATEWAY, gateway(listener("a.example.org"), class_name="outer")),
        (GATEWAY, gateway(listener("*.example.org"), place="infra/inner", class_name="inner")),
    ]
    inner = parent_ref("infra/inner")
    for parents, expected in (
        ([inner, TO_GATEWAY], {"a.example.org": "inner", "b.example.org": "inner"}),
        ([TO_GATEWAY, inner], {"a.example.org": "outer", "b.example.org": "inner"}),
        ([TO_GATEWAY | {"sectionName": "x"}, inner], {"a.example.org": "inner", "b.example.org": "inner"}),
    ):
        claims, rejections = contribute((HTTP_ROUTE, route("a.example.org", "b.example.org", parents=parents)), *others)
        assert {claim.hostname: claim.terms.ingress_class for claim in claims} == expected
        assert rejections == []


def test_a_route_without_names_takes_each_from_the_first_parent_that_has_it() -> None:
    others = [
        (GATEWAY, gateway(listener("a.example.org"), class_name="outer")),
        (GATEWAY, gateway(listener("a.example.org"), place="infra/inner", class_name="inner")),
    ]
    (claim,), _ = contribute((HTTP_ROUTE, route(parents=[parent_ref("infra/inner"), TO_GATEWAY])), *others)
    assert claim.terms.ingress_class == "inner"


def test_a_route_reaches_a_listener_set_through_itself_alone() -> None:
    others = [
        (GATEWAY, gateway(listener("a.example.org"), allowedListeners=ALL_SETS)),
        (LISTENER_SET, listener_set(listener("b.example.org"))),
    ]
    assert names((HTTP_ROUTE, route("*.example.org")), *others) == ["a.example.org"]
    assert names((HTTP_ROUTE, route("*.example.org", parents=[TO_SET])), *others) == ["b.example.org"]
    both = route("*.example.org", parents=[TO_SET, TO_GATEWAY])
    assert sorted(names((HTTP_ROUTE, both), *others)) == ["a.example.org", "b.example.org"]


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        pytest.param([listener("a.example.org")], ["a.example.org"], id="exact"),
        pytest.param([listener("a.org", "a"), listener("a.org", "b", protocol="HTTP")], ["a.org"], id="twice"),
        pytest.param([listener("a.org", protocol="TLS")], ["a.org"], id="TLS"),
        pytest.param([listener("a.org", protocol="example.org/quic")], ["a.org"], id="a protocol of its own"),
        pytest.param([listener("a.org", allowedRoutes=None)], ["a.org"], id="whoever may attach"),
        pytest.param([listener("*.example.org")], [], id="a wildcard is what may be served"),
        pytest.param([listener("a.org", protocol="TCP")], [], id="TCP"),
        pytest.param([listener()], [], id="none"),
        pytest.param([listener("*")], [], id="bad"),
        pytest.param([], [], id="no listener"),
    ],
)
def test_a_listener_claims_its_exact_name_as_a_mere_listener(listeners: list[Any], expected: list[str]) -> None:
    for place, one in (
        (GATEWAY, gateway(*listeners, allowedListeners=ALL_SETS)),
        (LISTENER_SET, listener_set(*listeners)),
    ):
        claims, _ = contribute(
            (place, one), *([] if place == GATEWAY else [(GATEWAY, gateway(allowedListeners=ALL_SETS))])
        )
        assert [claim.hostname for claim in claims] == expected
        assert not any(claim.terms.routed for claim in claims)
        assert all(claim.terms.ingress_class == "public" for claim in claims)


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([(HTTP_ROUTE, route("a.org"))], "a.org: Gateway infra/main does not exist", id="no Gateway"),
        pytest.param(
            [(HTTP_ROUTE, route("a.org")), (GATEWAY, gateway(listener("b.org")))],
            "a.org: no listener of Gateway infra/main that accepts the route has it",
            id="outside",
        ),
        pytest.param(
            [(HTTP_ROUTE, route("a.org", "b.org")), (GATEWAY, gateway(listener("b.org")))],
            "a.org: no listener",
            id="half",
        ),
        pytest.param(
            [(HTTP_ROUTE, route("a.org", parents=[TO_GATEWAY | {"sectionName": "x"}])), (GATEWAY, gateway(listener()))],
            "a.org: Gateway infra/main has no listener 'x'",
            id="section",
        ),
        pytest.param(
            [(HTTP_ROUTE, route()), (GATEWAY, gateway(listener()))],
            "it serves every name: give the route or the listener a hostname",
            id="every name",
        ),
        pytest.param([(HTTP_ROUTE, route())], "Gateway infra/main does not exist", id="no names and no Gateway"),
        pytest.param([(HTTP_ROUTE, route("a*.org"))], "'a*.org': a label 'a*' is not a host label", id="bad name"),
        pytest.param(
            [(HTTP_ROUTE, route("a.org", annotations={TARGET: "?"})), (GATEWAY, gateway(listener()))],
            "switchback.dev/target: '?' is not an IP address",
            id="bad mark",
        ),
        pytest.param([(GATEWAY, gateway(listener("a*.org")))], "listener 'https': 'a*.org'", id="bad listener"),
        pytest.param(
            [(LISTENER_SET, listener_set(listener("a.org"))), (GATEWAY, gateway())],
            "a.org: Gateway infra/main refuses ListenerSet web/extra",
            id="refused set",
        ),
        pytest.param(
            [(HTTP_ROUTE, Unreadable(ObjectMeta("app", "web"), "Expected `str`"))],
            "unreadable: Expected",
            id="unreadable",
        ),
    ],
)
def test_a_name_that_is_not_served_is_rejected_with_the_reason(objects: list[Any], reason: str) -> None:
    rejections = contribute(*objects)[1]
    assert any(one.reason.startswith(reason) and not one.deliberate for one in rejections)
    assert all(one.reason.isprintable() for one in rejections)
    assert all(one.origin == read_facts(*objects[0]).origin for one in rejections)


@pytest.mark.parametrize(
    ("objects", "classes", "reason"),
    [
        pytest.param(
            [(HTTP_ROUTE, route("a.org", labels={IGNORE: "true"})), (GATEWAY, gateway(listener()))],
            (),
            "a.org: it is ignored (switchback.dev/ignore)",
            id="ignored route",
        ),
        pytest.param(
            [(HTTP_ROUTE, route("a.org")), (GATEWAY, gateway(listener(), annotations={IGNORE: "true"}))],
            (),
            "a.org: Gateway infra/main is ignored (switchback.dev/ignore)",
            id="ignored Gateway",
        ),
        pytest.param(
            [(GATEWAY, gateway(listener("a.org"), annotations={IGNORE: "true"}))],
            (),
            "a.org: Gateway infra/main is ignored",
            id="its own names",
        ),
        pytest.param(
            [(HTTP_ROUTE, route("a.org")), (GATEWAY, gateway(listener()))],
            ("inner",),
            "a.org: Gateway infra/main has class public, which --gateway-class excludes",
            id="class",
        ),
        pytest.param([(HTTP_ROUTE, route("a.org", parents=[]))], (), "a.org: it has no Gateway", id="no parent"),
        pytest.param(
            [(HTTP_ROUTE, route(parents=[TO_GATEWAY | {"kind": "Service", "group": ""}]))],
            (),
            "it has no Gateway or ListenerSet as its parent",
            id="mesh",
        ),
    ],
)
def test_an_intended_exclusion_is_deliberate(objects: list[Any], classes: tuple[str, ...], reason: str) -> None:
    claims, (rejection,) = contribute(*objects, classes=classes)
    assert claims == []
    assert rejection.reason.startswith(reason)
    assert rejection.deliberate


def test_a_fault_beside_an_intended_exclusion_is_a_fault() -> None:
    parents = [TO_GATEWAY, parent_ref("infra/gone")]
    (rejection,) = contribute((HTTP_ROUTE, route("a.org", parents=parents)), (GATEWAY, gateway()), classes=("inner",))[
        1
    ]
    assert "has class public" in rejection.reason
    assert "Gateway infra/gone does not exist" in rejection.reason
    assert not rejection.deliberate


def test_a_bad_name_harms_no_other() -> None:
    claims, rejections = contribute(
        (HTTP_ROUTE, route("*", "a.org", "b\n.org")), (GATEWAY, gateway(listener("*.", "x"), listener()))
    )
    assert [claim.hostname for claim in claims] == ["a.org"]
    assert len(rejections) == 2


def test_a_served_name_is_not_rejected_because_another_parent_refused_it() -> None:
    one = route("a.org", parents=[parent_ref("infra/gone"), TO_GATEWAY])
    assert contribute((HTTP_ROUTE, one), (GATEWAY, gateway(listener())))[1] == []


def test_reasons_of_many_parents_are_cut() -> None:
    """32 parents times 1024 hostnames would be a message of megabytes."""
    one = route("a.org", parents=[parent_ref(f"infra/g{number}") for number in range(32)])
    (reason,) = reasons((HTTP_ROUTE, one))
    assert reason.endswith("; and 29 more")
    assert reason.count("does not exist") == 3


@pytest.mark.parametrize(
    ("own", "of_gateway", "expected", "chosen_in"),
    [
        (None, None, None, ""),
        ("192.0.2.1", None, "192.0.2.1", ""),
        (None, "status", "status", "infra"),
        ("192.0.2.1", "status", "192.0.2.1", ""),
    ],
)
def test_the_target_of_a_route_goes_before_that_of_its_gateway(
    own: Any, of_gateway: Any, expected: Any, chosen_in: str
) -> None:
    """The right to choose a target is that of the namespace of the object that chose it."""
    others = [(GATEWAY, gateway(listener(), annotations={TARGET: of_gateway}))]
    (claim,), _ = contribute((HTTP_ROUTE, route("a.org", annotations={TARGET: own})), *others)
    assert (claim.terms.target, claim.terms.target_from) == (expected, chosen_in)


@pytest.mark.parametrize(
    ("own", "marked", "doors", "annotated"),
    [
        pytest.param(["a.org"], "b.org", [None], ["b.org"], id="beside its own"),
        pytest.param(["a.org"], "a.org", [None], [], id="one of its own"),
        pytest.param(["*.a.org"], "x.a.org", ["x.a.org"], [], id="one that its own wildcard serves there"),
        pytest.param(["*.a.org"], "x.a.org", [None], ["x.a.org"], id="one that its own wildcard does not list"),
        pytest.param([], "b.org", ["b.org"], [], id="the listener's own name"),
        pytest.param([], "b.org", ["*.org"], ["b.org"], id="below the listener's wildcard"),
        pytest.param(["?"], "b.org", [None], ["b.org"], id="in place of an invalid one"),
        pytest.param([], "*.org", ["b.org"], [], id="a wildcard that the listener narrows to its own"),
        pytest.param(["c.net"], "*.org", ["b.org", "c.net"], ["b.org"], id="which a route with names does not serve"),
    ],
)
def test_a_hostname_that_only_an_annotation_adds_is_marked(
    own: list[str], marked: str, doors: list[str | None], annotated: list[str]
) -> None:
    listeners = [listener(hostname, f"l{number}") for number, hostname in enumerate(doors)]
    claims, _ = contribute((HTTP_ROUTE, route(*own, annotations={HOSTNAME: marked})), (GATEWAY, gateway(*listeners)))
    assert [claim.hostname for claim in claims if claim.terms.annotated] == annotated


def test_a_hostname_that_an_annotation_adds_to_a_listener_is_marked() -> None:
    marked = gateway(listener("a.org"), annotations={HOSTNAME: "a.org,b.org"})
    claims, _ = contribute((GATEWAY, marked))
    assert [(claim.hostname, claim.terms.annotated) for claim in claims] == [("a.org", False), ("b.org", True)]


@pytest.mark.parametrize("status", [None, {}, {"conditions": [{"type": "Accepted", "status": "False"}]}])
def test_the_claims_of_a_gateway_that_nobody_accepts_say_so(status: Any) -> None:
    unserved = (GATEWAY, gateway(listener("a.org"), status=status))
    for objects in ([unserved], [(HTTP_ROUTE, route("a.org")), unserved]):
        (claim,), _ = contribute(*objects)
        assert not claim.terms.accepted


@pytest.mark.parametrize("label", [IGNORE, TARGET])
def test_an_invalid_annotation_excludes_the_object(label: str) -> None:
    """The annotation is reported, with the names that it affects."""
    claims, rejections = contribute(
        (HTTP_ROUTE, route("a.org", annotations={label: "?"})), (GATEWAY, gateway(listener()))
    )
    assert claims == []
    assert [one.reason.partition(":")[0] for one in rejections] == [label, "a.org"]
    assert names((GATEWAY, gateway(listener("a.org"), annotations={label: "?"}))) == []
    assert names((HTTP_ROUTE, route("a.org")), (GATEWAY, gateway(listener(), annotations={label: "?"}))) == []
    assert reasons((HTTP_ROUTE, route("a.org")), (GATEWAY, gateway(labels={label: "?"}))) == [
        "a.org: Gateway infra/main has an invalid annotation"
    ]


def test_a_stranger_of_an_object_claims_nothing() -> None:
    assert contribution(Ref(HTTP_ROUTE, "web", "gone"), ObjectGraph(), classes=frozenset()) == ([], [])


@pytest.mark.parametrize(
    ("hostname", "since"),
    [
        pytest.param("app.example.org", OLD, id="from the listener that has exactly this name"),
        pytest.param("*.example.org", "", id="not from one that has many names"),
        pytest.param(None, "", id="not from one that has every name"),
    ],
)
def test_a_route_is_as_old_as_the_listener_that_it_takes_its_name_from(hostname: str | None, since: str) -> None:
    old, young = gateway(listener(hostname), created=OLD), route("app.example.org", created=NEW)
    (found, *_), _ = contribute((HTTP_ROUTE, young), (GATEWAY, old))
    assert found.terms.since == since


def test_a_route_that_is_older_than_its_listener_keeps_its_own_age() -> None:
    young = gateway(listener("app.example.org"), created=NEW)
    (found, *_), _ = contribute((HTTP_ROUTE, route("app.example.org", created=OLD)), (GATEWAY, young))
    assert (found.terms.since, found.origin.created) == ("", OLD)
