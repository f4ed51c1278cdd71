"""The real controller of MetalLB writes statuses under the ip-mode policy: how often, and with which ipMode.

The test is about writes only. `ipMode: Proxy` cuts off a Service of MetalLB from outside: never select one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.ip_mode.policy import format_policy
from dnsproxy.ip_mode.selection import Selection
from tests.kit.apiserver import ApiServer, running_apiserver
from tests.kit.ip_mode import MERGE, SELECTED, Services, apply_text, entries_of
from tests.kit.metallb import MetalLb, define_metallb, put_pool
from tests.kit.polling import poll_until

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "metallb-controller", "metallb-crds")

EDITS: Final = 10
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["services/status"]}]}, {"level": "None"}],
}


@dataclass
class World:
    """A Service that MetalLB has given an address, and the API server's log of status writes."""

    server: ApiServer
    metallb: MetalLb
    services: Services
    audit: Path
    name: str

    def writes(self) -> int:
        """MetalLB's requests to write a status so far, changes or not."""
        # The last line may be half written.
        lines = self.audit.read_text(encoding="utf-8").split("\n")[:-1]
        return sum("metallb" in json.loads(line).get("userAgent", "") for line in lines)

    def reloads(self) -> int:
        """How often MetalLB has looked at all Services again, because it has read its pools or a node."""
        return self.metallb.log.read_text(encoding="utf-8").count('"event":"force service reload"')

    def entries(self) -> list[Any]:
        return list(entries_of(self.services.get(self.name)))

    def version(self) -> str:
        return str(self.services.get(self.name)["metadata"]["resourceVersion"])

    def edit(self, value: str) -> str:
        """An edit by another person, which MetalLB follows. Returns the version that it made."""
        patch = {"metadata": {"annotations": {"example.org/edit": value}}}
        path = f"{self.services.path}/{self.name}"
        edited = self.server.request("PATCH", path, patch, content_type=MERGE)
        return str(edited["metadata"]["resourceVersion"])

    def answers_after(self, answered: int) -> None:
        """Wait until MetalLB has made more than `answered` requests, and is calm."""
        poll_until(lambda: self.writes() > answered, "MetalLB writes the status", seconds=30)
        self.settled()

    def settled(self) -> None:
        """Wait until MetalLB has looked at the newest version of the Service, and has made no newer one."""

        def is_calm() -> bool:
            lines = self.metallb.log.read_text(encoding="utf-8").split("\n")[:-1]
            said = [json.loads(line) for line in lines if '"ServiceReconciler"' in line and self.name in line]
            looks = [json.loads(one["processing service"]) for one in said if "processing service" in one]
            if not looks or "end reconcile" not in said[-1]:
                return False
            return bool(looks[-1]["metadata"]["resourceVersion"] == self.version())

        poll_until(is_calm, "MetalLB is calm", seconds=20)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("metallb")
    (folder / "audit.yaml").write_text(json.dumps(AUDIT_POLICY), encoding="utf-8")
    audit = folder / "audit.log"
    flags = (f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={audit}")
    with running_apiserver(folder, flags=flags) as server:
        define_metallb(server)
        server.create_namespace("shop")
        put_pool(server, "first", ["192.0.2.80-192.0.2.89"])
        services = Services(server, "shop")
        metallb = MetalLb(server, folder / "metallb.log")
        metallb.start()
        try:
            found = World(server, metallb, services, audit, services.create(annotations=SELECTED))
            poll_until(found.entries, "MetalLB assigns an address", seconds=30)
            yield found
        finally:
            metallb.kill()


def changes_of_edits(world: World) -> tuple[int, int]:
    """The changes of the Service beside those of the edits, and MetalLB's requests, for the same number of edits."""
    before, changes = world.writes(), 0
    for number in range(EDITS):
        answered = world.writes()
        made = world.edit(f"{before}-{number}")
        world.answers_after(answered)
        changes += world.version() != made
    return changes, world.writes() - before


def test_under_the_policy_it_writes_no_more_than_before_and_a_restart_and_a_new_pool_are_one_write(
    world: World, tmp_path: Path
) -> None:
    world.settled()
    assert world.entries() == [{"ip": "192.0.2.80", "ipMode": "VIP"}]
    changes_before, requests_before = changes_of_edits(world)

    apply_text(world.server, format_policy("v1", Selection()), tmp_path)
    world.services.wait_for_mode(world.name, "Proxy")
    path = f"{world.services.path}/{world.name}/status"
    world.server.request("PATCH", path, {}, content_type=MERGE)
    world.settled()
    assert world.entries() == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]
    changes_after, requests_after = changes_of_edits(world)
    assert changes_before == 0
    # A change is a newer time in managedFields, after an edit in a later second; MetalLB answers that change once.
    assert requests_after <= requests_before + changes_after
    assert world.entries() == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]

    restarts_change_at_most_once(world)

    put_pool(world.server, "first", ["192.0.2.90-192.0.2.99"])
    poll_until(lambda: world.entries() == [{"ip": "192.0.2.90", "ipMode": "Proxy"}], "another address", seconds=30)
    world.settled()
    calm = world.version()
    world.settled()
    assert world.version() == calm


def restarts_change_at_most_once(world: World) -> None:
    """A new process writes each status anew: one of them notes a newer time, and no other changes anything."""
    versions = [world.version()]
    for _ in range(3):
        answered, reloads = world.writes(), world.reloads()
        world.metallb.kill()
        world.metallb.start()
        world.answers_after(answered)
        versions.append(world.version())
        # One for the Service, one for each reload (as many as its caches happen to need), and one for the change.
        changes = int(versions[-1] != versions[-2])
        assert world.writes() - answered <= 1 + world.reloads() - reloads + changes
    assert len(set(versions)) <= 2
    assert world.entries() == [{"ip": "192.0.2.80", "ipMode": "Proxy"}]
