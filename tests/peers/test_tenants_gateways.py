"""Tenants use the Gateway API: their own Gateways, the Gateways of others, and routes against Ingresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.kit import gateway_api as api
from tests.kit.tenants.acts import attacker, victim
from tests.kit.tenants.public_dns import OTHER_BALANCER
from tests.kit.tenants.rows import FORWARDED, RELAY, Row, Stage, both
from tests.kit.tenants.scene import GATEWAYS, Scene, accept_gateway
from tests.kit.tenants.targets import readable, service
from tests.kit.tenants.tenant import ALLOWED_LABEL, Tenant

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")

CHOSEN: Final = "10.96.77.80"
"""The target that the owner of a Gateway has chosen."""
GROUP: Final = "gateway.networking.k8s.io"


def own_gateway(host: str | None, *, accepted: bool, gateway_class: str = "other") -> Callable[[Scene], None]:
    """A Gateway of the tenant with one listener; its controller accepts it, or it does not exist."""

    def does(scene: Scene) -> None:
        make_gateway(scene, scene.tenant(), host, accepted=accepted, gateway_class=gateway_class)

    return does


def make_gateway(
    scene: Scene, tenant: Tenant, host: str | None, *, accepted: bool = True, gateway_class: str = "other", **more: Any
) -> None:
    listener = api.listener("web", host or "", **more)
    if host is None:
        del listener["hostname"]
    tenant.create(api.gateway(listener, gatewayClassName=gateway_class))
    if accepted:
        accept_gateway(scene.server, tenant.namespace, "main", OTHER_BALANCER)


def own_route(host: str, *, accepted: bool) -> Callable[[Scene], None]:
    """The same with a listener for every host, and a route that names one."""

    def does(scene: Scene) -> None:
        tenant = scene.tenant()
        make_gateway(scene, tenant, None, accepted=accepted)
        tenant.create(api.route("HTTPRoute", host))

    return does


def foreign_route(
    host: str, *, kind: str = "HTTPRoute", parent: str = "main", **parent_ref: Any
) -> Callable[[Scene], None]:
    """A route of the tenant at the owner's Gateway."""

    def does(scene: Scene) -> None:
        route = api.route(kind, host, parent=parent)
        route["spec"]["parentRefs"][0] |= {"namespace": "owner", **parent_ref}
        scene.tenant().create(route)

    return does


def private_gateway(scene: Scene) -> None:
    """The owner's second Gateway, for routes of its own namespace and of namespaces with a label."""
    ours = api.listener("same", "*.same.gw.example.org")
    selected = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "trusted"}}}}
    labelled = api.listener("labelled", "*.labelled.gw.example.org", port=81, allowedRoutes=selected)
    one = api.gateway(ours, labelled, name="private")
    one["metadata"]["namespace"] = "owner"
    scene.server.request("POST", f"{GATEWAYS}/namespaces/owner/gateways", one)
    accept_gateway(scene.server, "owner", "private", OTHER_BALANCER)
    foreign_route("x.same.gw.example.org", parent="private")(scene)


def named_like_a_label(scene: Scene) -> None:
    """The label that the API server itself sets is the namespace's name, which the tenant did not choose."""
    foreign_route("x.labelled.gw.example.org", parent="private")(scene)


def own_listeners(scene: Scene) -> None:
    listeners = api.listener_set(api.listener("web", "listeners.gw.example.org", port=82), name="more")
    listeners["spec"]["parentRef"]["namespace"] = "owner"
    scene.tenant().create(listeners)


def against_an_older_route(scene: Scene) -> None:
    foreign_route("routed.gw.example.org")(scene)
    scene.mark()
    attacker(scene, "routed.gw.example.org")


def route_against_an_older_ingress(scene: Scene) -> None:
    victim(scene, "ingress.shop.example.org")
    own_route("ingress.shop.example.org", accepted=True)(scene)


def against_an_older_listener(scene: Scene) -> None:
    """A listener without a route, of the class `public`."""
    owner = scene.tenant("victim")
    make_gateway(scene, owner, "listener.shop.example.org", gateway_class="public")
    scene.mark()
    attacker(scene, "listener.shop.example.org")


def route_waits(scene: Scene) -> None:
    owner = victim(scene, "route-waits.shop.example.org")
    own_route("route-waits.shop.example.org", accepted=True)(scene)
    scene.mark()
    owner.delete_ingress()


def flipping(scene: Scene) -> None:
    """The victim's controller restarts, and takes the acceptance back for a moment."""
    owner = scene.tenant("victim")
    make_gateway(scene, owner, "flips.shop.example.org", gateway_class="public")
    scene.wait_for("flips.shop.example.org", scene.relay)
    attacker(scene, "flips.shop.example.org")
    scene.mark()
    accept_gateway(scene.server, owner.namespace, "main", None)


def addresses_of_its_own(scene: Scene) -> None:
    """A Gateway that asks for an address; nobody gives it one."""
    one = api.gateway(api.listener("web", "asked.gw.example.org"), addresses=[{"value": "169.254.169.254"}])
    scene.tenant().create(one)


