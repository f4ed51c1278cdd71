"""Edits of an install, applied to manifests as an API server would apply them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence

from dnsproxy.cluster_dns.found import ServiceRef
from dnsproxy.cluster_dns.method_choice import Choice, Method, choose_method
from dnsproxy.corefile.rewrite_lines import Rewrite
from dnsproxy.dns.names import Reach
from dnsproxy.install.change.config_map import Edits, Wanted, make_write
from dnsproxy.install.change.planning import plan_apply
from dnsproxy.install.change.removal import plan_removal
from dnsproxy.install.change.rewrite_choice import LiveRewrites
from tests.dnsproxy.corefile.shapes import address
from tests.kit.manifest_api import FakeApi
from tests.kit.manifest_cluster import Manifest, discover

ZONES = ("example.org", "shop.example.net")
ADDRESS = "10.96.0.53"


def where_of(name: str) -> ServiceRef | None:
    return ServiceRef("openshift-dns", "dns-default") if name == "openshift" else None


def wanted(*zones: str, addresses: Sequence[str] = (ADDRESS,)) -> Wanted:
    return Wanted(tuple(map(address, addresses)), zones)


def wanted_by(choice: Choice) -> Wanted:
    """For the zones of the tests if the method needs zones, for one name if it rewrites names."""
    if choice.method is Method.OVERRIDE_REWRITES:
        name = Rewrite("app.example.org", Reach.NAME, "switchback/relay")
        return Wanted((), (), LiveRewrites((name,), answered=1))
    return wanted(*(ZONES if choice.needs_zones else ()))


def plan(
    objects: Sequence[Manifest],
    want: Wanted | None = None,
    *,
    method: Method | None = None,
    where: ServiceRef | None = None,
) -> Edits:
    """The edits of an install into these objects."""
    found = discover(objects, where)
    choice = choose_method(found, method)
    return plan_apply(found, choice, want or wanted_by(choice))


def plan_out(objects: Sequence[Manifest], where: ServiceRef | None = None) -> Edits:
    """The edits of an uninstall."""
    return plan_removal(discover(objects, where))


def play(objects: Sequence[Manifest], edits: Edits) -> list[Manifest]:
    """The objects after these edits."""
    api = FakeApi(copy.deepcopy(list(objects)))
    for change in edits.changes:
        write = make_write(change)
        status, body = api.write(write.method, write.path, json.loads(write.content))
        assert status in (200, 201), body
    return list(api.objects)


def without_versions(objects: Sequence[Manifest]) -> list[Manifest]:
    """The objects without resource versions, which each write increases."""
    bare = copy.deepcopy(list(objects))
    for one in bare:
        one["metadata"].pop("resourceVersion", None)
    return bare


Planner = Callable[[Sequence[Manifest]], Edits]
