"""Tenants wait for a restart of dnsproxy: what it knew about holds and owners must not be lost with the process."""

from __future__ import annotations

import pytest

from tests.kit.tenants.acts import attacker, balance, claim, victim
from tests.kit.tenants.rows import Stage
from tests.kit.tenants.scene import OWNED, Scene, started
from tests.kit.tenants.settings import COLUMNS

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "kubectl", "nsd", "gateway-api")


@pytest.fixture
def scene(stage: Stage) -> Scene:
    return stage.scene


@pytest.mark.parametrize("column", COLUMNS)
def test_a_waiting_tenant_still_waits_after_a_restart(scene: Scene, column: str) -> None:
    host = f"hold-{column}.shop.example.org"
    snapshot = f"held-{column}"
    with started(scene, column, snapshot=snapshot) as first, scene.beside(column, first):
        owner = victim(scene, host)
        attacker(scene, host)
        scene.mark()
        owner.delete_ingress()
        scene.mark()
        assert scene.answer(column, host) == scene.forwarded(host)
        scene.save(snapshot)
        assert first.terminate() == 0
    with started(scene, column, snapshot=snapshot) as second, scene.beside(column, second):
        scene.wait_until_ready(column)
        scene.mark()
        assert scene.answer(column, host) == scene.forwarded(host)
        owner.ingress(host)
        balance(scene, owner)
        scene.wait(lambda: scene.answer(column, host).addresses == {scene.relay}, "the owner is back")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_name_that_was_taken_while_it_was_down_is_not_given_away(scene: Scene, column: str) -> None:
    """The victim's Ingress goes and the tenant's older one is edited, all while dnsproxy is down."""
    host = f"down-{column}.shop.example.org"
    snapshot = f"down-{column}"
    tenant = attacker(scene, f"older-{column}.gw.example.org")
    with started(scene, column, snapshot=snapshot) as first, scene.beside(column, first):
        owner = victim(scene, host)
        scene.save(snapshot)
        assert first.terminate() == 0
    tenant.edit_ingress(f"older-{column}.gw.example.org", host, ingress_class="other")
    owner.delete_ingress()
    with started(scene, column, snapshot=snapshot) as second, scene.beside(column, second):
        scene.wait_until_ready(column)
        scene.mark()
        assert scene.answer(column, host) == scene.forwarded(host)


@pytest.mark.parametrize("column", COLUMNS)
def test_an_older_object_that_was_edited_while_it_was_down_waits_too(scene: Scene, column: str) -> None:
    host = f"edited-{column}.shop.example.org"
    snapshot = f"edited-{column}"
    tenant = attacker(scene, f"oldest-{column}.gw.example.org")
    with started(scene, column, snapshot=snapshot) as first, scene.beside(column, first):
        victim(scene, host)
        scene.wait(lambda: scene.answer(column, host).addresses == {scene.relay}, f"{host}: {scene.relay}")
        scene.save(snapshot)
        assert first.terminate() == 0
    tenant.edit_ingress(f"oldest-{column}.gw.example.org", host, ingress_class="other")
    with started(scene, column, snapshot=snapshot) as second, scene.beside(column, second):
        scene.wait_until_ready(column)
        scene.mark()
        # A name that the attacker had taken would be his by now, and stay his.
        scene.wait(lambda: scene.answer(column, host).addresses == {scene.relay}, f"{host}: {scene.relay}")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_name_of_the_world_is_not_answered_in_the_first_moments(scene: Scene, column: str) -> None:
    """A new pod knows nothing of public DNS yet."""
    claim(*(f"m{number}-{column}.world.example.com" for number in range(150)))(scene)
    scene.mark()
    with started(scene, column) as one, scene.beside(column, one):
        for number in range(150):
            name = f"m{number}-{column}.world.example.com"
            assert scene.answer(column, name) == scene.forwarded(name)
        scene.wait(lambda: scene.answer(column, OWNED).addresses == {scene.relay}, OWNED)
        name = f"m149-{column}.world.example.com"
        assert scene.answer(column, name) == scene.forwarded(name)