def hostname_in_a_status(scene: Scene) -> None:
    """Its controller writes a hostname that the tenant has asked for: the name of somebody else."""
    tenant = scene.tenant()
    make_gateway(scene, tenant, "pointed.cname.example.com")
    status = {"status": {"addresses": [{"type": "Hostname", "value": "cdn.example.net"}]}}
    scene.server.request("PATCH", f"{GATEWAYS}/namespaces/{tenant.namespace}/gateways/main/status", status)
    tenant.ingress("cdn.example.net")


def at_a_gateway_with_a_target(scene: Scene) -> None:
    """The owner of a Gateway for all namespaces has chosen its target, and has the right to."""
    owner = scene.tenant("victim", labels=ALLOWED_LABEL)
    readable(scene, owner, "web")
    owner.create(service("web", clusterIP=CHOSEN, ports=[{"port": 80}]))
    listener = api.listener("web", "", allowedRoutes={"namespaces": {"from": "All"}})
    del listener["hostname"]
    one = api.gateway(listener, gatewayClassName="other")
    one["metadata"]["annotations"] = {"switchback.dev/target": f"service:{owner.namespace}/web"}
    owner.create(one)
    accept_gateway(scene.server, owner.namespace, "main", OTHER_BALANCER)
    owner.create(api.route("HTTPRoute", "chosen.gw.example.org"))
    scene.wait_for("chosen.gw.example.org", CHOSEN)
    route = api.route("HTTPRoute", "targeted.world.example.com")
    route["spec"]["parentRefs"][0]["namespace"] = owner.namespace
    scene.tenant().create(route)


ROWS: Final = (
    Row("gateway-unaccepted", "makes a Gateway that no controller accepts, for a bank's name",
        own_gateway("unaccepted.world.example.com", accepted=False), {"unaccepted.world.example.com": FORWARDED}),
    Row("gateway-unserved", "the same, of a class that does not exist",
        own_gateway("unserved2.world.example.com", accepted=False, gateway_class="nosuchclass"),
        {"unserved2.world.example.com": FORWARDED}),
    Row("gateway-accepted", "makes one that is accepted",
        own_gateway("accepted.world.example.com", accepted=True), {"accepted.world.example.com": FORWARDED}),
    Row("gateway-wildcard", "the same for a wildcard, without a route",
        own_gateway("*.registered6.com", accepted=True), {"www.registered6.com": FORWARDED}),
    Row("route-unaccepted", "routes a bank's name at a Gateway that no controller accepts",
        own_route("route.world.example.com", accepted=False), {"route.world.example.com": FORWARDED}),
    Row("route-accepted", "routes it at one that is accepted",
        own_route("route2.world.example.com", accepted=True), {"route2.world.example.com": FORWARDED}),
    Row("route-search", "routes a name below a search domain",
        own_route("github.com.ec2.internal", accepted=True), {"github.com.ec2.internal": FORWARDED}),
    Row("route-outside", "routes a name at the owner's Gateway that its listener does not have",
        foreign_route("outside.world.example.com"), {"outside.world.example.com": FORWARDED}),
    Row("route-same", "routes a name at a listener that admits only the owner's namespace", private_gateway,
        {"x.same.gw.example.org": FORWARDED}),
    Row("route-selector", "routes a name at a listener that admits namespaces with a label", named_like_a_label,
        {"x.labelled.gw.example.org": FORWARDED}),
    Row("route-no-section", "routes a name at a section that does not exist",
        foreign_route("section.gw.example.org", sectionName="none"), {"section.gw.example.org": FORWARDED}),
    Row("route-other-kind", "routes a name by a kind that the listener does not take",
        foreign_route("kind.gw.example.org", kind="TLSRoute"), {"kind.gw.example.org": FORWARDED}),
    Row("listener-set", "adds listeners to the owner's Gateway, which admits none", own_listeners,
        {"listeners.gw.example.org": FORWARDED}),
    Row("ingress-younger-than-route", "claims by Ingress a name that another's route has", against_an_older_route,
        {"routed.gw.example.org": RELAY}),
    Row("ingress-younger-than-listener", "claims by Ingress a name that another's listener has",
        against_an_older_listener, {"listener.shop.example.org": RELAY}),
    Row("route-younger-than-ingress", "routes a name that another's Ingress has", route_against_an_older_ingress,
        {"ingress.shop.example.org": RELAY}),
    Row("route-waits", "waits with a route until the other's Ingress is deleted", route_waits,
        {"route-waits.shop.example.org": FORWARDED}),
    Row("gateway-flips", "waits until another's Gateway is not accepted for a moment", flipping,
        {"flips.shop.example.org": FORWARDED}),
    Row("gateway-hostname", "makes one with the name of somebody else in its status", hostname_in_a_status,
        {"pointed.cname.example.com": FORWARDED, "cdn.example.net": FORWARDED}),
    Row("gateway-target", "routes a bank's name at a Gateway whose owner has chosen its target",
        at_a_gateway_with_a_target, {"targeted.world.example.com": FORWARDED, "chosen.gw.example.org": CHOSEN}),
    Row("gateway-addresses", "asks for an address of its choice", addresses_of_its_own,
        {"asked.gw.example.org": FORWARDED}),
)  # fmt: skip


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_a_name_is_not_taken_by_way_of_a_gateway(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)
