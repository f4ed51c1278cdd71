"""Tenants claim names of the world: with every class, wildcard, section and edit."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from tests.kit.apiserver import ingress
from tests.kit.tenants.acts import claim
from tests.kit.tenants.rows import FORWARDED, SUCCEEDS, Row, Stage, both
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.settings import COLUMNS

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")


def by_tls_section(scene: Scene) -> None:
    tenant = scene.tenant()
    manifest = ingress("web", ["tls.world.example.com"], ingress_class="public")
    manifest["spec"]["rules"] = [{"host": "own.apps.example.org"}]
    tenant.create(manifest)
    scene.balance(tenant)


def by_default_backend(scene: Scene) -> None:
    tenant = scene.tenant()
    manifest = ingress("web", ["backend.world.example.com"], ingress_class="public")
    del manifest["spec"]["rules"]
    manifest["spec"]["defaultBackend"] = {"service": {"name": "web", "port": {"number": 80}}}
    tenant.create(manifest)
    scene.balance(tenant)


def by_edit(scene: Scene) -> None:
    tenant = scene.tenant()
    tenant.ingress("edited.apps.example.org")
    scene.balance(tenant)
    scene.mark()
    tenant.edit_ingress("edited.apps.example.org", "edited.world.example.com")


def by_annotated_class(scene: Scene) -> None:
    tenant = scene.tenant()
    tenant.ingress(
        "legacy.world.example.com", ingress_class=None, annotations={"kubernetes.io/ingress.class": "nosuch"}
    )


def by_large_labels(scene: Scene) -> None:
    tenant = scene.tenant()
    tenant.ingress("large.world.example.com", ingress_class="nosuch", annotations={"example.org/large": "x" * 250_000})


def by_many_names(scene: Scene) -> None:
    """Ten thousand names of the world, and an object that changes all the time; then a neighbour comes."""
    tenant = scene.tenant()
    for number in range(10):
        tenant.ingress(*(f"s{number}-{one}.world.example.com" for one in range(1_000)), name=f"many{number}")
    for number in range(100):
        tenant.edit_ingress(f"s{number}.world.example.com", name="many0")
    scene.balance(tenant, "many0")
    neighbour = scene.tenant()
    neighbour.ingress("fair.apps.example.org")
    scene.balance(neighbour)


ROWS: Final = (
    Row("world-exact", "claims a bank's name, with the class of everybody",
        claim("exact.world.example.com"), {"exact.world.example.com": FORWARDED}),
    Row("world-other-class", "claims it with another class that is served",
        claim("other.world.example.com", ingress_class="other"), {"other.world.example.com": FORWARDED}),
    Row("world-no-status", "claims it with a served class, whose controller never writes the status of this object",
        claim("nostatus.world.example.com", balanced=False), {"nostatus.world.example.com": FORWARDED}),
    Row("world-classless", "claims it without a class, so that the API server sets the default class",
        claim("classless.world.example.com", ingress_class=None, balanced=False),
        {"classless.world.example.com": FORWARDED}),
    Row("world-unserved-class", "claims it with a class that no controller serves, so that nothing can be compared",
        claim("unserved.world.example.com", ingress_class="nosuchclass", balanced=False),
        {"unserved.world.example.com": FORWARDED}),
    Row("world-idle-class", "claims it with a class that exists, and that no controller serves any more",
        claim("idle.world.example.com", ingress_class="idle", balanced=False), {"idle.world.example.com": FORWARDED}),
    Row("world-idle-wildcard", "the same for a wildcard",
        claim("*.registered8.com", ingress_class="idle", balanced=False),
        {"www.registered8.com": FORWARDED}),
    Row("world-no-record", "claims a name that public DNS does not have, in a domain of the world",
        claim("login.registered9.com"), {"login.registered9.com": FORWARDED}, default=SUCCEEDS),
    Row("world-annotated-class", "the same, by the old annotation", by_annotated_class,
        {"legacy.world.example.com": FORWARDED}),
    Row("world-large-labels", "the same, with a quarter of a megabyte of annotations", by_large_labels,
        {"large.world.example.com": FORWARDED}),
    Row("world-tls-section", "claims it only in the TLS section", by_tls_section,
        {"tls.world.example.com": FORWARDED, "own.apps.example.org": "relay"}),
    Row("world-default-backend", "claims it in the TLS section of an Ingress with only a default backend",
        by_default_backend, {"backend.world.example.com": FORWARDED}),
    Row("world-edit", "adds it to an old Ingress that was answered", by_edit,
        {"edited.world.example.com": FORWARDED, "edited.apps.example.org": "relay"}),
    Row("world-wildcard", "claims a wildcard of a registered domain that has none itself",
        claim("*.registered1.com"),
        {"www.registered1.com": FORWARDED, "registered1.com": FORWARDED}),
    Row("world-wildcard-other-class", "the same with another class that is served",
        claim("*.registered2.com", ingress_class="other"),
        {"www.registered2.com": FORWARDED}),
    Row("world-wildcard-unserved", "the same with a class that no controller serves",
        claim("*.registered3.com", ingress_class="nosuchclass", balanced=False),
        {"www.registered3.com": FORWARDED, "random.registered3.com": FORWARDED}),
    Row("world-wildcard-below", "claims a wildcard below a name that exists",
        claim("*.www.registered4.com"), {"login.www.registered4.com": FORWARDED}, default=SUCCEEDS),
    Row("world-public-wildcard", "claims a wildcard that exists in public DNS",
        claim("*.open.example.com"), {"anything.open.example.com": FORWARDED}),
    Row("world-ipv6", "claims a name that has only IPv6 addresses, while the load balancer has only IPv4",
        claim("bank.six.example.com"), {"bank.six.example.com": FORWARDED}),
    Row("world-split", "claims a name whose public record is a private address",
        claim("bank.split.example.com"), {"bank.split.example.com": FORWARDED}),
    Row("world-alias", "claims a name that is an alias of a server elsewhere",
        claim("bank.cname.example.com"), {"bank.cname.example.com": FORWARDED}),
    Row("world-dangling", "claims a name that is an alias of nothing",
        claim("bank.dangling.example.com"), {"bank.dangling.example.com": FORWARDED}, default=SUCCEEDS),
    Row("world-mail-only", "claims a name that has only MX records",
        claim("bank.mixed.example.com"), {"bank.mixed.example.com": FORWARDED}, default=SUCCEEDS),
    Row("world-unanswered", "claims a name whose nameservers fail",
        claim("login.broken.com"), {"login.broken.com": FORWARDED}, default=SUCCEEDS),
    Row("world-nat64", "claims the name by which resolvers find a NAT64",
        claim("ipv4only.arpa"), {"ipv4only.arpa": FORWARDED}),
    Row("world-wildcard-free", "gets the names of such a domain that public DNS does not have",
        claim("*.registered7.com"), {"free.registered7.com": FORWARDED}, default=SUCCEEDS),
    Row("world-many", "claims 10,000 names of the world, and changes an object all the time", by_many_names,
        {"s1-0.world.example.com": FORWARDED, "s9-999.world.example.com": FORWARDED,
         "s99.world.example.com": FORWARDED, "fair.apps.example.org": "relay"}),
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _made(stage: Stage) -> None:
    stage.all_at_once(ROWS)


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_a_name_of_the_world_stays_where_it_is(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)


def test_it_is_still_so_when_all_attacks_have_been_made(stage: Stage) -> None:
    for row, column in product(ROWS, COLUMNS):
        stage.judge(row, column)
