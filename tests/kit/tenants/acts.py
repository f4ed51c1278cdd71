"""What tenants do in many rows: claim names, with a class and annotations, in a namespace with labels or without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.kit.tenants.public_dns import BALANCER, OTHER_BALANCER
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.tenant import Tenant


def claim(
    *hosts: str,
    ingress_class: str | None = "public",
    balanced: bool = True,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Callable[[Scene], None]:
    """An Ingress for these hosts, whose controller writes its status; `labels` are those of the namespace."""

    def does(scene: Scene) -> None:
        tenant = scene.tenant(labels=labels)
        tenant.ingress(*hosts, ingress_class=ingress_class, annotations=annotations)
        if balanced:
            balance(scene, tenant, ingress_class)

    return does


def balance(scene: Scene, tenant: Tenant, ingress_class: str | None = "public", name: str = "web") -> None:
    """The controller of that class writes the status of an Ingress."""
    scene.balance(tenant, name, address=OTHER_BALANCER if ingress_class == "other" else BALANCER)


def victim(scene: Scene, *hosts: str, name: str = "web") -> Tenant:
    """A tenant whose names are answered with the relay's address."""
    owner = scene.tenant("victim")
    owner.ingress(*hosts, name=name)
    balance(scene, owner, name=name)
    scene.mark()
    return owner


def attacker(
    scene: Scene, *hosts: str, name: str = "web", labels: Mapping[str, str] | None = None, **metadata: Any
) -> Tenant:
    """A tenant that claims these names with the class `other`, which is answered with another address."""
    tenant = scene.tenant("attacker", labels=labels)
    tenant.ingress(*hosts, name=name, ingress_class="other", **metadata)
    balance(scene, tenant, "other", name=name)
    return tenant
