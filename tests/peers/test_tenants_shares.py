"""Tenants use up what all share: names, followed Services, changes of the table, and lines of the log."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.serve.change_log import PACE
from dnsproxy.serve.rejection_log import MOST
from tests.kit.log_lines import whole_lines
from tests.kit.tenants.acts import balance, victim
from tests.kit.tenants.owner import watching
from tests.kit.tenants.rows import RELAY, Row, Stage, both
from tests.kit.tenants.scene import Scene
from tests.kit.tenants.settings import COLUMNS, DEFAULT, STRICT
from tests.kit.tenants.targets import readable, service
from tests.kit.tenants.tenant import ALLOWED_LABEL

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")

TARGET: Final = "switchback.dev/target"
OBJECTS, NAMES = 22, 1_000
"""Ingresses of one tenant, and the hosts of each: more than a namespace may have."""
CHANGES: Final = 40
"""Edits of one object, each of all its names."""
DELAY: Final = 1.0
"""Seconds, for two queries."""
ADDRESS: Final = "10.96.77.77"
LIMITS: Final = {DEFAULT: 20_000, STRICT: 2_000}
PER_OBJECT: Final = {DEFAULT: 1_000, STRICT: 200}
OTHERS: Final = 500
"""Names that are not of that tenant, and more than there are."""
MEMORY: Final = 512 * 2**20
"""The limit of the manifests, in octets."""
SHOUTED: Final = 300


def flooding(scene: Scene) -> None:
    """Twenty-two thousand names of its own; afterwards a neighbour comes."""
    tenant = scene.tenant("flood")
    tenant.ingress("first.apps.example.org", name="first")
    balance(scene, tenant, name="first")
    scene.mark()
    for number in range(OBJECTS):
        hosts = [f"n{number}-{index}.apps.example.org" for index in range(NAMES)]
        tenant.ingress(*hosts, name=f"flood-{number:02}")
    neighbour = scene.tenant("neighbour")
    neighbour.ingress("after-flood.shop.example.org")
    balance(scene, neighbour)


def crowding_one_object(scene: Scene) -> None:
    tenant = scene.tenant("object")
    tenant.ingress(*(f"o{index}.owner.example.org" for index in range(1_200)))
    balance(scene, tenant)


def using_up_services(scene: Scene) -> None:
    """A tenant with the right to targets names Services that do not exist; then a neighbour names one that does."""
    tenant = scene.tenant("services", labels=ALLOWED_LABEL)
    for number in range(110):
        host, note = f"t{number}.apps.example.org", {TARGET: f"service:{tenant.namespace}/absent-{number}"}
        tenant.ingress(host, name=f"t{number}", annotations=note)
    neighbour = scene.tenant("neighbour", labels=ALLOWED_LABEL)
    readable(scene, neighbour, "web")
    neighbour.create(service("web", clusterIP=ADDRESS, ports=[{"port": 80}]))
    note = {TARGET: f"service:{neighbour.namespace}/web"}
    neighbour.ingress("target.shop.example.org", annotations=note)
    balance(scene, neighbour)


def shouting(scene: Scene) -> None:
    """Each object is at fault in its own words."""
    tenant = scene.tenant("shouting", labels=ALLOWED_LABEL)
    for number in range(SHOUTED):
        note = {"switchback.dev/hostname": f"bad_{number}..example.org"}
        tenant.ingress(f"shout{number}.apps.example.org", name=f"s{number}", annotations=note)


FLOOD: Final = Row("flood", "claims 22,000 names in 22 objects", flooding,
                   {"after-flood.shop.example.org": RELAY, "first.apps.example.org": RELAY})  # fmt: skip
CROWD: Final = Row("one-object", "claims 1,200 names in one object", crowding_one_object,
                   {"o0.owner.example.org": RELAY})  # fmt: skip
SERVICES: Final = Row("services", "names 110 Services that do not exist", using_up_services,
                      {"target.shop.example.org": ADDRESS})  # fmt: skip
SHOUT: Final = Row("log", "makes 300 objects with different faults", shouting, {"www.owner.example.org": RELAY})
ROWS: Final = (SERVICES, SHOUT, CROWD, FLOOD)


@pytest.mark.parametrize(("row", "column"), both(ROWS))
def test_a_neighbour_notices_nothing(stage: Stage, row: Row, column: str) -> None:
    stage.judge(row, column)


@pytest.mark.parametrize("column", COLUMNS)
def test_an_object_has_only_its_share_of_names(stage: Stage, column: str) -> None:
    stage.make(CROWD)
    assert stage.scene.explain(column, "o1199.owner.example.org")["answer"] is None


@pytest.mark.parametrize("column", COLUMNS)
def test_a_namespace_has_only_its_share_of_names(stage: Stage, column: str) -> None:
    stage.make(FLOOD)
    names = stage.scene.servers[column].metric("dnsproxy_table_names")
    assert names <= LIMITS[column] + PER_OBJECT[column] + OTHERS


@pytest.mark.parametrize("column", COLUMNS)
def test_an_object_that_changes_all_the_time_delays_no_answer(stage: Stage, column: str) -> None:
    """It has as many names as an object may have; a neighbour's name is asked for meanwhile."""
    scene = stage.scene
    tenant, host = scene.tenant("changing"), f"calm-{column}.shop.example.org"
    tenant.ingress("first.apps.example.org")
    balance(scene, tenant)
    victim(scene, host)
    with watching(scene.servers[column].port, host, scene.relay) as watch:
        for number in range(CHANGES):
            tenant.edit_ingress(*(f"c{number % 2}-{index}.apps.example.org" for index in range(NAMES)))
        scene.mark()
    assert watch.fault is None
    assert watch.answered > 0
    assert watch.slowest < DELAY


@pytest.mark.parametrize("column", COLUMNS)
def test_the_memory_stays_below_the_limit_of_the_manifests(stage: Stage, column: str) -> None:
    stage.make(FLOOD)
    status = Path(f"/proc/{stage.scene.servers[column].process.pid}/status").read_text(encoding="utf-8")
    (peak,) = [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    assert peak < MEMORY


@pytest.mark.parametrize("column", COLUMNS)
def test_a_tenant_has_only_its_share_of_the_log(stage: Stage, column: str) -> None:
    """A line of changes a second, however long a busy machine takes; rejections of single objects are in /skipped."""
    stage.make(SHOUT)
    lines = whole_lines(stage.scene.servers[column].log)
    own = [json.loads(line) for line in lines if "shouting-" in line]
    changes = [line for line in own if line["event"] == "table changed"]
    seconds = [datetime.fromisoformat(line["timestamp"]).timestamp() for line in changes]
    assert 0 < len(changes) <= (max(seconds) - min(seconds)) / PACE + 1
    # A list that is read anew may log what it finds.
    assert len(own) - len(changes) <= MOST + 2
