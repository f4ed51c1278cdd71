"""Tenants want the names of their neighbours: waiting for a reinstallation, with older objects, wildcards and routes.

The law: attackers use the class `other`, whose answer is another address: a name that is lost shows in DNS.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final

import pytest

from tests.kit.tenants.acts import attacker, balance, victim
from tests.kit.tenants.public_dns import BALANCER
from tests.kit.tenants.rows import FORWARDED, RELAY, SUCCEEDS, Row, Stage, both
from tests.kit.tenants.scene import DENIED, STATIC, STATIC_ADDRESS, Scene
from tests.kit.tenants.settings import COLUMNS
from tests.kit.tenants.targets import readable, service
from tests.kit.tenants.tenant import ALLOWED_LABEL

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")

TARGET: Final = "switchback.dev/target"


def waiting(host: str) -> Callable[[Scene], None]:
    """The victim's Ingress is deleted while a younger claim waits."""

    def does(scene: Scene) -> None:
        owner = victim(scene, host)
        attacker(scene, host)
        scene.mark()
        owner.delete_ingress()

    return does


def waiting_with_a_wildcard(scene: Scene) -> None:
    """A wildcard would answer the name that is held for the victim."""
    attacker(scene, "*.waits.shop.example.org")
    owner = victim(scene, "victim.waits.shop.example.org")
    owner.delete_ingress()


def waiting_for_a_target(scene: Scene) -> None:
    """The victim's own target goes and comes back."""
    owner = scene.tenant("victim", labels=ALLOWED_LABEL)
    web = service("web", clusterIP="10.96.77.78", ports=[{"port": 80}])
    readable(scene, owner, "web")
    owner.create(web)
    owner.ingress("target-lost.shop.example.org", annotations={TARGET: f"service:{owner.namespace}/web"})
    balance(scene, owner)
    scene.wait_for("target-lost.shop.example.org", "10.96.77.78")
    attacker(scene, "target-lost.shop.example.org")
    scene.mark()
    owner.call("DELETE", f"/api/v1/namespaces/{owner.namespace}/services/web")
    scene.wait_for("target-lost.shop.example.org", BALANCER)


def against_the_operator(scene: Scene) -> None:
    attacker(scene, STATIC, DENIED, "*.denied.shop.example.org")


def reinstalling(scene: Scene) -> None:
    owner = victim(scene, "reinstalled.shop.example.org")
    attacker(scene, "reinstalled.shop.example.org")
    scene.mark()
    owner.delete_ingress()
    scene.mark()
    owner.ingress("reinstalled.shop.example.org")
    balance(scene, owner)


def renaming(scene: Scene) -> None:
    """Blue and green: a new object for the same host, then the old one goes."""
    owner = victim(scene, "renamed.shop.example.org")
    attacker(scene, "renamed.shop.example.org")
    owner.ingress("renamed.shop.example.org", name="green")
    balance(scene, owner, name="green")
    scene.mark()
    owner.delete_ingress()


def dropping_a_host(scene: Scene) -> None:
    owner = victim(scene, "dropped.shop.example.org", "kept.shop.example.org")
    attacker(scene, "dropped.shop.example.org")
    scene.mark()
    owner.edit_ingress("kept.shop.example.org")
    scene.mark()
    owner.edit_ingress("kept.shop.example.org", "dropped.shop.example.org")


def editing_an_old_one(scene: Scene) -> None:
    tenant = attacker(scene, "older.gw.example.org")
    scene.mark()
    victim(scene, "younger.shop.example.org")
    tenant.edit_ingress("older.gw.example.org", "younger.shop.example.org", ingress_class="other")


def moving_between_tenants(scene: Scene) -> None:
    """Two tenants collude: one waits, the other has an older object; they take turns."""
    second = attacker(scene, "second.gw.example.org")
    owner = victim(scene, "colluded.shop.example.org")
    first = attacker(scene, "colluded.shop.example.org")
    scene.mark()
    owner.delete_ingress()
    second.edit_ingress("second.gw.example.org", "colluded.shop.example.org", ingress_class="other")
    first.delete_ingress()
    scene.mark()


def renaming_the_attack(scene: Scene) -> None:
    """The waiting claim is made anew under names that sort first."""
    owner = victim(scene, "sorted.shop.example.org")
    tenant = attacker(scene, "sorted.shop.example.org")
    tenant.delete_ingress()
    tenant.ingress("sorted.shop.example.org", name="0", ingress_class="other")
    balance(scene, tenant, "other", name="0")
    scene.mark()
    owner.delete_ingress()


