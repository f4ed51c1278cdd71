"""What is refused, noted and granted before anything is written; targets.py and rights.py are tested here too."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dnsproxy.ip_mode.planning import make_apply, make_remove
from dnsproxy.ip_mode.present import ref_of
from dnsproxy.ip_mode.rights import make_review
from dnsproxy.ip_mode.selection import Selection
from sidecar.kubernetes.structs.network import Service
from tests.dnsproxy.ip_mode.shapes import WEB, present, request, service, stored

LB = "example.org/lb"
SURE: Final[dict[str, Any]] = {"services": (WEB,), "ends_connections": True}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(None, "does not exist", id="no such Service"),
        pytest.param(service(kind="ClusterIP"), "is of type ClusterIP", id="ClusterIP"),
        pytest.param(service(kind="NodePort"), "is of type NodePort", id="NodePort"),
        pytest.param(service(kind="ExternalName"), "is of type ExternalName", id="ExternalName"),
        pytest.param(service(kind=""), "is of type ClusterIP", id="no type"),
    ],
)
def test_a_service_without_a_load_balancer_is_refused_and_nothing_else_is_written(
    found: Service | None, why: str
) -> None:
    plan = make_apply(present(named=(found,)), request(**SURE))
    assert [str(refusal) for refusal in plan.refusals if why in refusal.why]
    assert plan.changes == ()


def test_an_unknown_load_balancer_takes_the_users_word() -> None:
    refused = make_apply(present(named=(service(),)), request(services=(WEB,)))
    assert "--balancer-ends-connections" in refused.refusals[0].why
    assert refused.changes == ()
    sure = make_apply(present(named=(service(),)), request(**SURE))
    assert sure.refusals == ()
    assert len(sure.changes) == 3


@pytest.mark.parametrize(
    ("found", "scheme"),
    [
        pytest.param(service(cls="metallb.io/speaker"), "", id="a class"),
        pytest.param(service(annotations={"metallb.io/address-pool": "a"}), "", id="an annotation"),
        pytest.param(
            service(annotations={"metallb.io/address-pool": "a"}, cls=LB),
            "",
            id="an annotation beside an unknown class",
        ),
        pytest.param(service(), "gce", id="the nodes"),
        pytest.param(service(), "azure", id="other nodes"),
    ],
)
def test_no_word_helps_against_a_load_balancer_that_is_known_to_pass_packets_on(found: Service, scheme: str) -> None:
    plan = make_apply(present(named=(found,), scheme=scheme), request(**SURE))
    assert "would lose its connections from outside" in plan.refusals[0].why
    assert plan.changes == ()


def test_a_service_that_somebody_annotated_is_refused_only_if_its_load_balancer_is_known_to_do_harm() -> None:
    listed = (service("a", annotation="Proxy"), service("b", annotation="Proxy", cls="metallb.io/speaker"))
    (refusal,) = make_apply(present(listed=listed), request(ends_connections=True)).refusals
    assert refusal.name == "Service shop/b"
    assert "take away its annotation" in refusal.why


def test_a_service_that_somebody_annotated_is_judged_beside_a_named_one_too() -> None:
    found = (service("a", annotation="Proxy"), service("b", annotation="Proxy", cls="metallb.io/speaker"))
    plan = make_apply(present(named=(service(),), annotated=found), request(**SURE))
    assert [refusal.name for refusal in plan.refusals] == ["Service shop/b"]
    assert plan.changes == ()


def test_a_service_that_somebody_annotated_is_not_rewritten_with_a_named_one() -> None:
    found = (service(), service("a", annotation="Proxy"))
    plan = make_apply(present(named=(service(),), annotated=found), request(rewrite=True, **SURE))
    assert [str(ref_of(one)) for one in plan.services] == ["shop/web"]


def test_it_is_noted_if_annotated_services_could_not_be_looked_for() -> None:
    plan = make_apply(present(named=(service(),), annotated=None), request(**SURE))
    assert "the right to list services" in plan.notes[0]
    assert plan.refusals == ()


@pytest.mark.parametrize(
    "name", ["metallb.universe.tf/metallb", "kube-vip.io/kube-vip-class", "io.cilium/l2-announcer"]
)
def test_no_class_of_announcers_is_selected_even_before_it_has_a_service(name: str) -> None:
    plan = make_apply(present(), request(classes=(LB, name), ends_connections=True))
    assert [refusal.name for refusal in plan.refusals] == [f"loadBalancerClass {name}"]
    assert plan.changes == ()


def test_a_load_balancer_that_sends_the_header_ends_connections() -> None:
    found = service(annotations={"load-balancer.hetzner.cloud/uses-proxyprotocol": "true"})
    assert make_apply(present(named=(found,)), request(services=(WEB,))).refusals == ()


def test_services_of_a_class_are_judged_but_not_those_that_somebody_annotated() -> None:
    listed = (service("a", cls=LB), service("b", annotation="Proxy"), service("c", cls=LB, annotation="VIP"))
    plan = make_apply(present(listed=listed), request(classes=(LB,)))
    assert [refusal.name for refusal in plan.refusals] == ["Service shop/a"]


@pytest.mark.parametrize(
    ("found", "note"),
    [
        pytest.param(service(ingress=[]), "no address yet", id="no address"),
        pytest.param(service(ingress=[{"hostname": "lb.example.org"}]), "only a hostname", id="a hostname"),
    ],
)
def test_a_service_without_an_address_is_noted_and_proves_nothing(found: Service, note: str) -> None:
    plan = make_apply(present(named=(found,)), request(**SURE))
    assert any(note in text for text in plan.notes)
    assert plan.services == ()


def test_without_a_selected_service_the_note_says_how_to_select_one() -> None:
    plan = make_apply(present(listed=(service(), service("b", annotation="Other"))), request())
    assert "--service" in plan.notes[0]
    assert plan.services == ()


def test_removal_is_about_the_services_that_the_policy_selects() -> None:
    listed = (service("a", cls=LB), service("b", annotation="Proxy"), service("c"))
    plan = make_remove(present(stored(Selection((LB,))), listed=listed), request())
    assert [str(ref_of(one)) for one in plan.services] == ["shop/a", "shop/b"]
    assert plan.notes == ("Service shop/b keeps its annotation; --service shop/b removes it",)


def test_removal_of_a_deleted_services_annotation_is_done() -> None:
    plan = make_remove(present(named=(None,)), request(services=(WEB,)))
    assert (plan.refusals, plan.changes, plan.notes) == ((), (), ("Service shop/web does not exist",))


def test_rights_do_not_depend_on_what_exists() -> None:
    before = make_apply(present(named=(service(),)), request(**SURE)).grants
    after = make_apply(present(stored(), named=(service(annotation="Proxy"),)), request(**SURE)).grants
    unseen = make_apply(present(named=(None,)), request(**SURE)).grants
    assert set(before) == set(after) == set(unseen)
    assert [grant.plural for grant in before if not grant.name] == ["nodes"]


@pytest.mark.parametrize(
    ("make", "changes", "rights"),
    [
        pytest.param(
            make_apply, {}, {"list services", "list nodes", "get services/status", "patch services/status"}, id="apply"
        ),
        pytest.param(
            make_apply,
            SURE,
            {"get services", "patch services", "get services/status", "patch services/status", "list nodes"},
            id="apply to one",
        ),
        pytest.param(make_remove, {}, {"list services"}, id="remove"),
        pytest.param(make_remove, SURE, {"get services", "patch services"}, id="remove from one"),
        pytest.param(
            make_remove,
            {**SURE, "rewrite": True},
            {"get services", "patch services", "get services/status", "patch services/status"},
            id="rewrite one",
        ),
    ],
)
def test_rights_on_services_are_those_that_the_flags_need(make: Any, changes: Any, rights: set[str]) -> None:
    named: Any = {"named": (service(),)} if changes else {"listed": (service(annotation="Proxy"),)}
    grants = make(present(stored(), **named), request(**changes)).grants
    assert {f"{grant.verb} {grant.plural}" for grant in grants if not grant.group} == rights


HETZNER = {"load-balancer.hetzner.cloud/location": "fsn1", "load-balancer.hetzner.cloud/uses-proxyprotocol": "true"}
SCALEWAY = "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2"


@pytest.mark.parametrize(
    ("annotations", "is_named"),
    [
        pytest.param(HETZNER, True, id="a provider that sets ipMode itself"),
        pytest.param({SCALEWAY: "true"}, True, id="another one"),
        pytest.param({}, False, id="an unknown provider"),
        pytest.param({"metallb.io/address-pool": "a"}, False, id="a provider that writes none"),
    ],
)
def test_a_removal_names_the_provider_that_decides_about_the_ip_mode(
    annotations: dict[str, str], *, is_named: bool
) -> None:
    plan = make_remove(present(stored(), named=(service(annotations=annotations),)), request(**SURE, rewrite=True))
    assert [ref_of(one) for one in plan.services] == [WEB]
    assert any("may write its ipMode with its next write" in note for note in plan.notes) is is_named


def test_a_review_asks_for_the_subresource() -> None:
    grants = make_apply(present(named=(service(),)), request(**SURE)).grants
    assert make_review(grants[-1])["spec"]["resourceAttributes"] == {
        "namespace": "shop",
        "group": "",
        "resource": "services",
        "subresource": "status",
        "verb": "patch",
        "name": "web",
    }