def owning_the_victim(scene: Scene) -> None:
    """Owner references to the victim's object."""
    owner = victim(scene, "owned.shop.example.org")
    path = f"/apis/networking.k8s.io/v1/namespaces/{owner.namespace}/ingresses/web"
    uid = scene.server.request("GET", path)["metadata"]["uid"]
    tenant = attacker(scene, "owned.shop.example.org")
    reference = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web", "uid": uid}
    patch = {"metadata": {"ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}]}}
    status, said = tenant.call("PATCH", path.replace(owner.namespace, tenant.namespace), patch)
    # The API server refuses to let a tenant block the deletion of what it may not delete; then without that.
    assert status in {200, 403}, said


def shadowing_a_child(scene: Scene) -> None:
    victim(scene, "*.one.wild.example.org", "*.two.wild.example.org")
    attacker(scene, "api.one.wild.example.org")


def covering_a_neighbour(scene: Scene) -> None:
    """A wildcard over a domain that others use too."""
    victim(scene, "victim.covered.shop.example.org")
    attacker(scene, "*.covered.shop.example.org")


def covering_with_our_class(scene: Scene) -> None:
    victim(scene, "shop.tenants.org")
    tenant = scene.tenant()
    tenant.ingress("*.tenants.org")
    balance(scene, tenant)


def covering_a_shared_domain(scene: Scene) -> None:
    """The tenant has a name in the domain itself, which leads to the cluster."""
    tenant = scene.tenant()
    tenant.ingress("shop.shared.org", "*.shared.org")
    balance(scene, tenant)


def without_address(scene: Scene) -> None:
    """An older claim with a target that does not exist."""
    attacker(scene, "held.shop.example.org", annotations={TARGET: "service:none/none"})
    attacker(scene, "held2.shop.example.org", annotations={TARGET: "service:none/none"}, labels=ALLOWED_LABEL)
    scene.mark()
    victim(scene, "held.shop.example.org", "held2.shop.example.org")


ROWS: Final = (
    Row("wait", "waits until the victim's Ingress is deleted", waiting("waited.shop.example.org"),
        {"waited.shop.example.org": FORWARDED}),
    Row("wait-wildcard", "waits with a wildcard over the victim's name", waiting_with_a_wildcard,
        {"victim.waits.shop.example.org": FORWARDED}),
    Row("target-lost", "waits until the victim's target has no address", waiting_for_a_target,
        {"target-lost.shop.example.org": FORWARDED}),
    Row("static", "claims names that the operator has set and denied, and a wildcard above", against_the_operator,
        {STATIC: STATIC_ADDRESS, DENIED: FORWARDED}),
    Row("reinstall", "waits while the victim reinstalls", reinstalling, {"reinstalled.shop.example.org": RELAY}),
    Row("blue-green", "waits while the victim changes to another object", renaming,
        {"renamed.shop.example.org": RELAY}),
    Row("drop-host", "waits while the victim takes the host out of its Ingress and puts it back", dropping_a_host,
        {"dropped.shop.example.org": RELAY, "kept.shop.example.org": RELAY}),
    Row("edit-older", "adds the host to an older object of its own", editing_an_old_one,
        {"younger.shop.example.org": RELAY}),
    Row("collude", "takes turns with another tenant", moving_between_tenants, {"colluded.shop.example.org": FORWARDED}),
    Row("sort-first", "waits under a name that sorts first", renaming_the_attack,
        {"sorted.shop.example.org": FORWARDED}),
    Row("owner-reference", "makes the victim's object the owner of its own", owning_the_victim,
        {"owned.shop.example.org": RELAY}),
    Row("no-address", "holds the name with a target that does not exist", without_address,
        {"held.shop.example.org": RELAY, "held2.shop.example.org": RELAY}),
    Row("shadow-child", "claims a child of the victim's wildcard", shadowing_a_child,
        {"api.one.wild.example.org": RELAY}),
    Row("shadow-child-others", "and leaves the wildcard's other children alone", lambda _: None,
        {"web.one.wild.example.org": RELAY, "api.two.wild.example.org": RELAY}),
    Row("cover-exact", "claims a wildcard over the victim's name", covering_a_neighbour,
        {"victim.covered.shop.example.org": RELAY}),
    Row("cover-free", "and gets no name of that domain that leads to the victim's load balancer", lambda _: None,
        {"free.covered.shop.example.org": RELAY}),
    Row("cover-world", "claims a wildcard over a domain of the cluster, whose other names are elsewhere",
        covering_with_our_class, {"mail.tenants.org": FORWARDED, "shop.tenants.org": RELAY}),
    Row("cover-shared", "the same, in a domain where the tenant itself has a name that leads to the cluster",
        covering_a_shared_domain, {"mail.shared.org": FORWARDED, "shop.shared.org": RELAY}),
    Row("cover-without-record", "gets the names of that domain that public DNS does not have", lambda _: None,
        {"free.shared.org": FORWARDED}, default=SUCCEEDS),
)  # fmt: skip


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_a_neighbours_name_stays(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)


def test_it_stays_when_all_attacks_have_been_made(stage: Stage) -> None:
    for row, column in product(ROWS, COLUMNS):
        stage.judge(row, column)
